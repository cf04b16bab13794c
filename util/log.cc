#include "util/log.h"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace nacre {
namespace {

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

class SpdlogLogger final : public Logger {
 public:
  SpdlogLogger(spdlog::sink_ptr sink, LogLevel level) : logger_("nacre", std::move(sink)) {
    logger_.set_level(ToSpdlog(level));
    logger_.flush_on(spdlog::level::info);
    logger_.set_pattern("%Y-%m-%dT%H:%M:%S.%f %t %l %v");
  }

  void Log(LogLevel level, std::string_view message) override {
    logger_.log(ToSpdlog(level), spdlog::string_view_t(message.data(), message.size()));
  }

 private:
  spdlog::logger logger_;
};

}  // namespace

std::shared_ptr<Logger> NewFileLogger(const std::string& path, Status* status) {
  try {
    return std::make_shared<SpdlogLogger>(std::make_shared<spdlog::sinks::basic_file_sink_mt>(path),
                                          LogLevel::kDebug);
  } catch (const spdlog::spdlog_ex& error) {
    if (status != nullptr) *status = Status::IOError(error.what());
    return nullptr;
  }
}

std::shared_ptr<Logger> NewStderrLogger(LogLevel level) {
  return std::make_shared<SpdlogLogger>(std::make_shared<spdlog::sinks::stderr_sink_mt>(), level);
}

void LogFormatted(Logger* logger, LogLevel level, fmt::string_view format,
                  fmt::format_args args) noexcept {
  try {
    fmt::memory_buffer buffer;
    fmt::vformat_to(fmt::appender(buffer), format, args);
    logger->Log(level, std::string_view(buffer.data(), buffer.size()));
  } catch (...) {
    // A line that is missing changes nothing else, and there is nowhere to say so.
    return;
  }
}

}  // namespace nacre
