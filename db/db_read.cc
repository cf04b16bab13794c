#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/db_impl.h"
#include "db/read/db_iterator.h"
#include "db/read/operation_counts.h"
#include "db/read/point_lookup.h"
#include "db/read/view_reads.h"
#include "pool/read/point_reader.h"
#include "util/exceptions.h"
#include "util/hash.h"
#include "util/perf_step.h"
#include "util/planted_bug.h"

namespace nacre {

namespace {

/// The first `count` of N places hold objects, the rest is untouched memory: a small batch does not
/// pay for a large one.
template <typename T, size_t N>
class InlineArray {
 public:
  explicit InlineArray(size_t count) : count_(count) {
    assert(count <= N);
    std::uninitialized_default_construct_n(data(), count_);
  }
  ~InlineArray() { std::destroy_n(data(), count_); }
  InlineArray(const InlineArray&) = delete;
  InlineArray& operator=(const InlineArray&) = delete;

  T* data() { return reinterpret_cast<T*>(memory_); }
  T& operator[](size_t i) { return data()[i]; }

 private:
  const size_t count_;
  alignas(T) std::byte memory_[N * sizeof(T)];
};

}  // namespace

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
  // All that the lookup may have to look at comes from memory at once.
  const uint64_t hash = Hash64(key);
  for (const auto& memtable : view.memtables) memtable->Prefetch(hash);
  PointLookup lookup;
  lookup.Start(view.version.get(), store_, key, hash, snapshot, options.verify_checksums);
  const MemTableAnswer in_memory = GetFromMemTables(view, key, hash, snapshot, value, &status);
  if (in_memory == MemTableAnswer::kSettled) return status;
  if (in_memory == MemTableAnswer::kSearch) [[unlikely]]
    return SearchView(view, options, key, snapshot, value);

  pool::PointRead read;
  Record record;
  while (!lookup.Next(&read)) {
    if (lookup.outcome() != PointLookup::Outcome::kUnloaded) [[likely]]
      return Conclude(view, options, lookup, record, value);
    NACRE_RETURN_IF_ERROR(index_loader_.PrepareLookups(*lookup.table()));
    lookup.Start(view.version.get(), store_, key, hash, snapshot, options.verify_checksums);
  }
  pool::PointReader reader(
      client_->point_sessions());  // What is found lies in its memory until it is concluded.
  do {
    if (read.from.valid()) [[likely]] {
      reader.ReadAll({&read, 1});
    } else {
      const auto parts = lookup.StartFetch(read, pool::PointReader::kMaxReadsAtOnce);
      if (!parts.empty()) reader.ReadAll(parts);
      lookup.Fetch(parts, &read);
    }
    if (lookup.Consume(read, &record) != PointLookup::Outcome::kContinue) break;
  } while (lookup.Next(&read));
  return Conclude(view, options, lookup, record, value);
}

Status DBImpl::FinishGet(const ReadView& view, const ReadOptions& options, const Slice& key,
                         SequenceNumber snapshot, PinnableSlice* value) try {
  NACRE_RETURN_IF_ERROR(CheckLease());
  EpochDomain::Guard guard(&epochs_);
  return GetAt(view, options, key, snapshot, value);
} catch (...) {
  return StatusOfException();
}

Status DBImpl::Conclude(const ReadView& view, const ReadOptions& options, const PointLookup& lookup,
                        const Record& record, PinnableSlice* value) const {
  lookup.FindDamage();
  switch (lookup.outcome()) {
    case PointLookup::Outcome::kContinue:
      return Status::NotFound();
    case PointLookup::Outcome::kFound:
      if (TagType(record.tag) == ValueType::kValue) [[likely]] {
        value->PinSelf(record.value);
        return Status::OK();
      }
      if (TagType(record.tag) != ValueType::kMerge) return Status::NotFound();
      [[fallthrough]];
    case PointLookup::Outcome::kSearch:
      return SearchView(view, options, lookup.key(), lookup.snapshot(), value);
    case PointLookup::Outcome::kUnloaded:
      NACRE_RETURN_IF_ERROR(index_loader_.PrepareLookups(*lookup.table()));
      return SearchView(view, options, lookup.key(), lookup.snapshot(), value);
    case PointLookup::Outcome::kFailed:
      break;
  }
  return lookup.status();
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
  // Lookups under way together: enough to hide a round trip, few enough to stay in the cache.
  constexpr size_t kBatch = 64;
  ColumnFamily* family = nullptr;
  Status status = FindFamily(handle, &family);
  if (status.ok()) status = CheckLease();
  if (!status.ok()) [[unlikely]] {
    for (size_t i = 0; i < num_keys; ++i) {
      values[i].Reset();
      statuses[i] = status;
    }
    return;
  }
  EpochDomain::Guard guard(&epochs_);
  const uint64_t start = options_.statistics == nullptr ? 0 : clock_->NowNanos();
  SequenceNumber snapshot = 0;
  const ReadView& view = *PinConsistent(*family, options, &snapshot);
  InlineArray<PointLookup, kBatch> lookups(std::min(kBatch, num_keys));
  InlineArray<pool::PointRead, kBatch> reads(std::min(kBatch, num_keys));
  for (size_t first = 0; first < num_keys; first += kBatch) {
    MultiGetBatch(options, view, snapshot, std::min(kBatch, num_keys - first), keys + first,
                  lookups.data(), reads.data(), values + first, statuses + first);
  }
  for (size_t i = 0; PerfCounts() && i < num_keys; ++i) {
    CountPerf(&PerfContext::multiget_read_bytes, statuses[i].ok() ? values[i].size() : 0);
  }
  if (options_.statistics != nullptr) [[unlikely]] {
    CountMultiGet(options_.statistics.get(), clock_, start, {statuses, num_keys},
                  {values, num_keys});
  }
} catch (...) {
  const Status why = StatusOfException();
  for (size_t i = 0; i < num_keys; ++i) statuses[i] = why;
}

