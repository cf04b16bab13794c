#include "sharding/remote/shard_followers.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "sharding/shard_opener.h"
#include "util/exceptions.h"
#include "util/log.h"

namespace nacre {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kOpenAgainPause{1000};
/// How often a follower catches up, unless Options::follow_interval says it.
constexpr milliseconds kFollowInterval{50};

Status NoFamily(uint32_t family) {
  return Status::NotSupported("the follower has no column family " + std::to_string(family));
}

}  // namespace

// ---- One ----------------------------------------------------------------------------------------

ShardFollower::ShardFollower(std::unique_ptr<DB> db, const std::vector<uint32_t>& families,
                             const std::vector<ColumnFamilyHandle*>& handles)
    : db_(std::move(db)) {
  for (size_t i = 0; i < families.size(); ++i) handles_[families[i]].reset(handles[i]);
}

Status ShardFollower::Get(const ReadOptions& options, uint32_t family, const Slice& key,
                          PinnableSlice* value) const {
  const auto handle = handles_.find(family);
  if (handle == handles_.end()) return NoFamily(family);
  return db_->Get(options, handle->second.get(), key, value);
}

void ShardFollower::MultiGet(const ReadOptions& options, uint32_t family, size_t num_keys,
                             const Slice* keys, PinnableSlice* values, Status* statuses) const {
  const auto handle = handles_.find(family);
  if (handle == handles_.end()) {
    std::fill_n(statuses, num_keys, NoFamily(family));
    return;
  }
  db_->MultiGet(options, handle->second.get(), num_keys, keys, values, statuses);
}

// ---- All ----------------------------------------------------------------------------------------

std::shared_ptr<ShardFollower> ShardFollowers::Find(uint32_t shard) {
  std::shared_ptr<const Families> families;
  {
    MutexLock lock(&mutex_);
    Entry& entry = entries_[shard];
    if (entry.follower != nullptr) return entry.follower;
    if (entry.opening || clock_->NowNanos() < entry.not_before_nanos) return nullptr;
    entry.opening = true;
    entry.families = families = families_;
  }
  std::shared_ptr<ShardFollower> opened;
  const Status status = CatchAll([&] { return Open(shard, *families, &opened); });
  if (!status.ok()) {
    Log(opener_->options().info_log, LogLevel::kWarn,
        "keyspace {}: shard {} cannot be followed, and its owner is asked: {}", opener_->name(),
        shard, status.ToString());
  }
  MutexLock lock(&mutex_);
  Entry& entry = entries_[shard];
  entry.opening = false;
  entry.follower = opened;
  if (!status.ok()) {
    entry.not_before_nanos =
        clock_->NowNanos() +
        static_cast<uint64_t>(std::chrono::nanoseconds(kOpenAgainPause).count());
  }
  return opened;
}

Status ShardFollowers::Open(uint32_t shard, const Families& families,
                            std::shared_ptr<ShardFollower>* follower) const {
  const ShardedOptions& of_keyspace = opener_->options();
  DBOptions options = of_keyspace;
  options.create_if_missing = false;
  options.error_if_exists = false;
  options.create_missing_column_families = false;
  options.record_cache_size = 0;
  options.statistics.reset();
  if (options.follow_interval == milliseconds(0)) options.follow_interval = kFollowInterval;
  std::vector<uint32_t> ids = {0};
  std::vector<ColumnFamilyDescriptor> descriptors = {
      ColumnFamilyDescriptor(kDefaultColumnFamilyName, of_keyspace)};
  for (const ShardMap::Family& family : families) {
    ids.push_back(family.id);
    NACRE_RETURN_IF_ERROR(opener_->DescriptorOf(family, &descriptors.emplace_back()));
  }
  std::vector<ColumnFamilyHandle*> handles;
  std::unique_ptr<DB> db;
  NACRE_RETURN_IF_ERROR(DB::OpenAsSecondary(options, ShardMap::DatabaseOf(opener_->name(), shard),
                                            descriptors, &handles, &db));
  *follower = std::make_shared<ShardFollower>(std::move(db), ids, handles);
  return Status::OK();
}

std::vector<std::shared_ptr<ShardFollower>> ShardFollowers::Follow(const ShardMap& map,
                                                                   int64_t self) {
  std::vector<std::shared_ptr<ShardFollower>> unneeded;
  MutexLock lock(&mutex_);
  if (map.family_set().IsLaterThan(family_set_)) {
    families_ = std::make_shared<Families>(map.families());
    family_set_ = map.family_set();
  }
  for (auto it = entries_.begin(); it != entries_.end();) {
    const size_t index = map.IndexOf(it->first);
    const bool needed =
        index < map.size() && map.shards()[index].owner != self && it->second.families == families_;
    if (needed || it->second.opening) {
      ++it;
      continue;
    }
    if (it->second.follower != nullptr) unneeded.push_back(std::move(it->second.follower));
    it = entries_.erase(it);
  }
  return unneeded;
}

}  // namespace nacre
