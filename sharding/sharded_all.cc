#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "pool/pool_client.h"
#include "pool/pool_impl.h"
#include "sharding/shard_info.h"
#include "sharding/sharded_async_db.h"
#include "sharding/sharded_db_impl.h"

namespace nacre {
namespace {

/// What of a property's name follows its prefix.
std::string_view NameOf(const Slice& property) {
  const std::string_view whole = property.ToStringView();
  for (const std::string_view prefix : {"nacre.", "rocksdb."}) {
    if (whole.starts_with(prefix)) return whole.substr(prefix.size());
  }
  return {};
}

/// Those of the pool and its nodes, which any shard answers alike.
bool IsOfPool(std::string_view name) {
  constexpr std::array kOfPool = {std::string_view("slow-nodes"), std::string_view("waits.late"),
                                  std::string_view("reads.hedged"), std::string_view("jobs.left"),
                                  std::string_view("nodes")};
  return name.starts_with("network.") || std::ranges::find(kOfPool, name) != kOfPool.end();
}

constexpr std::string_view kShards = "shards";

void AddMetaData(ColumnFamilyMetaData of_shard, ColumnFamilyMetaData* sum) {
  sum->name = of_shard.name;
  sum->size += of_shard.size;
  sum->file_count += of_shard.file_count;
  if (sum->levels.size() < of_shard.levels.size()) sum->levels.resize(of_shard.levels.size());
  for (size_t i = 0; i < of_shard.levels.size(); ++i) {
    sum->levels[i].level = of_shard.levels[i].level;
    sum->levels[i].size += of_shard.levels[i].size;
    std::ranges::move(of_shard.levels[i].files, std::back_inserter(sum->levels[i].files));
  }
}

}  // namespace

template <typename Work>
Status ShardedDBImpl::OnShardOf(const std::optional<std::string>& key, const ShardedFamily& family,
                                const Work& work, std::optional<std::string>* next) const {
  constexpr std::chrono::milliseconds kPause(2);
  std::optional<Deadline> deadline;
  for (;;) {
    const auto view = views_->latest();
    const size_t index = key.has_value() ? view->map.Find(*key) : 0;
    Shard* const shard = view->shards[index].get();
    next->reset();
    if (const std::string* const end = view->map.EndOf(index); end != nullptr) *next = *end;
    const auto call = [&]() -> Status {
      ColumnFamilyHandle* handle = nullptr;
      NACRE_RETURN_IF_ERROR(family.HandleIn(*shard, &handle));
      return work(*shard, handle);
    };
    Status status = shard->local() == nullptr ? call() : shard->local()->Do(call);
    if (!status.IsFenced() || !views_->MayChange(*view)) return status;
    if (!deadline.has_value()) deadline = OperationDeadline();
    if (deadline->Expired()) return Status::TimedOut(status.ToString());
    clock_->SleepFor(kPause);
  }
}

template <typename Work>
Status ShardedDBImpl::ForEachShard(const ShardedFamily& family, const Work& work) const {
  Status first;
  // By keys: shards may be split and merged meanwhile.
  std::optional<std::string> at;
  do {
    std::optional<std::string> next;
    Status status = OnShardOf(at, family, work, &next);
    if (first.ok()) first = std::move(status);
    at = std::move(next);
  } while (at.has_value());
  return first;
}

template <typename Work>
Status ShardedDBImpl::ForEachShardIn(const ShardedFamily& family, const Slice* begin,
                                     const Slice* end, const Work& work) const {
  const Comparator& comparator = *opener_->options().comparator;
  std::optional<std::string> at;
  if (begin != nullptr) at = begin->ToString();
  bool is_first = true;
  do {
    std::optional<std::string> next;
    const Slice from = at.has_value() ? Slice(*at) : Slice();
    NACRE_RETURN_IF_ERROR(OnShardOf(
        at, family,
        [&](const Shard& shard, ColumnFamilyHandle* handle) {
          // Before and behind all keys there is no bound.
          const bool ends_here =
              end != nullptr && (!next.has_value() || comparator.Compare(*end, *next) < 0);
          const Slice limit = next.has_value() ? Slice(*next) : Slice();
          return work(shard, handle, is_first ? begin : &from,
                      ends_here || !next.has_value() ? end : &limit);
        },
        &next));
    is_first = false;
    at = std::move(next);
  } while (at.has_value() && (end == nullptr || comparator.Compare(*at, *end) <= 0));
  return Status::OK();
}

// ---- Background work ----------------------------------------------------------------------------

Status ShardedDBImpl::Flush(const FlushOptions& options, ColumnFamilyHandle* handle) {
  const ShardedFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(families_.Find(handle, &family));
  // All of them begin before one is waited for.
  if (options.wait && views_->latest()->shards.size() > 1) {
    FlushOptions begin = options;
    begin.wait = false;
    NACRE_RETURN_IF_ERROR(ForEachShard(*family, [&](const Shard& shard, ColumnFamilyHandle* there) {
      return shard.db()->Flush(begin, there);
    }));
  }
  return ForEachShard(*family, [&](const Shard& shard, ColumnFamilyHandle* there) {
    return shard.db()->Flush(options, there);
  });
}

Status ShardedDBImpl::FlushWAL(bool sync) {
  return ForEachShard(families_.of_default(), [&](const Shard& shard, ColumnFamilyHandle*) {
    return shard.db()->FlushWAL(sync);
  });
}

Status ShardedDBImpl::CompactRange(const CompactRangeOptions& options, ColumnFamilyHandle* handle,
                                   const Slice* begin, const Slice* end) {
  const ShardedFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(families_.Find(handle, &family));
  return ForEachShardIn(
      *family, begin, end,
      [&](const Shard& shard, ColumnFamilyHandle* there, const Slice* from, const Slice* to) {
        return shard.db()->CompactRange(options, there, from, to);
      });
}

Status ShardedDBImpl::SuggestCompactRange(ColumnFamilyHandle* handle, const Slice* begin,
                                          const Slice* end) {
  const ShardedFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(families_.Find(handle, &family));
  return ForEachShardIn(
      *family, begin, end,
      [&](const Shard& shard, ColumnFamilyHandle* there, const Slice* from, const Slice* to) {
        return shard.db()->SuggestCompactRange(there, from, to);
      });
}

Status ShardedDBImpl::WaitForCompact() {
  return ForEachShard(families_.of_default(), [](const Shard& shard, ColumnFamilyHandle*) {
    return shard.db()->WaitForCompact();
  });
}

Status ShardedDBImpl::PauseBackgroundWork() {
  return ForEachShard(families_.of_default(), [](const Shard& shard, ColumnFamilyHandle*) {
    return shard.db()->PauseBackgroundWork();
  });
}

Status ShardedDBImpl::ContinueBackgroundWork() {
  return ForEachShard(families_.of_default(), [](const Shard& shard, ColumnFamilyHandle*) {
    return shard.db()->ContinueBackgroundWork();
  });
}

Status ShardedDBImpl::EnableAutoCompaction(const std::vector<ColumnFamilyHandle*>& handles) {
  std::vector<const ShardedFamily*> families;
  for (ColumnFamilyHandle* const handle : handles) {
    families.emplace_back();
    NACRE_RETURN_IF_ERROR(families_.Find(handle, &families.back()));
  }
  return ForEachShard(families_.of_default(), [&](const Shard& shard, ColumnFamilyHandle*) {
    std::vector<ColumnFamilyHandle*> there;
    for (const ShardedFamily* family : families) {
      ColumnFamilyHandle* handle = shard.db()->DefaultColumnFamily();
      if (family->id() != 0) NACRE_RETURN_IF_ERROR(family->HandleIn(shard, &handle));
      there.push_back(handle);
    }
    return shard.db()->EnableAutoCompaction(there);
  });
}

void ShardedDBImpl::DisableManualCompaction() {
  for (const auto& shard : views_->latest()->shards) shard->db()->DisableManualCompaction();
}

void ShardedDBImpl::EnableManualCompaction() {
  for (const auto& shard : views_->latest()->shards) shard->db()->EnableManualCompaction();
}

Status ShardedDBImpl::Resume() {
  return ForEachShard(families_.of_default(),
                      [](const Shard& shard, ColumnFamilyHandle*) { return shard.db()->Resume(); });
}

Status ShardedDBImpl::VerifyChecksum() {
  return ForEachShard(families_.of_default(), [](const Shard& shard, ColumnFamilyHandle*) {
    return shard.db()->VerifyChecksum();
  });
}

// ---- What there is ------------------------------------------------------------------------------

bool ShardedDBImpl::GetIntProperty(ColumnFamilyHandle* handle, const Slice& property,
                                   uint64_t* value) {
  const std::string_view name = NameOf(property);
  if (name == kShards) {
    *value = views_->latest()->shards.size();
    return true;
  }
  if (name == "num-snapshots") {
    *value = snapshots_.load(std::memory_order_relaxed);
    return true;
  }
  const ShardedFamily* family = nullptr;
  if (!families_.Find(handle, &family).ok()) return false;
  uint64_t sum = 0;
  for (const auto& shard : views_->latest()->shards) {
    uint64_t of_shard = 0;
    if (!shard->db()->GetIntProperty(shard->Handle(family->id()), property, &of_shard))
      return false;
    sum += of_shard;
    if (IsOfPool(name)) break;
  }
  *value = sum;
  return true;
}

bool ShardedDBImpl::GetProperty(ColumnFamilyHandle* handle, const Slice& property,
                                std::string* value) {
  uint64_t number = 0;
  if (GetIntProperty(handle, property, &number)) {
    *value = std::to_string(number);
    return true;
  }
  const ShardedFamily* family = nullptr;
  if (!families_.Find(handle, &family).ok()) return false;
  value->clear();
  for (const auto& shard : views_->latest()->shards) {
    std::string of_shard;
    if (!shard->db()->GetProperty(shard->Handle(family->id()), property, &of_shard)) return false;
    *value += shard->db()->GetName() + ":\n" + of_shard;
    if (!of_shard.ends_with('\n')) *value += '\n';
  }
  return true;
}

bool ShardedDBImpl::GetMapProperty(ColumnFamilyHandle* handle, const Slice& property,
                                   std::map<std::string, std::string>* value) {
  const ShardedFamily* family = nullptr;
  if (!families_.Find(handle, &family).ok()) return false;
  value->clear();
  if (IsOfPool(NameOf(property)))
    return views_->latest()->shards.front()->db()->GetMapProperty(property, value);
  for (const auto& shard : views_->latest()->shards) {
    std::map<std::string, std::string> of_shard;
    if (!shard->db()->GetMapProperty(shard->Handle(family->id()), property, &of_shard))
      return false;
    for (auto& [key, text] : of_shard) {
      (*value)[shard->db()->GetName() + "." + key] = std::move(text);
    }
  }
  return true;
}

bool ShardedDBImpl::GetAggregatedIntProperty(const Slice& property, uint64_t* value) {
  const std::string_view name = NameOf(property);
  if (name == kShards) return GetIntProperty(nullptr, property, value);
  uint64_t sum = 0;
  for (const auto& shard : views_->latest()->shards) {
    uint64_t of_shard = 0;
    if (!shard->db()->GetAggregatedIntProperty(property, &of_shard)) return false;
    sum += of_shard;
    if (IsOfPool(name)) break;
  }
  *value = sum;
  return true;
}

Status ShardedDBImpl::ResetStats() {
  return ForEachShard(families_.of_default(), [](const Shard& shard, ColumnFamilyHandle*) {
    return shard.db()->ResetStats();
  });
}

Status ShardedDBImpl::GetApproximateSizes(ColumnFamilyHandle* handle, const Range* ranges, int n,
                                          uint64_t* sizes) {
  const ShardedFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(families_.Find(handle, &family));
  std::fill_n(sizes, n, 0);
  return ForEachShard(*family, [&](const Shard& shard, ColumnFamilyHandle* there) -> Status {
    std::vector<uint64_t> of_shard(static_cast<size_t>(n));
    NACRE_RETURN_IF_ERROR(shard.db()->GetApproximateSizes(there, ranges, n, of_shard.data()));
    for (int i = 0; i < n; ++i) sizes[i] += of_shard[static_cast<size_t>(i)];
    return Status::OK();
  });
}

void ShardedDBImpl::GetApproximateMemTableStats(ColumnFamilyHandle* handle, const Range& range,
                                                uint64_t* count, uint64_t* size) {
  *count = *size = 0;
  const ShardedFamily* family = nullptr;
  if (!families_.Find(handle, &family).ok()) return;
  for (const auto& shard : views_->latest()->shards) {
    uint64_t count_there = 0;
    uint64_t size_there = 0;
    shard->db()->GetApproximateMemTableStats(shard->Handle(family->id()), range, &count_there,
                                             &size_there);
    *count += count_there;
    *size += size_there;
  }
}

void ShardedDBImpl::GetLiveTablesMetaData(std::vector<LiveTableMetaData>* tables) {
  tables->clear();
  for (const auto& shard : views_->latest()->shards) {
    std::vector<LiveTableMetaData> of_shard;
    shard->db()->GetLiveTablesMetaData(&of_shard);
    tables->insert(tables->end(), of_shard.begin(), of_shard.end());
  }
}

void ShardedDBImpl::GetColumnFamilyMetaData(ColumnFamilyHandle* handle,
                                            ColumnFamilyMetaData* metadata) {
  *metadata = ColumnFamilyMetaData();
  const ShardedFamily* family = nullptr;
  if (!families_.Find(handle, &family).ok()) return;
  for (const auto& shard : views_->latest()->shards) {
    ColumnFamilyMetaData of_shard;
    shard->db()->GetColumnFamilyMetaData(shard->Handle(family->id()), &of_shard);
    AddMetaData(std::move(of_shard), metadata);
  }
}

int ShardedDBImpl::NumberLevels(ColumnFamilyHandle* handle) {
  const ShardedFamily* family = nullptr;
  if (!families_.Find(handle, &family).ok()) return ColumnFamilyOptions().num_levels;
  return views_->latest()->shards.front()->db()->NumberLevels(
      views_->latest()->shards.front()->Handle(family->id()));
}

uint64_t ShardedDBImpl::GetLatestSequenceNumber() const {
  uint64_t sum = 0;
  for (const auto& shard : views_->latest()->shards) sum += shard->db()->GetLatestSequenceNumber();
  return sum;
}

Status ShardedDBImpl::NewAsyncDB(AsyncExecutor* executor, std::unique_ptr<AsyncDB>* async) {
  if (executor == nullptr) return Status::InvalidArgument("NewAsyncDB: the executor is null");
  const auto pool = std::dynamic_pointer_cast<pool::PoolImpl>(opener_->options().pool);
  *async =
      std::make_unique<ShardedAsyncDB>(this, views_.get(), executor, pool->client()->threads());
  return Status::OK();
}

std::vector<ShardInfo> ShardedDBImpl::GetShards() const {
  const auto view = views_->latest();
  std::vector<ShardInfo> shards;
  for (size_t i = 0; i < view->map.size(); ++i) {
    shards.push_back(DescribeShard(name_, view->map, i));
    shards.back().local = view->shards[i]->local() != nullptr;
  }
  return shards;
}

// ---- Options ------------------------------------------------------------------------------------

Options ShardedDBImpl::GetOptions(ColumnFamilyHandle* handle) const {
  const ShardedFamily* family = nullptr;
  if (!families_.Find(handle, &family).ok()) return Options();
  // Another process does not tell its options.
  for (const auto& shard : views_->latest()->shards) {
    if (shard->local() != nullptr) return shard->db()->GetOptions(shard->Handle(family->id()));
  }
  const ColumnFamilyDescriptor* const given = opener_->Find(family->name());
  return {opener_->options(), given == nullptr ? ColumnFamilyOptions() : given->options};
}

DBOptions ShardedDBImpl::GetDBOptions() const {
  for (const auto& shard : views_->latest()->shards) {
    if (shard->local() != nullptr) return shard->db()->GetDBOptions();
  }
  return opener_->options();
}

Status ShardedDBImpl::SetOptions(ColumnFamilyHandle* handle,
                                 const std::unordered_map<std::string, std::string>& changes) {
  const ShardedFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(families_.Find(handle, &family));
  return ForEachShard(*family, [&](const Shard& shard, ColumnFamilyHandle* there) {
    return shard.db()->SetOptions(there, changes);
  });
}

Status ShardedDBImpl::SetDBOptions(const std::unordered_map<std::string, std::string>& changes) {
  return ForEachShard(families_.of_default(), [&](const Shard& shard, ColumnFamilyHandle*) {
    return shard.db()->SetDBOptions(changes);
  });
}

}  // namespace nacre
