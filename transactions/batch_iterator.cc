#include "transactions/batch_iterator.h"

#include <cassert>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "db/read/iterator_bounds.h"
#include "transactions/batch_lookup.h"
#include "transactions/below.h"
#include "util/exceptions.h"

namespace nacre {
namespace {

WriteType WriteTypeOf(ValueType type) {
  switch (type) {
    case ValueType::kDeletion:
      return WriteType::kDeleteRecord;
    case ValueType::kSingleDeletion:
      return WriteType::kSingleDeleteRecord;
    case ValueType::kMerge:
      return WriteType::kMergeRecord;
    case ValueType::kValue:
    case ValueType::kRangeDeletion:
      break;
  }
  return WriteType::kPutRecord;
}

class BatchIterator final : public WBWIIterator {
 public:
  BatchIterator(const BatchIndex* index, uint32_t family)
      : index_(index), family_(family), at_(index->end()) {}

  bool Valid() const override { return at_ != index_->end() && at_->family == family_; }
  void SeekToFirst() override { Stand(index_->At({family_, nullptr, false})); }
  void SeekToLast() override { StandBefore(index_->At({family_, nullptr, true})); }
  void Seek(const Slice& key) override try {
    Stand(index_->At({family_, &key, false}));
  } catch (...) {
    Fail();
  }
  void SeekForPrev(const Slice& key) override try {
    StandBefore(index_->At({family_, &key, true}));
  } catch (...) {
    Fail();
  }
  void Next() override { ++at_; }
  void Prev() override { StandBefore(at_); }
  WriteEntry Entry() const override {
    assert(Valid());
    const BatchItem item = index_->ItemOf(*at_);
    return {WriteTypeOf(item.type), item.key, item.value};
  }
  Status status() const override { return status_; }

 private:
  void Stand(BatchIndex::Cursor place) {
    at_ = place;
    status_ = Status::OK();
  }
  void StandBefore(BatchIndex::Cursor place) {
    Stand(place == index_->begin() ? index_->end() : std::prev(place));
  }
  /// A comparator has thrown.
  void Fail() {
    at_ = index_->end();
    status_ = StatusOfException();
  }

  const BatchIndex* const index_;
  const uint32_t family_;
  BatchIndex::Cursor at_;
  Status status_;
};

/// Two cursors, `base_` and `delta_`, which stand on the entry that is shown or behind it in the
/// direction of travel; of a key in both, both stand there. `delta_` is on the latest update of its
/// key.
class BatchOverIterator final : public Iterator {
 public:
  BatchOverIterator(const BatchIndex* index, DB* db, ColumnFamilyHandle* family,
                    std::unique_ptr<Iterator> base, const ReadOptions& options)
      : index_(index),
        db_(db),
        handle_(family),
        family_(IdOf(family)),
        base_(std::move(base)),
        delta_(index->end()),
        bounds_(options) {}

  bool Valid() const override { return shown_ != Shown::kNothing; }
  Status status() const override { return failure_.ok() ? base_->status() : failure_; }
  Slice key() const override {
    assert(Valid());
    return shown_ == Shown::kBase ? base_->key() : DeltaKey();
  }
  Slice value() const override {
    assert(Valid());
    if (shown_ == Shown::kBase) return base_->value();
    return shown_ == Shown::kDelta ? index_->ItemOf(*delta_).value : Slice(merged_);
  }

  void SeekToFirst() override try {
    bounds_.CopyTo(&lower_, &upper_);
    if (lower_.has_value()) return Seek(*lower_);
    Turn(/*forward=*/true);
    base_->SeekToFirst();
    EnterForward(index_->At({family_, nullptr, false}));
    FindShown();
  } catch (...) {
    Fail();
  }
  void SeekToLast() override try {
    bounds_.CopyTo(&lower_, &upper_);
    Turn(/*forward=*/false);
    base_->SeekToLast();
    const Slice upper = upper_.has_value() ? Slice(*upper_) : Slice();
    EnterBackward(upper_.has_value() ? index_->At({family_, &upper, false})
                                     : index_->At({family_, nullptr, true}));
    FindShown();
  } catch (...) {
    Fail();
  }
  void Seek(const Slice& target) override try {
    bounds_.CopyTo(&lower_, &upper_);
    Turn(/*forward=*/true);
    base_->Seek(target);
    const bool below = lower_.has_value() && index_->Compare(family_, target, *lower_) < 0;
    const Slice from = below ? Slice(*lower_) : target;
    EnterForward(index_->At({family_, &from, false}));
    FindShown();
  } catch (...) {
    Fail();
  }
  void SeekForPrev(const Slice& target) override try {
    bounds_.CopyTo(&lower_, &upper_);
    if (upper_.has_value() && index_->Compare(family_, target, *upper_) >= 0) return SeekToLast();
    Turn(/*forward=*/false);
    base_->SeekForPrev(target);
    EnterBackward(index_->At({family_, &target, true}));
    FindShown();
  } catch (...) {
    Fail();
  }
  void Next() override try {
    assert(Valid());
    if (!forward_) {
      const std::string current = key().ToString();
      const Slice target(current);
      Turn(/*forward=*/true);
      base_->Seek(target);
      if (base_->Valid() && base_->key() == target) base_->Next();
      EnterForward(index_->At({family_, &target, true}));
    } else {
      StepOver();
    }
    FindShown();
  } catch (...) {
    Fail();
  }
  void Prev() override try {
    assert(Valid());
    if (forward_) {
      const std::string current = key().ToString();
      const Slice target(current);
      Turn(/*forward=*/false);
      base_->SeekForPrev(target);
      if (base_->Valid() && base_->key() == target) base_->Prev();
      EnterBackward(index_->At({family_, &target, false}));
    } else {
      StepOver();
    }
    FindShown();
  } catch (...) {
    Fail();
  }

