#include "table/concatenating_iterator.h"

#include <algorithm>
#include <utility>

namespace nacre {

namespace {

class ConcatenatingIterator final : public InternalIterator {
 public:
  ConcatenatingIterator(const InternalKeyComparator& comparator,
                        std::vector<const TableReader*> tables, const TableIteratorOptions& options)
      : comparator_(comparator), tables_(std::move(tables)), options_(options) {}

  bool Valid() const override { return current_ != nullptr && current_->Valid(); }
  Slice user_key() const override { return current_->user_key(); }
  uint64_t tag() const override { return current_->tag(); }
  Slice value() const override { return current_->value(); }
  Status status() const override { return current_ != nullptr ? current_->status() : Status::OK(); }

  void SeekToFirst() override {
    Enter(0);
    if (current_ != nullptr) current_->SeekToFirst();
    SkipForward();
  }
  void SeekToLast() override {
    Enter(tables_.size() - 1);
    if (current_ != nullptr) current_->SeekToLast();
    SkipBackward();
  }
  void Seek(const Slice& internal_key) override {
    Enter(FirstEndingAtOrAfter(internal_key));
    if (current_ != nullptr) current_->Seek(internal_key);
    SkipForward();
  }
  void SeekForPrev(const Slice& internal_key) override {
    const size_t index = FirstEndingAtOrAfter(internal_key);
    Enter(std::min(index, tables_.size() - 1));
    if (current_ != nullptr) current_->SeekForPrev(internal_key);
    SkipBackward();
  }
  void Next() override {
    current_->Next();
    SkipForward();
  }
  void Prev() override {
    current_->Prev();
    SkipBackward();
  }

 private:
  size_t FirstEndingAtOrAfter(const Slice& internal_key) const {
    const auto found =
        std::lower_bound(tables_.begin(), tables_.end(), internal_key,
                         [this](const TableReader* table, const Slice& key) {
                           return comparator_.Compare(table->meta().largest, key) < 0;
                         });
    return static_cast<size_t>(found - tables_.begin());
  }

  /// Leaves no iterator when `index` is past either end.
  void Enter(size_t index) {
    if (index < tables_.size() && index == index_ && current_ != nullptr) return;
    current_.reset();
    index_ = index;
    if (index_ < tables_.size()) current_ = tables_[index_]->NewIterator(options_);
  }
  void SkipForward() {
    while (current_ != nullptr && !current_->Valid() && current_->status().ok()) {
      Enter(index_ + 1);
      if (current_ != nullptr) current_->SeekToFirst();
    }
  }
  void SkipBackward() {
    while (current_ != nullptr && !current_->Valid() && current_->status().ok()) {
      Enter(index_ - 1);  // Wraps past the first table, to no table.
      if (current_ != nullptr) current_->SeekToLast();
    }
  }

  const InternalKeyComparator comparator_;
  const std::vector<const TableReader*> tables_;
  const TableIteratorOptions options_;
  size_t index_ = SIZE_MAX;
  std::unique_ptr<InternalIterator> current_;
};

}  // namespace

std::unique_ptr<InternalIterator> NewConcatenatingIterator(const InternalKeyComparator& comparator,
                                                           std::vector<const TableReader*> tables,
                                                           const TableIteratorOptions& options) {
  if (tables.size() == 1) return tables.front()->NewIterator(options);
  return std::make_unique<ConcatenatingIterator>(comparator, std::move(tables), options);
}

}  // namespace nacre
