#include "db/read/lookup_batch.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "db/read/direct_lookup.h"
#include "db/read/inline_array.h"
#include "db/read/loads_under_way.h"
#include "db/read/view_reads.h"
#include "pool/read/point_reader.h"
#include "util/hash.h"

namespace nacre {

namespace {

/// Whether what is read lies where this process can load it. What takes bytes of several nodes has
/// no address.
bool MayMap(const LookupContext& context, const pool::PointRead& read) {
  if (!read.from.valid()) return false;
  const pool::PoolClient& client = *context.source.client;
  return client.device()->ForPeer(client.node_address(read.from.node))->may_map();
}

}  // namespace

void KeyLookup::Begin(const LookupContext& context, const Slice& key, PinnableSlice* value,
                      Status* status) {
  key_ = key;
  hash_ = Hash64(key);
  value_ = value;
  status_ = status;
  for (const auto& memtable : context.view.memtables) memtable->Prefetch(hash_);
}

void KeyLookup::BeginTables(const LookupContext& context) {
  tables_.Start(context.view.version.get(), context.source.store, key_, hash_, context.snapshot,
                context.options.verify_checksums);
}

KeyLookup::State KeyLookup::LookInMemory(const LookupContext& context) {
  switch (GetFromMemTables(context.view, key_, hash_, context.snapshot, value_, status_)) {
    case MemTableAnswer::kSettled:
      return State::kEnded;
    case MemTableAnswer::kSearch:
      tables_.LeaveToSearch();
      return State::kWaits;
    case MemTableAnswer::kAbsent:
      break;
  }
  return State::kReads;
}

KeyLookup::State KeyLookup::Next(const LookupContext& context, pool::PointRead* read) {
  while (tables_.Next(read)) {
    if (tables_.loads()) return State::kLoads;
    std::unique_ptr<char[]> cached;
    if (context.source.record_cache == nullptr || !FindCached(context, &cached, read)) [[likely]]
      return State::kReads;
    Record record;
    const State state = Answer(context, tables_.Consume(*read, &record), record);
    if (state != State::kReads) return state;
  }
  return Conclude();
}

bool KeyLookup::FindCached(const LookupContext& context, std::unique_ptr<char[]>* buffer,
                           pool::PointRead* read) {
  if (!tables_.reads_record()) return false;
  const LookupSource& source = context.source;
  // What can be loaded is not worth a copy here.
  if (MayMap(context, *read)) return false;
  Slice record;
  if (!source.record_cache->Find(tables_.record_name(), buffer, &record)) return false;
  read->data = record.data();
  read->length = static_cast<uint32_t>(record.size());
  read->status = Status::OK();
  return true;
}

KeyLookup::State KeyLookup::Consume(const LookupContext& context, const pool::PointRead& read) {
  Record record;
  const PointLookup::Outcome outcome = tables_.Consume(read, &record);
  RecordCache* const cache = context.source.record_cache;
  if (cache != nullptr && outcome == PointLookup::Outcome::kFound && tables_.reads_record() &&
      context.options.verify_checksums && !MayMap(context, read)) {
    cache->Admit(tables_.record_name(), Slice(read.data, record.encoded_bytes));
  }
  return Answer(context, outcome, record);
}

KeyLookup::State KeyLookup::Load(const LookupContext& context) {
  Record record;
  const PointLookup::Outcome outcome = tables_.Load(value_, &record);
  // What was copied may be of another record, or of what had been one.
  if (outcome != PointLookup::Outcome::kFound || TagType(record.tag) != ValueType::kValue)
      [[unlikely]] {
    value_->Reset();
  }
  return Answer(context, outcome, record);
}

KeyLookup::State KeyLookup::Answer(const LookupContext& context, PointLookup::Outcome outcome,
                                   const Record& record) {
  switch (outcome) {
    case PointLookup::Outcome::kContinue:
      return State::kReads;
    case PointLookup::Outcome::kFound:
      break;
    default:
      return Conclude();
  }
  if (context.source.finds_damage) tables_.FindDamage();
  const ValueType type = TagType(record.tag);
  if (type == ValueType::kMerge) return State::kWaits;
  *status_ = type == ValueType::kValue ? Status::OK() : Status::NotFound();
  const bool has_value = record.value.data() == value_->data();
  if (type == ValueType::kValue && !has_value) value_->PinSelf(record.value);
  return State::kEnded;
}

KeyLookup::State KeyLookup::Conclude() {
  switch (tables_.outcome()) {
    case PointLookup::Outcome::kContinue:
      *status_ = Status::NotFound();
      return State::kEnded;
    case PointLookup::Outcome::kFailed:
      *status_ = tables_.status();
      return State::kFailed;
    default:
      return State::kWaits;
  }
}

KeyLookup::State KeyLookup::Await(const LookupContext& context) {
  if (tables_.outcome() == PointLookup::Outcome::kUnloaded) {
    *status_ = context.source.prepare(*tables_.table());
    if (!status_->ok()) return State::kEnded;
    BeginTables(context);
    return State::kReads;
  }
  *status_ = SearchView(context.view, context.options, key_, context.snapshot, value_);
  return State::kEnded;
}

namespace {

/// At most kKeys lookups under way together. A few keys' reads are posted together, and travel
/// while the next few are looked up and those that have arrived are taken. What can be loaded is
/// taken a few keys after it was asked of the processor, without a group.
template <size_t kKeys>
class LookupBatch {
 public:
  LookupBatch(const KeyContexts& contexts, size_t keys_max)
      : contexts_(contexts), lookups_(keys_max), reads_(keys_max) {}

