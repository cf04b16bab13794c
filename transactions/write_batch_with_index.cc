#include "nacre/utilities/write_batch_with_index.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "transactions/batch_index.h"
#include "transactions/batch_iterator.h"
#include "transactions/batch_lookup.h"
#include "transactions/below.h"
#include "util/exceptions.h"

namespace nacre {
namespace {

/// What the operands in the batch make of what the database answered.
Status ApplyOperands(DB* db, ColumnFamilyHandle* family, const Slice& key, const BatchLookup& found,
                     const Status& below, PinnableSlice* value) {
  const Slice* existing = nullptr;
  if (found.base == BatchLookup::Base::kValue) {
    existing = &found.value;
  } else if (below.ok()) {
    existing = value;
  }
  std::string merged;
  NACRE_RETURN_IF_ERROR(MergeBelow(db, family, key, existing, found.operands, &merged));
  value->PinSelf(merged);
  return Status::OK();
}

/// Takes back what is added to a batch in its scope, unless it is kept.
class NewUpdate {
 public:
  explicit NewUpdate(WriteBatch* batch) : batch_(batch) { batch_->SetSavePoint(); }
  ~NewUpdate() {
    // There is a save point.
    (kept_ ? batch_->PopSavePoint() : batch_->RollbackToSavePoint()).IgnoreError();
  }
  NewUpdate(const NewUpdate&) = delete;
  NewUpdate& operator=(const NewUpdate&) = delete;

  void Keep() { kept_ = true; }

 private:
  WriteBatch* const batch_;
  bool kept_ = false;
};

}  // namespace

struct WriteBatchWithIndex::Rep {
  Rep(const Comparator* comparator, bool overwrite, size_t bytes)
      : index(&batch, comparator, overwrite), max_bytes(bytes) {}

  /// Has `add` put an update into the batch, and indexes it.
  template <typename AddUpdate>
  Status Add(ColumnFamilyHandle* family, AddUpdate add) {
    return CatchAll([&]() -> Status {
      index.NoteFamily(family);
      const size_t at = batch.GetDataSize();
      NewUpdate update(&batch);
      NACRE_RETURN_IF_ERROR(add());
      if (max_bytes > 0 && batch.GetDataSize() > max_bytes) {
        return Status::Aborted("write batch: memory limit of " + std::to_string(max_bytes) +
                               " bytes reached");
      }
      index.Add(at);
      update.Keep();
      return Status::OK();
    });
  }

  // Reads, which throw what comparators throw. They are GetFromBatch, GetFromBatchAndDB and
  // MultiGetFromBatchAndDB.
  Status Get(ColumnFamilyHandle* family, const Slice& key, std::string* value) const;
  Status Get(DB* db, const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
             PinnableSlice* value) const;
  void MultiGet(DB* db, const ReadOptions& options, ColumnFamilyHandle* family, size_t num_keys,
                const Slice* keys, PinnableSlice* values, Status* statuses) const;

