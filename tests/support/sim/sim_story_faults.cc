#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "ctl/ctl_directions.h"
#include "pool/connect/pool_device.h"
#include "pool/databases.h"
#include "pool/reports.h"
#include "pool/space/slab_leases.h"
#include "pool/wire/node_stats.h"
#include "tests/support/sim/sim_story.h"
#include "util/clock.h"
#include "util/uri.h"

// What goes wrong with nodes, the network and clocks.

namespace nacre::sim {

namespace {

using std::chrono::milliseconds;

/// A cut, or a stop, that connections outlive.
constexpr uint64_t kShortMillis = 300;
constexpr size_t kMaxNodes = 10;
/// A stop of a node, which all patience of owners and nodes may outlast, or which outlasts it.
constexpr uint64_t kShortStopMillis = 3000;
constexpr uint64_t kLongStopMillis = 20'000;

/// Takes slabs of each node until so many are left, and keeps them.
void HoldSlabs(const std::string& pool_uri, uint64_t left) {
  Uri pool;
  ParseUri(pool_uri, &pool).IgnoreError();
  std::unique_ptr<rdma::Device> device;
  std::unique_ptr<pool::PoolClient> client;
  pool::PoolClientOptions options;
  options.slab_bytes = 0;
  options.operation_timeout = std::chrono::seconds(2);
  Status status = pool::OpenPoolDevice(pool, {}, Clock::System(), &device);
  if (status.ok()) {
    status = pool::PoolClient::Connect(pool, options, device.get(), Clock::System(), &client);
  }
  pool::DatabaseLease lease;
  if (status.ok()) {
    status = client->databases()->Open("another", {.create_if_missing = true, .take_over = true},
                                       &lease);
  }
  for (int i = 0; status.ok() && i < client->node_count(); ++i) {
    const auto node = static_cast<NodeId>(i);
    pool::NodeStats stats;
    // A node that is away stays as it is.
    if (!pool::GetStats(client.get(), node, &stats).ok()) continue;
    const uint64_t free = stats.slabs_total - stats.slabs_leased;
    std::vector<uint64_t> offsets;
    for (uint64_t taken = left; taken < free; ++taken) {
      if (!pool::LeaseSlabs(client.get(), node, lease.database_id, {.count = 1}, &offsets).ok()) {
        break;
      }
    }
  }
  Simulation::Current()->Park(&lease, Simulation::kForever, "its end");
}

}  // namespace

void Story::Disturb() {
  ++faults_;
  disturbed_ = true;
}

bool Story::SpareNode() {
  if (lost_ == redundancy_.spare) return false;
  ++lost_;
  return true;
}

uint64_t Story::Bounded(uint64_t millis, size_t nodes) {
  // An opening does without nodes that it does not reach at once; with damage on the others that
  // would be too much.
  if (millis <= kShortMillis && !flipped_) return millis;
  if (lost_ + nodes > redundancy_.spare) return flipped_ ? 0 : millis % kShortMillis;
  lost_ += nodes;
  return millis;
}

// ---- Nodes --------------------------------------------------------------------------------------

void Story::KillNode() {
  const size_t i = random_.Uniform(cluster_->size());
  if (!cluster_->running(i) || !SpareNode()) return;
  const bool told = random_.OneIn(2);
  Tell(fmt::format("node {} is killed{}", i, told ? "" : " with its machine"));
  Disturb();
  KillSomewhere(cluster_->process(i), [=, this] { cluster_->KillNode(i, told); });
  if (random_.OneIn(2)) return;
  Sleep(milliseconds(random_.Uniform(1500)));
  cluster_->StartNode(i);
}

void Story::StopNode() {
  const size_t i = random_.Uniform(cluster_->size());
  if (!cluster_->running(i)) return;
  const uint64_t drawn = random_.Uniform(kShortStopMillis + kShortStopMillis / 3);
  const bool is_long =
      !options_.no_long_stops && (drawn >= kShortStopMillis || options_.many_stops);
  if (is_long && (lost_ > 0 || flipped_)) {
    Heal();
    AwaitWhole();
  }
  const uint64_t long_millis = kLongStopMillis + 40 * (drawn % (kShortStopMillis / 3));
  const uint64_t millis = Bounded(is_long ? long_millis : drawn % kShortStopMillis, 1);
  if (millis == 0 || !cluster_->running(i)) return;
  Tell(fmt::format("node {} is stopped for {} ms", i, millis));
  Disturb();
  // Where the process stores what arrives (tcp), what was sent meanwhile waits for it.
  if (is_long && drawn % 2 == 0) cluster_->network().Hold(cluster_->process(i));
  StopFor(cluster_->process(i), millis);
  // Whatever was begun on it is given up, and its space could be used again, before it goes on.
  if (is_long) Sleep(milliseconds(millis + kShortStopMillis));
}

void Story::StopFor(ProcessId process, uint64_t millis) {
  scheduler_->Stop(process);
  scheduler_->At(scheduler_->TrueNanos() + millis * 1'000'000,
                 [this, process] { Continue(process); });
  stopped_.push_back(process);
}

void Story::Continue(ProcessId process) {
  scheduler_->Continue(process);
  cluster_->network().Admit(process);
}

void Story::StartNodes() {
  for (size_t i = 0; i < cluster_->size(); ++i) {
    if (cluster_->running(i)) continue;
    Tell(fmt::format("node {} starts", i));
    cluster_->StartNode(i);
  }
}

void Story::SlowNode() {
  const size_t i = random_.Uniform(cluster_->size());
  const uint64_t factor = uint64_t{1} << random_.Uniform(11);
  Tell(fmt::format("node {} is {} times as slow", i, factor));
  Disturb();
  cluster_->network().SetSlowness(cluster_->process(i), factor);
}

void Story::TailNode() {
  const size_t i = random_.Uniform(cluster_->size());
  // From none to every second packet, of half a millisecond to 32.
  const uint64_t odds = random_.OneIn(4) ? 0 : uint64_t{2} << random_.Uniform(9);
  const uint64_t micros = uint64_t{500} << random_.Uniform(7);
  Tell(fmt::format("of node {} one in {} packets takes {} us", i, odds, micros));
  Disturb();
  cluster_->network().SetTail(cluster_->process(i), odds, std::chrono::microseconds(micros));
}

void Story::AddNode() {
  if (cluster_->size() == kMaxNodes) return;
  const std::string address = cluster_->AddressOf(cluster_->AddNode());
  Tell(address + " joins");
  const Status told = WithPool([&](pool::PoolClient* client) {
    return ctl::ChangeDirections(client, [&](pool::Directions* directions) {
      directions->added_addresses.push_back(address);
    });
  });
  if (!told.ok()) Tell("nobody is told: " + told.ToString());
}

void Story::DrainNode() {
  const size_t i = random_.Uniform(cluster_->size());
  Tell(fmt::format("node {} is drained", i));
  drained_ = true;
  const Status told = WithPool([&](pool::PoolClient* client) {
    NodeId node = kNoNode;
    pool::NodeStats stats;
    NACRE_RETURN_IF_ERROR(ctl::FindNode(client, cluster_->AddressOf(i), &node, &stats));
    return ctl::SetDraining(client, stats, true);
  });
  if (!told.ok()) Tell("nobody is told: " + told.ToString());
}

void Story::FillNodes() {
  const uint64_t left = random_.Uniform(3);
  Tell(fmt::format("all but {} slabs of each node are taken", left));
  ++faults_;
  others_.push_back(scheduler_->NewProcess("another"));
  cluster_->Run(others_.back(), "main",
                [pool_uri = cluster_->pool_uri(), left] { HoldSlabs(pool_uri, left); });
}

std::vector<ExtentAddr> Story::ExtentsOn(const pool::PoolClient& client,
                                         const ctl::DatabaseView& view, size_t node) const {
  std::vector<ExtentAddr> extents;
  const auto add = [&](const std::vector<ExtentAddr>& some) {
    for (const ExtentAddr& extent : some) {
      const NodeId there = extent.start.node;
      if (there == kLostNode || !client.alive(there)) continue;
      if (client.node_address(there) == cluster_->AddressOf(node)) extents.push_back(extent);
    }
  };
  for (const auto& [id, table] : view.state.tables) add(table.second.placement.fragments);
  // A follower cannot tell damage in the open segment from what is on its way (docs/durability.md,
  // section 11).
  if (followers_made_ == 0) {
    for (const auto& [number, segment] : view.state.segments) add(segment.copies);
  }
  add(view.manifest.copies);
  return extents;
}

void Story::FlipBits() {
  const size_t node = random_.Uniform(cluster_->size());
  if (disturbed_ || !cluster_->running(node) || !SpareNode()) return;
  flipped_ = true;
  Disturb();
  const Status status = WithPool([&](pool::PoolClient* client) {
    ctl::DatabaseView view;
    NACRE_RETURN_IF_ERROR(ctl::ViewDatabase(client, "db", &view));
    const std::vector<ExtentAddr> extents = ExtentsOn(*client, view, node);
    const uint64_t bits = extents.empty() ? 0 : 1 + random_.Uniform(8);
    for (uint64_t i = 0; i < bits; ++i) {
      const ExtentAddr& extent = extents[random_.Uniform(extents.size())];
      // Log and manifest are not full, as a rule.
      const uint64_t within = extent.length >> random_.Uniform(8);
      const uint64_t offset = extent.start.offset + random_.Uniform(within);
      cluster_->network().FlipBit(cluster_->process(node), offset,
                                  static_cast<int>(random_.Uniform(8)));
    }
    Tell(fmt::format("{} bits of node {} change", bits, node));
    return Status::OK();
  });
  if (!status.ok()) Tell("no bits change: " + status.ToString());
}

// ---- The network --------------------------------------------------------------------------------

void Story::Cut(ProcessId a, ProcessId b, uint64_t ways, uint64_t millis) {
  rdma::SimNetwork* const network = &cluster_->network();
  if ((ways & 1) != 0) network->Block(a, b);
  if ((ways & 2) != 0) network->Block(b, a);
  scheduler_->At(scheduler_->TrueNanos() + millis * 1'000'000, [network, a, b] {
    network->Unblock(a, b);
    network->Unblock(b, a);
  });
}

void Story::CutOff() {
  const ProcessId a = cluster_->process(random_.Uniform(cluster_->size()));
  const ProcessId b =
      random_.OneIn(2) ? owner().process() : cluster_->process(random_.Uniform(cluster_->size()));
  if (a == b) return;
  const uint64_t ways = 1 + random_.Uniform(3);
  uint64_t millis = random_.Uniform(random_.OneIn(2) ? kShortMillis : 5000);
  // An owner that has lost sight of a node goes on with the others, and so with less to lose.
  if (b == owner().process()) millis = Bounded(millis, 1);
  if (millis == 0) return;
  Tell(fmt::format("{} {} {} for {} ms", scheduler_->NameOf(a),
                   ways == 1   ? "->"
                   : ways == 2 ? "<-"
                               : "<->",
                   scheduler_->NameOf(b), millis));
  Disturb();
  Cut(a, b, ways, millis);
}

void Story::CutOffOwner() {
  // Some of the nodes come back to it before the others.
  const uint64_t millis = Bounded(random_.Uniform(4000), redundancy_.spare);
  if (millis == 0) return;
  Tell(fmt::format("owner {} is cut off for {} ms", owner().number(), millis));
  Disturb();
  for (size_t i = 0; i < cluster_->size(); ++i) {
    Cut(owner().process(), cluster_->process(i), 3, millis);
  }
  if (random_.OneIn(2)) return;
  Sleep(milliseconds(random_.Uniform(1000)));
  StartOwner(/*take_over=*/random_.OneIn(2));
}

void Story::SplitNetwork() {
  if (flipped_) return;
  const uint64_t millis = Bounded(random_.Uniform(4000), redundancy_.spare);
  Tell(fmt::format("the network is split for {} ms", millis));
  Disturb();
  const ProcessId before = owner().process();
  StartOwner(/*take_over=*/random_.OneIn(2));
  // Where half is not less than half, or not quite, majorities are put to the test.
  const size_t nodes = cluster_->size();
  const size_t seen = random_.OneIn(3) ? random_.Uniform(nodes + 1) : (nodes + 1) / 2;
  const size_t first = random_.Uniform(nodes);
  for (size_t i = 0; i < nodes; ++i) {
    const bool successors = (first + i) % nodes < seen;
    Cut(successors ? before : owner().process(), cluster_->process(i), 3, millis);
  }
  Tell(fmt::format("{} of {} nodes are on the side of owner {}", seen, nodes, owner().number()));
}

void Story::HalveNetwork() {
  if (lost_ > 0 || flipped_) {
    Heal();
    AwaitWhole();
  }
  // It takes some seconds to give up nodes that do not answer; an opening does so twice.
  const uint64_t alone = 2000 + random_.Uniform(6000);
  const uint64_t together = 5000 + random_.Uniform(10'000);
  lost_ += redundancy_.spare;
  Disturb();
  const size_t nodes = cluster_->size();
  const size_t seen = (nodes + 1) / 2 + random_.Uniform(2);
  const size_t first = random_.Uniform(nodes);
  Tell(fmt::format("owner {} loses sight of {} of {} nodes", owner().number(), seen, nodes));
  const auto cut = [&](bool successors, uint64_t millis) {
    for (size_t i = 0; i < nodes; ++i) {
      if ((i < seen) != successors) continue;
      Cut(owner().process(), cluster_->process((first + i) % nodes), 3, millis);
    }
  };
  cut(/*successors=*/true, alone + together);
  Sleep(milliseconds(alone));
  StartOwner(/*take_over=*/true);
  cut(/*successors=*/false, together);
  Sleep(milliseconds(together));
}

// ---- Clocks -------------------------------------------------------------------------------------

void Story::LeapClock() {
  // A lease ends early for an owner whose clock leaps, or runs fast; a node must not be ahead by
  // more than the lease's margin.
  constexpr uint64_t kOwnerLeapMillis = 3000;
  constexpr int64_t kDriftMax = 10'000;
  const auto drift = static_cast<int64_t>(random_.Uniform(2 * kDriftMax + 1)) - kDriftMax;
  ++faults_;
  if (random_.OneIn(2)) {
    const uint64_t millis = random_.Uniform(kOwnerLeapMillis);
    Tell(fmt::format("owner {}'s clock leaps by {} ms, drifts by {} ppm", owner().number(), millis,
                     drift));
    scheduler_->Advance(owner().process(), milliseconds(millis));
    scheduler_->SetDrift(owner().process(), drift);
    return;
  }
  const size_t i = random_.Uniform(cluster_->size());
  Tell(fmt::format("node {}'s clock drifts by {} ppm", i, drift));
  scheduler_->SetDrift(cluster_->process(i), drift);
}

}  // namespace nacre::sim