void DBImpl::MultiGetBatch(const ReadOptions& options, const ReadView& view,
                           SequenceNumber snapshot, size_t count, const Slice* keys,
                           PointLookup* lookups, pool::PointRead* reads, PinnableSlice* values,
                           Status* statuses) {
  // A few keys' reads are posted together, and travel while the next few are looked up and those
  // that have arrived are taken.
  constexpr size_t kGroup = 16;
  struct Group {
    size_t count = 0;
    uint8_t keys[kGroup];  ///< Those that are not settled, by number.
    pool::PointRead* reads = nullptr;
    size_t addressed = 0;  ///< The first of them, which the reader reads; the rest is fetched.
    /// If any is: those reads, and the parts that fetches consist of, for the reader.
    std::vector<pool::PointRead> with_parts;
    uint8_t parts[kGroup];  ///< Of each fetch.
  };
  static_assert(kGroup * pool::PointReader::kMaxStarted >= 64);
  Group groups[pool::PointReader::kMaxStarted];
  const size_t group_count = (count + kGroup - 1) / kGroup;
  pool::PointReader reader(client_->point_sessions());

  const auto look_up = [&](size_t g) {
    const size_t begin = g * kGroup;
    const size_t end = std::min(begin + kGroup, count);
    uint64_t hashes[kGroup];
    for (size_t i = begin; i < end; ++i) {
      hashes[i - begin] = Hash64(keys[i]);
      for (const auto& memtable : view.memtables) memtable->Prefetch(hashes[i - begin]);
    }
    Group& group = groups[g];
    group.reads = reads + begin;
    for (size_t i = begin; i < end; ++i) {
      const uint64_t hash = hashes[i - begin];
      values[i].Reset();
      const MemTableAnswer in_memory =
          GetFromMemTables(view, keys[i], hash, snapshot, &values[i], &statuses[i]);
      if (in_memory == MemTableAnswer::kSettled) continue;
      if (in_memory == MemTableAnswer::kSearch) [[unlikely]] {
        statuses[i] = SearchView(view, options, keys[i], snapshot, &values[i]);
        continue;
      }
      lookups[i].Start(view.version.get(), store_, keys[i], hash, snapshot,
                       options.verify_checksums);
      group.keys[group.count++] = static_cast<uint8_t>(i);
    }
  };
  const auto post = [&](Group* group) {
    size_t posted = 0;
    size_t addressed = 0;
    for (size_t j = 0; j < group->count; ++j) {
      const uint8_t i = group->keys[j];
      if (!lookups[i].Next(&group->reads[posted])) {
        statuses[i] = Conclude(view, options, lookups[i], Record(), &values[i]);
        continue;
      }
      group->keys[posted] = i;
      if (group->reads[posted].from.valid()) [[likely]] {
        std::swap(group->keys[addressed], group->keys[posted]);
        std::swap(group->reads[addressed++], group->reads[posted]);
      }
      ++posted;
    }
    group->count = posted;
    group->addressed = addressed;
    if (addressed == posted) [[likely]] {
      reader.StartReads({group->reads, addressed});
      return;
    }
    std::vector<pool::PointRead>& all = group->with_parts;
    all.assign(group->reads, group->reads + addressed);
    for (size_t j = addressed; j < posted; ++j) {
      const auto parts = lookups[group->keys[j]].StartFetch(
          group->reads[j], pool::PointReader::kMaxReadsAtOnce - all.size());
      group->parts[j] = static_cast<uint8_t>(parts.size());
      all.insert(all.end(), parts.begin(), parts.end());
    }
    reader.StartReads(all);
  };
  const auto take = [&](Group* group) {
    reader.FinishReads();
    size_t left = 0;
    size_t part = group->addressed;
    if (group->addressed < group->count) [[unlikely]] {
      std::copy_n(group->with_parts.begin(), group->addressed, group->reads);
    }
    for (size_t j = 0; j < group->count; ++j) {
      const uint8_t i = group->keys[j];
      if (j >= group->addressed) [[unlikely]] {
        lookups[i].Fetch({group->with_parts.data() + part, group->parts[j]}, &group->reads[j]);
        part += group->parts[j];
      }
      Record record;
      if (lookups[i].Consume(group->reads[j], &record) == PointLookup::Outcome::kContinue) {
        group->keys[left++] = i;
      } else {
        statuses[i] = Conclude(view, options, lookups[i], record, &values[i]);
      }
    }
    group->count = left;
    return left;
  };

  // The buckets of a group come from memory while the one before it is posted.
  look_up(0);
  for (size_t g = 0; g < group_count; ++g) {
    if (g + 1 < group_count) look_up(g + 1);
    post(&groups[g]);
  }
  size_t left = 0;
  for (size_t g = 0; g < group_count; ++g) left += take(&groups[g]);
  while (left > 0) {
    for (size_t g = 0; g < group_count; ++g) post(&groups[g]);
    left = 0;
    for (size_t g = 0; g < group_count; ++g) left += take(&groups[g]);
  }
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
