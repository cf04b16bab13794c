// Goal: nacre-ctl shows the databases of a pool, and its orders reach every node.
// Method: the tool as a process, over nacre-memnode processes; this test is the owner of a
// database.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ctl/maintenance_command.h"
#include "pool/databases.h"
#include "pool/pool_impl.h"
#include "pool/reports.h"
#include "pool/space/slab_leases.h"
#include "pool/wire/database_report.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre::ctl {
namespace {

class CtlTest : public testing::Test {
 protected:
  void SetUp() override {
    pool_ = ConnectTestPool(nodes_.pool_uri());
    ASSERT_NE(pool_, nullptr);
    client_ = pool_->client();
    ASSERT_TRUE(IsOk(client_->databases()->Open("orders", {.create_if_missing = true}, &lease_)));
    ASSERT_TRUE(IsOk(pool::LeaseSlabs(client_, 1, lease_.database_id, {.count = 3}, &slabs_)));
  }

  ProcessResult Ctl(std::vector<std::string> arguments) {
    arguments.push_back("--pool=" + nodes_.pool_uri());
    return RunBinary("nacre-ctl", arguments);
  }
  void CtlOk(const std::vector<std::string>& arguments) {
    const ProcessResult result = Ctl(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.output;
  }
  void ExpectStatus(const std::string& text) {
    const ProcessResult result = Ctl({"status"});
    EXPECT_NE(result.output.find(text), std::string::npos) << text << "\n" << result.output;
  }
  void ExpectNoStatus(const std::string& text) {
    const ProcessResult result = Ctl({"status"});
    EXPECT_EQ(result.output.find(text), std::string::npos) << text << "\n" << result.output;
  }
  /// What the node answers to a report.
  pool::Directions Report(NodeId node, const pool::RepairProgress& repair = {},
                          const std::vector<pool::LeavingNode>& leaving = {}) {
    pool::Directions directions;
    EXPECT_TRUE(
        IsOk(pool::ReportDatabase(client_, node,
                                  {.database_id = lease_.database_id,
                                   .redundancy = "rs(2,1)",
                                   .space = {{"user-bytes", 5 << 20}, {"stored-bytes", 8 << 20}},
                                   .repair = repair,
                                   .leaving = leaving},
                                  &directions)));
    return directions;
  }

  MemnodeProcesses nodes_{3, {.size = "64MiB", .slab_size = "1MiB"}};
  std::shared_ptr<pool::PoolImpl> pool_;
  pool::PoolClient* client_ = nullptr;
  pool::DatabaseLease lease_;
  std::vector<uint64_t> slabs_;
};

TEST_F(CtlTest, StatusShowsDatabases) {
  ExpectStatus("orders   open    -");
  Report(2, {.state = pool::RepairProgress::State::kRunning,
             .bytes_done = 25 << 20,
             .bytes_total = 100 << 20,
             .bytes_per_second = 5 << 20,
             .seconds_left = 15});
  ExpectStatus(
      "orders   open    rs(2,1)         5.0 MiB    8.0 MiB        0 B    3.0 MiB  "
      "running, 25 % of 100.0 MiB, 5.0 MiB/s, 15 s left");
  const ProcessResult json = Ctl({"status", "--json"});
  for (const char* member :
       {"\"name\": \"orders\"", "\"open\": true", "\"redundancy\": \"rs(2,1)\"",
        "\"user-bytes\": 5242880", "\"state\": \"running\"", "\"databases\": 1"}) {
    EXPECT_NE(json.output.find(member), std::string::npos) << member << json.output;
  }
  ASSERT_TRUE(IsOk(pool::ReturnSlabs(client_, 1, lease_.database_id, slabs_)));
  ASSERT_TRUE(IsOk(client_->databases()->PublishRoot(lease_.database_id, "root")));
  ASSERT_TRUE(IsOk(client_->databases()->Leave(lease_.database_id)));
  ExpectStatus("orders   closed");
}

TEST_F(CtlTest, OrdersReachEveryNode) {
  CtlOk({"repair", "pause"});
  for (NodeId node = 0; node < 3; ++node) EXPECT_TRUE(Report(node).repair_paused);
  ExpectStatus("repair       paused");
  CtlOk({"repair", "limit", "200MiB"});
  EXPECT_EQ(Report(2).repair_bytes_per_second, uint64_t{200} << 20);
  EXPECT_TRUE(Report(2).repair_paused) << "one order does not take the other back";
  ExpectStatus("limited to 200.0 MiB/s");
  CtlOk({"repair", "resume"});
  EXPECT_FALSE(Report(0).repair_paused);
  CtlOk({"repair", "limit", "0"});
  EXPECT_EQ(Report(0).repair_bytes_per_second, 0u);

  MemnodeProcess further({.size = "16MiB", .slab_size = "1MiB"});
  CtlOk({"add", further.address()});
  CtlOk({"add", further.address()});
  EXPECT_EQ(Report(1).added_addresses, std::vector<std::string>{further.address()});
  ExpectStatus("added        " + further.address());
}

TEST_F(CtlTest, DrainWaitsUntilTheNodeHoldsNothing) {
  ChildProcess drain(NACRE_TEST_BIN_DIR "/nacre-ctl",
                     {"drain", nodes_[1].address(), "--pool=" + nodes_.pool_uri()});
  drain.AwaitOutput("3.0 MiB to go", 20);
  const pool::Directions directions = Report(0);
  EXPECT_EQ(directions.draining, std::vector<uint64_t>{client_->instance_id(1)});
  ExpectStatus("draining     " + nodes_[1].address() + ": 3.0 MiB leased");
  ASSERT_TRUE(IsOk(pool::ReturnSlabs(client_, 1, lease_.database_id, slabs_)));
  drain.AwaitOutput("holds nothing any more", 20);
  EXPECT_EQ(drain.AwaitExit(20), 0);
}

TEST_F(CtlTest, DrainGoesOnWhenInterruptedAndIsTakenBack) {
  ChildProcess drain(NACRE_TEST_BIN_DIR "/nacre-ctl",
                     {"drain", "1", "--pool=" + nodes_.pool_uri()});
  drain.AwaitOutput("to go", 20);
  drain.Signal(SIGINT);
  drain.AwaitExit(20);
  ExpectStatus("draining     ");
  CtlOk({"drain", "1", "--nowait"});
  CtlOk({"undrain", "1"});
  EXPECT_TRUE(Report(2).draining.empty());
  ExpectNoStatus("draining");
}

TEST_F(CtlTest, MaintenanceWaitsUntilOwnersHaveLeftTheNode) {
  ChildProcess order(NACRE_TEST_BIN_DIR "/nacre-ctl", {"maintenance", nodes_[1].address(),
                                                       "--for=1h", "--pool=" + nodes_.pool_uri()});
  order.AwaitOutput("the owner of 'orders' has not heard of it", 20);
  using State = pool::LeavingNode::State;
  const uint64_t instance = client_->instance_id(1);
  const pool::Directions directions = Report(0);
  ASSERT_EQ(directions.maintenance.size(), 1u);
  EXPECT_EQ(directions.maintenance[0].instance_id, instance);
  EXPECT_EQ(directions.maintenance[0].start_id, client_->start_id(1));
  ExpectStatus("maintenance  " + nodes_[1].address() + ": there, ");
  Report(0, {}, {{.instance_id = instance, .state = State::kLeaving}});
  order.AwaitOutput("'orders' has copies of its log or manifest there", 20);
  Report(0, {}, {{.instance_id = instance, .state = State::kLeft}});
  const std::string output = order.AwaitOutput("", 20);
  EXPECT_NE(output.find("can be stopped; what is on it is not repaired for "), std::string::npos)
      << output;
  EXPECT_NE(output.find("its memory ends with its process"), std::string::npos) << output;
  EXPECT_EQ(order.AwaitExit(20), 0);
  // A database that has no other nodes to go to is named.
  Report(0, {}, {{.instance_id = instance, .state = State::kKept}});
  ProcessResult again = Ctl({"maintenance", "1", "--for=90s"});
  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_NE(again.output.find("'orders' keeps copies"), std::string::npos) << again.output;
  again = Ctl({"maintenance", "1", "--json"});
  EXPECT_NE(again.output.find("\"ready\": true"), std::string::npos) << again.output;
  EXPECT_NE(again.output.find("\"kept_by\": [\"orders\"]"), std::string::npos) << again.output;
  EXPECT_EQ(Report(2).maintenance.size(), 1u) << "one order for one node";
  const ProcessResult second = Ctl({"maintenance", "0"});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_NE(second.output.find(nodes_[1].address() + " is in maintenance"), std::string::npos)
      << second.output;

  nodes_[1].Kill();
  ExpectStatus("maintenance  " + nodes_[1].address() + ": away, ");
  const ProcessResult json = Ctl({"status", "--json"});
  EXPECT_NE(json.output.find("\"maintenance\": [{\"address\": \"" + nodes_[1].address() +
                             "\", \"reachable\": false"),
            std::string::npos)
      << json.output;
  const ProcessResult doctor = Ctl({"doctor"});
  EXPECT_NE(doctor.output.find("is away for maintenance"), std::string::npos) << doctor.output;
  CtlOk({"maintenance", "1", "--end"});
  EXPECT_TRUE(Report(0).maintenance.empty());
  ExpectNoStatus("maintenance");
}

TEST(CtlDurationTest, TimesHaveUnitsAndAnEnd) {
  std::chrono::seconds time{0};
  const std::pair<const char*, int> good[] = {
      {"1s", 1}, {"90s", 90}, {"10min", 600}, {"2h", 7200}, {"24h", 86400}};
  for (const auto& [text, seconds] : good) {
    EXPECT_TRUE(IsOk(ParseDuration(text, &time))) << text;
    EXPECT_EQ(time.count(), seconds) << text;
  }
  for (const char* text :
       {"", "10", "0s", "s", "25h", "-1s", "1.5h", "10 min", "1d", "9999999999h"}) {
    EXPECT_TRUE(IsFailure(ParseDuration(text, &time), Status::Code::kInvalidArgument)) << text;
  }
}

TEST_F(CtlTest, MistakesAreNamed) {
  const struct {
    std::vector<std::string> arguments;
    std::string culprit;
  } cases[] = {
      {{"drain", "7"}, "no node '7'"},
      {{"drain"}, "unknown command 'drain'"},
      {{"maintenance", "7"}, "no node '7'"},
      {{"maintenance", "1", "--for=soon"}, "'soon' is no time"},
      {{"maintenance", "1", "--end"}, "no node '1' is in maintenance"},
      {{"repair", "faster"}, "unknown command 'repair faster'"},
      {{"repair", "limit", "much"}, "much"},
      {{"add", "shm:/nowhere/n.sock"}, "/nowhere/n.sock"},
      {{"add", nodes_[0].address()}, "in the pool already"},
      {{"add", "what"}, "what"},
  };
  for (const auto& mistake : cases) {
    const ProcessResult result = Ctl(mistake.arguments);
    EXPECT_EQ(result.exit_code, 1) << result.output;
    EXPECT_NE(result.output.find(mistake.culprit), std::string::npos) << mistake.culprit << "\n"
                                                                      << result.output;
  }
  MemnodeProcess odd({.size = "16MiB", .slab_size = "2MiB"});
  const ProcessResult result = Ctl({"add", odd.address()});
  EXPECT_NE(result.output.find("slabs of 2.0 MiB"), std::string::npos) << result.output;
  // A node that cannot be told is no obstacle.
  nodes_[2].Kill();
  CtlOk({"repair", "pause"});
  EXPECT_TRUE(Report(0).repair_paused);
}

TEST(CtlDomainTest, NodesShowTheirs) {
  ChildProcess node(
      NACRE_TEST_BIN_DIR "/nacre-memnode",
      {"--listen=shm:@nacre-domain-test", "--size=1MiB", "--slab_size=1MiB", "--domain=rack1"});
  node.AwaitOutput("ready", 20);
  const ProcessResult result = RunBinary("nacre-ctl", {"nodes", "--pool=shm:@nacre-domain-test"});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("rack1"), std::string::npos) << result.output;
}

}  // namespace
}  // namespace nacre::ctl
