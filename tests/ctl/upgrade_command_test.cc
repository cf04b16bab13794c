// Goal: an upgrade is finalized once all nodes and clients are of a release that knows what is
// new, and not before; what is still there is named. Method: what follows from answers that are
// made up, and the tool as a process over nacre-memnode processes and a node of an older release.

#include "ctl/upgrade_command.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "memnode/memory_node.h"
#include "nacre/db.h"
#include "pool/databases.h"
#include "pool/pool_impl.h"
#include "pool/reports.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/process/served_nodes.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre::ctl {
namespace {

using pool::ProtocolSupport;

constexpr ProtocolSupport kBeforeRanges = {
    .range = {pool::kVersionBeforeRanges, pool::kVersionBeforeRanges}, .features = 0};

bool Tells(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

NodeReport NodeOf(const std::string& address, const std::string& release,
                  pool::FeatureSet features) {
  NodeReport node;
  node.address = address;
  node.stats.release = release;
  node.stats.protocol = {.range = pool::kProtocols, .features = features};
  return node;
}

TEST(UpgradeStateTest, TellsReleasesAndWhatTheyLack) {
  std::vector<NodeReport> nodes = {NodeOf("tcp:a", "0.3.0", 3), NodeOf("tcp:b", "", 0),
                                   NodeOf("tcp:c", "0.3.0", 1), NodeOf("tcp:d", "", 0)};
  nodes[3].status = Status::Unavailable("gone");
  nodes[0].clients = {{.client_id = 1, .protocol = {.features = 3}, .owned = {"fine"}},
                      {.client_id = 2, .protocol = kBeforeRanges, .owned = {"orders"}},
                      {.client_id = 3, .protocol = {.features = 1}, .owned = {}}};
  nodes[1].clients = {{.client_id = 2, .protocol = kBeforeRanges, .owned = {"orders", "bills"}}};
  UpgradeState state = LookAtUpgrade(Summarize(nodes), 3);
  EXPECT_EQ(state.on, 0u);
  EXPECT_EQ(state.off, 3u);
  EXPECT_EQ(state.releases, (std::vector<std::string>{"0.2.0 or before", "0.3.0"}));
  EXPECT_EQ(state.silent_nodes, std::vector<std::string>{"tcp:d"});
  EXPECT_EQ(state.older_nodes, (std::vector<std::string>{
                                   "tcp:b (0.2.0 or before) does not know root-features, feature 1",
                                   "tcp:c (0.3.0) does not know feature 1"}));
  EXPECT_EQ(state.older_clients,
            (std::vector<std::string>{
                "the owner of 'orders', 'bills' does not know root-features, feature 1",
                "the client 0000000000000003, which has no database open for writing, does not "
                "know feature 1"}));
  // What one node has heard to be on is on.
  nodes[0].directions.features_on = 1;
  nodes[0].stats.features_on = 1;
  state = LookAtUpgrade(Summarize(nodes), 3);
  EXPECT_EQ(state.on, 1u);
  EXPECT_EQ(state.off, 2u);
  EXPECT_FALSE(state.all_nodes_heard);
}

class FinalizeTest : public testing::Test {
 protected:
  ProcessResult Ctl(std::vector<std::string> arguments, const std::string& more_nodes = "") {
    arguments.push_back("--pool=" + nodes_.pool_uri() + more_nodes);
    return RunBinary("nacre-ctl", arguments);
  }

  MemnodeProcesses nodes_{3, {.scheme = "tcp"}};
  const std::string names_ = pool::ToString(pool::kKnownFeatures);
};

TEST_F(FinalizeTest, WhatIsStillOlderIsNamedAndKeepsFeaturesOff) {
  std::unique_ptr<rdma::Device> device;
  ASSERT_TRUE(IsOk(rdma::OpenDevice("tcp", {}, Clock::System(), &device)));
  std::unique_ptr<pool::MemoryNode> older;
  pool::MemoryNodeOptions options;
  options.listen = "tcp:127.0.0.1:0";
  options.region_bytes = 16 << 20;
  options.slab_bytes = 1 << 20;
  options.protocol = kBeforeRanges;
  ASSERT_TRUE(IsOk(pool::MemoryNode::Start(options, device.get(), Clock::System(), &older)));
  const std::string with_older = "," + older->address().substr(older->address().find(':') + 1);
  ProcessResult result = Ctl({"finalize-upgrade"}, with_older);
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_TRUE(Tells(result.output, older->address() + " (")) << result.output;
  EXPECT_TRUE(Tells(result.output, "does not know " + names_)) << result.output;
  result = Ctl({"nodes", "--json"}, with_older);
  EXPECT_TRUE(
      Has(result.output, "\"protocol_oldest\": 8, \"protocol_newest\": 8, \"features\": []"))
      << result.output;
  EXPECT_TRUE(Tells(result.output,
                    "\"protocol_oldest\": 8, \"protocol_newest\": 9, \"features\": "
                    "[\"root-features\"], \"features_on\": []"))
      << result.output;
  older.reset();

  const auto owner = ConnectTestPool(nodes_.pool_uri(), {.protocol = kBeforeRanges});
  pool::DatabaseLease lease;
  ASSERT_TRUE(
      IsOk(owner->client()->databases()->Open("orders", {.create_if_missing = true}, &lease)));
  result = Ctl({"finalize-upgrade"});
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_TRUE(Tells(result.output, "the owner of 'orders' does not know " + names_))
      << result.output;
  result = Ctl({"doctor"});
  EXPECT_TRUE(Tells(result.output, "the owner of 'orders' does not know " + names_))
      << result.output;
  nodes_[2].Pause();
  result = Ctl({"finalize-upgrade", "--timeout_ms=500"});
  EXPECT_TRUE(Tells(result.output, nodes_[2].address() + " does not answer")) << result.output;
  nodes_[2].Resume();
  EXPECT_FALSE(Tells(Ctl({"status"}).output, "features")) << "nothing is on";
}

TEST_F(FinalizeTest, TurnsOnWhatAllKnowForGood) {
  ProcessResult result = Ctl({"doctor"});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_TRUE(Tells(result.output, names_ + " is off until 'nacre-ctl finalize-upgrade'"))
      << result.output;
  result = Ctl({"finalize-upgrade"});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_TRUE(Tells(result.output, "turned on: " + names_)) << result.output;
  result = Ctl({"finalize-upgrade", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(result.output, "{\"features_on\": [\"root-features\"], \"turned_on\": []}\n");
  EXPECT_TRUE(Tells(Ctl({"status"}).output, "features     " + names_));
  EXPECT_TRUE(Tells(Ctl({"status", "--json"}).output, "\"features_on\": [\"root-features\"]"));
  EXPECT_FALSE(Tells(Ctl({"doctor"}).output, "is off until"));
  // A database that is made now says in its root what it may use.
  Options options = SmallTableOptions(ConnectTestPool(nodes_.pool_uri()));
  options.redundancy = "rs(2,1)";
  std::unique_ptr<DB> db;
  ASSERT_TRUE(IsOk(DB::Open(options, "made", &db)));
  EXPECT_TRUE(Tells(Ctl({"manifest", "made"}).output, "features " + names_));
  EXPECT_TRUE(
      Tells(Ctl({"manifest", "made", "--json"}).output, "\"features\": [\"root-features\"]"));
  // Orders of another kind leave it as it is.
  EXPECT_EQ(Ctl({"repair", "pause"}).exit_code, 0);
  EXPECT_TRUE(Tells(Ctl({"status"}).output, "features     " + names_));
}

TEST_F(FinalizeTest, ANodeThatDoesNotAnswerCanBeLeftOut) {
  nodes_[1].Kill();
  ProcessResult result = Ctl({"finalize-upgrade"});
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_TRUE(Tells(result.output, nodes_[1].address() + " does not answer (--force"))
      << result.output;
  result = Ctl({"finalize-upgrade", "--force"});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  // Its place is taken by a node that has heard of nothing. The next order tells it.
  nodes_[1].Start();
  result = Ctl({"finalize-upgrade"});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_TRUE(Tells(result.output, "on already: " + names_)) << result.output;
  const auto client = ConnectTestPool(nodes_.pool_uri());
  pool::NodeStats stats;
  ASSERT_TRUE(IsOk(pool::GetStats(client->client(), 1, &stats)));
  EXPECT_EQ(stats.features_on, pool::kKnownFeatures);
}

}  // namespace
}  // namespace nacre::ctl
