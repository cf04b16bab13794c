#pragma once

#include <leveldb/env.h>

#include <atomic>
#include <memory>

namespace nacre::bench {

/// LevelDB's environment with two things that its API lacks: knowing whether background work is
/// left, and going without a log.
///
/// Thread safety: all methods may be called from many threads at once.
class LeveldbEnv final : public leveldb::EnvWrapper {
 public:
  /// Drops what is written to a log if `disable_wal`. LevelDB still formats and checksums the
  /// records.
  explicit LeveldbEnv(bool disable_wal)
      : leveldb::EnvWrapper(leveldb::Env::Default()), disable_wal_(disable_wal) {}

  leveldb::Status NewWritableFile(const std::string& name, leveldb::WritableFile** file) override;
  void Schedule(void (*function)(void*), void* argument) override;

  /// LevelDB schedules the next step of a chain of compactions before the present one ends, so
  /// this is 0 only when none is due.
  int scheduled() const { return scheduled_.load(std::memory_order_acquire); }

 private:
  const bool disable_wal_;
  std::atomic<int> scheduled_{0};
};

}  // namespace nacre::bench
