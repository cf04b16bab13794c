#include "nacre/status.h"

namespace nacre {
namespace {

/// Null for a code that this version does not know.
const char* CodeName(int code) {
  switch (static_cast<Status::Code>(code)) {
    case Status::Code::kOk:
      return "OK";
    case Status::Code::kNotFound:
      return "NotFound";
    case Status::Code::kCorruption:
      return "Corruption";
    case Status::Code::kNotSupported:
      return "Not implemented";
    case Status::Code::kInvalidArgument:
      return "Invalid argument";
    case Status::Code::kIOError:
      return "IO error";
    case Status::Code::kIncomplete:
      return "Result incomplete";
    case Status::Code::kShutdownInProgress:
      return "Shutdown in progress";
    case Status::Code::kTimedOut:
      return "Operation timed out";
    case Status::Code::kAborted:
      return "Operation aborted";
    case Status::Code::kBusy:
      return "Resource busy";
    case Status::Code::kTryAgain:
      return "Operation failed. Try again.";
    case Status::Code::kNoSpace:
      return "No space";
    case Status::Code::kUnavailable:
      return "Unavailable";
    case Status::Code::kFenced:
      return "Fenced";
  }
  return nullptr;
}

bool IsKnownCode(int code) { return code >= 0 && code <= UINT8_MAX && CodeName(code) != nullptr; }

}  // namespace

Status Status::FromCode(int code, std::string_view message) {
  if (IsKnownCode(code)) return {static_cast<Code>(code), message};
  return IOError("unknown status code " + std::to_string(code) + ": " + std::string(message));
}

std::string Status::ToString() const {
  std::string result = CodeName(static_cast<int>(code_));
  if (!message().empty()) result.append(": ").append(message());
  return result;
}

Status Status::WithContext(std::string_view context) const {
  if (ok()) return *this;
  std::string text(context);
  if (!message().empty()) text.append(": ").append(message());
  return {code_, text};
}

}  // namespace nacre
