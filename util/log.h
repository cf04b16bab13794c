#pragma once

#include <fmt/core.h>

#include <memory>
#include <string>
#include <utility>

#include "nacre/logger.h"
#include "nacre/status.h"

namespace nacre {

/// Appends lines "time thread level message" to the file, which is created if missing; all but
/// debug lines are written through at once. Null, and why in `*status` if asked for, when the file
/// cannot be opened.
std::shared_ptr<Logger> NewFileLogger(const std::string& path, Status* status = nullptr);

/// The same lines on standard error, from `level` upwards.
std::shared_ptr<Logger> NewStderrLogger(LogLevel level);

void LogFormatted(Logger* logger, LogLevel level, fmt::string_view format, fmt::format_args args);

/// `Log(logger, LogLevel::kInfo, "table {} at {}", id, offset)`. Nothing is formatted when the
/// logger is null. The format is checked at compile time.
template <typename... Args>
void Log(Logger* logger, LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (logger == nullptr) return;
  LogFormatted(logger, level, format, fmt::make_format_args(args...));
}
template <typename... Args>
void Log(const std::shared_ptr<Logger>& logger, LogLevel level, fmt::format_string<Args...> format,
         Args&&... args) {
  Log(logger.get(), level, format, std::forward<Args>(args)...);
}

}  // namespace nacre
