#include "table/iterator/merging_iterator.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

namespace nacre {
namespace {

class EmptyIterator final : public InternalIterator {
 public:
  void SeekToFirst() override {}
  void SeekToLast() override {}
  void Seek(const Slice&) override {}
  void SeekForPrev(const Slice&) override {}
  Status status() const override { return Status::OK(); }

 private:
  void NextRun() override { assert(false); }
  void PrevRun() override { assert(false); }
};

/// A binary heap of children whose top is the current one. Most comparisons are of 8-byte key
/// prefixes kept beside the heap. The second best is known, so what the top child has before it is
/// shown as one run.
class MergingIterator final : public InternalIterator {
 public:
  MergingIterator(const InternalKeyComparator& comparator,
                  std::vector<std::unique_ptr<InternalIterator>> children);

  void SeekToFirst() override;
  void SeekToLast() override;
  void PrepareSeek(const Slice& internal_key, const Slice* upper_bound) override;
  void Seek(const Slice& internal_key) override;
  void SeekForPrev(const Slice& internal_key) override;
  Status status() const override { return status_; }

 private:
  struct Child {
    /// An entry, and where it stands.
    struct Place {
      uint64_t prefix = 0;  ///< KeyPrefix; 0 unless the order is bytewise.
      const InternalEntry* entry = nullptr;
      const Child* child = nullptr;
    };
    Place place;  ///< That of the current entry.
    std::unique_ptr<InternalIterator> iterator;
  };
  using Place = Child::Place;

  void NextRun() override;
  void PrevRun() override;

  uint64_t PrefixOf(const InternalEntry& entry) const {
    return comparator_.bytewise() ? KeyPrefix(entry.user_key) : 0;
  }
  /// Orders entries; of equal ones, the first child's comes first.
  bool Less(const Place& a, const Place& b) const {
    if (a.prefix != b.prefix) [[likely]]
      return a.prefix < b.prefix;
    const int r = comparator_.CompareUserKeys(a.entry->user_key, b.entry->user_key);
    if (r != 0) return r < 0;
    return a.entry->tag != b.entry->tag ? a.entry->tag > b.entry->tag : a.child < b.child;
  }
  /// Orders them in the direction in which this iterator is moving.
  template <bool kForward>
  bool Before(const Place& a, const Place& b) const {
    return kForward ? Less(a, b) : Less(b, a);
  }
  template <bool kForward>
  bool Before(const Child& a, const Child& b) const {
    return Before<kForward>(a.place, b.place);
  }

  bool Refresh(Child* child);
  template <bool kForward>
  void ShowTop();
  template <bool kForward>
  void Rebuild();
  template <bool kForward>
  void SiftDown(size_t i);
  template <bool kForward>
  void FindSecond();
  template <bool kForward>
  void AfterTopMoved();
  template <bool kForward>
  void TurnAround();

