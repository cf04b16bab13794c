#include "adapters/rocksdb/batch_with_index.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adapters/rocksdb/convert.h"
#include "adapters/rocksdb/handles.h"
#include "nacre/merge_operator.h"

namespace nacre::rocksdb_api {
namespace {

/// What the updates of one key in a batch come to.
class KeyUpdates {
 public:
  enum class Base : uint8_t { kUnknown, kDeleted, kValue };

  /// Adds an entry; they come in the order in which they were written.
  void Add(const rocksdb::WriteEntry& entry) {
    any_ = true;
    if (entry.type == rocksdb::kMergeRecord) {
      operands_.push_back(entry.value.ToString());
      return;
    }
    operands_.clear();
    base_ = entry.type == rocksdb::kPutRecord ? Base::kValue : Base::kDeleted;
    value_ = entry.value.ToString();
  }

  bool any() const { return any_; }
  /// Whether the value below the batch makes no difference.
  bool Decided() const { return any_ && base_ != Base::kUnknown; }

  /// `below` is null if there is no such key below; not looked at if it is decided. `NotFound` if
  /// there is none then.
  rocksdb::Status Apply(const FamilyHandle& family, const rocksdb::Slice& key,
                        const rocksdb::Slice* below, std::string* result) const {
    const rocksdb::Slice value(value_);
    const rocksdb::Slice* const existing =
        base_ == Base::kValue ? &value : (base_ == Base::kUnknown ? below : nullptr);
    if (!operands_.empty()) return Merge(family, key, existing, result);
    if (existing == nullptr) return rocksdb::Status::NotFound();
    result->assign(existing->data(), existing->size());
    return rocksdb::Status::OK();
  }

 private:
  rocksdb::Status Merge(const FamilyHandle& family, const rocksdb::Slice& key,
                        const rocksdb::Slice* below, std::string* result) const {
    const nacre::MergeOperator* const merge = family.merge_operator();
    if (merge == nullptr) {
      return rocksdb::Status::InvalidArgument("Merge_operator must be set for column_family");
    }
    const nacre::Slice our_key = ToNacre(key);
    const nacre::Slice existing = below == nullptr ? nacre::Slice() : ToNacre(*below);
    std::vector<nacre::Slice> operands(operands_.begin(), operands_.end());
    result->clear();
    nacre::Slice chosen(nullptr, 0);
    nacre::MergeOperator::MergeOperationOutput out{*result, chosen};
    const nacre::MergeOperator::MergeOperationInput in{
        our_key, below == nullptr ? nullptr : &existing, operands, /*logger=*/nullptr};
    if (!merge->FullMergeV2(in, &out)) {
      return rocksdb::Status::Corruption("Error: Could not perform merge.");
    }
    if (chosen.data() != nullptr) result->assign(chosen.data(), chosen.size());
    return rocksdb::Status::OK();
  }

  bool any_ = false;
  Base base_ = Base::kUnknown;
  std::string value_;
  std::vector<std::string> operands_;
};

const FamilyHandle& Handle(rocksdb::ColumnFamilyHandle* family) {
  return *static_cast<const FamilyHandle*>(family);
}

KeyUpdates UpdatesOf(rocksdb::WriteBatchWithIndex* batch, rocksdb::ColumnFamilyHandle* family,
                     const rocksdb::Slice& key) {
  KeyUpdates updates;
  const std::unique_ptr<rocksdb::WBWIIterator> entries(batch->NewIterator(family));
  for (entries->Seek(key); entries->Valid() && entries->Entry().key == key; entries->Next()) {
    updates.Add(entries->Entry());
  }
  return updates;
}

/// Iterates over a batch on top of a database. An entry from the batch is copied, and both
/// iterators stand behind it, in the direction of travel; one from below is where `base_` stands.
class BatchOverBase final : public rocksdb::Iterator {
 public:
  BatchOverBase(rocksdb::WriteBatchWithIndex* batch, rocksdb::ColumnFamilyHandle* family,
                rocksdb::Iterator* base, const rocksdb::ReadOptions* options)
      : family_(Handle(family)),
        comparator_(family->GetComparator()),
        base_(base),
        delta_(batch->NewIterator(family)),
        lower_(options == nullptr ? nullptr : options->iterate_lower_bound),
        upper_(options == nullptr ? nullptr : options->iterate_upper_bound) {}

