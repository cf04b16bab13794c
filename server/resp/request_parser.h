#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nacre::server {

/// Bounds of what one client may ask for, with Redis's defaults.
struct RequestLimits {
  size_t bulk_bytes_max = size_t{512} << 20;  ///< Bytes of one argument.
  size_t args_max = size_t{1} << 20;          ///< Arguments of one request.
  size_t line_bytes_max = size_t{64} << 10;   ///< Bytes of an inline request, or of a length.
};

/// One command with its arguments, which view `bytes`. It may be moved, and used again.
struct Request {
  std::vector<char> bytes;
  std::vector<std::string_view> args;
};

/// Cuts the bytes that a client sends into requests: arrays of bulk strings as RESP2 has them, or
/// inline commands, which are words in a line. Bytes may arrive in any pieces.
///
/// Thread safety: none.
class RequestParser {
 public:
  enum class Result : uint8_t {
    kRequest,  ///< `*request` is the next one.
    kMore,     ///< Its end has not arrived yet.
    kError,    ///< What arrived is no request, `error()` says why; nothing can follow.
  };

  /// `limits` must outlive the parser.
  explicit RequestParser(const RequestLimits* limits) : limits_(*limits) {}

  void Append(std::string_view bytes);
  Result Next(Request* request);

  /// Redis's text, such as "Protocol error: invalid bulk length".
  const std::string& error() const { return error_; }
  /// Bytes that arrived and are not part of a request that was handed out.
  size_t buffered() const { return buffer_.size() - begin_; }

 private:
  /// The line at `position_`, which is taken; `too_long` is the error if it has no end in sight.
  Result TakeLine(const char* too_long, std::string_view* line);
  Result NextInline(Request* request);
  /// Takes the number of arguments of an array.
  Result BeginArray();
  /// Takes one argument, its length first.
  Result TakeArgument();
  Result Fail(std::string error);
  /// Makes the request of `arguments_` and forgets its bytes.
  void Finish(Request* request);

  const RequestLimits& limits_;
  std::string buffer_;
  std::string error_;
  size_t begin_ = 0;     ///< The first byte of the request that is being parsed.
  size_t position_ = 0;  ///< What is before it was understood.
  bool in_array_ = false;
  size_t args_left_ = 0;
  bool in_bulk_ = false;
  size_t bulk_bytes_ = 0;
  std::vector<std::pair<size_t, size_t>> arguments_;  ///< Offset behind `begin_`, and size.
};

/// Splits a line into words as Redis does: in double quotes there are escapes such as \n and \x0a,
/// in single ones only \'. False if quotes are not balanced.
bool SplitWords(std::string_view line, std::vector<std::string>* words);

}  // namespace nacre::server
