#include "sharding/members/owned_shards.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "util/exceptions.h"
#include "util/log.h"
#include "util/named_point.h"
#include "util/threads/thread.h"

namespace nacre {
namespace {

using std::chrono::milliseconds;

/// After so long without the end of an operation it is logged that the closing waits for it.
constexpr milliseconds kLeavePatience{1000};
constexpr milliseconds kRetryPause{100};

}  // namespace

OwnedShards::OwnedShards(Context context)
    : context_(std::move(context)),
      executor_(context_.threads->NewExecutor(TaskThreads::kUnbounded, "nacre-shards")) {}

std::shared_ptr<LocalShard> OwnedShards::Find(uint32_t shard) const {
  MutexLock lock(&mutex_);
  const auto found = entries_.find(shard);
  return found == entries_.end() ? nullptr : found->second.shard;
}

std::vector<std::shared_ptr<LocalShard>> OwnedShards::All() const {
  MutexLock lock(&mutex_);
  std::vector<std::shared_ptr<LocalShard>> all;
  for (const auto& [id, entry] : entries_) {
    if (entry.shard != nullptr) all.push_back(entry.shard);
  }
  return all;
}

Status OwnedShards::OpenStatus() const {
  MutexLock lock(&mutex_);
  for (const auto& [id, entry] : entries_) {
    if (!entry.wanted || entry.shard != nullptr) continue;
    if (!entry.status.ok()) return entry.status;
    return Status::TimedOut(fmt::format("shard {} is not open yet", id));
  }
  return Status::OK();
}

// ---- By the map ---------------------------------------------------------------------------------

void OwnedShards::Follow(const ShardMap& map, int64_t self) {
  MutexLock lock(&mutex_);
  if (closing_) return;
  for (auto& [id, entry] : entries_) entry.wanted = false;
  for (const ShardMap::Shard& shard : map.shards()) {
    if (shard.owner == self && self != 0) entries_[shard.id].wanted = true;
  }
  const uint64_t now = context_.clock->NowNanos();
  for (auto it = entries_.begin(); it != entries_.end();) {
    Entry& entry = it->second;
    const size_t index = map.IndexOf(it->first);
    const bool gone = index == map.size();
    const bool moved =
        !gone && map.shards()[index].epoch > entry.epoch && map.shards()[index].owner != self;
    const bool unusable = entry.reopen || (entry.shard != nullptr && entry.shard->lost());
    if (!entry.busy && entry.shard != nullptr && (gone || moved || unusable)) {
      BeginClose(it->first, &entry);
    } else if (!entry.busy && entry.shard == nullptr && entry.wanted &&
               now >= entry.not_before_nanos) {
      BeginOpen(it->first, &entry);
    }
    it =
        !entry.busy && !entry.wanted && entry.shard == nullptr ? entries_.erase(it) : std::next(it);
  }
}

void OwnedShards::Reopen(uint32_t shard) {
  MutexLock lock(&mutex_);
  if (const auto found = entries_.find(shard); found != entries_.end()) {
    found->second.reopen = true;
  }
}

// ---- Opening ------------------------------------------------------------------------------------

void OwnedShards::BeginOpen(uint32_t shard, Entry* entry) {
  entry->busy = true;
  entry->reopen = false;
  executor_->Schedule([this, shard] { Open(shard); });
}

void OwnedShards::Open(uint32_t shard) {
  std::shared_ptr<LocalShard> opened;
  uint64_t epoch = 0;
  const Status status = CatchAll([&] { return OpenNow(shard, &opened, &epoch); });
  if (!status.ok() && !status.IsTryAgain()) {
    Log(context_.log, LogLevel::kWarn, "keyspace {}: shard {} cannot be opened: {}",
        context_.opener->name(), shard, status.ToString());
  }
  {
    MutexLock lock(&mutex_);
    Entry& entry = entries_[shard];
    entry.busy = false;
    entry.status = status;
    if (status.ok()) {
      entry.shard = std::move(opened);
      entry.epoch = epoch;
    } else {
      entry.not_before_nanos = context_.clock->NowNanos() +
                               static_cast<uint64_t>(std::chrono::nanoseconds(kRetryPause).count());
    }
    changed_.SignalAll();
  }
  context_.changed();
}

Status OwnedShards::OpenNow(uint32_t shard, std::shared_ptr<LocalShard>* opened, uint64_t* epoch) {
  // The map that this member knows may be old, and another one may have the shard.
  std::string bytes;
  int64_t changed = 0;
  NACRE_RETURN_IF_ERROR(context_.membership->ReadMap(
      Deadline::After(context_.clock, Membership::kPatience), &bytes, &changed));
  ShardMap map;
  NACRE_RETURN_IF_ERROR(ShardMap::Parse(bytes, context_.opener->options().comparator, &map));
  const size_t index = map.IndexOf(shard);
  const int64_t self = context_.membership->id();
  if (index == map.size() || map.shards()[index].owner != self || self == 0) {
    return Status::TryAgain("it is another member's by now");
  }
  const ShardMap::Shard& record = map.shards()[index];
  NACRE_POINT("shard.map-read");
  AskToRelease(shard, record.previous_owner);
  NACRE_POINT("shard.released-before");
  const uint64_t begun = context_.clock->NowNanos();
  NACRE_RETURN_IF_ERROR(context_.opener->OpenShard(map, index, opened));
  *epoch = record.epoch;
  Log(context_.log, LogLevel::kInfo, "keyspace {}: has shard {} since {} ms of opening",
      context_.opener->name(), shard, (context_.clock->NowNanos() - begun) / 1'000'000);
  NACRE_POINT("shard.claimed");
  return Status::OK();
}

void OwnedShards::AskToRelease(uint32_t shard, int64_t previous) {
  if (previous == 0 || previous == context_.membership->id()) return;
  sharding::ControlRequest request;
  request.set_kind(sharding::ControlRequest::RELEASE);
  request.set_shard(shard);
  sharding::ControlReply reply;
  const Status status = context_.links->Control(
      previous, request, Deadline::After(context_.clock, kReleasePatience), &reply);
  // If it is no member any more, there is nothing to release.
  if (!status.ok() && !status.IsFenced()) {
    Log(context_.log, LogLevel::kWarn,
        "keyspace {}: member {} did not release shard {}, which is taken from it: {}",
        context_.opener->name(), previous, shard, status.ToString());
  }
}

// ---- Closing ------------------------------------------------------------------------------------

void OwnedShards::BeginClose(uint32_t shard, Entry* entry) {
  entry->busy = true;
  executor_->Schedule([this, shard, closed = std::exchange(entry->shard, nullptr)] {
    const Status status = Close(closed);
    Log(context_.log, status.ok() || closed->lost() ? LogLevel::kInfo : LogLevel::kWarn,
        "keyspace {}: has closed shard {}: {}", context_.opener->name(), shard, status.ToString());
    {
      MutexLock lock(&mutex_);
      entries_[shard].busy = false;
      changed_.SignalAll();
    }
    context_.changed();
  });
}

Status OwnedShards::Close(const std::shared_ptr<LocalShard>& shard) {
  return CatchAll([&]() -> Status {
    for (;;) {
      const Status left = shard->Leave(Deadline::After(context_.clock, kLeavePatience));
      if (left.ok()) break;
      Log(context_.log, LogLevel::kWarn, "keyspace {}: {}", context_.opener->name(),
          left.ToString());
    }
    NACRE_POINT("shard.left");
    context_.leaving(shard->id());
    NACRE_RETURN_IF_ERROR(shard->CloseForHandover());
    NACRE_POINT("shard.closed");
    return Status::OK();
  });
}

Status OwnedShards::Release(uint32_t shard, Deadline deadline) {
  MutexLock lock(&mutex_);
  for (;;) {
    const auto found = entries_.find(shard);
    if (found == entries_.end()) return Status::OK();
    Entry& entry = found->second;
    if (!entry.busy && entry.shard == nullptr) return Status::OK();
    // The member that asks may have seen a later map than this one.
    if (!entry.busy) BeginClose(shard, &entry);
    if (deadline.Expired()) {
      return Status::TimedOut(fmt::format("shard {} is still being closed", shard));
    }
    changed_.WaitFor(deadline.Remaining());
  }
}

Status OwnedShards::PrepareToMove(uint32_t shard) const {
  const std::shared_ptr<LocalShard> moving = Find(shard);
  return moving == nullptr ? Status::Fenced("the shard is not served here")
                           : moving->PrepareHandover();
}

void OwnedShards::LookAtNodes() const {
  for (const std::shared_ptr<LocalShard>& shard : All()) shard->CheckOwned().IgnoreError();
}

void OwnedShards::AddLoads(sharding::ControlReply* reply) const {
  for (const std::shared_ptr<LocalShard>& shard : All()) {
    sharding::Load* const load = reply->add_loads();
    load->set_shard(shard->id());
    load->set_operations(shard->operations_counted());
    uint64_t bytes = 0;
    for (const char* const property :
         {"nacre.total-sst-files-size", "nacre.cur-size-all-mem-tables"}) {
      uint64_t part = 0;
      if (shard->db()->GetAggregatedIntProperty(property, &part)) bytes += part;
    }
    load->set_bytes(bytes);
  }
}

Status OwnedShards::CloseAll() {
  std::vector<std::shared_ptr<LocalShard>> all;
  {
    MutexLock lock(&mutex_);
    closing_ = true;
    for (;;) {
      bool busy = false;
      for (const auto& [id, entry] : entries_) busy = busy || entry.busy;
      if (!busy) break;
      changed_.Wait();
    }
    for (auto& [id, entry] : entries_) {
      if (entry.shard != nullptr) all.push_back(std::exchange(entry.shard, nullptr));
    }
    entries_.clear();
  }
  std::vector<Status> statuses(all.size());
  RunTogether("nacre-shards", all.size(), [&](size_t i) { statuses[i] = Close(all[i]); });
  for (const Status& status : statuses) NACRE_RETURN_IF_ERROR(status);
  return Status::OK();
}

}  // namespace nacre
