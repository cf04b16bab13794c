#pragma once

#include <string_view>

namespace nacre {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

/// Receives a database's reports on what it does. Any thread may call it, but never on the path of
/// a read or a write.
class Logger {
 public:
  virtual ~Logger() = default;
  virtual void Log(LogLevel level, std::string_view message) = 0;
};

}  // namespace nacre