  /// At most `keys_max` of them.
  void Run(std::span<const Slice> keys, PinnableSlice* values, Status* statuses) {
    group_count_ = (keys.size() + kGroup - 1) / kGroup;
    const auto look_up = [&](size_t g) {
      const size_t begin = g * kGroup;
      LookInMemory(begin, keys.subspan(begin, std::min(kGroup, keys.size() - begin)),
                   values + begin, statuses + begin, &groups_[g]);
    };
    // The buckets of a group come from memory while the one before it is posted.
    const auto find_reads = [&](size_t g) {
      if (g > 0 && g + 1 < groups()) look_up(g + 1);
      FindReads(&groups_[g]);
    };
    look_up(0);
    if (groups() > 1) look_up(1);
    size_t first = 0;
    for (find_reads(0); groups_[first].count == 0 && first + 1 < groups();) find_reads(++first);
    if (groups_[first].count == 0) {
      EndLoads();
      if (turned_ == 0) [[likely]]
        return;
    }
    pool::PointReader reader(contexts_[0].source.client->point_sessions());
    reader_ = &reader;
    Post(&groups_[first]);
    for (size_t g = first + 1; g < groups(); ++g) {
      find_reads(g);
      Post(&groups_[g]);
    }
    while (TakeAll() > 0) {
      for (size_t g = 0; g < groups(); ++g) {
        FindReads(&groups_[g]);
        Post(&groups_[g]);
      }
    }
  }

 private:
  using State = KeyLookup::State;
  static constexpr size_t kGroup = std::min<size_t>(kKeys, 16);
  static constexpr size_t kGroups = (kKeys + kGroup - 1) / kGroup;
  static_assert(kGroups <= pool::PointReader::kMaxStarted);

  struct Group {
    size_t count = 0;
    uint8_t keys[kGroup];  ///< Those whose lookups have not ended, by number.
    pool::PointRead* reads = nullptr;
    size_t addressed = 0;  ///< The first of them, which the reader reads; the rest is fetched.
    /// If any is: those reads, and the parts that fetches consist of, for the reader.
    std::vector<pool::PointRead> with_parts;
    uint8_t parts[kGroup];  ///< Parts of each fetch.
    bool started = false;   ///< FinishReads has to end its reads.
    /// Lookups that were to load, and have to read now: they go on with the next reads.
    uint8_t turned[kGroup];
    size_t turned_count = 0;
  };

  size_t groups() const { return kGroups == 1 ? 1 : group_count_; }

  void LookInMemory(size_t begin, std::span<const Slice> keys, PinnableSlice* values,
                    Status* statuses, Group* group) {
    group->count = 0;
    group->reads = reads_.data() + begin;
    for (size_t i = 0; i < keys.size(); ++i) {
      lookups_[begin + i].Begin(contexts_[begin + i], keys[i], &values[i], &statuses[i]);
    }
    // All that a single lookup may have to look at comes from memory at once.
    if constexpr (kKeys == 1) lookups_[begin].BeginTables(contexts_[begin]);
    for (size_t i = 0; i < keys.size(); ++i) {
      KeyLookup& lookup = lookups_[begin + i];
      const LookupContext& context = contexts_[begin + i];
      const State state = lookup.LookInMemory(context);
      if (state == State::kReads) {
        if constexpr (kKeys > 1) lookup.BeginTables(context);
        group->keys[group->count++] = static_cast<uint8_t>(begin + i);
      } else if (state == State::kWaits) [[unlikely]] {
        lookup.Await(context);
      }
    }
  }