  const InternalKeyComparator comparator_;
  std::vector<Child> children_;
  std::vector<Child*> heap_;       ///< Children that are valid. Empty after a failure.
  const Child* second_ = nullptr;  ///< The best but the top; null if there is none.
  bool forward_ = true;
  Status status_;
};

MergingIterator::MergingIterator(const InternalKeyComparator& comparator,
                                 std::vector<std::unique_ptr<InternalIterator>> children)
    : comparator_(comparator), children_(children.size()) {
  heap_.reserve(children.size());
  for (size_t i = 0; i < children.size(); ++i) children_[i].iterator = std::move(children[i]);
}

/// Notes what comparisons need. False if the child has no entry, be it by failure.
bool MergingIterator::Refresh(Child* child) {
  if (!child->iterator->Valid()) [[unlikely]] {
    if (status_.ok()) status_ = child->iterator->status();
    return false;
  }
  const InternalEntry* const entry = child->iterator->at();
  child->place = {PrefixOf(*entry), entry, child};
  return true;
}

/// Shows the top child's entry, and of those that follow it in the child's run about as many as
/// come before the second child's.
template <bool kForward>
void MergingIterator::ShowTop() {
  if (heap_.empty()) return ShowNothing();
  const Child& top = *heap_[0];
  const InternalEntry* const entry = top.place.entry;
  constexpr ptrdiff_t kStep = kForward ? 1 : -1;
  ptrdiff_t count =
      kForward ? top.iterator->run_end() - entry : entry - top.iterator->run_begin() + 1;
  while (second_ != nullptr && count > 1) {
    const InternalEntry* const last = entry + kStep * (count - 1);
    if (Before<kForward>({PrefixOf(*last), last, &top}, second_->place)) break;
    count /= 2;
  }
  kForward ? ShowRun(entry, entry, entry + count) : ShowRun(entry - count + 1, entry, entry + 1);
}

/// Requires that all children are positioned.
template <bool kForward>
void MergingIterator::Rebuild() {
  forward_ = kForward;
  status_ = Status::OK();
  heap_.clear();
  for (Child& child : children_) {
    if (Refresh(&child)) heap_.push_back(&child);
  }
  if (!status_.ok()) heap_.clear();
  for (size_t i = heap_.size() / 2; i-- > 0;) SiftDown<kForward>(i);
  FindSecond<kForward>();
  ShowTop<kForward>();
}

template <bool kForward>
void MergingIterator::SiftDown(size_t i) {
  Child* const moving = heap_[i];
  for (;;) {
    size_t least = 2 * i + 1;
    if (least >= heap_.size()) break;
    if (least + 1 < heap_.size() && Before<kForward>(*heap_[least + 1], *heap_[least])) ++least;
    if (!Before<kForward>(*heap_[least], *moving)) break;
    heap_[i] = heap_[least];
    i = least;
  }
  heap_[i] = moving;
}

template <bool kForward>
void MergingIterator::FindSecond() {
  if (heap_.size() < 2) {
    second_ = nullptr;
  } else if (heap_.size() > 2 && Before<kForward>(*heap_[2], *heap_[1])) {
    second_ = heap_[2];
  } else {
    second_ = heap_[1];
  }
}

template <bool kForward>
void MergingIterator::AfterTopMoved() {
  if (Refresh(heap_[0])) [[likely]] {
    if (second_ == nullptr || Before<kForward>(*heap_[0], *second_)) return ShowTop<kForward>();
  } else if (!status_.ok()) {
    heap_.clear();
    return ShowNothing();
  } else {
    heap_[0] = heap_.back();
    heap_.pop_back();
    if (heap_.empty()) return ShowNothing();
  }
  SiftDown<kForward>(0);
  FindSecond<kForward>();
  ShowTop<kForward>();
}

/// Moves all children to the other side of the current entry, and the current one by one.
template <bool kForward>
void MergingIterator::TurnAround() {
  Child* const current = heap_[0];
  std::string here;
  AppendInternalKey(&here, user_key(), tag());
  for (Child& child : children_) {
    if (&child == current) continue;
    InternalIterator* const other = child.iterator.get();
    kForward ? other->Seek(here) : other->SeekForPrev(here);
    // An entry equal to the current one is on the side that the children's order says.
    if (other->Valid() && (&child < current) == kForward && other->tag() == tag() &&
        other->user_key() == user_key()) {
      kForward ? other->Next() : other->Prev();
    }
  }
  kForward ? current->iterator->Next() : current->iterator->Prev();
  Rebuild<kForward>();
}

void MergingIterator::SeekToFirst() {
  for (Child& child : children_) child.iterator->SeekToFirst();
  Rebuild<true>();
}

void MergingIterator::SeekToLast() {
  for (Child& child : children_) child.iterator->SeekToLast();
  Rebuild<false>();
}

void MergingIterator::PrepareSeek(const Slice& internal_key, const Slice* upper_bound) {
  for (Child& child : children_) child.iterator->PrepareSeek(internal_key, upper_bound);
}

void MergingIterator::Seek(const Slice& internal_key) {
  for (Child& child : children_) child.iterator->Seek(internal_key);
  Rebuild<true>();
}

void MergingIterator::SeekForPrev(const Slice& internal_key) {
  for (Child& child : children_) child.iterator->SeekForPrev(internal_key);
  Rebuild<false>();
}

void MergingIterator::NextRun() {
  heap_[0]->iterator->MoveTo(at());
  if (!forward_) [[unlikely]] {
    TurnAround<true>();
    return;
  }
  heap_[0]->iterator->Next();
  AfterTopMoved<true>();
}

void MergingIterator::PrevRun() {
  heap_[0]->iterator->MoveTo(at());
  if (forward_) [[unlikely]] {
    TurnAround<false>();
    return;
  }
  heap_[0]->iterator->Prev();
  AfterTopMoved<false>();
}

}  // namespace

std::unique_ptr<InternalIterator> NewMergingIterator(
    const InternalKeyComparator& comparator,
    std::vector<std::unique_ptr<InternalIterator>> children) {
  if (children.empty()) return std::make_unique<EmptyIterator>();
  if (children.size() == 1) return std::move(children.front());
  return std::make_unique<MergingIterator>(comparator, std::move(children));
}

}  // namespace nacre
