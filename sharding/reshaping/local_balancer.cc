#include "sharding/reshaping/local_balancer.h"

#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include "sharding/local_shard.h"
#include "util/exceptions.h"
#include "util/log.h"

namespace nacre {
namespace {

constexpr std::chrono::milliseconds kLookEvery{1000};
/// ShardMap::Shard::owner where there are no members.
constexpr int64_t kAlone = 0;

}  // namespace

LocalBalancer::LocalBalancer(Context context)
    : context_(std::move(context)), executor_(context_.threads->NewExecutor(1, "nacre-balance")) {
  task_.Start({context_.threads, executor_.get()}, "nacre-balance", kLookEvery,
              PeriodicTask::Begin::kWithRest, [this] { Round(); });
}

void LocalBalancer::Round() {
  const std::shared_ptr<const ShardedView> view = context_.views->latest();
  const uint64_t now = context_.clock->NowNanos();
  std::map<uint32_t, ShardLoad> loads;
  for (const auto& shard : view->shards) {
    const LocalShard* const local = shard->local();
    loads[shard->id()] =
        rates_.Measure(shard->id(), kAlone, local->BytesHeld(), local->operations_counted(), now);
  }
  rates_.Keep(view->map);
  const std::vector<int64_t> members = {kAlone};
  const std::set<uint32_t> under_way;
  for (const Balancer::Decision& decision : balancer_.Decide({.map = view->map,
                                            .members = members,
                                            .loads = loads,
                                            .under_way = under_way,
                                            .now_nanos = now})) {
    if (task_.stopping()) return;
    const bool is_split = decision.kind == Balancer::Decision::Kind::kSplit;
    const Status status = CatchAll([&] { return CarryOut(decision); });
    Log(context_.log, status.ok() ? LogLevel::kInfo : LogLevel::kWarn,
        "keyspace {}: shard {} is {}, as {}: {}", context_.keyspace, decision.shard,
        is_split ? "split" : "merged with the next one", decision.reason, status.ToString());
  }
}

Status LocalBalancer::CarryOut(const Balancer::Decision& decision) const {
  switch (decision.kind) {
    case Balancer::Decision::Kind::kSplit:
      return context_.split(decision.shard);
    case Balancer::Decision::Kind::kMerge:
      return context_.merge(decision.shard, decision.other);
    case Balancer::Decision::Kind::kAssign:
    case Balancer::Decision::Kind::kMove:
      break;
  }
  return Status::NotSupported("there are no other members");
}

}  // namespace nacre
