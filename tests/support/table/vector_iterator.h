#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "table/format/internal_key.h"
#include "table/iterator/internal_iterator.h"

namespace nacre {

/// An entry as tests write it down.
struct TestEntry {
  std::string user_key;
  uint64_t tag = 0;
  std::string value;
};

/// Sorts as tables and MemTables do: user key ascending, newest version first.
inline void SortEntries(const InternalKeyComparator& comparator, std::vector<TestEntry>* entries) {
  std::sort(entries->begin(), entries->end(), [&](const TestEntry& a, const TestEntry& b) {
    const int r = comparator.CompareUserKeys(a.user_key, b.user_key);
    return r != 0 ? r < 0 : a.tag > b.tag;
  });
}

/// Iterates over entries in memory, and can be told to fail.
class VectorIterator final : public InternalIterator {
 public:
  /// `entries` are sorted.
  VectorIterator(const InternalKeyComparator& comparator, std::vector<TestEntry> entries)
      : comparator_(comparator), entries_(std::move(entries)), at_(entries_.size()) {}

  /// After `moves` more moves the iterator fails with `status` and stays so.
  void FailAfter(size_t moves, Status status) {
    moves_left_ = moves;
    failure_ = std::move(status);
  }

  bool Valid() const override { return status_.ok() && at_ < entries_.size(); }
  Status status() const override { return status_; }
  void SeekToFirst() override { MoveTo(0); }
  void SeekToLast() override { MoveTo(entries_.size() - 1); }
  void Seek(const Slice& internal_key) override { MoveTo(LowerBound(internal_key)); }
  void SeekForPrev(const Slice& internal_key) override {
    const size_t at = LowerBound(internal_key);
    const bool equal = at < entries_.size() && Compare(entries_[at], internal_key) == 0;
    MoveTo(equal ? at : at - 1);
  }
  void Next() override {
    assert(Valid());
    MoveTo(at_ + 1);
  }
  void Prev() override {
    assert(Valid());
    MoveTo(at_ - 1);
  }
  Slice user_key() const override { return entry().user_key; }
  uint64_t tag() const override { return entry().tag; }
  Slice value() const override { return entry().value; }

 private:
  const TestEntry& entry() const {
    assert(Valid());
    return entries_[at_];
  }
  int Compare(const TestEntry& entry, const Slice& internal_key) const {
    const int r = comparator_.CompareUserKeys(entry.user_key, ExtractUserKey(internal_key));
    if (r != 0) return r;
    const uint64_t tag = ExtractTag(internal_key);
    return entry.tag > tag ? -1 : (entry.tag < tag ? 1 : 0);
  }
  size_t LowerBound(const Slice& internal_key) const {
    const auto found = std::partition_point(
        entries_.begin(), entries_.end(),
        [&](const TestEntry& entry) { return Compare(entry, internal_key) < 0; });
    return static_cast<size_t>(found - entries_.begin());
  }
  /// One before the first is SIZE_MAX, which is as invalid as one past the last.
  void MoveTo(size_t at) {
    at_ = at;
    if (failure_.ok() || !status_.ok()) return;
    if (moves_left_ == 0) {
      status_ = failure_;
    } else {
      --moves_left_;
    }
  }

  const InternalKeyComparator comparator_;
  const std::vector<TestEntry> entries_;
  size_t at_;
  size_t moves_left_ = 0;
  Status failure_;
  Status status_;
};

}  // namespace nacre
