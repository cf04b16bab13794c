#include "db/read/direct_lookup.h"

#include <algorithm>
#include <cassert>
#include <memory>

#include "db/read/inline_array.h"
#include "db/read/view_reads.h"
#include "util/hash.h"
#include "util/memory/prefetch.h"
#include "util/perf_step.h"

namespace nacre {

bool DirectLookup::IsPossible(const LookupContext& context) {
  return context.source.client->device()->may_map() && !context.view.version->has_range_deletions();
}

bool DirectLookup::Begin(const LookupContext& context, const Slice& key) {
  key_ = key;
  hash_ = Hash64(key);
  for (const auto& memtable : context.view.memtables) memtable->Prefetch(hash_);
  const Version& version = *context.view.version;
  table_count_ = 0;
  const TableList& level0 = version.level0();
  for (size_t i = 0; i < level0.size(); ++i) {
    if (version.Level0Holds(i, key) && !AddTable(*level0[i])) return false;
  }
  for (int level = 1; level < version.depth(); ++level) {
    const TableHandle* const table = version.sorted_level(level).Find(key);
    if (table != nullptr && !AddTable(*table)) return false;
  }
  return true;
}

bool DirectLookup::AddTable(const TableHandle& table) {
  const PointTier* const tier = table.tier();
  if (tier == nullptr || tier->kind() != PointTier::Kind::kIndex || table_count_ == kTablesMax)
      [[unlikely]] {
    return false;
  }
  tier->index().Prefetch(hash_);
  tables_[table_count_++] = {.handle = &table, .index = &tier->index()};
  return true;
}

DirectLookup::State DirectLookup::Find(const LookupContext& context, PinnableSlice* value,
                                       Status* status) {
  switch (GetFromMemTables(context.view, key_, hash_, context.snapshot, value, status)) {
    case MemTableAnswer::kSettled:
      return State::kEnded;
    case MemTableAnswer::kSearch:
      return State::kGaveUp;
    case MemTableAnswer::kAbsent:
      break;
  }
  table_ = SIZE_MAX;  // Before the first.
  candidate_ = candidate_count_ = 0;
  return NextCandidate(status);
}

DirectLookup::State DirectLookup::NextCandidate(Status* status) {
  while (candidate_ == candidate_count_) {
    if (++table_ == table_count_) {
      *status = Status::NotFound();
      return State::kEnded;
    }
    candidate_ = 0;
    candidate_count_ = tables_[table_].index->Lookup(hash_, candidates_);
    if (candidate_count_ == kTooManyCandidates) [[unlikely]]
      return State::kGaveUp;
    if (candidate_count_ > 0) tables_[table_].handle->NoteLookup();
  }
  const RecordCandidate& candidate = candidates_[candidate_];
  const LoadableBytes there = tables_[table_].handle->reader().extent()->Loadable(candidate.offset);
  if (there.data == nullptr) [[unlikely]]
    return State::kGaveUp;
  memory_ = there.memory;
  bytes_ = there.From(candidate.offset, candidate.length);
  PrefetchBeginning(bytes_.data(), bytes_.size());
  return State::kLoads;
}

DirectLookup::State DirectLookup::Load(const LookupContext& context, PinnableSlice* value,
                                       Status* status) {
  CountPerf(&PerfContext::remote_read_count);
  CountPerf(&PerfContext::remote_read_bytes, bytes_.size());
  const PerfTimer timer(&PerfContext::remote_read_wait_nanos);
  Record record;
  std::unique_ptr<char[]> copy;
  const TableReader::Match match = tables_[table_].handle->reader().LoadRecord(
      candidates_[candidate_].offset, bytes_, key_, context.snapshot,
      context.options.verify_checksums, value, &copy, &record);
  // What was copied counts only if the memory still does.
  const bool counts = memory_->Valid();
  if (counts && match == TableReader::Match::kYes) [[likely]] {
    const ValueType type = TagType(record.tag);
    if (type == ValueType::kValue && record.value.data() == value->data()) [[likely]] {
      *status = Status::OK();
      return State::kEnded;
    }
    if (IsDeletion(type)) {
      value->Reset();
      *status = Status::NotFound();
      return State::kEnded;
    }
  }
  value->Reset();
  if (!counts || match != TableReader::Match::kNo) return State::kGaveUp;
  ++candidate_;
  return NextCandidate(status);
}

uint64_t LookUpDirectly(const KeyContexts& contexts, std::span<const Slice> keys,
                        PinnableSlice* values, Status* statuses) {
  // Memory answers within so many keys' steps.
  constexpr size_t kFindBehind = 12;
  constexpr size_t kLoadBehind = kFindBehind + 8;
  constexpr size_t kUnderWay = 32;
  static_assert(kLoadBehind < kUnderWay);
  using State = DirectLookup::State;
  const size_t count = keys.size();
  assert(count <= 64);
  uint64_t left = 0;
  uint64_t loads = 0;
  const auto note = [&left, &loads](size_t i, State state) {
    left |= uint64_t{state == State::kGaveUp} << i;
    loads |= uint64_t{state == State::kLoads} << i;
  };
  InlineArray<DirectLookup, kUnderWay> lookups(std::min(count, kUnderWay));
  for (size_t i = 0; i < count + kLoadBehind; ++i) {
    if (i < count && !lookups[i % kUnderWay].Begin(contexts[i], keys[i])) note(i, State::kGaveUp);
    if (const size_t at = i - kFindBehind; at < count && (left >> at & 1) == 0) {
      note(at, lookups[at % kUnderWay].Find(contexts[at], &values[at], &statuses[at]));
    }
    if (const size_t at = i - kLoadBehind; at < count && (loads >> at & 1) != 0) {
      State state = State::kLoads;
      while (state == State::kLoads) {
        state = lookups[at % kUnderWay].Load(contexts[at], &values[at], &statuses[at]);
      }
      note(at, state);
    }
  }
  return left;
}

}  // namespace nacre
