#include "sharding/reshaping/local_reshaping.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "sharding/batches/shared_batch.h"
#include "sharding/reshaping/shard_reshaper.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/named_point.h"

namespace nacre {
namespace {

constexpr std::chrono::milliseconds kPause(2);

}  // namespace

Status LocalReshaping::Run(
    const std::function<Status(ShardMap* map, ShardMap::Reshaping* reshaping)>& begin) {
  const auto view = views_->latest();
  ShardMap map = view->map;
  ShardMap::Reshaping reshaping;
  NACRE_RETURN_IF_ERROR(begin(&map, &reshaping));
  std::vector<std::shared_ptr<LocalShard>> sources;
  for (const uint32_t id : reshaping.sources) {
    sources.push_back(std::static_pointer_cast<LocalShard>(view->shards[map.IndexOf(id)]));
  }
  NACRE_RETURN_IF_ERROR(opener_->SaveMap(map));
  NACRE_POINT("reshaping.begun");
  Status status;
  {
    ShardReshaper reshaper(opener_, map, reshaping, std::move(sources));
    status = reshaper.Prepare();
    NACRE_POINT("reshaping.prepared");
    if (status.ok()) status = map.CommitReshaping(reshaping, /*owner=*/0);
    if (status.ok()) return Finish(&map, &reshaper);
  }
  map.CancelReshaping(reshaping);
  DestroyRetired(&map);
  views_->PublishMap(map);
  return status;
}

Status LocalReshaping::Finish(ShardMap* map, ShardReshaper* reshaper) {
  const ShardMap::Reshaping& reshaping = reshaper->reshaping();
  // From here on the new shards have what there is, whether or not this process lives to see it.
  Status status = opener_->SaveMap(*map);
  if (!status.ok()) {
    // What it says now is known when it is read again.
    return status.WithContext("the map of the shards cannot be saved");
  }
  NACRE_POINT("reshaping.committed");
  const uint64_t begun = clock_->NowNanos();
  views_->SetInFlux(true);
  for (const auto& source : reshaper->sources()) {
    while (!source->Leave(Deadline::After(clock_, opener_->options().operation_timeout)).ok()) {
    }
  }
  NACRE_POINT("reshaping.sources-left");
  std::vector<std::shared_ptr<LocalShard>> targets;
  status = reshaper->Finish(&targets);
  if (!status.ok()) {
    Log(opener_->options().info_log, LogLevel::kWarn,
        "keyspace {}: shards are made anew, as their last part could not be copied: {}",
        opener_->name(), status.ToString());
    for (const auto& source : reshaper->sources()) source->CloseForHandover().IgnoreError();
    status = OpenTargets(*map, reshaping, &targets);
  }
  if (!status.ok()) {
    views_->SetInFlux(false);
    return status.WithContext("the shards serve once the keyspace is opened again");
  }
  auto view = std::make_shared<ShardedView>();
  const auto before = views_->latest();
  for (size_t i = 0; i < reshaping.targets.size(); ++i)
    map->SetWhole(map->IndexOf(reshaping.targets[i]));
  view->map = *map;
  for (const ShardMap::Shard& shard : map->shards()) {
    const auto made = std::ranges::find(reshaping.targets, shard.id);
    view->shards.push_back(made != reshaping.targets.end()
                               ? targets[static_cast<size_t>(made - reshaping.targets.begin())]
                               : before->shards[before->map.IndexOf(shard.id)]);
  }
  views_->Publish(view);
  views_->SetInFlux(false);
  NACRE_POINT("reshaping.published");
  Log(opener_->options().info_log, LogLevel::kInfo,
      "keyspace {}: {} shards have taken the place of {}, which had left for {} us",
      opener_->name(), reshaping.targets.size(), reshaping.sources.size(),
      (clock_->NowNanos() - begun) / 1000);
  status = Settle(targets);
  for (const auto& source : reshaper->sources()) source->CloseForHandover().IgnoreError();
  DestroyRetired(map);
  views_->PublishMap(*map);
  return status;
}

Status LocalReshaping::Settle(const std::vector<std::shared_ptr<LocalShard>>& targets) const {
  // What writers left in the middle, when the shard left that they wrote to.
  const auto view = views_->latest();
  const Deadline deadline = Deadline::After(clock_, opener_->options().operation_timeout);
  for (const auto& target : targets) {
    Status status;
    while ((status = SettleBatchesOf(*view, target.get())).IsBusy() && !deadline.Expired()) {
      clock_->SleepFor(kPause);
    }
    NACRE_RETURN_IF_ERROR(status);
  }
  return Status::OK();
}

Status LocalReshaping::OpenTargets(const ShardMap& map, const ShardMap::Reshaping& reshaping,
                                   std::vector<std::shared_ptr<LocalShard>>* targets) const {
  targets->clear();
  for (const uint32_t id : reshaping.targets) {
    NACRE_RETURN_IF_ERROR(opener_->OpenShard(map, map.IndexOf(id), &targets->emplace_back()));
  }
  return Status::OK();
}

void LocalReshaping::EndThoseBefore() {
  ShardMap map = views_->latest()->map;
  const uint64_t version = map.version();
  for (const ShardMap::Reshaping& reshaping : std::vector<ShardMap::Reshaping>(map.reshapings())) {
    map.CancelReshaping(reshaping);
  }
  for (size_t i = 0; i < map.size(); ++i) {
    if (!map.shards()[i].sources.empty()) map.SetWhole(i);
  }
  if (map.version() == version && map.retired().empty()) return;
  DestroyRetired(&map);
  views_->PublishMap(map);
}

void LocalReshaping::DestroyRetired(ShardMap* map) {
  // What cannot be deleted now is when the keyspace is opened again.
  Status status = opener_->SaveMap(*map);
  for (const uint32_t id : std::vector<uint32_t>(map->retired())) {
    if (status.ok()) status = opener_->DestroyShard(id);
    if (status.ok()) map->RemoveRetired(id);
  }
  if (status.ok()) status = opener_->SaveMap(*map);
  if (status.ok()) return;
  Log(opener_->options().info_log, LogLevel::kWarn,
      "keyspace {}: databases of shards that there are no more are left: {}", opener_->name(),
      status.ToString());
}

}  // namespace nacre
