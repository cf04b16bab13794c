#include "table/concatenating_iterator.h"

#include <algorithm>
#include <utility>

namespace nacre {

namespace {

class ListedTables final : public TableRun {
 public:
  ListedTables(const InternalKeyComparator& comparator, std::vector<const TableReader*> tables)
      : comparator_(comparator), tables_(std::move(tables)) {}

  const TableReader* table() const override {
    return index_ < tables_.size() ? tables_[index_] : nullptr;
  }
  void SeekToFirst() override { index_ = 0; }
  void SeekToLast() override { index_ = tables_.size() - 1; }
  void Seek(const Slice& internal_key) override {
    const auto found =
        std::lower_bound(tables_.begin(), tables_.end(), internal_key,
                         [this](const TableReader* table, const Slice& key) {
                           return comparator_.Compare(table->meta().largest, key) < 0;
                         });
    index_ = static_cast<size_t>(found - tables_.begin());
  }
  void Next() override { ++index_; }
  void Prev() override { --index_; }  // Wraps past the first table, to no table.

 private:
  const InternalKeyComparator comparator_;
  const std::vector<const TableReader*> tables_;
  size_t index_ = SIZE_MAX;
};

class ConcatenatingIterator final : public InternalIterator {
 public:
  ConcatenatingIterator(std::unique_ptr<TableRun> run, const TableIteratorOptions& options)
      : run_(std::move(run)), options_(options) {}

  Status status() const override { return current_ != nullptr ? current_->status() : Status::OK(); }

  void SeekToFirst() override {
    run_->SeekToFirst();
    Enter();
    if (current_ != nullptr) current_->SeekToFirst();
    SkipForward();
  }
  void SeekToLast() override {
    run_->SeekToLast();
    Enter();
    if (current_ != nullptr) current_->SeekToLast();
    SkipBackward();
  }
  void PrepareSeek(const Slice& internal_key, const Slice* upper_bound) override {
    prepared_ = false;
    run_->Seek(internal_key);
    Enter();
    if (current_ != nullptr) current_->PrepareSeek(internal_key, upper_bound);
    prepared_ = true;
  }
  void Seek(const Slice& internal_key) override {
    if (!std::exchange(prepared_, false)) {
      run_->Seek(internal_key);
      Enter();
    }
    if (current_ != nullptr) current_->Seek(internal_key);
    SkipForward();
  }
  void SeekForPrev(const Slice& internal_key) override {
    run_->Seek(internal_key);
    if (run_->table() == nullptr) run_->SeekToLast();
    Enter();
    if (current_ != nullptr) current_->SeekForPrev(internal_key);
    SkipBackward();
  }

 private:
  void NextRun() override {
    current_->MoveTo(at());
    current_->Next();
    SkipForward();
  }
  void PrevRun() override {
    current_->MoveTo(at());
    current_->Prev();
    SkipBackward();
  }
  void Show() {
    if (current_ == nullptr || !current_->Valid()) return ShowNothing();
    ShowRun(current_->run_begin(), current_->at(), current_->run_end());
  }
  /// Has the iterator of the table where the run stands; none past either end.
  void Enter() {
    const TableReader* const table = run_->table();
    prepared_ = false;
    if (table == table_ && current_ != nullptr) return;
    ShowNothing();
    current_.reset();
    table_ = table;
    if (table_ != nullptr) current_ = table_->NewIterator(options_);
  }
  void SkipForward() {
    while (current_ != nullptr && !current_->Valid() && current_->status().ok()) {
      run_->Next();
      Enter();
      if (current_ != nullptr) current_->SeekToFirst();
    }
    Show();
  }
  void SkipBackward() {
    while (current_ != nullptr && !current_->Valid() && current_->status().ok()) {
      run_->Prev();
      Enter();
      if (current_ != nullptr) current_->SeekToLast();
    }
    Show();
  }

  const std::unique_ptr<TableRun> run_;
  const TableIteratorOptions options_;
  const TableReader* table_ = nullptr;
  std::unique_ptr<InternalIterator> current_;
  bool prepared_ = false;  ///< The run stands where the next Seek goes.
};

}  // namespace

std::unique_ptr<InternalIterator> NewConcatenatingIterator(std::unique_ptr<TableRun> run,
                                                           const TableIteratorOptions& options) {
  return std::make_unique<ConcatenatingIterator>(std::move(run), options);
}

std::unique_ptr<InternalIterator> NewConcatenatingIterator(const InternalKeyComparator& comparator,
                                                           std::vector<const TableReader*> tables,
                                                           const TableIteratorOptions& options) {
  if (tables.size() == 1) return tables.front()->NewIterator(options);
  return NewConcatenatingIterator(std::make_unique<ListedTables>(comparator, std::move(tables)),
                                  options);
}

}  // namespace nacre
