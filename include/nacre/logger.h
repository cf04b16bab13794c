#pragma once

#include <string_view>

namespace nacre {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

/// Where a database reports what it does. Called from any thread, never on the path of a read or
/// a write.
class Logger {
 public:
  virtual ~Logger() = default;
  virtual void Log(LogLevel level, std::string_view message) = 0;
};

}  // namespace nacre
