#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

namespace nacre::bench {

/// How often each record was written: what lets a time to live begin anew with each write.
/// Thread safety: all methods may be called from many threads at once.
class RecordVersions {
 public:
  explicit RecordVersions(uint64_t records)
      : versions_(std::make_unique<std::atomic<uint32_t>[]>(records)) {}

  /// The record is written or deleted; answers its version from now on.
  uint32_t Advance(uint64_t record) {
    return versions_[record].fetch_add(1, std::memory_order_relaxed) + 1;
  }
  uint32_t Current(uint64_t record) const {
    return versions_[record].load(std::memory_order_relaxed);
  }

 private:
  const std::unique_ptr<std::atomic<uint32_t>[]> versions_;
};

/// What one thread has written, until it has lived for so many operations of this thread.
/// Thread safety: none; one per thread.
class ExpiryQueue {
 public:
  /// `ttl_ops` = 0: nothing expires. `versions` must outlive this.
  ExpiryQueue(uint64_t ttl_ops, RecordVersions* versions)
      : ttl_ops_(ttl_ops), versions_(versions) {}

  void Written(uint64_t record, uint64_t now_ops) {
    const uint32_t version = versions_->Advance(record);
    if (ttl_ops_ > 0) queue_.push_back({now_ops + ttl_ops_, record, version});
  }
  /// A record that has lived long enough and was not written since, if there is one.
  std::optional<uint64_t> TakeExpired(uint64_t now_ops) {
    while (!queue_.empty() && queue_.front().due_ops <= now_ops) {
      const Entry entry = queue_.front();
      queue_.pop_front();
      if (versions_->Current(entry.record) == entry.version) return entry.record;
    }
    return std::nullopt;
  }

 private:
  struct Entry {
    uint64_t due_ops;
    uint64_t record;
    uint32_t version;
  };

  const uint64_t ttl_ops_;
  RecordVersions* const versions_;
  std::deque<Entry> queue_;
};

}  // namespace nacre::bench
