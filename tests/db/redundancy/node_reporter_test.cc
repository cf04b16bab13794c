// Goal: an open database tells all nodes how it is, and hears within a moment what operators want.
// Method: embedded pools; the client that the database has asks the nodes as an operator would.

#include "db/redundancy/node_reporter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "nacre/db.h"
#include "pool/databases.h"
#include "pool/reports.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

TEST(NodeReporterTest, EveryNodeKnowsOfAnOpenDatabase) {
  const auto pool = OpenTestPool({.nodes = 3});
  ASSERT_NE(pool, nullptr);
  Options options = SmallTableOptions(pool);
  options.redundancy = "rep(2)";
  std::unique_ptr<DB> db;
  ASSERT_TRUE(IsOk(DB::Open(options, "told", &db)));
  for (NodeId node = 0; node < 3; ++node) {
    EXPECT_TRUE(Eventually([&] {
      std::vector<pool::KnownDatabase> known;
      pool::Directions directions;
      return pool::ListDatabases(pool->client(), node, &known, &directions).ok() &&
             known.size() == 1 && known[0].name == "told" && known[0].reported &&
             known[0].report.redundancy == "rep(2)" && !known[0].report.space.empty();
    })) << node;
  }
}

TEST(NodeReporterTest, NodesKnowWhatTookLongAndHowLongOperationsTake) {
  const auto pool = OpenTestPool({.nodes = 2});
  ASSERT_NE(pool, nullptr);
  Options options = SmallTableOptions(pool);
  options.redundancy = "rep(2)";
  options.statistics = CreateDBStatistics();
  std::unique_ptr<DB> db;
  ASSERT_TRUE(IsOk(DB::Open(options, "told", &db)));
  const auto report_is = [&](const std::function<bool(const pool::DatabaseReport&)>& is) {
    std::vector<pool::KnownDatabase> known;
    pool::Directions directions;
    return pool::ListDatabases(pool->client(), 0, &known, &directions).ok() && known.size() == 1 &&
           known[0].reported && is(known[0].report);
  };
  ASSERT_TRUE(IsOk(db->Put({}, "key", "value")));
  std::string value;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(IsOk(db->Get({}, "key", &value)));
  EXPECT_TRUE(Eventually([&] {
    return report_is([](const pool::DatabaseReport& report) {
      return report.slow_operations == 0 && report.latest_slow.empty() &&
             report.times.size() == 2 && report.times[0].operation == "get" &&
             report.times[0].count >= 100 && report.times[1].operation == "write" &&
             report.times[1].count == 1 && report.times[1].p99_micros > 0;
    });
  }));
  // Each operation takes as long as that.
  ASSERT_TRUE(IsOk(db->SetDBOptions({{"slow_operation_threshold", "1"}})));
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(IsOk(db->Put({}, "slow", std::string(100'000, 'x'))));
  EXPECT_TRUE(Eventually([&] {
    return report_is([](const pool::DatabaseReport& report) {
      return report.slow_operations >= 20 && report.latest_slow.size() == 4 &&
             report.latest_slow[0].age_nanos >= report.latest_slow[3].age_nanos &&
             report.latest_slow[3].text.find("slow") != std::string::npos;
    });
  }));
}

TEST(NodeReporterTest, TakesTheLatestDirectionsOfAnyNode) {
  const auto pool = OpenTestPool({.nodes = 3});
  ASSERT_NE(pool, nullptr);
  pool::PoolClient* client = pool->client();
  pool::DatabaseLease lease;
  ASSERT_TRUE(IsOk(client->databases()->Open("db", {.create_if_missing = true}, &lease)));
  std::atomic<int> changes{0};
  std::atomic<uint64_t> reader{0};
  NodeReporter reporter(
      client,
      {.make_report = [&] { return pool::DatabaseReport{.database_id = lease.database_id}; },
       .directions_changed = [&] { ++changes; },
       .heard_of_readers =
           [&](const std::vector<pool::LogReader>& readers) {
             if (!readers.empty()) reader = readers.front().reader;
           }});
  reporter.Start();
  std::vector<pool::LogReader> readers;
  ASSERT_TRUE(IsOk(pool::AcknowledgeLog(client, {2}, lease.database_id, 7, 100, false, &readers)));
  EXPECT_TRUE(Eventually([&] { return reader == 7; }));
  pool::Directions now;
  ASSERT_TRUE(IsOk(pool::SetDirections(client, 1, {.version = 3, .repair_paused = true}, &now)));
  EXPECT_TRUE(Eventually([&] { return reporter.directions().version == 3; }));
  EXPECT_TRUE(reporter.directions().repair_paused);
  EXPECT_FALSE(reporter.draining(2));
  // An older word on another node changes nothing, a newer one does, whichever node is dead.
  ASSERT_TRUE(IsOk(pool::SetDirections(client, 0, {.version = 2}, &now)));
  pool->KillEmbeddedNode(1);
  ASSERT_TRUE(IsOk(
      pool::SetDirections(client, 2, {.version = 4, .draining = {client->instance_id(2)}}, &now)));
  EXPECT_TRUE(Eventually([&] { return reporter.draining(2); }));
  EXPECT_FALSE(reporter.draining(0));
  EXPECT_FALSE(reporter.directions().repair_paused);
  EXPECT_TRUE(Eventually([&] { return changes == 2; }));
  reporter.Stop();
  ASSERT_TRUE(IsOk(client->databases()->Leave(lease.database_id)));
}

}  // namespace
}  // namespace nacre
