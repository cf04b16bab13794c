#include "sharding/members/owned_shards.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "db/copy/middle_key.h"
#include "sharding/remote/member_request.pb.h"
#include "sharding/reshaping/shard_reshaper.h"
#include "sharding/shard_info.h"
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
/// A shard that is about to be split or merged is not compacted for so long, should the map say
/// nothing of it. Then what was copied is given up: should it be committed later, it is copied
/// anew.
constexpr milliseconds kPreparedPatience{5000};

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
  FollowReshapings(map, self);
  const uint64_t now = context_.clock->NowNanos();
  for (auto it = entries_.begin(); it != entries_.end();) {
    Entry& entry = it->second;
    const size_t index = map.IndexOf(it->first);
    const bool gone = index == map.size();
    const bool moved =
        !gone && map.shards()[index].epoch > entry.epoch && map.shards()[index].owner != self;
    const bool unusable = entry.reopen || (entry.shard != nullptr && entry.shard->lost());
    // Families that were made or dropped since.
    const bool outdated =
        entry.shard != nullptr && map.family_set().IsLaterThan(entry.shard->family_set());
    if (!entry.busy && entry.shard != nullptr && (gone || moved || unusable || outdated)) {
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
  if (ShardObserver* const observer = Observer(); observer != nullptr) {
    observer->OnShardServed(DescribeShard(context_.opener->name(), map, index), (*opened)->db());
  }
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
    LeaveNow(shard.get());
    NACRE_POINT("shard.left");
    context_.leaving(shard->id());
    NACRE_RETURN_IF_ERROR(shard->CloseForHandover());
    NACRE_POINT("shard.closed");
    return Status::OK();
  });
}

ShardObserver* OwnedShards::Observer() const {
  return context_.opener->options().shard_observer.get();
}

