#include "table/iterator/merging_iterator.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

namespace nacre {
namespace {

class EmptyIterator final : public InternalIterator {
 public:
  bool Valid() const override { return false; }
  void SeekToFirst() override {}
  void SeekToLast() override {}
  void Seek(const Slice&) override {}
  void SeekForPrev(const Slice&) override {}
  void Next() override { assert(false); }
  void Prev() override { assert(false); }
  Slice user_key() const override { return {}; }
  uint64_t tag() const override { return 0; }
  Slice value() const override { return {}; }
  Status status() const override { return Status::OK(); }
};

/// A binary heap of children whose top is the current one. Most comparisons are of 8-byte key
/// prefixes kept beside the heap; and as long as the top child stays before the second best, which
/// is known, a Next is one comparison.
class MergingIterator final : public InternalIterator {
 public:
  MergingIterator(const InternalKeyComparator& comparator,
                  std::vector<std::unique_ptr<InternalIterator>> children);

  bool Valid() const override { return !heap_.empty(); }
  void SeekToFirst() override;
  void SeekToLast() override;
  void PrepareSeek(const Slice& internal_key, const Slice* upper_bound) override;
  void Seek(const Slice& internal_key) override;
  void SeekForPrev(const Slice& internal_key) override;
  void Next() override;
  void Prev() override;

  Slice user_key() const override { return heap_[0]->key; }
  uint64_t tag() const override { return heap_[0]->tag; }
  Slice value() const override { return heap_[0]->iterator->value(); }
  Status status() const override { return status_; }

 private:
  struct Child {
    uint64_t prefix = 0;  ///< KeyPrefix; 0 unless the order is bytewise.
    Slice key;
    uint64_t tag = 0;
    std::unique_ptr<InternalIterator> iterator;
  };

  /// Orders entries; of equal ones, the first child's comes first.
  bool Less(const Child& a, const Child& b) const {
    if (a.prefix != b.prefix) [[likely]]
      return a.prefix < b.prefix;
    const int r = comparator_.CompareUserKeys(a.key, b.key);
    if (r != 0) return r < 0;
    return a.tag != b.tag ? a.tag > b.tag : &a < &b;
  }
  /// Orders them in the direction in which this iterator is moving.
  template <bool kForward>
  bool Before(const Child& a, const Child& b) const {
    return kForward ? Less(a, b) : Less(b, a);
  }

  bool Refresh(Child* child);
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

/// Copies what comparisons need. False if the child has no entry, be it by failure.
bool MergingIterator::Refresh(Child* child) {
  if (!child->iterator->Valid()) [[unlikely]] {
    if (status_.ok()) status_ = child->iterator->status();
    return false;
  }
  child->key = child->iterator->user_key();
  child->tag = child->iterator->tag();
  if (comparator_.bytewise()) child->prefix = KeyPrefix(child->key);
  return true;
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
    if (second_ == nullptr || Before<kForward>(*heap_[0], *second_)) return;
  } else if (!status_.ok()) {
    heap_.clear();
    return;
  } else {
    heap_[0] = heap_.back();
    heap_.pop_back();
    if (heap_.empty()) return;
  }
  SiftDown<kForward>(0);
  FindSecond<kForward>();
}

/// Moves all children to the other side of the current entry, and the current one by one.
template <bool kForward>
void MergingIterator::TurnAround() {
  Child* const current = heap_[0];
  std::string here;
  AppendInternalKey(&here, current->key, current->tag);
  for (Child& child : children_) {
    if (&child == current) continue;
    InternalIterator* const other = child.iterator.get();
    kForward ? other->Seek(here) : other->SeekForPrev(here);
    // An entry equal to the current one is on the side that the children's order says.
    if (other->Valid() && (&child < current) == kForward && other->tag() == current->tag &&
        other->user_key() == current->key) {
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

void MergingIterator::Next() {
  assert(Valid());
  if (!forward_) [[unlikely]] {
    TurnAround<true>();
    return;
  }
  heap_[0]->iterator->Next();
  AfterTopMoved<true>();
}

void MergingIterator::Prev() {
  assert(Valid());
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
