#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace nacre::server {

/// Writes what a command answers, in the protocol that the client has chosen: 2, or 3, which knows
/// maps, sets, doubles and more. Where RESP2 lacks a type, the one that Redis uses there stands in.
///
/// Containers take as many elements afterwards as they have announced; maps twice as many.
/// Thread safety: none.
class Reply {
 public:
  explicit Reply(int protocol) : protocol_(protocol) {}

  /// A short text without line breaks, such as "OK".
  void Simple(std::string_view text);
  void Ok() { Simple("OK"); }
  /// `message` begins with its code, such as "ERR" or "WRONGTYPE"; line breaks become spaces.
  void Error(std::string_view message);
  void Integer(int64_t value);
  void Bulk(std::string_view bytes);
  void Double(double value);
  void Boolean(bool value);
  /// Text that clients show as it is.
  void Verbatim(std::string_view text);
  void Null();
  /// What RESP2 answers for an array that is not there.
  void NullArray();
  void Array(size_t elements);
  void Map(size_t pairs);
  void Set(size_t elements);
  /// An array that is no answer, such as a message of a channel.
  void Push(size_t elements);

  int protocol() const { return protocol_; }
  void set_protocol(int protocol) { protocol_ = protocol; }
  const std::string& bytes() const { return bytes_; }
  std::string Take() { return std::exchange(bytes_, {}); }
  void Clear() { bytes_.clear(); }
  void Append(std::string_view bytes) { bytes_.append(bytes); }
  bool is_error() const { return bytes_.starts_with('-'); }

 private:
  void Number(char type, int64_t value);

  int protocol_;
  std::string bytes_;
};

}  // namespace nacre::server