  /// What lookup `i` needs next: kReads, kLoads, or nothing, as it has ended.
  State FindRead(uint8_t i, pool::PointRead* read) {
    for (;;) {
      const State state = lookups_[i].Next(contexts_[i], read);
      if (state != State::kWaits) [[likely]]
        return state;
      if (lookups_[i].Await(contexts_[i]) == State::kEnded) return State::kEnded;
    }
  }

  /// The bytes of lookup `i` have been asked for: takes those that were asked for before others.
  void Load(uint8_t i) {
    if constexpr (kKeys > 1) {
      if (!loads_.full()) {
        loads_.Push(i);
        return;
      }
      const uint8_t first = loads_.Pop();
      loads_.Push(i);
      i = first;
    }
    EndLoad(i);
  }

  void EndLoad(uint8_t i) {
    KeyLookup& lookup = lookups_[i];
    State state = State::kLoads;
    pool::PointRead read;
    while (state == State::kLoads) {
      state = lookup.Load(contexts_[i]);
      if (state == State::kWaits) [[unlikely]]
        state = lookup.Await(contexts_[i]);
      if (state == State::kReads) [[unlikely]]
        state = FindRead(i, &read);
    }
    if (state != State::kReads) [[likely]]
      return;
    Group& group = groups_[i / kGroup];
    group.turned[group.turned_count++] = i;
    ++turned_;
  }

  void EndLoads() {
    while (!loads_.empty()) EndLoad(loads_.Pop());
  }

  void FindReads(Group* group) {
    size_t posted = 0;
    size_t addressed = 0;
    for (size_t j = 0; j < group->count; ++j) {
      const uint8_t i = group->keys[j];
      const State state = FindRead(i, &group->reads[posted]);
      if (state == State::kLoads) [[likely]]
        Load(i);
      if (state != State::kReads) continue;
      group->keys[posted] = i;
      if (group->reads[posted].from.valid()) [[likely]] {
        std::swap(group->keys[addressed], group->keys[posted]);
        std::swap(group->reads[addressed++], group->reads[posted]);
      }
      ++posted;
    }
    group->count = posted;
    group->addressed = addressed;
  }

  void Post(Group* group) {
    const size_t addressed = group->addressed;
    if (addressed == group->count) [[likely]] {
      if (addressed > 0) Start({group->reads, addressed}, group);
      return;
    }
    std::vector<pool::PointRead>& all = group->with_parts;
    all.assign(group->reads, group->reads + addressed);
    for (size_t j = addressed; j < group->count; ++j) {
      const auto parts = lookups_[group->keys[j]].tables()->StartFetch(
          group->reads[j], pool::PointReader::kMaxReadsAtOnce - all.size());
      group->parts[j] = static_cast<uint8_t>(parts.size());
      all.insert(all.end(), parts.begin(), parts.end());
    }
    if (!all.empty()) Start(all, group);
  }

  void Start(std::span<pool::PointRead> reads, Group* group) {
    if (groups() == 1) {
      reader_->ReadAll(reads);
    } else {
      reader_->StartReads(reads);
      group->started = true;
    }
  }

  /// Takes what has arrived for all groups. Answers how many lookups go on.
  size_t TakeAll() {
    EndLoads();
    size_t left = 0;
    for (size_t g = 0; g < groups(); ++g) left += Take(&groups_[g]);
    return left;
  }

