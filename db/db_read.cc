#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/db_impl.h"
#include "db/read/db_iterator.h"
#include "db/read/lookup_batch.h"
#include "db/read/operation_counts.h"
#include "db/read/view_reads.h"
#include "util/exceptions.h"
#include "util/perf_step.h"
#include "util/planted_bug.h"

namespace nacre {

const ReadView* DBImpl::PinConsistent(const ColumnFamily& family, const ReadOptions& options,
                                      SequenceNumber* snapshot) const {
  for (;;) {
    const ReadView* view = family.view();
    if (options.snapshot != nullptr) {
      *snapshot = options.snapshot->GetSequenceNumber();
      return view;
    }
    *snapshot = sequencer_.LastPublished();
    if (NACRE_PLANTED_BUG("batch.seen-in-half")) ++*snapshot;
    // If the view is still current, its MemTables hold all that was published by then.
    if (family.view() == view) return view;
  }
}

Status DBImpl::Get(const ReadOptions& options, ColumnFamilyHandle* handle, const Slice& key,
                   PinnableSlice* value) try {
  value->Reset();
  ColumnFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(FindFamily(handle, &family));
  NACRE_RETURN_IF_ERROR(CheckLease());
  EpochDomain::Guard guard(&epochs_);
  SequenceNumber snapshot = 0;
  const ReadView& view = *PinConsistent(*family, options, &snapshot);
  if (options_.statistics == nullptr && !PerfCounts()) [[likely]]
    return GetAt(view, options, key, snapshot, value);
  return GetCounted(view, options, key, snapshot, value);
} catch (...) {
  return StatusOfException();
}

Status DBImpl::GetCounted(const ReadView& view, const ReadOptions& options, const Slice& key,
                          SequenceNumber snapshot, PinnableSlice* value) const {
  const PerfContext before = perf_internal::context;
  const uint64_t start = clock_->NowNanos();
  Status status = GetAt(view, options, key, snapshot, value);
  if (PerfTimes()) {
    const uint64_t in_memory =
        perf_internal::context.get_from_memtable_time - before.get_from_memtable_time;
    const uint64_t whole = clock_->NowNanos() - start;
    CountPerf(&PerfContext::get_from_output_files_time, whole - std::min(whole, in_memory));
  }
  if (status.ok()) CountPerf(&PerfContext::get_read_bytes, value->size());
  if (options_.statistics != nullptr) {
    CountGet(options_.statistics.get(), clock_, start, status, *value);
  }
  return status;
}

Status DBImpl::GetAt(const ReadView& view, const ReadOptions& options, const Slice& key,
                     SequenceNumber snapshot, PinnableSlice* value) const {
  Status status;
  LookUpKeys({lookup_source_, view, options, snapshot}, {&key, 1}, value, &status);
  return status;
}

Status DBImpl::FinishGet(const ReadView& view, const ReadOptions& options, const Slice& key,
                         SequenceNumber snapshot, PinnableSlice* value) try {
  NACRE_RETURN_IF_ERROR(CheckLease());
  EpochDomain::Guard guard(&epochs_);
  return GetAt(view, options, key, snapshot, value);
} catch (...) {
  return StatusOfException();
}

Status DBImpl::GetMergeOperands(const ReadOptions& options, ColumnFamilyHandle* handle,
                                const Slice& key, PinnableSlice* merge_operands,
                                GetMergeOperandsOptions* get_merge_operands_options,
                                int* number_of_operands) try {
  NACRE_RETURN_IF_ERROR(
      CheckOperandsCall(merge_operands, get_merge_operands_options, number_of_operands));
  ColumnFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(FindFamily(handle, &family));
  NACRE_RETURN_IF_ERROR(CheckLease());
  std::vector<std::string> operands;
  {
    EpochDomain::Guard guard(&epochs_);
    SequenceNumber snapshot = 0;
    const ReadView& view = *PinConsistent(*family, options, &snapshot);
    NACRE_RETURN_IF_ERROR(OperandsOf(view, options, key, snapshot, &operands));
  }
  return GiveOperands(operands, *get_merge_operands_options, merge_operands, number_of_operands);
} catch (...) {
  return StatusOfException();
}

void DBImpl::MultiGet(const ReadOptions& options, ColumnFamilyHandle* handle, size_t num_keys,
                      const Slice* keys, PinnableSlice* values, Status* statuses) try {
  ColumnFamily* family = nullptr;
  Status status = FindFamily(handle, &family);
  if (status.ok()) status = CheckLease();
  for (size_t i = 0; i < num_keys; ++i) values[i].Reset();
  if (!status.ok()) [[unlikely]] {
    std::fill_n(statuses, num_keys, status);
    return;
  }
  EpochDomain::Guard guard(&epochs_);
  const uint64_t start = options_.statistics == nullptr ? 0 : clock_->NowNanos();
  SequenceNumber snapshot = 0;
  const ReadView& view = *PinConsistent(*family, options, &snapshot);
  LookUpKeys({lookup_source_, view, options, snapshot}, {keys, num_keys}, values, statuses);
  for (size_t i = 0; PerfCounts() && i < num_keys; ++i) {
    CountPerf(&PerfContext::multiget_read_bytes, statuses[i].ok() ? values[i].size() : 0);
  }
  if (options_.statistics != nullptr) [[unlikely]] {
    CountMultiGet(options_.statistics.get(), clock_, start, {statuses, num_keys},
                  {values, num_keys});
  }
} catch (...) {
  std::fill_n(statuses, num_keys, StatusOfException());
}

std::unique_ptr<Iterator> DBImpl::NewIterator(const ReadOptions& options,
                                              ColumnFamilyHandle* handle) try {
  ColumnFamily* family = nullptr;
  Status status = FindFamily(handle, &family);
  if (status.ok()) status = CheckLease();
  if (!status.ok()) return NewErrorIterator(std::move(status));
  std::shared_ptr<const ReadView> view;
  SequenceNumber snapshot = 0;
  {
    EpochDomain::Guard guard(&epochs_);
    view = PinConsistent(*family, options, &snapshot)->shared_from_this();
  }
  auto iterator = NewUserIterator(std::move(view), snapshot, options);
  if (options_.statistics == nullptr) [[likely]]
    return iterator;
  return NewCountedIterator(std::move(iterator), options_.statistics, clock_);
} catch (...) {
  return NewErrorIterator(StatusOfException());
}

const Snapshot* DBImpl::GetSnapshot() {
  // Under the mutex, so that a compaction that reads the list later keeps what this one sees.
  MutexLock lock(&state_.mutex);
  return state_.snapshots.Add(sequencer_.LastPublished());
}

void DBImpl::ReleaseSnapshot(const Snapshot* snapshot) {
  if (snapshot == nullptr) return;
  MutexLock lock(&state_.mutex);
  state_.snapshots.Remove(snapshot);
}

}  // namespace nacre
