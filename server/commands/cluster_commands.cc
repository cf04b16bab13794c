#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "server/commands/command_lists.h"
#include "server/resp/numbers.h"
#include "server/session/server_state.h"
#include "util/clock.h"

// CLUSTER and what else clients of a Redis Cluster send: which server has which slots.

namespace nacre::server {
namespace {

/// How long a client that asks for the slots waits for each to have a server.
constexpr std::chrono::milliseconds kPatience{2000};
constexpr std::chrono::milliseconds kLook{5};

constexpr const char* kNoCluster = "ERR This instance has cluster support disabled";

/// All slots with their servers, once none is on its way from one to another, or after a while.
Task<std::vector<SlotOwner>> AwaitOwners(Call& call) {
  EventLoop& loop = call.loop->loop;
  const Deadline deadline = Deadline::After(loop.clock(), kPatience);
  for (;;) {
    std::vector<SlotOwner> owners = call.server->cluster->Owners();
    const bool all = std::ranges::none_of(
        owners, [](const SlotOwner& owner) { return owner.node.address.empty(); });
    if (all || deadline.Expired()) co_return owners;
    co_await Sleep(&loop, kLook);
  }
}

/// Ranges of slots that follow one another and have the same server, as one.
std::vector<SlotOwner> Joined(const std::vector<SlotOwner>& owners) {
  std::vector<SlotOwner> joined;
  for (const SlotOwner& owner : owners) {
    if (owner.node.address.empty()) continue;
    if (!joined.empty() && joined.back().node.member == owner.node.member &&
        joined.back().slots.behind == owner.slots.first) {
      joined.back().slots.behind = owner.slots.behind;
    } else {
      joined.push_back(owner);
    }
  }
  return joined;
}

std::pair<std::string, int64_t> HostAndPort(const ClusterNode& node) {
  auto [host, port] = Master::Divide(node.address);
  int64_t number = 0;
  ParseInteger(port, &number);
  return {std::move(host), number};
}

Task<void> Slots(Call& call) {
  const std::vector<SlotOwner> owners = Joined(co_await AwaitOwners(call));
  call.reply.Array(owners.size());
  for (const SlotOwner& owner : owners) {
    const auto [host, port] = HostAndPort(owner.node);
    call.reply.Array(3);
    call.reply.Integer(owner.slots.first);
    call.reply.Integer(owner.slots.behind - 1);
    call.reply.Array(4);
    call.reply.Bulk(host);
    call.reply.Integer(port);
    call.reply.Bulk(owner.node.Id());
    call.reply.Array(0);
  }
}

/// The ranges of one server.
std::vector<SlotRange> RangesOf(const std::vector<SlotOwner>& owners, int64_t member) {
  std::vector<SlotRange> ranges;
  for (const SlotOwner& owner : owners) {
    if (owner.node.member == member) ranges.push_back(owner.slots);
  }
  return ranges;
}

Task<void> Shards(Call& call) {
  const std::vector<SlotOwner> owners = Joined(co_await AwaitOwners(call));
  const std::vector<ClusterNode> nodes = call.server->cluster->Nodes();
  call.reply.Array(nodes.size());
  for (const ClusterNode& node : nodes) {
    const std::vector<SlotRange> ranges = RangesOf(owners, node.member);
    call.reply.Map(2);
    call.reply.Bulk("slots");
    call.reply.Array(ranges.size() * 2);
    for (const SlotRange& range : ranges) {
      call.reply.Integer(range.first);
      call.reply.Integer(range.behind - 1);
    }
    const auto [host, port] = HostAndPort(node);
    call.reply.Bulk("nodes");
    call.reply.Array(1);
    call.reply.Map(7);
    call.reply.Bulk("id");
    call.reply.Bulk(node.Id());
    call.reply.Bulk(call.server->tls() == nullptr ? "port" : "tls-port");
    call.reply.Integer(port);
    call.reply.Bulk("ip");
    call.reply.Bulk(host);
    call.reply.Bulk("endpoint");
    call.reply.Bulk(host);
    call.reply.Bulk("role");
    call.reply.Bulk("master");
    call.reply.Bulk("replication-offset");
    call.reply.Integer(0);
    call.reply.Bulk("health");
    call.reply.Bulk("online");
  }
}

Task<void> Nodes(Call& call) {
  const std::vector<SlotOwner> owners = Joined(co_await AwaitOwners(call));
  const uint64_t epoch = call.server->cluster->Epoch();
  std::string text;
  for (const ClusterNode& node : call.server->cluster->Nodes()) {
    // The port of the bus is one that nothing listens at: servers speak by the pool.
    text += fmt::format("{} {}@0 {}master - 0 0 {} connected", node.Id(), node.address,
                        node.self ? "myself," : "", epoch);
    for (const SlotRange& range : RangesOf(owners, node.member)) {
      text += range.size() == 1 ? fmt::format(" {}", range.first)
                                : fmt::format(" {}-{}", range.first, range.behind - 1);
    }
    text += '\n';
  }
  call.reply.Bulk(text);
}

void ClusterInfo(Call& call) {
  const Cluster& cluster = *call.server->cluster;
  uint32_t assigned = 0;
  std::vector<int64_t> masters;
  for (const SlotOwner& owner : cluster.Owners()) {
    if (owner.node.address.empty()) continue;
    assigned += owner.slots.size();
    masters.push_back(owner.node.member);
  }
  std::ranges::sort(masters);
  masters.erase(std::ranges::unique(masters).begin(), masters.end());
  const uint64_t epoch = cluster.Epoch();
  call.reply.Bulk(
      fmt::format("cluster_enabled:1\r\ncluster_state:{}\r\ncluster_slots_assigned:{}\r\ncluster_"
                  "slots_ok:{}\r\n"
                  "cluster_slots_pfail:0\r\ncluster_slots_fail:{}\r\ncluster_known_nodes:{}\r\n"
                  "cluster_size:{}\r\ncluster_current_epoch:{}\r\ncluster_my_epoch:{}\r\n",
                  assigned == kSlots ? "ok" : "fail", assigned, assigned, kSlots - assigned,
                  cluster.Nodes().size(), masters.size(), epoch, epoch));
}

void MyId(Call& call) {
  for (const ClusterNode& node : call.server->cluster->Nodes()) {
    if (node.self) return call.reply.Bulk(node.Id());
  }
  call.reply.Error("CLUSTERDOWN this server is not a part of the cluster at the moment");
}

/// Takes a slot that is served here. Answers an error and null if it is none.
LoopShards::Shard* ShardArgument(Call& call, uint32_t* slot) {
  int64_t number = 0;
  if (!ParseInteger(call.arg(2), &number) || number < 0 || number >= int64_t{kSlots}) {
    call.reply.Error("ERR Invalid slot");
    return nullptr;
  }
  *slot = static_cast<uint32_t>(number);
  LoopShards::Shard* const shard = call.loop->shards.Find(*slot);
  if (shard == nullptr) call.reply.Error("ERR the slot is not this server's");
  return shard;
}

/// COUNTKEYSINSLOT and GETKEYSINSLOT.
Task<void> KeysInSlot(Call& call, bool count_only) {
  uint32_t slot = 0;
  LoopShards::Shard* const shard = ShardArgument(call, &slot);
  if (shard == nullptr) co_return;
  int64_t most = INT32_MAX;
  if (!count_only && !IntegerArgument(call, 3, &most)) co_return;
  if (most < 0) {
    call.reply.Error("ERR Invalid number of keys");
    co_return;
  }
  const LoopShards::Use use(shard);
  UnitOfWork unit(&shard->access, /*changes=*/false);
  const RowNames& names = unit.names();
  const std::vector<Row> rows =
      co_await unit.Scan(0, RowRange(names.Kind(slot, kMetaRow), names.Kind(slot, kMetaRow + 1),
                                     static_cast<size_t>(most)));
  if (!unit.status().ok()) {
    call.reply.Error("ERR " + unit.status().ToString());
    co_return;
  }
  if (count_only) {
    call.reply.Integer(static_cast<int64_t>(rows.size()));
    co_return;
  }
  call.reply.Array(rows.size());
  for (const Row& row : rows) call.reply.Bulk(names.KeyOfMeta(row.key));
}

Task<void> ClusterCommand(Call& call) {
  const std::string_view what = call.arg(1);
  const size_t argc = call.argc();
  if (SameWord(what, "KEYSLOT") && argc == 3) {
    call.reply.Integer(SlotOfKey(call.arg(2)));
  } else if (call.server->cluster == nullptr && !SameWord(what, "HELP")) {
    call.reply.Error(kNoCluster);
  } else if (SameWord(what, "SLOTS") && argc == 2) {
    co_await Slots(call);
  } else if (SameWord(what, "SHARDS") && argc == 2) {
    co_await Shards(call);
  } else if (SameWord(what, "NODES") && argc == 2) {
    co_await Nodes(call);
  } else if (SameWord(what, "INFO") && argc == 2) {
    ClusterInfo(call);
  } else if (SameWord(what, "MYID") && argc == 2) {
    MyId(call);
  } else if (SameWord(what, "COUNTKEYSINSLOT") && argc == 3) {
    co_await KeysInSlot(call, /*count_only=*/true);
  } else if (SameWord(what, "GETKEYSINSLOT") && argc == 4) {
    co_await KeysInSlot(call, /*count_only=*/false);
  } else if ((SameWord(what, "REPLICAS") || SameWord(what, "SLAVES")) && argc == 3) {
    call.reply.Array(0);
  } else {
    UnknownSubcommand(call);
  }
}

/// READONLY, READWRITE and ASKING, which there is no need of.
Task<void> Accept(Call& call) {
  const std::string_view name = call.command->name;
  if (call.server->cluster == nullptr) {
    call.reply.Error(kNoCluster);
    co_return;
  }
  if (name != "asking") call.client->reads_elsewhere = name == "readonly";
  call.reply.Ok();
}

constexpr Command kClusterCommands[] = {
    WithSubcommands({"cluster", &ClusterCommand, -2, 0},
                    "countkeysinslot getkeysinslot info keyslot myid nodes replicas shards slaves "
                    "slots"),
    {"readonly", &Accept, 1, kFast},
    {"readwrite", &Accept, 1, kFast},
    {"asking", &Accept, 1, kFast},
};

}  // namespace

std::span<const Command> ClusterCommands() { return kClusterCommands; }

}  // namespace nacre::server
