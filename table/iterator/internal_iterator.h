#pragma once

#include <cassert>
#include <cstdint>

#include "nacre/slice.h"
#include "nacre/status.h"

namespace nacre {

/// One version of a key, as iterators show it.
struct InternalEntry {
  Slice user_key;
  uint64_t tag = 0;  ///< As PackTag makes it.
  Slice value;
};

/// A cursor over internal entries, in InternalKeyComparator order. Same thread rules as
/// nacre::Iterator.
///
/// It shows a run: the current entry and some of its neighbours, none left out, as far as they are
/// at hand. Steps within the run cost a comparison of pointers, however many iterators are stacked,
/// since each shows the entries of one below it. The bytes of all entries of a run stay until the
/// iterator leaves it.
class InternalIterator {
 public:
  InternalIterator() = default;
  virtual ~InternalIterator() = default;
  InternalIterator(const InternalIterator&) = delete;
  InternalIterator& operator=(const InternalIterator&) = delete;

  virtual void SeekToFirst() = 0;
  virtual void SeekToLast() = 0;
  /// Starts to fetch what `Seek` of the same key will need and does not wait for it, so that
  /// several iterators wait together; unless that fails, the `Seek` is the next call. The scan from
  /// there needs nothing at or behind the user key `upper_bound`, which may be null. Whether it is
  /// called changes nothing but the time that all takes.
  virtual void PrepareSeek(const Slice& /*internal_key*/, const Slice* /*upper_bound*/) {}
  /// Moves to the first entry >= `internal_key`.
  virtual void Seek(const Slice& internal_key) = 0;
  /// Moves to the last entry <= `internal_key`.
  virtual void SeekForPrev(const Slice& internal_key) = 0;
  void Next() {
    assert(Valid());
    if (run_end_ - at_ > 1) [[likely]] {
      ++at_;
    } else {
      NextRun();
    }
  }
  void Prev() {
    assert(Valid());
    if (at_ != run_begin_) [[likely]] {
      --at_;
    } else {
      PrevRun();
    }
  }
  /// OK, or why the iterator is not valid.
  virtual Status status() const = 0;

  bool Valid() const { return at_ != nullptr; }
  /// The current entry; null if there is none. The other entries of the run lie beside it.
  const InternalEntry* at() const { return at_; }
  const InternalEntry* run_begin() const { return run_begin_; }
  const InternalEntry* run_end() const { return run_end_; }
  /// Moves to another entry of the run.
  void MoveTo(const InternalEntry* entry) {
    assert(run_begin_ <= entry && entry < run_end_);
    at_ = entry;
  }
  Slice user_key() const { return current().user_key; }
  uint64_t tag() const { return current().tag; }
  Slice value() const { return current().value; }

 protected:
  /// Moves to the entry behind the run, and shows it and those at hand. at() is the last of the
  /// run.
  virtual void NextRun() = 0;
  /// Moves to the entry before the run, of which at() is the first.
  virtual void PrevRun() = 0;

  /// `at` is in [begin, end).
  void ShowRun(const InternalEntry* begin, const InternalEntry* at, const InternalEntry* end) {
    assert(begin <= at && at < end);
    run_begin_ = begin;
    at_ = at;
    run_end_ = end;
  }
  void ShowOne(const InternalEntry* entry) { ShowRun(entry, entry, entry + 1); }
  void ShowNothing() { run_begin_ = at_ = run_end_ = nullptr; }

 private:
  const InternalEntry& current() const {
    assert(Valid());
    return *at_;
  }

  const InternalEntry* at_ = nullptr;
  const InternalEntry* run_begin_ = nullptr;
  const InternalEntry* run_end_ = nullptr;
};

}  // namespace nacre
