#include "db/db_impl.h"

#include <algorithm>
#include <utility>

#include "db/read/async_db.h"
#include "db/read/db_iterator.h"
#include "table/format/internal_key.h"
#include "table/format/write_batch_format.h"

// Reads, writes and snapshots: each is the work of an owner, once the handle's family is found.

namespace nacre {

Status DBImpl::WriteOne(const WriteOptions& options, ColumnFamilyHandle* handle, ValueType type,
                        const Slice& key, const Slice& value) {
  ColumnFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(parts_.state.FindFamily(handle, &family, DatabaseState::Use::kWrite));
  return parts_.writes.WriteOne(options, family, type, key, value);
}

Status DBImpl::Put(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
                   const Slice& value) {
  return WriteOne(options, family, ValueType::kValue, key, value);
}

Status DBImpl::Delete(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key) {
  return WriteOne(options, family, ValueType::kDeletion, key, Slice());
}

Status DBImpl::SingleDelete(const WriteOptions& options, ColumnFamilyHandle* family,
                            const Slice& key) {
  return WriteOne(options, family, ValueType::kSingleDeletion, key, Slice());
}

Status DBImpl::DeleteRange(const WriteOptions& options, ColumnFamilyHandle* family,
                           const Slice& begin, const Slice& end) {
  return WriteOne(options, family, ValueType::kRangeDeletion, begin, end);
}

Status DBImpl::Merge(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
                     const Slice& operand) {
  return WriteOne(options, family, ValueType::kMerge, key, operand);
}

Status DBImpl::Write(const WriteOptions& options, WriteBatch* updates) {
  return parts_.writes.Write(options, updates);
}

Status DBImpl::CheckWrite(const WriteOptions& options, const WriteBatch& updates) const {
  return parts_.writes.Check(options, updates);
}

bool DBImpl::HasFamily(uint32_t id) const {
  return id == kDefaultFamily || parts_.state.Families()->Find(id) != nullptr;
}

Status DBImpl::FlushWAL(bool /*sync*/) { return parts_.writes.SyncLog(); }

Status DBImpl::Get(const ReadOptions& options, ColumnFamilyHandle* handle, const Slice& key,
                   PinnableSlice* value) {
  value->Reset();
  ColumnFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(parts_.state.FindFamily(handle, &family));
  return parts_.reads.Get(options, *family, key, value);
}

Status DBImpl::GetMergeOperands(const ReadOptions& options, ColumnFamilyHandle* handle,
                                const Slice& key, PinnableSlice* merge_operands,
                                GetMergeOperandsOptions* get_merge_operands_options,
                                int* number_of_operands) {
  ColumnFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(parts_.state.FindFamily(handle, &family));
  return parts_.reads.GetMergeOperands(options, *family, key, merge_operands,
                                       get_merge_operands_options, number_of_operands);
}

void DBImpl::MultiGet(const ReadOptions& options, ColumnFamilyHandle* handle, size_t num_keys,
                      const Slice* keys, PinnableSlice* values, Status* statuses) {
  for (size_t i = 0; i < num_keys; ++i) values[i].Reset();
  ColumnFamily* family = nullptr;
  if (Status status = parts_.state.FindFamily(handle, &family); !status.ok()) {
    std::fill_n(statuses, num_keys, status);
    return;
  }
  parts_.reads.MultiGet(options, *family, num_keys, keys, values, statuses);
}

bool DBImpl::KeyMayExist(const ReadOptions& options, ColumnFamilyHandle* handle, const Slice& key,
                         std::string* value, bool* value_found) {
  if (value_found != nullptr) *value_found = false;
  ColumnFamily* family = nullptr;
  if (!parts_.state.FindFamily(handle, &family).ok()) return true;
  return parts_.reads.KeyMayExist(options, *family, key, value, value_found);
}

std::unique_ptr<Iterator> DBImpl::NewIterator(const ReadOptions& options,
                                              ColumnFamilyHandle* handle) {
  ColumnFamily* family = nullptr;
  Status status = parts_.state.FindFamily(handle, &family);
  if (!status.ok()) return NewErrorIterator(std::move(status));
  return parts_.reads.NewIterator(options, *family);
}

Status DBImpl::NewAsyncDB(AsyncExecutor* executor, std::unique_ptr<AsyncDB>* async) {
  return AsyncDBImpl::Create({&parts_.context, &parts_.state, &parts_.reads, &parts_.writes},
                             executor, async);
}

uint64_t DBImpl::GetLatestSequenceNumber() const {
  return parts_.generations.sequencer()->LastPublished();
}

const Snapshot* DBImpl::GetSnapshot() {
  // Under the mutex, so that a compaction that reads the list later keeps what this one sees.
  MutexLock lock(&parts_.state.mutex);
  return parts_.state.snapshots.Add(parts_.generations.sequencer()->LastPublished());
}

void DBImpl::ReleaseSnapshot(const Snapshot* snapshot) {
  if (snapshot == nullptr) return;
  MutexLock lock(&parts_.state.mutex);
  parts_.state.snapshots.Remove(snapshot);
}

Status DBImpl::Flush(const FlushOptions& options, ColumnFamilyHandle* handle) {
  ColumnFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(parts_.state.FindFamily(handle, &family));
  // It may be dropped while others are waited for, and the handle destroyed.
  const std::shared_ptr<const ColumnFamily> held = family->shared_from_this();
  return parts_.flushes.Flush(options, family);
}

}  // namespace nacre
