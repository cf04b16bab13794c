// Goal: a keyspace shows its metrics as one database, whose shards are told apart by a label, and
// what the application did is counted once. Method: a keyspace over an embedded pool; the page is
// fetched over a socket.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "metrics/endpoint.h"
#include "nacre/utilities/sharded_db.h"
#include "tests/support/metrics_page.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

constexpr char kAddress[] = "127.0.0.1:0";

TEST(KeyspaceMetricsTest, AKeyspaceIsOneDatabaseWithShards) {
  std::unique_ptr<metrics::Endpoint> share;
  ASSERT_TRUE(IsOk(metrics::Endpoint::Open(kAddress, &share)));
  ShardedOptions options;
  static_cast<Options&>(options) = SmallTableOptions(OpenTestPool());
  options.metrics_address = kAddress;
  options.boundaries = {"m"};
  std::unique_ptr<ShardedDB> db;
  ASSERT_TRUE(IsOk(ShardedDB::Open(options, "accounts", &db)));
  ASSERT_TRUE(IsOk(db->Put(NoLog(), "a", "1")));
  ASSERT_TRUE(IsOk(db->Put(NoLog(), "y", "2")));
  ASSERT_TRUE(IsOk(db->Put(NoLog(), "z", "3")));
  const auto samples = SamplesOf(GetMetrics(share->address()));
  // What the application did is counted once.
  EXPECT_EQ(samples.at("nacre_db_keys_written_total{database=\"accounts\"}"), 3);
  for (const char* shard : {"0", "1", "map"}) {
    const std::string labels = std::string("{database=\"accounts\",shard=\"") + shard + "\"";
    EXPECT_TRUE(samples.contains("nacre_db_sequence" + labels + "}")) << shard;
    EXPECT_TRUE(samples.contains("nacre_db_level_tables" + labels + ",level=\"0\"}")) << shard;
  }
  int nodes = 0;
  for (const auto& [sample, number] : samples) {
    EXPECT_EQ(sample.find("accounts@"), std::string::npos) << sample;
    EXPECT_EQ(sample.find("family="), std::string::npos) << sample;
    if (sample.starts_with("nacre_pool_node_up{")) ++nodes;
  }
  EXPECT_EQ(nodes, 4);
  ASSERT_TRUE(IsOk(db->Close()));
  for (const auto& [sample, number] : SamplesOf(GetMetrics(share->address()))) {
    EXPECT_FALSE(sample.starts_with("nacre_db_")) << sample;
  }
}

}  // namespace
}  // namespace nacre
