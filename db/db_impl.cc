#include "db/db_impl.h"

#include <algorithm>
#include <utility>

#include "db/read/async_db.h"
#include "db/read/db_iterator.h"
#include "table/format/internal_key.h"

// Reads, writes and snapshots: each is the work of an owner, once the handle's family is found.

namespace nacre {

Status DBImpl::WriteOne(const WriteOptions& options, ColumnFamilyHandle* handle, ValueType type,
                        const Slice& key, const Slice& value) {
  ColumnFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(state_.FindFamily(handle, &family, DatabaseState::Use::kWrite));
  return write_path_.WriteOne(options, family, type, key, value);
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
  return write_path_.Write(options, updates);
}

Status DBImpl::FlushWAL(bool /*sync*/) { return write_path_.SyncLog(); }

Status DBImpl::Get(const ReadOptions& options, ColumnFamilyHandle* handle, const Slice& key,
                   PinnableSlice* value) {
  value->Reset();
  ColumnFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(state_.FindFamily(handle, &family));
  return read_path_.Get(options, *family, key, value);
}

Status DBImpl::GetMergeOperands(const ReadOptions& options, ColumnFamilyHandle* handle,
                                const Slice& key, PinnableSlice* merge_operands,
                                GetMergeOperandsOptions* get_merge_operands_options,
                                int* number_of_operands) {
  ColumnFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(state_.FindFamily(handle, &family));
  return read_path_.GetMergeOperands(options, *family, key, merge_operands,
                                     get_merge_operands_options, number_of_operands);
}

void DBImpl::MultiGet(const ReadOptions& options, ColumnFamilyHandle* handle, size_t num_keys,
                      const Slice* keys, PinnableSlice* values, Status* statuses) {
  for (size_t i = 0; i < num_keys; ++i) values[i].Reset();
  ColumnFamily* family = nullptr;
  if (Status status = state_.FindFamily(handle, &family); !status.ok()) {
    std::fill_n(statuses, num_keys, status);
    return;
  }
  read_path_.MultiGet(options, *family, num_keys, keys, values, statuses);
}

bool DBImpl::KeyMayExist(const ReadOptions& options, ColumnFamilyHandle* handle, const Slice& key,
                         std::string* value, bool* value_found) {
  if (value_found != nullptr) *value_found = false;
  ColumnFamily* family = nullptr;
  if (!state_.FindFamily(handle, &family).ok()) return true;
  return read_path_.KeyMayExist(options, *family, key, value, value_found);
}

std::unique_ptr<Iterator> DBImpl::NewIterator(const ReadOptions& options,
                                              ColumnFamilyHandle* handle) {
  ColumnFamily* family = nullptr;
  Status status = state_.FindFamily(handle, &family);
  if (!status.ok()) return NewErrorIterator(std::move(status));
  return read_path_.NewIterator(options, *family);
}

Status DBImpl::NewAsyncDB(AsyncExecutor* executor, std::unique_ptr<AsyncDB>* async) {
  return AsyncDBImpl::Create({&context_, &state_, &read_path_, &write_path_}, executor, async);
}

uint64_t DBImpl::GetLatestSequenceNumber() const {
  return generations_.sequencer()->LastPublished();
}

const Snapshot* DBImpl::GetSnapshot() {
  // Under the mutex, so that a compaction that reads the list later keeps what this one sees.
  MutexLock lock(&state_.mutex);
  return state_.snapshots.Add(generations_.sequencer()->LastPublished());
}

void DBImpl::ReleaseSnapshot(const Snapshot* snapshot) {
  if (snapshot == nullptr) return;
  MutexLock lock(&state_.mutex);
  state_.snapshots.Remove(snapshot);
}

Status DBImpl::Flush(const FlushOptions& options, ColumnFamilyHandle* handle) {
  ColumnFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(state_.FindFamily(handle, &family));
  // It may be dropped while others are waited for, and the handle destroyed.
  const std::shared_ptr<const ColumnFamily> held = family->shared_from_this();
  return flushes_.Flush(options, family);
}

}  // namespace nacre
