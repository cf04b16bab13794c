// Goal: what changes in a pool becomes an event, once, and what stays as it is becomes none.
// Method: samples that the test makes up.

#include "ctl/console/pool_events.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace nacre::ctl {
namespace {

NodeReport WellNode(const std::string& address, uint64_t instance_id, uint64_t uptime_nanos) {
  NodeReport node;
  node.address = address;
  node.stats.instance_id = instance_id;
  node.stats.uptime_nanos = uptime_nanos;
  return node;
}

pool::KnownDatabase OpenDatabase(const std::string& name) {
  pool::KnownDatabase database;
  database.name = name;
  database.database_id = 1;
  database.open = true;
  database.reported = true;
  return database;
}

class PoolEventsTest : public testing::Test {
 protected:
  /// The texts of the events that a sample adds.
  std::vector<std::string> Added() {
    const size_t before = events_.events().size();
    events_.Compare(sample_, ++now_);
    return Since(before);
  }
  std::vector<std::string> Since(size_t before) const {
    std::vector<std::string> texts;
    for (size_t i = before; i < events_.events().size(); ++i) {
      texts.push_back(events_.events()[i].text);
    }
    return texts;
  }

  using Texts = std::vector<std::string>;
  PoolEvents events_{/*capacity=*/100};
  PoolSample sample_;
  int64_t now_ = 0;
};

TEST_F(PoolEventsTest, NodesComeAndGo) {
  sample_.pool.nodes = {WellNode("tcp:a:1", 1, 10), WellNode("tcp:b:1", 2, 10)};
  EXPECT_EQ(Added(), Texts{});
  EXPECT_EQ(Added(), Texts{});
  sample_.pool.nodes[1].status = Status::Unavailable("gone");
  EXPECT_EQ(Added(), Texts{"node tcp:b:1: down"});
  EXPECT_EQ(events_.events().back().kind, PoolEvent::Kind::kBad);
  EXPECT_EQ(Added(), Texts{});
  sample_.pool.nodes[1] = WellNode("tcp:b:1", 3, 5);
  EXPECT_EQ(Added(),
            (Texts{"node tcp:b:1: well", "node tcp:b:1: has come back without what it held"}));
  sample_.pool.nodes[0] = WellNode("tcp:a:1", 1, 5);
  EXPECT_EQ(Added(), Texts{"node tcp:a:1: was started anew, and kept what it held"});
  sample_.pool.nodes[0].slow = true;
  EXPECT_EQ(Added(), Texts{"node tcp:a:1: slow"});
  sample_.pool.directions.draining = {1};
  EXPECT_EQ(Added(), Texts{"node tcp:a:1: slow, draining"});
}

TEST_F(PoolEventsTest, ANodeThatIsLostFromTheBeginningIsTold) {
  sample_.pool.nodes = {WellNode("tcp:a:1", 1, 10)};
  sample_.pool.nodes[0].status = Status::Unavailable("gone");
  EXPECT_EQ(Added(), Texts{"node tcp:a:1: down"});
}

TEST_F(PoolEventsTest, SlowOperationsAreTold) {
  sample_.pool.nodes = {WellNode("tcp:a:1", 1, 10)};
  sample_.pool.databases = {OpenDatabase("orders")};
  pool::DatabaseReport& report = sample_.pool.databases[0].report;
  // Those that there were before this began to look are no news.
  report.slow_operations = 5;
  EXPECT_EQ(Added(), Texts{});
  report.slow_operations = 6;
  report.latest_slow = {{.age_nanos = 1, .text = "Get took 30 ms"}};
  EXPECT_EQ(Added(), Texts{"database orders: 1 operation slow, such as Get took 30 ms"});
  EXPECT_EQ(Added(), Texts{});
  // Another owner counts anew.
  report.slow_operations = 2;
  report.latest_slow.clear();
  EXPECT_EQ(Added(), Texts{});
  report.slow_operations = 4;
  EXPECT_EQ(Added(), Texts{"database orders: 2 slow operations"});
}

TEST_F(PoolEventsTest, DatabasesChange) {
  sample_.pool.nodes = {WellNode("tcp:a:1", 1, 10)};
  sample_.pool.databases = {OpenDatabase("orders")};
  EXPECT_EQ(Added(), Texts{});
  pool::KnownDatabase& database = sample_.pool.databases[0];
  database.report.repair.state = pool::RepairProgress::State::kRunning;
  database.report.notice = "it has lost a table";
  EXPECT_EQ(Added(),
            (Texts{"database orders: repair is running", "database orders: it has lost a table"}));
  EXPECT_EQ(Added(), Texts{});
  database.report.repair.state = pool::RepairProgress::State::kIdle;
  EXPECT_EQ(Added(), Texts{"database orders: repair is idle"});
  database.open = false;
  database.reported = false;
  EXPECT_EQ(Added(), Texts{"database orders: has no owner any more"});
  database.open = true;
  EXPECT_EQ(Added(), Texts{"database orders: has an owner"});

  // While a node is away, it is not known which databases there are.
  const pool::KnownDatabase kept = database;
  sample_.pool.nodes[0].status = Status::Unavailable("gone");
  sample_.pool.databases.clear();
  EXPECT_EQ(Added(), Texts{"node tcp:a:1: down"});
  sample_.pool.nodes[0].status = Status::OK();
  sample_.pool.databases = {kept};
  EXPECT_EQ(Added(), Texts{"node tcp:a:1: well"});
  sample_.pool.databases.clear();
  EXPECT_EQ(Added(), Texts{"database orders: is no longer there"});
}

TEST_F(PoolEventsTest, ALaterEpochIsATakeover) {
  events_.CompareEpoch("orders", 1, 3, 1);
  events_.CompareEpoch("orders", 1, 3, 2);
  EXPECT_EQ(Since(0), Texts{});
  events_.CompareEpoch("orders", 1, 5, 3);
  EXPECT_EQ(Since(0), Texts{"database orders: was taken over by its owner of epoch 5"});
  events_.CompareEpoch("orders", 2, 9, 4);  // Another database of that name.
  EXPECT_EQ(Since(1), Texts{});
}

TEST(PoolEventsBoundTest, TheLatestAreKept) {
  PoolEvents events(/*capacity=*/2);
  for (uint64_t epoch = 1; epoch <= 4; ++epoch) events.CompareEpoch("a\"b", 1, epoch, 7);
  EXPECT_EQ(events.events().size(), 2u);
  EXPECT_EQ(events.Json(),
            "[{\"milliseconds\": 7, \"kind\": \"note\", \"text\": "
            "\"database a\\\"b: was taken over by its owner of epoch 3\"},\n  "
            "{\"milliseconds\": 7, \"kind\": \"note\", \"text\": "
            "\"database a\\\"b: was taken over by its owner of epoch 4\"}]");
}

}  // namespace
}  // namespace nacre::ctl
