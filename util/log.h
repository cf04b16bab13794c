#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "nacre/logger.h"
#include "nacre/status.h"

namespace nacre {

class Clock;

/// Appends lines "time thread level message" to the file, which is created if missing; all but
/// debug lines are written through at once. Null, and why in `*status` if asked for, when the file
/// cannot be opened.
std::shared_ptr<Logger> NewFileLogger(const std::string& path, Status* status = nullptr);

/// The same lines on standard error, from `level` upwards.
std::shared_ptr<Logger> NewStderrLogger(LogLevel level);

/// A LOG as RocksDB keeps it: `directory`/`name`_LOG, with what cannot be in a file name replaced
/// by '_'. What there was is renamed to ..._LOG.old.MICROS when it is opened, and when it is full.
struct RollingLogOptions {
  std::string directory;  ///< Made if missing.
  std::string name;
  LogLevel level = LogLevel::kInfo;  ///< The least level that is written.
  uint64_t max_file_bytes = 0;       ///< 0: any size.
  uint64_t seconds_to_roll = 0;      ///< 0: for ever.
  size_t keep_files = 1000;          ///< The newest ones, the current one counted; at least 1.
};
/// `IOError` naming the path that could not be made or opened. What fails later, such as the
/// renaming of a full file, leaves the file as it is, to grow.
Status NewRollingLogger(const RollingLogOptions& options, Clock* clock,
                        std::shared_ptr<Logger>* logger);

/// What the logger throws, or the lack of memory, costs the line and nothing else.
void LogFormatted(Logger* logger, LogLevel level, fmt::string_view format,
                  fmt::format_args args) noexcept;

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