 private:
  enum class Shown : uint8_t { kNothing, kBase, kDelta, kMerged };

  Slice DeltaKey() const { return index_->KeyOf(*delta_); }

  /// A comparator has thrown. That ends the position, until the iterator is sent elsewhere.
  void Fail() {
    shown_ = Shown::kNothing;
    failure_ = StatusOfException();
  }
  void Turn(bool forward) {
    forward_ = forward;
    shown_ = Shown::kNothing;
    failure_ = Status::OK();
  }
  /// The first key at `place` or behind it, unless it is beyond the bounds.
  void EnterForward(BatchIndex::Cursor place) {
    delta_valid_ = place != index_->end() && place->family == family_;
    if (!delta_valid_) return;
    const Slice key = index_->KeyOf(*place);
    delta_ = std::prev(index_->At({family_, &key, /*behind=*/true}));
    delta_valid_ = !upper_.has_value() || index_->Compare(family_, key, *upper_) < 0;
  }
  /// The last key before `place`, unless it is beyond the bounds.
  void EnterBackward(BatchIndex::Cursor place) {
    delta_valid_ = place != index_->begin() && std::prev(place)->family == family_;
    if (!delta_valid_) return;
    delta_ = std::prev(place);
    delta_valid_ = !lower_.has_value() || index_->Compare(family_, DeltaKey(), *lower_) >= 0;
  }
  void StepDelta() {
    const Slice key = DeltaKey();
    if (forward_) {
      EnterForward(index_->At({family_, &key, /*behind=*/true}));
    } else {
      EnterBackward(index_->At({family_, &key, /*behind=*/false}));
    }
  }
  /// Past the key that is shown or hidden here.
  void StepOver() {
    if (shown_ == Shown::kBase || both_) {
      if (forward_) {
        base_->Next();
      } else {
        base_->Prev();
      }
    }
    if (shown_ != Shown::kBase) StepDelta();
  }
  /// Moves from the cursors' places to the next entry to show.
  void FindShown() {
    for (;; StepOver()) {
      shown_ = Shown::kNothing;
      if (!base_->Valid()) {
        if (!delta_valid_ || !base_->status().ok()) return;
        both_ = false;
      } else {
        int order = -1;
        if (delta_valid_) {
          order = index_->Compare(family_, base_->key(), DeltaKey());
          if (!forward_) order = -order;
        }
        if (order < 0) {
          both_ = false;
          shown_ = Shown::kBase;
          return;
        }
        both_ = order == 0;
      }
      if (ShowDelta()) return;
    }
  }
  /// False: the key was deleted.
  bool ShowDelta() {
    const BatchLookup found = LookUp(*index_, family_, DeltaKey());
    if (found.operands.empty()) {
      if (found.base == BatchLookup::Base::kDeleted) return false;
      shown_ = Shown::kDelta;
      return true;
    }
    const Slice below = both_ ? base_->value() : Slice();
    const Slice* existing = nullptr;
    if (found.base == BatchLookup::Base::kValue) {
      existing = &found.value;
    } else if (found.base == BatchLookup::Base::kUnknown && both_) {
      existing = &below;
    }
    failure_ = MergeBelow(db_, handle_, DeltaKey(), existing, found.operands, &merged_);
    if (failure_.ok()) shown_ = Shown::kMerged;
    return true;
  }

  const BatchIndex* const index_;
  DB* const db_;
  ColumnFamilyHandle* const handle_;
  const uint32_t family_;
  const std::unique_ptr<Iterator> base_;
  BatchIndex::Cursor delta_;
  const IteratorBounds bounds_;
  std::optional<std::string> lower_;
  std::optional<std::string> upper_;
  bool delta_valid_ = false;
  bool forward_ = true;
  bool both_ = false;  ///< Both cursors stand on the key at hand.
  Shown shown_ = Shown::kNothing;
  std::string merged_;
  Status failure_;
};

}  // namespace

std::unique_ptr<WBWIIterator> NewBatchIterator(const BatchIndex* index, uint32_t family) {
  return std::make_unique<BatchIterator>(index, family);
}

std::unique_ptr<Iterator> NewBatchOverIterator(const BatchIndex* index, DB* db,
                                               ColumnFamilyHandle* family,
                                               std::unique_ptr<Iterator> base,
                                               const ReadOptions& options) {
  return std::make_unique<BatchOverIterator>(index, db, family, std::move(base), options);
}

}  // namespace nacre
