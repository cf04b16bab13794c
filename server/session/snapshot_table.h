#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "nacre/db.h"
#include "util/mutex.h"

namespace nacre::server {

/// All databases of a server as of one moment: what was written by then, and not expired.
///
/// Thread safety: it does not change.
class SnapshotView {
 public:
  /// As of now, by the clock of expiries. The database must outlive it.
  SnapshotView(DB* db, uint64_t now_ms)
      : db_(db), snapshot_(db->GetSnapshot()), made_at_ms_(now_ms) {}
  ~SnapshotView() { db_->ReleaseSnapshot(snapshot_); }
  SnapshotView(const SnapshotView&) = delete;
  SnapshotView& operator=(const SnapshotView&) = delete;

  const Snapshot* snapshot() const { return snapshot_; }
  /// Milliseconds since 1970.
  uint64_t made_at_ms() const { return made_at_ms_; }

 private:
  DB* const db_;
  const Snapshot* const snapshot_;
  const uint64_t made_at_ms_;
};

/// The snapshots that clients have made. The database keeps old versions for them, so that they are
/// bounded in number and in age, and are given up with the connections that made them. A command
/// that reads one keeps it to its end.
///
/// Thread safety: all methods may be called from many threads at once.
class SnapshotTable {
 public:
  static constexpr size_t kSnapshotsMax = 128;
  static constexpr std::chrono::hours kAgeMax{1};

  struct Entry {
    uint64_t id = 0;
    uint64_t client = 0;
    uint64_t made_at_ns = 0;
    std::shared_ptr<const SnapshotView> view;
  };

  /// Its id, by which clients name it; 0 if there are too many.
  uint64_t Add(std::shared_ptr<const SnapshotView> view, uint64_t client, uint64_t now_ns)
      EXCLUDES(mutex_) {
    const MutexLock lock(&mutex_);
    if (held_.size() >= kSnapshotsMax) return 0;
    const uint64_t id = ++last_;
    held_[id] = {id, client, now_ns, std::move(view)};
    return id;
  }
  /// Null: there is none.
  std::shared_ptr<const SnapshotView> Find(uint64_t id) const EXCLUDES(mutex_) {
    const MutexLock lock(&mutex_);
    const auto found = held_.find(id);
    return found == held_.end() ? nullptr : found->second.view;
  }
  /// False if there is none.
  bool Remove(uint64_t id) EXCLUDES(mutex_) {
    const MutexLock lock(&mutex_);
    return held_.erase(id) > 0;
  }
  /// By their ids.
  std::vector<Entry> List() const EXCLUDES(mutex_) {
    std::vector<Entry> entries;
    const MutexLock lock(&mutex_);
    for (const auto& [id, held] : held_) entries.push_back(held);
    return entries;
  }
  /// Gives up those that the client has made.
  void RemoveOf(uint64_t client) EXCLUDES(mutex_) {
    const MutexLock lock(&mutex_);
    std::erase_if(held_, [&](const auto& each) { return each.second.client == client; });
  }
  /// Gives up those that are too old.
  void RemoveOld(uint64_t now_ns) EXCLUDES(mutex_) {
    const auto age_max = static_cast<uint64_t>(std::chrono::nanoseconds(kAgeMax).count());
    const MutexLock lock(&mutex_);
    std::erase_if(held_,
                  [&](const auto& each) { return each.second.made_at_ns + age_max < now_ns; });
  }
  /// Before the database is closed.
  void Clear() EXCLUDES(mutex_) {
    const MutexLock lock(&mutex_);
    held_.clear();
  }

 private:
  mutable Mutex mutex_;
  uint64_t last_ GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Entry> held_ GUARDED_BY(mutex_);
};

}  // namespace nacre::server
