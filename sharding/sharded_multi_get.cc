#include "sharding/sharded_multi_get.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "db/db_impl.h"
#include "sharding/some_keys.h"

namespace nacre {
namespace {

/// Each read of a shard is within those of the shards before it, on the stack.
constexpr size_t kShardsTogether = 64;

/// `Aborted` if an answer says that a shard has moved.
Status CheckStayed(std::span<const Status> answers) {
  const Status moved = MovedOf(answers);
  return moved.ok() ? Status::OK() : Status::Aborted(moved.ToString());
}

}  // namespace

ShardedMultiGet::ShardedMultiGet(const ReadOptions& options, const ShardedSnapshot& snapshot,
                                 const ShardedFamily& family, std::span<const Slice> keys,
                                 PinnableSlice* values, Status* statuses)
    : snapshot_(snapshot),
      family_(family),
      keys_(keys),
      values_(values),
      statuses_(statuses),
      part_of_(keys.size()) {
  constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  std::vector<uint32_t> part_of_shard(snapshot.view().shards.size(), kNone);
  for (size_t i = 0; i < keys.size(); ++i) {
    const size_t shard = snapshot.view().map.Find(keys[i]);
    uint32_t& part = part_of_shard[shard];
    if (part == kNone) {
      part = static_cast<uint32_t>(parts_.size());
      parts_.push_back({.shard = shard, .options = options});
      parts_.back().options.snapshot = snapshot.of_shard(shard);
    }
    part_of_[i] = part;
  }
}

Status ShardedMultiGet::Run() {
  std::vector<size_t> local;
  for (size_t part = 0; part < parts_.size(); ++part) {
    if (ShardOf(parts_[part])->local() != nullptr) {
      local.push_back(part);
    } else {
      NACRE_RETURN_IF_ERROR(ReadRemote(part));
    }
  }
  const std::span<const size_t> all(local);
  for (size_t first = 0; first < all.size(); first += kShardsTogether) {
    const auto some = all.subspan(first, std::min(kShardsTogether, all.size() - first));
    NACRE_RETURN_IF_ERROR(ReadLocal(some, 0));
  }
  return Status::OK();
}

KeySets ShardedMultiGet::KeysIn(size_t part) const {
  KeySets sets;
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (part_of_[i] != part) continue;
    sets.push_back({.family = family_.id(), .begin = keys_[i].ToString()});
  }
  return sets;
}

Status ShardedMultiGet::ReadRemote(size_t part) {
  const Shard& shard = *ShardOf(parts_[part]);
  ColumnFamilyHandle* handle = nullptr;
  NACRE_RETURN_IF_ERROR(family_.HandleIn(shard, &handle));
  SomeKeys there(keys_, [&](size_t key) { return part_of_[key] == part; });
  shard.db()->MultiGet(parts_[part].options, handle, there.size(), there.keys().data(),
                       there.values(), there.statuses());
  NACRE_RETURN_IF_ERROR(CheckStayed(there.answers()));
  there.GiveBack(values_, statuses_);
  return Status::OK();
}

Status ShardedMultiGet::ReadLocal(std::span<const size_t> parts, size_t next) {
  if (next == parts.size()) {
    LookUp(parts);
    const bool may_move = ShardOf(parts_[parts.front()])->local()->may_move();
    return may_move ? CheckStayed({statuses_, keys_.size()}) : Status::OK();
  }
  Part* const part = &parts_[parts[next]];
  LocalShard* const shard = ShardOf(*part)->local();
  return shard->ReadAt([&] { return KeysIn(parts[next]); },
                       [&]() -> Status {
                         ColumnFamilyHandle* handle = nullptr;
                         NACRE_RETURN_IF_ERROR(family_.HandleIn(*shard, &handle));
                         DatabaseParts* const database = shard->engine()->parts();
                         ColumnFamily* family = nullptr;
                         NACRE_RETURN_IF_ERROR(database->state.FindFamily(handle, &family));
                         return database->reads.WithContext(part->options, *family,
                                                            [&](const LookupContext& context) {
                                                              part->context = &context;
                                                              return ReadLocal(parts, next + 1);
                                                            });
                       });
}

void ShardedMultiGet::LookUp(std::span<const size_t> parts) {
  const ReadPath& counts = ShardOf(parts_[parts.front()])->local()->engine()->parts()->reads;
  const uint64_t start = counts.StartOfMultiGet();
  std::vector<const LookupContext*> contexts;
  contexts.reserve(keys_.size());
  if (parts.size() == parts_.size()) {
    for (const uint32_t part : part_of_) contexts.push_back(parts_[part].context);
    LookUpKeys(KeyContexts(contexts.data()), keys_, values_, statuses_);
    counts.CountMultiGetSince(start, {statuses_, keys_.size()}, {values_, keys_.size()});
    return;
  }
  SomeKeys local(keys_, [&](size_t key) {
    return std::ranges::find(parts, size_t{part_of_[key]}) != parts.end();
  });
  for (const size_t place : local.places()) contexts.push_back(parts_[part_of_[place]].context);
  LookUpKeys(KeyContexts(contexts.data()), local.keys(), local.values(), local.statuses());
  counts.CountMultiGetSince(start, local.answers(), local.found());
  local.GiveBack(values_, statuses_);
}

}  // namespace nacre
