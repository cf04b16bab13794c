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
