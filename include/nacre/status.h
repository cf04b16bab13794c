#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace nacre {

/// The outcome of an operation. Success carries no allocation; a failure carries a code and,
/// usually, a message that names the culprit (node, table, flag, file, offset).
///
/// Thread safety: as `std::string`. Marked nodiscard: to drop one on purpose, call
/// `IgnoreError()`, which can be searched for.
class [[nodiscard]] Status {
 public:
  enum class Code : uint8_t {
    kOk = 0,
    kNotFound = 1,
    kCorruption = 2,
    kNotSupported = 3,
    kInvalidArgument = 4,
    kIOError = 5,
    kIncomplete = 6,
    kShutdownInProgress = 7,
    kTimedOut = 8,
    kAborted = 9,
    kBusy = 10,
    kTryAgain = 11,
    kNoSpace = 12,      ///< The pool is full. Reads go on; freed space makes writes work again.
    kUnavailable = 13,  ///< Nodes that hold the data are lost; the message names them.
    kFenced = 14,       ///< Another owner has taken the shard over.
  };

  Status() noexcept = default;
  Status(const Status& other)
      : code_(other.code_),
        message_(other.message_ ? std::make_unique<std::string>(*other.message_) : nullptr) {}
  Status& operator=(const Status& other) {
    if (this != &other) *this = Status(other);
    return *this;
  }
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  ~Status() = default;

  static Status OK() { return {}; }
  static Status NotFound(std::string_view message = {}) { return {Code::kNotFound, message}; }
  static Status Corruption(std::string_view message) { return {Code::kCorruption, message}; }
  static Status NotSupported(std::string_view message) { return {Code::kNotSupported, message}; }
  static Status InvalidArgument(std::string_view message) {
    return {Code::kInvalidArgument, message};
  }
  static Status IOError(std::string_view message) { return {Code::kIOError, message}; }
  static Status Incomplete(std::string_view message) { return {Code::kIncomplete, message}; }
  static Status ShutdownInProgress(std::string_view message = {}) {
    return {Code::kShutdownInProgress, message};
  }
  static Status TimedOut(std::string_view message) { return {Code::kTimedOut, message}; }
  static Status Aborted(std::string_view message) { return {Code::kAborted, message}; }
  static Status Busy(std::string_view message) { return {Code::kBusy, message}; }
  static Status TryAgain(std::string_view message) { return {Code::kTryAgain, message}; }
  static Status NoSpace(std::string_view message) { return {Code::kNoSpace, message}; }
  static Status Unavailable(std::string_view message) { return {Code::kUnavailable, message}; }
  static Status Fenced(std::string_view message) { return {Code::kFenced, message}; }

  /// Rebuilds a status that crossed the wire. An unknown code becomes `kIOError`.
  static Status FromCode(int code, std::string_view message);

  bool ok() const { return code_ == Code::kOk; }
  bool IsNotFound() const { return code_ == Code::kNotFound; }
  bool IsCorruption() const { return code_ == Code::kCorruption; }
  bool IsNotSupported() const { return code_ == Code::kNotSupported; }
  bool IsInvalidArgument() const { return code_ == Code::kInvalidArgument; }
  bool IsIOError() const { return code_ == Code::kIOError; }
  bool IsIncomplete() const { return code_ == Code::kIncomplete; }
  bool IsShutdownInProgress() const { return code_ == Code::kShutdownInProgress; }
  bool IsTimedOut() const { return code_ == Code::kTimedOut; }
  bool IsAborted() const { return code_ == Code::kAborted; }
  bool IsBusy() const { return code_ == Code::kBusy; }
  bool IsTryAgain() const { return code_ == Code::kTryAgain; }
  bool IsNoSpace() const { return code_ == Code::kNoSpace; }
  bool IsUnavailable() const { return code_ == Code::kUnavailable; }
  bool IsFenced() const { return code_ == Code::kFenced; }

  Code code() const { return code_; }
  std::string_view message() const { return message_ ? *message_ : std::string_view(); }

  /// "OK", or "<code name>: <message>".
  std::string ToString() const;

  /// States in the code that this failure is of no consequence here.
  void IgnoreError() const {}

  /// Same code, with `context + ": "` before the message. OK stays OK.
  Status WithContext(std::string_view context) const;

  bool operator==(const Status& other) const { return code_ == other.code_; }

 private:
  Status(Code code, std::string_view message)
      : code_(code), message_(message.empty() ? nullptr : std::make_unique<std::string>(message)) {}

  Code code_ = Code::kOk;
  std::unique_ptr<std::string> message_;
};

}  // namespace nacre

/// Returns from the enclosing function when `expression` is a failure.
#define NACRE_RETURN_IF_ERROR(expression)                                               \
  do {                                                                                  \
    if (::nacre::Status nacre_status_ = (expression); !nacre_status_.ok()) [[unlikely]] \
      return nacre_status_;                                                             \
  } while (false)
