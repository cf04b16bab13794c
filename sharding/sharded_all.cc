#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

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
Status ShardedDBImpl::ForEachShard(const Work& work) const {
  Status first;
  for (const auto& shard : shards_) {
    Status status = work(*shard);
    if (first.ok()) first = std::move(status);
  }
  return first;
}

template <typename Work>
Status ShardedDBImpl::ForEachShardIn(const Slice* begin, const Slice* end, const Work& work) const {
  const size_t first = begin == nullptr ? 0 : map_.Find(*begin);
  for (size_t index = first; index < shards_.size(); ++index) {
    const Slice start(map_.shards()[index].begin);
    // Before all keys there is no bound.
    if (index > first && end != nullptr && map_.comparator()->Compare(*end, start) < 0) break;
    const bool ends = end != nullptr && map_.IsBeforeEnd(index, *end);
    const bool last = index + 1 == shards_.size();
    const Slice limit = last ? Slice() : Slice(map_.shards()[index + 1].begin);
    NACRE_RETURN_IF_ERROR(
        work(*shards_[index], index == first ? begin : &start, ends || last ? end : &limit));
  }
  return Status::OK();
}

// ---- Background work ----------------------------------------------------------------------------

Status ShardedDBImpl::Flush(const FlushOptions& options, ColumnFamilyHandle* handle) {
  const ShardedFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(Find(handle, &family));
  // All of them begin before one is waited for.
  if (options.wait && shards_.size() > 1) {
    FlushOptions begin = options;
    begin.wait = false;
    NACRE_RETURN_IF_ERROR(ForEachShard(
        [&](const Shard& shard) { return shard.db()->Flush(begin, Of(family, shard.index())); }));
  }
  return ForEachShard(
      [&](const Shard& shard) { return shard.db()->Flush(options, Of(family, shard.index())); });
}

Status ShardedDBImpl::CompactRange(const CompactRangeOptions& options, ColumnFamilyHandle* handle,
                                   const Slice* begin, const Slice* end) {
  const ShardedFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(Find(handle, &family));
  return ForEachShardIn(begin, end, [&](const Shard& shard, const Slice* from, const Slice* to) {
    return shard.db()->CompactRange(options, Of(family, shard.index()), from, to);
  });
}

Status ShardedDBImpl::SuggestCompactRange(ColumnFamilyHandle* handle, const Slice* begin,
                                          const Slice* end) {
  const ShardedFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(Find(handle, &family));
  return ForEachShardIn(begin, end, [&](const Shard& shard, const Slice* from, const Slice* to) {
    return shard.db()->SuggestCompactRange(Of(family, shard.index()), from, to);
  });
}

Status ShardedDBImpl::WaitForCompact() {
  return ForEachShard([](const Shard& shard) { return shard.db()->WaitForCompact(); });
}

Status ShardedDBImpl::PauseBackgroundWork() {
  return ForEachShard([](const Shard& shard) { return shard.db()->PauseBackgroundWork(); });
}

Status ShardedDBImpl::ContinueBackgroundWork() {
  return ForEachShard([](const Shard& shard) { return shard.db()->ContinueBackgroundWork(); });
}

Status ShardedDBImpl::EnableAutoCompaction(const std::vector<ColumnFamilyHandle*>& handles) {
  std::vector<const ShardedFamily*> families;
  for (ColumnFamilyHandle* const handle : handles) {
    families.emplace_back();
    NACRE_RETURN_IF_ERROR(Find(handle, &families.back()));
  }
  return ForEachShard([&](const Shard& shard) {
    std::vector<ColumnFamilyHandle*> there;
    for (const ShardedFamily* family : families) {
      there.push_back(family == nullptr ? shard.db()->DefaultColumnFamily()
                                        : family->of_shard(shard.index()));
    }
    return shard.db()->EnableAutoCompaction(there);
  });
}

void ShardedDBImpl::DisableManualCompaction() {
  for (const auto& shard : shards_) shard->db()->DisableManualCompaction();
}

void ShardedDBImpl::EnableManualCompaction() {
  for (const auto& shard : shards_) shard->db()->EnableManualCompaction();
}

Status ShardedDBImpl::Resume() {
  return ForEachShard([](const Shard& shard) { return shard.db()->Resume(); });
}

Status ShardedDBImpl::VerifyChecksum() {
  return ForEachShard([](const Shard& shard) { return shard.db()->VerifyChecksum(); });
}

// ---- What there is ------------------------------------------------------------------------------

