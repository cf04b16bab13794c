#include "tests/support/model/checked_iterator.h"

#include <algorithm>
#include <utility>

namespace nacre {

CheckedIterator::CheckedIterator(DB* db, const Comparator* comparator, const Snapshot* snapshot,
                                 IteratorBounds bounds, ModelDB::Pairs expected)
    : comparator_(comparator),
      bounds_(std::move(bounds)),
      lower_(bounds_.lower ? Slice(*bounds_.lower) : Slice()),
      upper_(bounds_.upper ? Slice(*bounds_.upper) : Slice()),
      expected_(std::move(expected)) {
  ReadOptions options;
  options.snapshot = snapshot;
  if (bounds_.lower) options.iterate_lower_bound = &lower_;
  if (bounds_.upper) options.iterate_upper_bound = &upper_;
  iterator_ = db->NewIterator(options);
}

testing::AssertionResult CheckedIterator::Check() const {
  const auto fail = [this] {
    return testing::AssertionFailure()
           << "after " << last_move_ << ", position " << at_ << " of " << expected_.size() << ": ";
  };
  if (!iterator_->status().ok()) return fail() << iterator_->status().ToString();
  if (at_ >= expected_.size()) {
    if (!iterator_->Valid()) return testing::AssertionSuccess();
    return fail() << "valid at " << iterator_->key().ToString(true).substr(0, 80);
  }
  const auto& [key, value] = expected_[at_];
  if (!iterator_->Valid()) {
    return fail() << "not valid, expected " << Slice(key).ToString(true).substr(0, 80);
  }
  if (!(iterator_->key() == Slice(key))) {
    return fail() << "key " << iterator_->key().ToString(true).substr(0, 80) << ", expected "
                  << Slice(key).ToString(true).substr(0, 80);
  }
  if (!(iterator_->value() == Slice(*value))) {
    return fail() << "value of " << iterator_->value().size() << " bytes for "
                  << Slice(key).ToString(true).substr(0, 80) << ", expected " << value->size();
  }
  return testing::AssertionSuccess();
}

void CheckedIterator::Seek(const std::string& target, bool forward) {
  // First pair at or behind the target; the last one at or before it.
  const auto found =
      std::partition_point(expected_.begin(), expected_.end(), [&](const auto& pair) {
        const int r = comparator_->Compare(pair.first, target);
        return forward ? r < 0 : r <= 0;
      });
  at_ = static_cast<size_t>(found - expected_.begin());
  if (forward) {
    iterator_->Seek(target);
  } else {
    --at_;
    iterator_->SeekForPrev(target);
  }
}

testing::AssertionResult CheckedIterator::Step(Random* random, const std::string& some_key) {
  const bool valid = at_ < expected_.size();
  const uint64_t what = random->Uniform(valid ? 20 : 6);
  if (what == 0) {
    last_move_ = "SeekToFirst";
    iterator_->SeekToFirst();
    at_ = 0;
  } else if (what == 1) {
    last_move_ = "SeekToLast";
    iterator_->SeekToLast();
    at_ = expected_.size() - 1;
  } else if (what < 6) {
    const bool forward = what < 4;
    last_move_ = (forward ? "Seek " : "SeekForPrev ") + Slice(some_key).ToString(true);
    Seek(some_key, forward);
  } else if (what < 13) {
    last_move_ = "Next";
    iterator_->Next();
    ++at_;
  } else {
    last_move_ = "Prev";
    iterator_->Prev();
    --at_;
  }
  return Check();
}

testing::AssertionResult CheckedIterator::Scan(bool forward) {
  last_move_ = forward ? "scan" : "scan back";
  forward ? iterator_->SeekToFirst() : iterator_->SeekToLast();
  at_ = forward ? 0 : expected_.size() - 1;
  for (;;) {
    if (testing::AssertionResult result = Check(); !result) return result;
    if (at_ >= expected_.size()) return testing::AssertionSuccess();
    forward ? iterator_->Next() : iterator_->Prev();
    forward ? ++at_ : --at_;
  }
}

}  // namespace nacre