  bool Valid() const override { return shown_ != Shown::kNothing; }
  rocksdb::Slice key() const override {
    return shown_ == Shown::kBase ? base_->key() : rocksdb::Slice(key_);
  }
  rocksdb::Slice value() const override {
    return shown_ == Shown::kBase ? base_->value() : rocksdb::Slice(value_);
  }
  const rocksdb::WideColumns& columns() const override { return columns_; }
  rocksdb::Status status() const override { return failure_.ok() ? base_->status() : failure_; }

  void SeekToFirst() override {
    if (lower_ != nullptr) return Seek(*lower_);
    base_->SeekToFirst();
    delta_->SeekToFirst();
    ShowForward();
  }
  void SeekToLast() override {
    base_->SeekToLast();
    if (upper_ != nullptr) {
      SeekDeltaBefore(*upper_);
    } else {
      delta_->SeekToLast();
    }
    ShowBackward();
  }
  void Seek(const rocksdb::Slice& target) override {
    const bool below = lower_ != nullptr && comparator_->Compare(target, *lower_) < 0;
    base_->Seek(target);
    delta_->Seek(below ? *lower_ : target);
    ShowForward();
  }
  void SeekForPrev(const rocksdb::Slice& target) override {
    if (upper_ != nullptr && comparator_->Compare(target, *upper_) >= 0) return SeekToLast();
    base_->SeekForPrev(target);
    delta_->SeekForPrev(target);
    ShowBackward();
  }
  void Next() override {
    if (!forward_) {
      const std::string from = key().ToString();
      base_->Seek(from);
      if (base_->Valid() && base_->key() == rocksdb::Slice(from)) base_->Next();
      delta_->Seek(from);
      while (delta_->Valid() && delta_->Entry().key == rocksdb::Slice(from)) delta_->Next();
    } else if (shown_ == Shown::kBase) {
      base_->Next();
    }
    ShowForward();
  }
  void Prev() override {
    if (forward_) {
      const std::string from = key().ToString();
      base_->SeekForPrev(from);
      if (base_->Valid() && base_->key() == rocksdb::Slice(from)) base_->Prev();
      SeekDeltaBefore(from);
    } else if (shown_ == Shown::kBase) {
      base_->Prev();
    }
    ShowBackward();
  }

 private:
  enum class Shown : uint8_t { kNothing, kBase, kDelta };

  void SeekDeltaBefore(const rocksdb::Slice& key) {
    delta_->SeekForPrev(key);
    while (delta_->Valid() && comparator_->Compare(delta_->Entry().key, key) >= 0) delta_->Prev();
  }
  bool DeltaInBounds() const {
    if (!delta_->Valid()) return false;
    const rocksdb::Slice key = delta_->Entry().key;
    return forward_ ? upper_ == nullptr || comparator_->Compare(key, *upper_) < 0
                    : lower_ == nullptr || comparator_->Compare(key, *lower_) >= 0;
  }

  void ShowForward() { Show(/*forward=*/true); }
  void ShowBackward() { Show(/*forward=*/false); }
  void Show(bool forward) {
    forward_ = forward;
    failure_ = rocksdb::Status::OK();
    shown_ = Shown::kNothing;
    columns_.clear();
    while (shown_ == Shown::kNothing && failure_.ok() && base_->status().ok()) {
      if (!base_->Valid() && !DeltaInBounds()) return;
      ShowNearer();
    }
    if (Valid()) columns_.emplace_back(rocksdb::kDefaultWideColumnName, value());
  }
  /// What comes first in the direction of travel; nothing if the batch deletes it.
  void ShowNearer() {
    int order = base_->Valid() ? 1 : -1;  // Compares the batch's key with the one below.
    if (base_->Valid() && DeltaInBounds()) {
      order = comparator_->Compare(delta_->Entry().key, base_->key()) * (forward_ ? 1 : -1);
    }
    if (order > 0) {
      shown_ = Shown::kBase;
      return;
    }
    const KeyUpdates updates = TakeUpdates();
    const rocksdb::Slice below = order == 0 ? base_->value() : rocksdb::Slice();
    const rocksdb::Status status =
        updates.Apply(family_, key_, order == 0 ? &below : nullptr, &value_);
    if (status.ok()) {
      shown_ = Shown::kDelta;
    } else if (!status.IsNotFound()) {
      failure_ = status;
    }
    if (order == 0) forward_ ? base_->Next() : base_->Prev();
  }
  /// Takes the updates of the key at which `delta_` stands, and moves behind them.
  KeyUpdates TakeUpdates() {
    key_ = delta_->Entry().key.ToString();
    KeyUpdates updates;
    if (forward_) {
      for (; delta_->Valid() && delta_->Entry().key == rocksdb::Slice(key_); delta_->Next()) {
        updates.Add(delta_->Entry());
      }
      return updates;
    }
    std::vector<rocksdb::WriteEntry> newest_first;
    for (; delta_->Valid() && delta_->Entry().key == rocksdb::Slice(key_); delta_->Prev()) {
      newest_first.push_back(delta_->Entry());
    }
    while (!newest_first.empty()) {
      updates.Add(newest_first.back());
      newest_first.pop_back();
    }
    return updates;
  }