bool ShardedDBImpl::GetIntProperty(ColumnFamilyHandle* handle, const Slice& property,
                                   uint64_t* value) {
  const std::string_view name = NameOf(property);
  if (name == kShards) {
    *value = shards_.size();
    return true;
  }
  if (name == "num-snapshots") {
    *value = snapshots_.load(std::memory_order_relaxed);
    return true;
  }
  const ShardedFamily* family = nullptr;
  if (!Find(handle, &family).ok()) return false;
  uint64_t sum = 0;
  for (const auto& shard : shards_) {
    uint64_t of_shard = 0;
    if (!shard->db()->GetIntProperty(Of(family, shard->index()), property, &of_shard)) return false;
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
  if (!Find(handle, &family).ok()) return false;
  value->clear();
  for (const auto& shard : shards_) {
    std::string of_shard;
    if (!shard->db()->GetProperty(Of(family, shard->index()), property, &of_shard)) return false;
    *value += shard->db()->GetName() + ":\n" + of_shard;
    if (!of_shard.ends_with('\n')) *value += '\n';
  }
  return true;
}

bool ShardedDBImpl::GetMapProperty(ColumnFamilyHandle* handle, const Slice& property,
                                   std::map<std::string, std::string>* value) {
  const ShardedFamily* family = nullptr;
  if (!Find(handle, &family).ok()) return false;
  value->clear();
  if (IsOfPool(NameOf(property))) return shards_.front()->db()->GetMapProperty(property, value);
  for (const auto& shard : shards_) {
    std::map<std::string, std::string> of_shard;
    if (!shard->db()->GetMapProperty(Of(family, shard->index()), property, &of_shard)) return false;
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
  for (const auto& shard : shards_) {
    uint64_t of_shard = 0;
    if (!shard->db()->GetAggregatedIntProperty(property, &of_shard)) return false;
    sum += of_shard;
    if (IsOfPool(name)) break;
  }
  *value = sum;
  return true;
}

Status ShardedDBImpl::ResetStats() {
  return ForEachShard([](const Shard& shard) { return shard.db()->ResetStats(); });
}

Status ShardedDBImpl::GetApproximateSizes(ColumnFamilyHandle* handle, const Range* ranges, int n,
                                          uint64_t* sizes) {
  const ShardedFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(Find(handle, &family));
  std::fill_n(sizes, n, 0);
  return ForEachShard([&](const Shard& shard) -> Status {
    std::vector<uint64_t> of_shard(static_cast<size_t>(n));
    NACRE_RETURN_IF_ERROR(
        shard.db()->GetApproximateSizes(Of(family, shard.index()), ranges, n, of_shard.data()));
    for (int i = 0; i < n; ++i) sizes[i] += of_shard[static_cast<size_t>(i)];
    return Status::OK();
  });
}

void ShardedDBImpl::GetApproximateMemTableStats(ColumnFamilyHandle* handle, const Range& range,
                                                uint64_t* count, uint64_t* size) {
  *count = *size = 0;
  const ShardedFamily* family = nullptr;
  if (!Find(handle, &family).ok()) return;
  for (const auto& shard : shards_) {
    uint64_t count_there = 0;
    uint64_t size_there = 0;
    shard->db()->GetApproximateMemTableStats(Of(family, shard->index()), range, &count_there,
                                             &size_there);
    *count += count_there;
    *size += size_there;
  }
}

void ShardedDBImpl::GetLiveTablesMetaData(std::vector<LiveTableMetaData>* tables) {
  tables->clear();
  for (const auto& shard : shards_) {
    std::vector<LiveTableMetaData> of_shard;
    shard->db()->GetLiveTablesMetaData(&of_shard);
    tables->insert(tables->end(), of_shard.begin(), of_shard.end());
  }
}

void ShardedDBImpl::GetColumnFamilyMetaData(ColumnFamilyHandle* handle,
                                            ColumnFamilyMetaData* metadata) {
  *metadata = ColumnFamilyMetaData();
  const ShardedFamily* family = nullptr;
  if (!Find(handle, &family).ok()) return;
  for (const auto& shard : shards_) {
    ColumnFamilyMetaData of_shard;
    shard->db()->GetColumnFamilyMetaData(Of(family, shard->index()), &of_shard);
    AddMetaData(std::move(of_shard), metadata);
  }
}

int ShardedDBImpl::NumberLevels(ColumnFamilyHandle* handle) {
  const ShardedFamily* family = nullptr;
  if (!Find(handle, &family).ok()) return ColumnFamilyOptions().num_levels;
  return shards_.front()->db()->NumberLevels(Of(family, 0));
}

uint64_t ShardedDBImpl::GetLatestSequenceNumber() const {
  uint64_t sum = 0;
  for (const auto& shard : shards_) sum += shard->db()->GetLatestSequenceNumber();
  return sum;
}

std::vector<ShardInfo> ShardedDBImpl::GetShards() const {
  std::vector<ShardInfo> shards;
  for (size_t i = 0; i < map_.size(); ++i) {
    const bool last = i + 1 == map_.size();
    shards.push_back({.id = map_.shards()[i].id,
                      .database = shards_[i]->db()->GetName(),
                      .begin = map_.shards()[i].begin,
                      .end = last ? std::string() : map_.shards()[i + 1].begin,
                      .last = last});
  }
  return shards;
}

// ---- Options ------------------------------------------------------------------------------------

Options ShardedDBImpl::GetOptions(ColumnFamilyHandle* handle) const {
  const ShardedFamily* family = nullptr;
  if (!Find(handle, &family).ok()) return Options();
  return shards_.front()->db()->GetOptions(Of(family, 0));
}

Status ShardedDBImpl::SetOptions(ColumnFamilyHandle* handle,
                                 const std::unordered_map<std::string, std::string>& changes) {
  const ShardedFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(Find(handle, &family));
  return ForEachShard([&](const Shard& shard) {
    return shard.db()->SetOptions(Of(family, shard.index()), changes);
  });
}

Status ShardedDBImpl::SetDBOptions(const std::unordered_map<std::string, std::string>& changes) {
  return ForEachShard([&](const Shard& shard) { return shard.db()->SetDBOptions(changes); });
}

}  // namespace nacre
