#include "adapters/leveldb/leveldb_error.h"

#include <string_view>

#include "adapters/common/c_memory.h"
#include "nacre/comparator.h"

namespace nacre {
namespace {

/// LevelDB has five kinds of failures; whatever else goes wrong in a pool is its "IO error".
std::string TextOf(const Status& status) {
  const std::string message(status.message());
  switch (status.code()) {
    case Status::Code::kNotFound:
      return "NotFound: " + message;
    case Status::Code::kCorruption:
      return "Corruption: " + message;
    case Status::Code::kNotSupported:
      return "Not implemented: " + message;
    case Status::Code::kInvalidArgument:
      return "Invalid argument: " + message;
    case Status::Code::kIOError:
      return "IO error: " + message;
    default:
      return "IO error: " + status.ToString();
  }
}

std::string LevelDBNameOf(std::string_view comparator) {
  return std::string(comparator == BytewiseComparator()->Name() ? kLevelDBBytewiseName
                                                                : comparator);
}

/// The two names in DB::Open's failure for another comparator, as LevelDB has them; empty if it is
/// another failure.
std::string ComparatorText(std::string_view message) {
  constexpr std::string_view kMade = "it was made with comparator ";
  constexpr std::string_view kOpened = ", opened with ";
  const size_t made = message.find(kMade);
  if (made == std::string_view::npos) return "";
  message.remove_prefix(made + kMade.size());
  const size_t opened = message.rfind(kOpened);
  if (opened == std::string_view::npos) return "";
  return LevelDBNameOf(message.substr(0, opened)) + " does not match existing comparator : " +
         LevelDBNameOf(message.substr(opened + kOpened.size()));
}

}  // namespace

const char* const kLevelDBBytewiseName = "leveldb.BytewiseComparator";

bool Succeeded(const Status& status, char** errptr) {
  if (status.ok()) return true;
  SetError(TextOf(status), errptr);
  return false;
}

std::string OpenFailureText(const Status& status, const std::string& path) {
  if (status.IsBusy()) return "IO error: lock " + path + "/LOCK: " + std::string(status.message());
  if (!status.IsInvalidArgument()) return TextOf(status);
  for (const char* reason :
       {"does not exist (create_if_missing is false)", "exists (error_if_exists is true)"}) {
    if (status.message().ends_with(reason)) return "Invalid argument: " + path + ": " + reason;
  }
  const std::string comparators = ComparatorText(status.message());
  return comparators.empty() ? TextOf(status) : "Invalid argument: " + comparators;
}

std::string HeldHereText(const std::string& path) {
  return "IO error: lock " + path + "/LOCK: already held by process";
}

}  // namespace nacre