  size_t Take(Group* group) {
    if (std::exchange(group->started, false)) reader_->FinishReads();
    size_t left = 0;
    size_t part = group->addressed;
    if (group->addressed < group->count) [[unlikely]] {
      std::copy_n(group->with_parts.begin(), group->addressed, group->reads);
    }
    for (size_t j = 0; j < group->count; ++j) {
      const uint8_t i = group->keys[j];
      KeyLookup& lookup = lookups_[i];
      if (j >= group->addressed) [[unlikely]] {
        lookup.tables()->Fetch({group->with_parts.data() + part, group->parts[j]},
                               &group->reads[j]);
        part += group->parts[j];
      }
      State state = lookup.Consume(contexts_[i], group->reads[j]);
      if (state == State::kWaits) [[unlikely]]
        state = lookup.Await(contexts_[i]);
      if (state == State::kReads) group->keys[left++] = i;
    }
    for (; group->turned_count > 0; --turned_) {
      group->keys[left++] = group->turned[--group->turned_count];
    }
    group->count = left;
    return left;
  }

  const KeyContexts contexts_;
  InlineArray<KeyLookup, kKeys> lookups_;
  InlineArray<pool::PointRead, kKeys> reads_;
  Group groups_[kGroups];
  size_t group_count_ = 0;
  LoadsUnderWay<uint8_t> loads_;
  size_t turned_ = 0;                    ///< The lookups that have turned, in all groups.
  pool::PointReader* reader_ = nullptr;  ///< The one of the run under way, if it reads.
};

}  // namespace

namespace {

/// Enough to hide a round trip, few enough to stay in the cache.
constexpr size_t kBatch = 64;

void LookUpOne(const LookupContext& context, const Slice& key, PinnableSlice* value,
               Status* status) {
  if (DirectLookup::IsPossible(context)) [[likely]] {
    DirectLookup lookup;
    if (lookup.Begin(context, key)) [[likely]] {
      DirectLookup::State state = lookup.Find(context, value, status);
      while (state == DirectLookup::State::kLoads) state = lookup.Load(context, value, status);
      if (state == DirectLookup::State::kEnded) [[likely]]
        return;
    }
  }
  LookupBatch<1>(context, 1).Run({&key, 1}, value, status);
}

/// Those of at most kBatch keys that have a bit in `which`.
void LookUpSome(const KeyContexts& contexts, uint64_t which, std::span<const Slice> keys,
                PinnableSlice* values, Status* statuses) {
  if (which == 0) [[likely]]
    return;
  const auto count = static_cast<size_t>(std::popcount(which));
  if (count == keys.size()) {
    return LookupBatch<kBatch>(contexts, count).Run(keys, values, statuses);
  }
  std::vector<const LookupContext*> some_contexts;
  std::vector<Slice> some_keys;
  std::vector<PinnableSlice> some_values(count);
  std::vector<Status> some_statuses(count);
  for (uint64_t left = which; left != 0; left &= left - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(left));
    some_contexts.push_back(&contexts[i]);
    some_keys.push_back(keys[i]);
  }
  LookupBatch<kBatch>(KeyContexts(some_contexts.data()), count)
      .Run(some_keys, some_values.data(), some_statuses.data());
  size_t next = 0;
  for (uint64_t left = which; left != 0; left &= left - 1, ++next) {
    const auto i = static_cast<size_t>(std::countr_zero(left));
    values[i] = std::move(some_values[next]);
    statuses[i] = std::move(some_statuses[next]);
  }
}

/// Whether there is any sense in it for all of the keys.
bool MayLookUpDirectly(const KeyContexts& contexts, size_t count) {
  if (contexts.one_for_all()) return DirectLookup::IsPossible(contexts[0]);
  const LookupContext* last = nullptr;
  for (size_t i = 0; i < count; ++i) {
    if (&contexts[i] != last && !DirectLookup::IsPossible(contexts[i])) return false;
    last = &contexts[i];
  }
  return true;
}

}  // namespace

void LookUpKeys(const KeyContexts& contexts, std::span<const Slice> keys, PinnableSlice* values,
                Status* statuses) {
  if (keys.size() == 1) return LookUpOne(contexts[0], keys[0], values, statuses);
  const bool directly = MayLookUpDirectly(contexts, keys.size());
  for (size_t first = 0; first < keys.size(); first += kBatch) {
    const auto some = keys.subspan(first, std::min(kBatch, keys.size() - first));
    const KeyContexts theirs = contexts.From(first);
    const uint64_t all = UINT64_MAX >> (kBatch - some.size());
    const uint64_t left =
        directly ? LookUpDirectly(theirs, some, values + first, statuses + first) : all;
    LookUpSome(theirs, left, some, values + first, statuses + first);
  }
}

}  // namespace nacre
