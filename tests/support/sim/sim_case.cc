#include "tests/support/sim/sim_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "ctl/ctl_directions.h"
#include "ctl/fsck.h"
#include "pool/connect/pool_device.h"
#include "pool/databases.h"
#include "pool/wire/node_stats.h"
#include "tests/support/sim/sim_run.h"
#include "util/clock.h"
#include "util/uri.h"

namespace nacre::sim {
namespace {

/// 0 if it is not set.
uint64_t NumberFromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? 0 : std::stoull(value);
}

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kSeeds = 6;

}  // namespace

Options Case::DatabaseOptions() {
  Options options = cluster_.DatabaseOptions();
  options.operation_timeout = seconds(2);
  return options;
}

void Case::In(ProcessId process, const std::function<void()>& body) {
  auto* const done = new bool(false);
  cluster_.Run(process, "main", [=] {
    body();
    *done = true;
  });
  Await("a step", [=] { return *done; });
}

void Case::Await(const char* what, const std::function<bool()>& done) {
  constexpr int kLooks = 1200;
  for (int i = 0; !done(); ++i) {
    if (i == kLooks) Fail(std::string(what) + ": not within two minutes");
    scheduler_->SleepFor(milliseconds(100));
  }
}

void Case::CutOff(ProcessId process, size_t node) {
  cluster_.network().Block(process, cluster_.process(node));
  cluster_.network().Block(cluster_.process(node), process);
}

void Case::CutOffFromAll(ProcessId process) {
  for (size_t i = 0; i < cluster_.size(); ++i) CutOff(process, i);
}

void Case::AddNodes(size_t count) {
  const size_t before = cluster_.size();
  for (size_t i = 0; i < count; ++i) cluster_.AddNode();
  Announce(before);
}

void Case::AddNodesCutOffFrom(ProcessId process, size_t count) {
  const size_t before = cluster_.size();
  for (size_t i = 0; i < count; ++i) CutOff(process, cluster_.AddNode());
  Announce(before);
}

void Case::Announce(size_t first) {
  cluster_.AwaitNodes();
  Expect(WithPool([&](pool::PoolClient* client) {
    return ctl::ChangeDirections(client, [&](pool::Directions* directions) {
      for (size_t i = first; i < cluster_.size(); ++i) {
        directions->added_addresses.push_back(cluster_.AddressOf(i));
      }
    });
  }));
}

void Case::Drain(size_t drained) {
  Expect(WithPool([&](pool::PoolClient* client) {
    NodeId node = kNoNode;
    pool::NodeStats stats;
    NACRE_RETURN_IF_ERROR(ctl::FindNode(client, cluster_.AddressOf(drained), &node, &stats));
    return ctl::SetDraining(client, stats, true);
  }));
}

Status Case::WithPool(const std::function<Status(pool::PoolClient*)>& body) {
  Uri pool;
  NACRE_RETURN_IF_ERROR(ParseUri(cluster_.pool_uri(), &pool));
  std::unique_ptr<rdma::Device> device;
  std::unique_ptr<pool::PoolClient> client;
  pool::PoolClientOptions options;
  options.slab_bytes = 0;
  options.connect_all = false;
  options.operation_timeout = seconds(2);
  NACRE_RETURN_IF_ERROR(pool::OpenPoolDevice(pool, {}, Clock::System(), &device));
  NACRE_RETURN_IF_ERROR(
      pool::PoolClient::Connect(pool, options, device.get(), Clock::System(), &client));
  return body(client.get());
}

std::vector<size_t> Case::NodesOf(const Extents& extents) {
  std::vector<size_t> nodes;
  const Status status = WithPool([&](pool::PoolClient* client) {
    ctl::DatabaseView view;
    NACRE_RETURN_IF_ERROR(ctl::ViewDatabase(client, "db", &view));
    std::vector<bool> there(cluster_.size());
    for (const ExtentAddr& extent : extents(view)) {
      const std::string address = client->node_address(static_cast<NodeId>(extent.start.node));
      for (size_t i = 0; i < there.size(); ++i) {
        if (cluster_.AddressOf(i) == address) there[i] = true;
      }
    }
    for (size_t i = 0; i < there.size(); ++i) {
      if (there[i]) nodes.push_back(i);
    }
    return Status::OK();
  });
  if (!status.ok()) nodes.clear();
  return nodes;
}