  WriteBatch batch;
  BatchIndex index;
  const size_t max_bytes;
};

WriteBatchWithIndex::WriteBatchWithIndex(const Comparator* comparator, size_t /*reserved_bytes*/,
                                         bool overwrite_key, size_t max_bytes)
    : rep_(std::make_unique<Rep>(comparator, overwrite_key, max_bytes)) {}
WriteBatchWithIndex::~WriteBatchWithIndex() = default;
WriteBatchWithIndex::WriteBatchWithIndex(WriteBatchWithIndex&&) noexcept = default;
WriteBatchWithIndex& WriteBatchWithIndex::operator=(WriteBatchWithIndex&&) noexcept = default;

Status WriteBatchWithIndex::Put(ColumnFamilyHandle* family, const Slice& key, const Slice& value) {
  return rep_->Add(family, [&] { return rep_->batch.Put(family, key, value); });
}

Status WriteBatchWithIndex::Merge(ColumnFamilyHandle* family, const Slice& key,
                                  const Slice& operand) {
  return rep_->Add(family, [&] { return rep_->batch.Merge(family, key, operand); });
}

Status WriteBatchWithIndex::Delete(ColumnFamilyHandle* family, const Slice& key) {
  return rep_->Add(family, [&] { return rep_->batch.Delete(family, key); });
}

Status WriteBatchWithIndex::SingleDelete(ColumnFamilyHandle* family, const Slice& key) {
  return rep_->Add(family, [&] { return rep_->batch.SingleDelete(family, key); });
}

Status WriteBatchWithIndex::DeleteRange(ColumnFamilyHandle* /*family*/, const Slice& /*begin*/,
                                        const Slice& /*end*/) {
  return Status::NotSupported("DeleteRange in a WriteBatchWithIndex");
}

Status WriteBatchWithIndex::PutLogData(const Slice& blob) { return rep_->batch.PutLogData(blob); }

void WriteBatchWithIndex::Clear() {
  rep_->batch.Clear();
  rep_->index.Clear();
}

WriteBatch* WriteBatchWithIndex::GetWriteBatch() { return &rep_->batch; }
size_t WriteBatchWithIndex::GetDataSize() const { return rep_->batch.GetDataSize(); }

std::unique_ptr<WBWIIterator> WriteBatchWithIndex::NewIterator(ColumnFamilyHandle* family) {
  return NewBatchIterator(&rep_->index, IdOf(family));
}

std::unique_ptr<Iterator> WriteBatchWithIndex::NewIteratorWithBase(ColumnFamilyHandle* family,
                                                                   std::unique_ptr<Iterator> base,
                                                                   const ReadOptions* options) {
  return NewIteratorOver(nullptr, family, std::move(base),
                         options == nullptr ? ReadOptions() : *options);
}

std::unique_ptr<Iterator> WriteBatchWithIndex::NewIteratorOver(DB* db, ColumnFamilyHandle* family,
                                                               std::unique_ptr<Iterator> base,
                                                               const ReadOptions& options) {
  return NewBatchOverIterator(&rep_->index, db, family, std::move(base), options);
}

Status WriteBatchWithIndex::GetFromBatch(ColumnFamilyHandle* family, const DBOptions& /*options*/,
                                         const Slice& key, std::string* value) {
  return CatchAll([&] { return rep_->Get(family, key, value); });
}

Status WriteBatchWithIndex::Rep::Get(ColumnFamilyHandle* family, const Slice& key,
                                     std::string* value) const {
  const BatchLookup found = LookUp(index, IdOf(family), key);
  if (found.operands.empty()) {
    if (found.base != BatchLookup::Base::kValue) return Status::NotFound();
    value->assign(found.value.data(), found.value.size());
    return Status::OK();
  }
  if (found.base == BatchLookup::Base::kUnknown) {
    return Status::Incomplete("merge in progress: the batch does not know the value");
  }
  const bool exists = found.base == BatchLookup::Base::kValue;
  return MergeBelow(nullptr, family, key, exists ? &found.value : nullptr, found.operands, value);
}

Status WriteBatchWithIndex::GetFromBatchAndDB(DB* db, const ReadOptions& options,
                                              ColumnFamilyHandle* family, const Slice& key,
                                              PinnableSlice* value) {
  return CatchAll([&] { return rep_->Get(db, options, family, key, value); });
}

Status WriteBatchWithIndex::Rep::Get(DB* db, const ReadOptions& options, ColumnFamilyHandle* family,
                                     const Slice& key, PinnableSlice* value) const {
  const BatchLookup found = LookUp(index, IdOf(family), key);
  if (found.decided()) {
    value->Reset();
    if (found.base == BatchLookup::Base::kDeleted) return Status::NotFound();
    value->PinSelf(found.value);
    return Status::OK();
  }
  Status status = Status::NotFound();
  if (found.base == BatchLookup::Base::kUnknown) status = db->Get(options, family, key, value);
  if (found.operands.empty() || (!status.ok() && !status.IsNotFound())) return status;
  return ApplyOperands(db, family, key, found, status, value);
}

Status WriteBatchWithIndex::GetFromBatchAndDB(DB* db, const ReadOptions& options,
                                              ColumnFamilyHandle* family, const Slice& key,
                                              std::string* value) {
  PinnableSlice pinned;
  NACRE_RETURN_IF_ERROR(GetFromBatchAndDB(db, options, family, key, &pinned));
  value->assign(pinned.data(), pinned.size());
  return Status::OK();
}

void WriteBatchWithIndex::MultiGetFromBatchAndDB(DB* db, const ReadOptions& options,
                                                 ColumnFamilyHandle* family, size_t num_keys,
                                                 const Slice* keys, PinnableSlice* values,
                                                 Status* statuses, bool /*sorted_input*/) {
  const Status status = CatchAll([&] {
    rep_->MultiGet(db, options, family, num_keys, keys, values, statuses);
    return Status::OK();
  });
  if (!status.ok()) std::fill_n(statuses, num_keys, status);
}

void WriteBatchWithIndex::Rep::MultiGet(DB* db, const ReadOptions& options,
                                        ColumnFamilyHandle* family, size_t num_keys,
                                        const Slice* keys, PinnableSlice* values,
                                        Status* statuses) const {
  std::vector<size_t> open;  // Keys that the batch does not settle.
  std::vector<Slice> open_keys;
  for (size_t i = 0; i < num_keys; ++i) {
    const BatchLookup found = LookUp(index, IdOf(family), keys[i]);
    values[i].Reset();
    if (found.decided()) {
      statuses[i] = Status::OK();
      if (found.base == BatchLookup::Base::kValue) {
        values[i].PinSelf(found.value);
      } else {
        statuses[i] = Status::NotFound();
      }
      continue;
    }
    open.push_back(i);
    open_keys.push_back(keys[i]);
  }
  std::vector<PinnableSlice> open_values(open.size());
  std::vector<Status> open_statuses(open.size());
  db->MultiGet(options, family, open.size(), open_keys.data(), open_values.data(),
               open_statuses.data());
  for (size_t j = 0; j < open.size(); ++j) {
    const size_t i = open[j];
    values[i] = std::move(open_values[j]);
    statuses[i] = std::move(open_statuses[j]);
    if (!statuses[i].ok() && !statuses[i].IsNotFound()) continue;
    const BatchLookup found = LookUp(index, IdOf(family), keys[i]);
    if (found.operands.empty()) continue;
    const Status below =
        found.base == BatchLookup::Base::kUnknown ? statuses[i] : Status::NotFound();
    statuses[i] = ApplyOperands(db, family, keys[i], found, below, &values[i]);
  }
}

void WriteBatchWithIndex::SetSavePoint() { rep_->batch.SetSavePoint(); }

Status WriteBatchWithIndex::RollbackToSavePoint() {
  return CatchAll([this]() -> Status {
    WriteBatch before = rep_->batch;
    NACRE_RETURN_IF_ERROR(rep_->batch.RollbackToSavePoint());
    Status status = CatchAll([this] { return rep_->index.Rebuild(); });
    if (!status.ok()) rep_->batch = std::move(before);  // As its index still has it.
    return status;
  });
}

Status WriteBatchWithIndex::PopSavePoint() { return rep_->batch.PopSavePoint(); }

}  // namespace nacre
