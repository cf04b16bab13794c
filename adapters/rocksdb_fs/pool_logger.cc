#include "adapters/rocksdb_fs/pool_logger.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <string>
#include <utility>

#include "adapters/rocksdb_fs/file_writer.h"
#include "util/mutex.h"
#include "util/thread_index.h"

namespace nacre::rocksfs {
namespace {

class PoolLogger final : public rocksdb::Logger {
 public:
  explicit PoolLogger(std::shared_ptr<RemoteFile> file) : writer_(std::move(file)) {}
  ~PoolLogger() override { Close().PermitUncheckedError(); }

  using Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    char text[kMaxBytes];
    const int bytes = std::vsnprintf(text, sizeof(text), format, arguments);
    if (bytes < 0) return;
    const auto now = std::chrono::system_clock::now();
    const std::string line = fmt::format(
        "{:%Y/%m/%d-%H:%M:%S} {} {}\n", fmt::localtime(std::chrono::system_clock::to_time_t(now)),
        ThreadIndex::Current(),
        std::string_view(text, std::min<size_t>(static_cast<size_t>(bytes), kMaxBytes - 1)));
    MutexLock lock(&mutex_);
    if (writer_.Append(line).ok()) writer_.Post().IgnoreError();
  }
  size_t GetLogFileSize() const override {
    MutexLock lock(&mutex_);
    return writer_.size();
  }

 protected:
  rocksdb::Status CloseImpl() override {
    MutexLock lock(&mutex_);
    writer_.Close().IgnoreError();
    return rocksdb::Status::OK();
  }

 private:
  static constexpr size_t kMaxBytes = 16 << 10;

  mutable Mutex mutex_;
  FileWriter writer_ GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<rocksdb::Logger> NewPoolLogger(std::shared_ptr<RemoteFile> file) {
  return std::make_shared<PoolLogger>(std::move(file));
}

}  // namespace nacre::rocksfs