  const FamilyHandle& family_;
  const rocksdb::Comparator* const comparator_;
  const std::unique_ptr<rocksdb::Iterator> base_;
  const std::unique_ptr<rocksdb::WBWIIterator> delta_;
  const rocksdb::Slice* const lower_;
  const rocksdb::Slice* const upper_;
  bool forward_ = true;
  Shown shown_ = Shown::kNothing;
  std::string key_;
  std::string value_;
  rocksdb::WideColumns columns_;
  rocksdb::Status failure_;
};

}  // namespace

rocksdb::Status GetFromBatch(rocksdb::WriteBatchWithIndex* batch,
                             rocksdb::ColumnFamilyHandle* family, const rocksdb::Slice& key,
                             std::string* value) {
  const KeyUpdates updates = UpdatesOf(batch, family, key);
  if (!updates.any()) return rocksdb::Status::NotFound();
  if (!updates.Decided()) return rocksdb::Status::MergeInProgress();
  return updates.Apply(Handle(family), key, /*below=*/nullptr, value);
}

rocksdb::Status GetFromBatchAndDB(rocksdb::WriteBatchWithIndex* batch, rocksdb::DB* db,
                                  const rocksdb::ReadOptions& options,
                                  rocksdb::ColumnFamilyHandle* family, const rocksdb::Slice& key,
                                  rocksdb::PinnableSlice* value) {
  rocksdb::Status status;
  MultiGetFromBatchAndDB(batch, db, options, family, 1, &key, value, &status);
  return status;
}

void MultiGetFromBatchAndDB(rocksdb::WriteBatchWithIndex* batch, rocksdb::DB* db,
                            const rocksdb::ReadOptions& options,
                            rocksdb::ColumnFamilyHandle* family, size_t count,
                            const rocksdb::Slice* keys, rocksdb::PinnableSlice* values,
                            rocksdb::Status* statuses) {
  std::vector<KeyUpdates> updates;
  std::vector<size_t> open;  // Keys that the batch does not settle.
  std::vector<rocksdb::Slice> open_keys;
  for (size_t i = 0; i < count; ++i) {
    updates.push_back(UpdatesOf(batch, family, keys[i]));
    if (updates[i].Decided()) continue;
    open.push_back(i);
    open_keys.push_back(keys[i]);
  }
  std::vector<rocksdb::PinnableSlice> below(open.size());
  std::vector<rocksdb::Status> found(open.size());
  if (!open.empty()) {
    db->MultiGet(options, family, open.size(), open_keys.data(), below.data(), found.data());
  }
  for (size_t i = 0, next = 0; i < count; ++i) {
    const bool was_open = next < open.size() && open[next] == i;
    const size_t at = was_open ? next++ : 0;
    values[i].Reset();
    if (was_open && !found[at].ok() && !found[at].IsNotFound()) {
      statuses[i] = found[at];
      continue;
    }
    const rocksdb::Slice* const existing = was_open && found[at].ok() ? &below[at] : nullptr;
    statuses[i] = updates[i].Apply(Handle(family), keys[i], existing, values[i].GetSelf());
    if (statuses[i].ok()) values[i].PinSelf();
  }
}

rocksdb::Iterator* NewIteratorWithBase(rocksdb::WriteBatchWithIndex* batch,
                                       rocksdb::ColumnFamilyHandle* family, rocksdb::Iterator* base,
                                       const rocksdb::ReadOptions* options) {
  return std::make_unique<BatchOverBase>(batch, family, base, options).release();
}

}  // namespace nacre::rocksdb_api
