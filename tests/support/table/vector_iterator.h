#pragma once

#include <algorithm>
#include <cstddef>
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

/// Iterates over entries in memory, and can be told to fail. Shows copies of them, which are gone
/// when it leaves their run.
class VectorIterator final : public InternalIterator {
 public:
  /// `entries` are sorted. Each run has `run_length` of them, but for the last one.
  VectorIterator(const InternalKeyComparator& comparator, std::vector<TestEntry> entries,
                 size_t run_length = 1)
      : comparator_(comparator), entries_(std::move(entries)), run_length_(run_length) {}

  /// After `moves` more moves from run to run the iterator fails with `status` and stays so.
  void FailAfter(size_t moves, Status status) {
    moves_left_ = moves;
    failure_ = std::move(status);
  }

  Status status() const override { return status_; }
  void SeekToFirst() override { Show(0); }
  void SeekToLast() override { Show(entries_.size() - 1); }
  void Seek(const Slice& internal_key) override { Show(LowerBound(internal_key)); }
  void SeekForPrev(const Slice& internal_key) override {
    const size_t at = LowerBound(internal_key);
    const bool equal = at < entries_.size() && Compare(entries_[at], internal_key) == 0;
    Show(equal ? at : at - 1);
  }

 private:
  void NextRun() override { Show(run_at_ + copies_.size()); }
  void PrevRun() override { Show(run_at_ - 1); }
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
  void Show(size_t at) {
    if (!failure_.ok() && status_.ok() && moves_left_-- == 0) status_ = failure_;
    if (!status_.ok() || at >= entries_.size()) return ShowNothing();
    run_at_ = at / run_length_ * run_length_;
    const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(run_at_);
    const size_t count = std::min(run_length_, entries_.size() - run_at_);
    // New memory, so that AddressSanitizer sees who still looks at the old run.
    copies_ = std::vector<TestEntry>(begin, begin + static_cast<std::ptrdiff_t>(count));
    run_ = std::vector<InternalEntry>(count);
    for (size_t i = 0; i < count; ++i) {
      run_[i] = {copies_[i].user_key, copies_[i].tag, copies_[i].value};
    }
    ShowRun(run_.data(), run_.data() + (at - run_at_), run_.data() + count);
  }

  const InternalKeyComparator comparator_;
  const std::vector<TestEntry> entries_;
  const size_t run_length_;
  size_t run_at_ = 0;  ///< The number of the run's first entry.
  std::vector<TestEntry> copies_;
  std::vector<InternalEntry> run_;
  size_t moves_left_ = 0;
  Status failure_;
  Status status_;
};

}  // namespace nacre