std::vector<size_t> Case::ManifestNodes() {
  return NodesOf([](const ctl::DatabaseView& view) { return view.manifest.copies; });
}

std::vector<size_t> Case::LogNodes() {
  return NodesOf(
      [](const ctl::DatabaseView& view) { return view.state.segments.begin()->second.copies; });
}

size_t Case::RootMembers() {
  size_t members = 0;
  const Status status = WithPool([&](pool::PoolClient* client) {
    pool::DatabaseRoot root;
    NACRE_RETURN_IF_ERROR(client->databases()->Find("db", &root));
    if (!root.members_change) members = root.members.size();
    return Status::OK();
  });
  return status.ok() ? members : 0;
}

void Case::AwaitSpare(int nodes) {
  constexpr seconds kPatience(20);
  const Deadline deadline = Deadline::After(Clock::System(), kPatience);
  // A node that has just come back may be counted before its owners know that it has nothing.
  constexpr int kInARow = 3;
  for (int in_a_row = 0; in_a_row < kInARow; scheduler_->SleepFor(milliseconds(20))) {
    ctl::FsckReport report;
    std::string lacking = WithPool([&](pool::PoolClient* client) {
                            report = ctl::Fsck(client, {});
                            return Status::OK();
                          }).ToString();
    if (lacking == "OK") lacking.clear();
    for (const Status& failure : report.failures) lacking += failure.ToString() + "; ";
    for (const ctl::DatabaseHealth& health : report.databases) {
      if (health.spare_nodes >= nodes) continue;
      lacking += health.name + ": " + std::to_string(health.spare_nodes) + " to spare; ";
    }
    in_a_row = lacking.empty() ? in_a_row + 1 : 0;
    if (deadline.Expired()) return Fail("not whole: " + lacking);
  }
}

void Case::Damage(size_t node, uint64_t step, const Extents& extents) {
  Expect(WithPool([&](pool::PoolClient* client) {
    ctl::DatabaseView view;
    NACRE_RETURN_IF_ERROR(ctl::ViewDatabase(client, "db", &view));
    for (const ExtentAddr& extent : extents(view)) {
      const auto there = static_cast<NodeId>(extent.start.node);
      if (client->node_address(there) != cluster_.AddressOf(node)) continue;
      for (uint64_t at = 0; at < extent.length; at += step) {
        cluster_.network().FlipBit(cluster_.process(node), extent.start.offset + at, 3);
      }
    }
    return Status::OK();
  }));
}

FollowedDatabase::FollowedDatabase(Case* c)
    : owner(c->NewProcess("owner")), follower(c->NewProcess("follower")) {
  c->In(owner, [&] {
    c->Expect(DB::Open(c->DatabaseOptions(), "db", &db));
    c->Expect(db->Put({}, "key", "before"));
  });
  c->In(follower, [&] { c->Expect(DB::OpenAsSecondary(c->DatabaseOptions(), "db", &following)); });
}

std::vector<std::string> Tell(const Telling& tell, size_t nodes) {
  return Tell(tell, {.nodes = nodes}, kSeeds);
}

std::vector<std::string> Tell(const Telling& tell, const ClusterOptions& options, uint64_t seeds) {
  std::vector<std::string> summaries;
  const auto scenario = [&](Scheduler* scheduler, uint64_t) {
    return tell(scheduler, std::make_unique<Case>(scheduler, options).release());
  };
  const uint64_t only = NumberFromEnvironment("NACRE_CASE_SEED");
  const bool all = NumberFromEnvironment("NACRE_CASE_ALL") != 0;
  const uint64_t first = std::max<uint64_t>(NumberFromEnvironment("NACRE_CASE_FIRST"), 1);
  if (const uint64_t more = NumberFromEnvironment("NACRE_CASE_SEEDS"); more != 0) seeds = more;
  const RunOptions run{.log = only != 0};
  RunSeeds(only == 0 ? first : only, only == 0 ? seeds : 1, scenario, run,
           [&](const Outcome& outcome) {
             EXPECT_TRUE(outcome.passed) << "seed " << outcome.seed << ": " << outcome.failure;
             summaries.push_back(outcome.summary);
             return outcome.passed || all;
           });
  return summaries;
}

}  // namespace nacre::sim