void OwnedShards::LeaveNow(LocalShard* shard) const {
  if (ShardObserver* const observer = Observer(); observer != nullptr) {
    observer->OnShardLeaving(shard->id());
  }
  for (;;) {
    const Status left = shard->Leave(Deadline::After(context_.clock, kLeavePatience));
    if (left.ok()) return;
    Log(context_.log, LogLevel::kWarn, "keyspace {}: {}", context_.opener->name(), left.ToString());
  }
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

// ---- Splits and merges --------------------------------------------------------------------------

Status OwnedShards::FindSplitKey(uint32_t shard, std::string* key) const {
  const std::shared_ptr<LocalShard> split = Find(shard);
  return split == nullptr ? Status::Fenced("the shard is not served here")
                          : split->Do([&] { return FindMiddleKey(split->engine(), key); });
}

Status OwnedShards::PrepareReshaping(const ShardMap& map, const ShardMap::Reshaping& reshaping) {
  std::vector<std::shared_ptr<LocalShard>> sources;
  for (const uint32_t id : reshaping.sources) {
    sources.push_back(Find(id));
    if (sources.back() == nullptr) return Status::Fenced("the shard is not served here");
  }
  const uint64_t begun = context_.clock->NowNanos();
  const auto reshaper =
      std::make_shared<ShardReshaper>(context_.opener, map, reshaping, std::move(sources));
  const Status status = reshaper->Prepare();
  Log(context_.log, status.ok() ? LogLevel::kInfo : LogLevel::kWarn,
      "keyspace {}: has copied shard {} for others in {} ms: {}", context_.opener->name(),
      reshaping.sources.front(), (context_.clock->NowNanos() - begun) / 1'000'000,
      status.ToString());
  NACRE_RETURN_IF_ERROR(status);
  MutexLock lock(&mutex_);
  if (closing_) return Status::Fenced("the member leaves");
  prepared_.push_back({.reshaper = reshaper,
                       .map_version = map.version(),
                       .since_nanos = context_.clock->NowNanos()});
  return Status::OK();
}

void OwnedShards::FollowReshapings(const ShardMap& map, int64_t self) {
  for (auto it = prepared_.begin(); it != prepared_.end();) {
    const ShardMap::Reshaping& reshaping = it->reshaper->reshaping();
    bool committed = true;
    bool busy = false;
    for (const uint32_t target : reshaping.targets) {
      const size_t index = map.IndexOf(target);
      committed = committed && index < map.size() && map.shards()[index].owner == self;
      busy = busy || (entries_.contains(target) &&
                      (entries_[target].busy || entries_[target].shard != nullptr));
    }
    for (const auto& source : it->reshaper->sources()) {
      const auto entry = entries_.find(source->id());
      // It may have been closed meanwhile, and opened anew. Then it was copied in part.
      if (entry == entries_.end() || entry->second.shard != source) committed = false;
    }
    const std::chrono::nanoseconds waited(context_.clock->NowNanos() - it->since_nanos);
    const bool begun =
        waited < kPreparedPatience &&
        (map.ReshapingOf(reshaping.targets.front()) != nullptr || map.version() < it->map_version);
    if (committed && !busy) {
      BeginFinish(*it);
    } else if (committed || begun) {
      ++it;
      continue;
    } else {
      // It goes in a thread that may wait.
      executor_->Schedule([dropped = it->reshaper] {});
    }
    it = prepared_.erase(it);
  }
}

void OwnedShards::BeginFinish(const Prepared& prepared) {
  for (const uint32_t target : prepared.reshaper->reshaping().targets) {
    entries_[target].busy = true;
  }
  for (const auto& source : prepared.reshaper->sources()) {
    Entry& entry = entries_[source->id()];
    entry.busy = true;
    entry.shard = nullptr;
  }
  executor_->Schedule([this, reshaper = prepared.reshaper] { Finish(reshaper); });
}

void OwnedShards::Finish(const std::shared_ptr<ShardReshaper>& reshaper) {
  const uint64_t begun = context_.clock->NowNanos();
  const std::vector<uint32_t>& targets = reshaper->reshaping().targets;
  std::vector<std::shared_ptr<LocalShard>> made;
  const Status status = CatchAll([&] {
    for (const auto& source : reshaper->sources()) LeaveNow(source.get());
    NACRE_POINT("reshaping.sources-left");
    NACRE_RETURN_IF_ERROR(reshaper->Finish(&made));
    ShardObserver* const observer = Observer();
    for (size_t i = 0; observer != nullptr && i < made.size(); ++i) {
      const ShardMap& map = reshaper->map();
      const size_t index = map.IndexOf(targets[i]);
      observer->OnShardServed(DescribeShard(context_.opener->name(), map, index), made[i]->db());
    }
    return Status::OK();
  });
  // If that failed they are opened as any others, which makes them anew.
  Log(context_.log, status.ok() ? LogLevel::kInfo : LogLevel::kWarn,
      "keyspace {}: shard {} and {} others have taken the place of {} after {} us: {}",
      context_.opener->name(), targets.front(), targets.size() - 1,
      reshaper->sources().front()->id(), (context_.clock->NowNanos() - begun) / 1000,
      status.ToString());
  {
    MutexLock lock(&mutex_);
    for (size_t i = 0; i < targets.size(); ++i) {
      Entry& entry = entries_[targets[i]];
      entry.busy = false;
      entry.status = status;
      if (!status.ok()) continue;
      entry.shard = made[i];
      entry.epoch = 1;  // Where a map has it first.
    }
    changed_.SignalAll();
  }
  context_.changed();
  for (const auto& source : reshaper->sources()) {
    context_.leaving(source->id());
    const Status closed = CatchAll([&] { return source->CloseForHandover(); });
    Log(context_.log, LogLevel::kInfo, "keyspace {}: has closed shard {}: {}",
        context_.opener->name(), source->id(), closed.ToString());
    MutexLock lock(&mutex_);
    entries_[source->id()].busy = false;
    changed_.SignalAll();
  }
}

void OwnedShards::LookAtNodes() const {
  for (const std::shared_ptr<LocalShard>& shard : All()) shard->CheckOwned().IgnoreError();
}

void OwnedShards::AddLoads(sharding::ControlReply* reply) const {
  for (const std::shared_ptr<LocalShard>& shard : All()) {
    sharding::Load* const load = reply->add_loads();
    load->set_shard(shard->id());
    ShardObserver* const observer = Observer();
    const uint64_t more = observer == nullptr ? 0 : observer->OperationsOn(shard->id());
    load->set_operations(shard->operations_counted() + more);
    load->set_bytes(shard->BytesHeld());
  }
}

Status OwnedShards::CloseAll() {
  std::vector<std::shared_ptr<LocalShard>> all;
  std::vector<Prepared> prepared;
  {
    MutexLock lock(&mutex_);
    closing_ = true;
    prepared.swap(prepared_);
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
  prepared.clear();
  std::vector<Status> statuses(all.size());
  RunTogether(
      "nacre-shards", all.size(), [&](size_t i) { statuses[i] = Close(all[i]); },
      ShardOpener::kAtOnce);
  for (const Status& status : statuses) NACRE_RETURN_IF_ERROR(status);
  return Status::OK();
}

}  // namespace nacre
