#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <optional>
#include <vector>

#include "util/clock.h"
#include "util/log.h"
#include "util/mutex.h"

namespace nacre {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOld = ".old.";

class RollingLogger final : public Logger {
 public:
  RollingLogger(const RollingLogOptions& options, Clock* clock)
      : options_(options), clock_(clock), path_(fs::path(options.directory) / FileName(options)) {}

  Status Open() EXCLUDES(mutex_) {
    std::error_code error;
    fs::create_directories(options_.directory, error);
    if (error) {
      return Status::IOError("cannot make " + options_.directory + ": " + error.message());
    }
    MutexLock lock(&mutex_);
    return Roll();
  }

  void Log(LogLevel level, std::string_view message) override EXCLUDES(mutex_) {
    if (level < options_.level) return;
    MutexLock lock(&mutex_);
    // A failure leaves the current file in use.
    if (IsDue()) Roll().IgnoreError();
    current_->Log(level, message);
    constexpr uint64_t kLinePrefix = 48;  // Time, thread, level; about.
    bytes_ += message.size() + kLinePrefix;
  }

 private:
  static std::string FileName(const RollingLogOptions& options) {
    std::string name = options.name;
    std::replace_if(
        name.begin(), name.end(),
        [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '.'; }, '_');
    return name + "_LOG";
  }

  bool IsDue() const REQUIRES(mutex_) {
    if (bytes_ == 0) return false;
    if (options_.max_file_bytes > 0 && bytes_ >= options_.max_file_bytes) return true;
    return options_.seconds_to_roll > 0 && age_->Expired();
  }

  /// Puts the file that there is aside and begins another one.
  Status Roll() REQUIRES(mutex_) {
    std::error_code error;
    if (fs::exists(path_, error)) {
      fs::rename(path_, NewOldPath(), error);
      if (error) return Status::IOError("cannot rename " + path_.string() + ": " + error.message());
    }
    Status status;
    std::shared_ptr<Logger> fresh = NewFileLogger(path_.string(), &status);
    if (fresh == nullptr) return status;
    current_ = std::move(fresh);
    bytes_ = 0;
    age_ = Deadline::After(clock_, std::chrono::seconds(options_.seconds_to_roll));
    RemoveOldest();
    return Status::OK();
  }

  /// Later than all others, so that their names have the order of their times.
  fs::path NewOldPath() {
    auto micros = std::chrono::duration_cast<std::chrono::microseconds>(
                      std::chrono::system_clock::now().time_since_epoch())
                      .count();
    fs::path path;
    std::error_code error;
    do {
      path = path_.string() + std::string(kOld) + std::to_string(micros++);
    } while (fs::exists(path, error));
    return path;
  }

  void RemoveOldest() {
    const std::string prefix = path_.filename().string() + std::string(kOld);
    std::vector<fs::path> old;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(options_.directory, error)) {
      if (entry.path().filename().string().starts_with(prefix)) old.push_back(entry.path());
    }
    std::sort(old.begin(), old.end());
    const size_t keep = std::max<size_t>(options_.keep_files, 1) - 1;
    for (size_t i = 0; i + keep < old.size(); ++i) fs::remove(old[i], error);
  }

  const RollingLogOptions options_;
  Clock* const clock_;
  const fs::path path_;
  Mutex mutex_;
  std::shared_ptr<Logger> current_ GUARDED_BY(mutex_);
  uint64_t bytes_ GUARDED_BY(mutex_) = 0;  ///< The approximate size of the current file.
  std::optional<Deadline> age_ GUARDED_BY(mutex_);
};

}  // namespace

Status NewRollingLogger(const RollingLogOptions& options, Clock* clock,
                        std::shared_ptr<Logger>* logger) {
  auto rolling = std::make_shared<RollingLogger>(options, clock);
  NACRE_RETURN_IF_ERROR(rolling->Open());
  *logger = std::move(rolling);
  return Status::OK();
}

}  // namespace nacre
