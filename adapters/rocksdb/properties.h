#pragma once

#include <rocksdb/slice.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "nacre/column_family.h"
#include "nacre/db.h"
#include "nacre/listener.h"
#include "util/mutex.h"

namespace nacre::rocksdb_api {

/// Records when the snapshots that are held were made. Thread safety: all methods may be called
/// from many threads at once.
class SnapshotTimes {
 public:
  void Add(int64_t seconds);
  void Remove(int64_t seconds);
  /// 0 if there is none.
  uint64_t Oldest() const;

 private:
  mutable Mutex mutex_;
  std::multiset<int64_t> seconds_ GUARDED_BY(mutex_);
};

/// Counts the attempts of background work that failed.
class ErrorCounter final : public EventListener {
 public:
  void OnBackgroundError(BackgroundErrorReason /*reason*/, Status* /*error*/) override {
    errors_.fetch_add(1, std::memory_order_relaxed);  // A number by itself.
  }
  uint64_t errors() const { return errors_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> errors_{0};
};

/// RocksDB's properties: Nacre's own, and those of things that Nacre has not got (blobs, a block
/// cache, files), which are as in a RocksDB that has none of them. False for an unknown one.
/// Thread safety: all methods may be called from many threads at once.
class PropertySource {
 public:
  /// All outlive it.
  PropertySource(nacre::DB* db, const SnapshotTimes* snapshots, const ErrorCounter* errors)
      : db_(db), snapshots_(snapshots), errors_(errors) {}

  bool Text(nacre::ColumnFamilyHandle* family, const std::string& property,
            std::string* value) const;
  bool Number(nacre::ColumnFamilyHandle* family, const std::string& property,
              uint64_t* value) const;
  bool Map(nacre::ColumnFamilyHandle* family, const std::string& property,
           std::map<std::string, std::string>* value) const;
  /// Sums the property over all families.
  bool Sum(const std::string& property, uint64_t* value) const;

  /// Sets the value of "rocksdb.is-file-deletions-enabled".
  void set_file_deletions(bool enabled) {
    file_deletions_.store(enabled, std::memory_order_relaxed);  // A number by itself.
  }

 private:
  /// What Nacre has no property for. `name` is without "rocksdb.".
  bool OwnNumber(const std::string& name, uint64_t* value) const;
  /// Answers for the level whose number `property` ends with; false if there is none.
  bool OfLevel(nacre::ColumnFamilyHandle* family, const std::string& property,
               std::map<std::string, std::string>* value) const;

  nacre::DB* const db_;
  const SnapshotTimes* const snapshots_;
  const ErrorCounter* const errors_;
  std::atomic<bool> file_deletions_{true};
};

}  // namespace nacre::rocksdb_api
