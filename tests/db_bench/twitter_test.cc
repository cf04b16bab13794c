// Goal: the mixes after Twitter's clusters are what is published, and values live as long as is
// said. Method: sums of the table; an expiry queue against a plain map of when each value dies; the
// tool runs a cluster.

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "db_bench/twitter/expiry.h"
#include "db_bench/twitter/twitter_clusters.h"
#include "tests/db_bench/tool_run.h"
#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre::bench {
namespace {

TEST(TwitterClustersTest, SharesAndSizesMakeSense) {
  std::set<int> numbers;
  for (const TwitterCluster& cluster : TwitterClusters()) {
    SCOPED_TRACE(cluster.number);
    EXPECT_TRUE(numbers.insert(cluster.number).second);
    EXPECT_EQ(FindTwitterCluster(cluster.number), &cluster);
    EXPECT_LE(cluster.sets + cluster.deletes, 1.001);
    EXPECT_GE(cluster.key_bytes, 8u);
    EXPECT_GE(cluster.value_bytes, 1u);
    EXPECT_GT(cluster.TtlRequests(), 0u);
  }
  EXPECT_EQ(FindTwitterCluster(5), nullptr);
  EXPECT_EQ(FindTwitterCluster(12)->TtlRequests(), 300u * 4360);
}

TEST(ExpiryQueueTest, ValuesDieWhenTheyHaveNotBeenWrittenForTheirTime) {
  constexpr uint64_t kTtl = 100;
  constexpr uint64_t kRecords = 64;
  RecordVersions versions(kRecords);
  ExpiryQueue queue(kTtl, &versions);
  std::map<uint64_t, uint64_t> dies;  // When each record that lives is to die.
  Random random(TestSeed(1));
  for (uint64_t now = 0; now < 20'000; ++now) {
    if (const std::optional<uint64_t> expired = queue.TakeExpired(now)) {
      ASSERT_EQ(dies.count(*expired), 1u);
      ASSERT_LE(dies[*expired], now);
      dies.erase(*expired);
      versions.Advance(*expired);
      continue;
    }
    for (const auto& [record, death] : dies) ASSERT_GT(death, now) << record;
    const uint64_t record = random.Skewed(6) % kRecords;
    if (random.OneIn(3)) {
      dies[record] = now + kTtl;
      queue.Written(record, now);
    } else if (random.OneIn(20)) {
      dies.erase(record);
      versions.Advance(record);
    }
  }
}

TEST(ExpiryQueueTest, WithoutATimeNothingDies) {
  RecordVersions versions(1);
  ExpiryQueue queue(0, &versions);
  queue.Written(0, 0);
  EXPECT_EQ(queue.TakeExpired(UINT64_MAX), std::nullopt);
}

TEST(TwitterToolTest, FollowsItsCluster) {
  const TemporaryPath file("json.twitter");
  const auto run = [&file](const std::string& ttl) {
    RunToolOk({"--engine=lmdb", "--num=2000", "--readwrites=20000", "--threads=2", "--seed=1",
               "--twitter_cluster=40", "--ttl_ops=" + ttl, "--latency_sample_period=1",
               "--benchmarks=ycsbload,twitter", "--json=" + file.str()});
    return ReadJson(file.str());
  };
  const JsonValue report = run("0");
  EXPECT_EQ(report["config"]["key_size"].number(), 44);
  EXPECT_EQ(report["config"]["value_size"].number(), 155);
  const JsonValue& lasting = report["benchmarks"].array().at(1);
  EXPECT_EQ(lasting["ops"].number(), 40000);
  EXPECT_NEAR(lasting["lookups"].number(), 20000, 600);
  EXPECT_EQ(lasting["found"].number(), lasting["lookups"].number());
  EXPECT_NEAR(lasting["latencies"]["write"]["samples"].number(), 20000, 600);
  // What dies is not found afterwards, and operations delete it.
  const JsonValue dying = run("1000")["benchmarks"].array().at(1);
  EXPECT_EQ(dying["ops"].number(), 40000);
  EXPECT_GT(dying["latencies"]["delete"]["samples"].number(), 1000);
  EXPECT_LT(dying["found"].number(), dying["lookups"].number() * 0.9);
}

TEST(TwitterToolTest, SizesThatAreGivenStay) {
  const TemporaryPath file("json.twitter.sizes");
  RunToolOk({"--engine=lmdb", "--num=100", "--twitter_cluster=40", "--key_size=16",
             "--value_size_distribution_type=pareto", "--value_size_min=20", "--seed=1",
             "--benchmarks=ycsbload,twitter", "--json=" + file.str()});
  const JsonValue report = ReadJson(file.str());
  EXPECT_EQ(report["config"]["key_size"].number(), 16);
  const double mb = report["benchmarks"].array().at(0)["mb_per_sec"].number() *
                    report["benchmarks"].array().at(0)["seconds"].number();
  // Keys of 16 B and values of 54 B on average.
  EXPECT_NEAR(mb * (1 << 20), 100 * 70, 2500);
}

}  // namespace
}  // namespace nacre::bench
