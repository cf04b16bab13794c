#include "db/read/read_path.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "db/context/operation_counts.h"
#include "db/read/db_iterator.h"
#include "db/read/view_reads.h"
#include "db/read/watched_iterator.h"
#include "util/exceptions.h"
#include "util/perf_step.h"
#include "util/planted_bug.h"

namespace nacre {

const ReadView* ReadPath::PinConsistent(const ColumnFamily& family, const ReadOptions& options,
                                        SequenceNumber* snapshot) const {
  for (;;) {
    const ReadView* view = family.view();
    if (options.snapshot != nullptr) {
      *snapshot = options.snapshot->GetSequenceNumber();
      return view;
    }
    *snapshot = sequencer_->LastPublished();
    if (NACRE_PLANTED_BUG("batch.seen-in-half")) ++*snapshot;
    // If the view is still current, its MemTables hold all that was published by then.
    if (family.view() == view) return view;
  }
}

std::shared_ptr<const ReadView> ReadPath::HoldConsistent(const ColumnFamily& family,
                                                         const ReadOptions& options,
                                                         SequenceNumber* snapshot) const {
  EpochDomain::Guard guard(&context_.epochs);
  return PinConsistent(family, options, snapshot)->shared_from_this();
}

Status ReadPath::Get(const ReadOptions& options, const ColumnFamily& family, const Slice& key,
                     PinnableSlice* value) try {
  NACRE_RETURN_IF_ERROR(context_.CheckLease());
  const SlowOperationWatch watch(&context_.slow_operations, "Get", family.name(), key);
  EpochDomain::Guard guard(&context_.epochs);
  SequenceNumber snapshot = 0;
  const ReadView& view = *PinConsistent(family, options, &snapshot);
  if (context_.options.statistics == nullptr && !PerfCounts()) [[likely]]
    return GetAt(view, options, key, snapshot, value);
  return GetCounted(view, options, key, snapshot, value);
} catch (...) {
  return StatusOfException();
}

Status ReadPath::GetCounted(const ReadView& view, const ReadOptions& options, const Slice& key,
                            SequenceNumber snapshot, PinnableSlice* value) const {
  const PerfContext before = perf_internal::context;
  const uint64_t start = context_.clock->NowNanos();
  Status status = GetAt(view, options, key, snapshot, value);
  if (PerfTimes()) {
    const uint64_t in_memory =
        perf_internal::context.get_from_memtable_time - before.get_from_memtable_time;
    const uint64_t whole = context_.clock->NowNanos() - start;
    CountPerf(&PerfContext::get_from_output_files_time, whole - std::min(whole, in_memory));
  }
  if (status.ok()) CountPerf(&PerfContext::get_read_bytes, value->size());
  if (context_.options.statistics != nullptr) {
    CountGet(context_.options.statistics.get(), context_.clock, start, status, *value);
  }
  return status;
}

Status ReadPath::GetAt(const ReadView& view, const ReadOptions& options, const Slice& key,
                       SequenceNumber snapshot, PinnableSlice* value) const {
  Status status;
  LookUpKeys(LookupContext{source_, view, options, snapshot}, {&key, 1}, value, &status);
  return status;
}

Status ReadPath::GetFrom(const ReadView& view, const ReadOptions& options, const Slice& key,
                         SequenceNumber snapshot, PinnableSlice* value) try {
  NACRE_RETURN_IF_ERROR(context_.CheckLease());
  EpochDomain::Guard guard(&context_.epochs);
  return GetAt(view, options, key, snapshot, value);
} catch (...) {
  return StatusOfException();
}

Status ReadPath::GetMergeOperands(const ReadOptions& options, const ColumnFamily& family,
                                  const Slice& key, PinnableSlice* merge_operands,
                                  GetMergeOperandsOptions* get_merge_operands_options,
                                  int* number_of_operands) try {
  NACRE_RETURN_IF_ERROR(
      CheckOperandsCall(merge_operands, get_merge_operands_options, number_of_operands));
  NACRE_RETURN_IF_ERROR(context_.CheckLease());
  std::vector<std::string> operands;
  {
    EpochDomain::Guard guard(&context_.epochs);
    SequenceNumber snapshot = 0;
    const ReadView& view = *PinConsistent(family, options, &snapshot);
    NACRE_RETURN_IF_ERROR(OperandsOf(view, options, key, snapshot, &operands));
  }
  return GiveOperands(operands, *get_merge_operands_options, merge_operands, number_of_operands);
} catch (...) {
  return StatusOfException();
}

void ReadPath::MultiGet(const ReadOptions& options, const ColumnFamily& family, size_t num_keys,
                        const Slice* keys, PinnableSlice* values, Status* statuses) try {
  Status status = context_.CheckLease();
  if (!status.ok()) [[unlikely]] {
    std::fill_n(statuses, num_keys, status);
    return;
  }
  const SlowOperationWatch watch(&context_.slow_operations, "MultiGet", family.name(),
                                 num_keys > 0 ? keys[0] : Slice(), num_keys);
  EpochDomain::Guard guard(&context_.epochs);
  const uint64_t start = StartOfMultiGet();
  SequenceNumber snapshot = 0;
  const ReadView& view = *PinConsistent(family, options, &snapshot);
  LookUpKeys(LookupContext{source_, view, options, snapshot}, {keys, num_keys}, values, statuses);
  CountMultiGetSince(start, {statuses, num_keys}, {values, num_keys});
} catch (...) {
  std::fill_n(statuses, num_keys, StatusOfException());
}

void ReadPath::CountMultiGetSince(uint64_t start, std::span<const Status> statuses,
                                  std::span<const PinnableSlice> values) const {
  for (size_t i = 0; PerfCounts() && i < statuses.size(); ++i) {
    CountPerf(&PerfContext::multiget_read_bytes, statuses[i].ok() ? values[i].size() : 0);
  }
  if (context_.options.statistics != nullptr) [[unlikely]] {
    CountMultiGet(context_.options.statistics.get(), context_.clock, start, statuses, values);
  }
}

std::unique_ptr<Iterator> ReadPath::NewIterator(const ReadOptions& options,
                                                const ColumnFamily& family) try {
  Status status = context_.CheckLease();
  if (!status.ok()) return NewErrorIterator(std::move(status));
  SequenceNumber snapshot = 0;
  std::shared_ptr<const ReadView> view = HoldConsistent(family, options, &snapshot);
  auto iterator = NewUserIterator(std::move(view), snapshot, options);
  if (context_.slow_operations.threshold().count() != 0) [[unlikely]] {
    iterator = NewWatchedIterator(std::move(iterator), &context_.slow_operations, family.name());
  }
  if (context_.options.statistics == nullptr) [[likely]]
    return iterator;
  return NewCountedIterator(std::move(iterator), context_.options.statistics, context_.clock);
} catch (...) {
  return NewErrorIterator(StatusOfException());
}

bool ReadPath::KeyMayExist(const ReadOptions& options, const ColumnFamily& family, const Slice& key,
                           std::string* value, bool* value_found) try {
  if (value_found != nullptr) *value_found = false;
  if (!context_.CheckLease().ok()) return true;
  EpochDomain::Guard guard(&context_.epochs);
  SequenceNumber snapshot = 0;
  const ReadView& view = *PinConsistent(family, options, &snapshot);
  const LookupContext context{source_, view, options, snapshot};
  PinnableSlice found;
  Status status;
  KeyLookup lookup;
  lookup.Begin(context, key, &found, &status);
  KeyLookup::State state = lookup.LookInMemory(context);
  if (state == KeyLookup::State::kReads) {
    lookup.BeginTables(context);
    pool::PointRead read;
    state = lookup.Next(context, &read);
  }
  if (state != KeyLookup::State::kEnded) return true;
  if (!status.ok()) return false;
  if (value != nullptr) *value = found.ToString();
  if (value_found != nullptr) *value_found = value != nullptr;
  return true;
} catch (...) {
  return true;
}

}  // namespace nacre
