// Goal: a database that is told where to show metrics shows there what it does and has, from the
// end of its opening until it is closed, whether it is owned or followed; it fails for an address
// of the application's that it cannot have, and not for the environment's. Method: a few operations
// of known numbers over an embedded pool, or nacre-memnode processes for a follower; the page is
// fetched over a socket, at an address whose port the test learns by a share.

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "metrics/endpoint.h"
#include "nacre/db.h"
#include "nacre/statistics.h"
#include "tests/support/metrics_page.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/mutex.h"

namespace nacre {
namespace {

constexpr char kAddress[] = "127.0.0.1:0";

/// Keeps a database's LOG.
class Lines final : public Logger {
 public:
  void Log(LogLevel level, std::string_view message) override {
    MutexLock lock(&mutex_);
    if (level == LogLevel::kWarn) warnings_ += std::string(message) + '\n';
  }
  std::string warnings() const {
    MutexLock lock(&mutex_);
    return warnings_;
  }

 private:
  mutable Mutex mutex_;
  std::string warnings_ GUARDED_BY(mutex_);
};

class DatabaseMetricsTest : public testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv("NACRE_METRICS");
    ASSERT_TRUE(IsOk(metrics::Endpoint::Open(kAddress, &share_)));
  }
  void TearDown() override { ::unsetenv("NACRE_METRICS"); }

  Options MakeOptions() {
    Options options = SmallTableOptions(OpenTestPool());
    options.metrics_address = kAddress;
    return options;
  }
  std::map<std::string, double> Samples() const { return SamplesOf(GetMetrics(share_->address())); }
  static bool HasNacre(const std::map<std::string, double>& samples, const std::string& prefix) {
    const auto it = samples.lower_bound(prefix);
    return it != samples.end() && it->first.starts_with(prefix);
  }

  std::unique_ptr<metrics::Endpoint> share_;
};

TEST_F(DatabaseMetricsTest, AnOwnerShowsWhatItDoesUntilItIsClosed) {
  Options options = MakeOptions();
  options.disable_auto_compactions = true;
  std::unique_ptr<DB> db;
  ASSERT_TRUE(IsOk(DB::Open(options, "orders", &db)));
  EXPECT_NE(db->GetDBOptions().statistics, nullptr);
  std::map<std::string, double> samples = Samples();
  EXPECT_EQ(samples.at("nacre_db_keys_written_total{database=\"orders\"}"), 0);
  EXPECT_EQ(samples.at("nacre_db_flushes_total{database=\"orders\"}"), 0);

  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(IsOk(db->Put(NoLog(), std::to_string(i), TestValue(1, 1000))));
  }
  ASSERT_TRUE(IsOk(db->Flush({})));
  std::string value;
  ASSERT_TRUE(IsOk(db->Get({}, "7", &value)));
  samples = Samples();
  const auto at = [&](const std::string& name, const std::string& more = "") {
    const auto it = samples.find(name + "{database=\"orders\"" + more + "}");
    EXPECT_NE(it, samples.end()) << name << more;
    return it == samples.end() ? -1 : it->second;
  };
  EXPECT_EQ(at("nacre_db_keys_written_total"), 100);
  EXPECT_EQ(at("nacre_db_keys_read_total"), 1);
  EXPECT_EQ(at("nacre_db_read_bytes_total"), 1000);
  EXPECT_EQ(at("nacre_db_sequence"), 100);
  EXPECT_EQ(at("nacre_db_flushes_total"), 1);
  EXPECT_EQ(at("nacre_db_get_duration_seconds_count"), 1);
  EXPECT_EQ(at("nacre_db_get_duration_seconds_bucket", ",le=\"+Inf\""), 1);
  EXPECT_GT(at("nacre_db_get_duration_seconds_sum"), 0);
  EXPECT_LT(at("nacre_db_get_duration_seconds_sum"), 10);
  EXPECT_EQ(at("nacre_db_write_size_bytes_count"), 100);
  EXPECT_EQ(at("nacre_db_level_tables", ",family=\"default\",level=\"0\""),
            static_cast<double>(GetNumber(db.get(), "nacre.num-files-at-level0")));
  EXPECT_GT(at("nacre_db_level_bytes", ",family=\"default\",level=\"0\""), 100'000);
  EXPECT_EQ(at("nacre_db_space_bytes", ",part=\"user\""),
            static_cast<double>(GetNumber(db.get(), "nacre.space.user-bytes")));
  EXPECT_EQ(at("nacre_db_repair_state", ",state=\"idle\""), 1);
  EXPECT_EQ(at("nacre_db_repair_state", ",state=\"waiting\""), 0);
  EXPECT_EQ(at("nacre_db_failing", ",work=\"flush\""), 0);
  EXPECT_EQ(at("nacre_db_writes_stopped"), 0);
  EXPECT_EQ(at("nacre_db_fenced"), 0);
  EXPECT_EQ(at("nacre_db_lease"), 1);
  int nodes = 0;
  for (const auto& [sample, number] : samples) {
    if (!sample.starts_with("nacre_pool_node_up{")) continue;
    EXPECT_EQ(number, 1) << sample;
    ++nodes;
  }
  EXPECT_EQ(nodes, 4);

  ASSERT_TRUE(IsOk(db->Close()));
  EXPECT_FALSE(HasNacre(Samples(), "nacre_db_"));
}

TEST_F(DatabaseMetricsTest, FamiliesHaveSeriesOfTheirOwnWhateverTheirNames) {
  Options options = MakeOptions();
  options.statistics = CreateDBStatistics();
  std::unique_ptr<DB> db;
  ASSERT_TRUE(IsOk(DB::Open(options, "orders", &db)));
  EXPECT_EQ(db->GetDBOptions().statistics, options.statistics);
  ColumnFamilyHandle* family = nullptr;
  ASSERT_TRUE(IsOk(db->CreateColumnFamily({}, "a\xff\"b", &family)));
  ASSERT_TRUE(IsOk(db->Put(NoLog(), family, "key", "value")));
  ASSERT_TRUE(IsOk(db->Flush({}, family)));
  const std::map<std::string, double> samples = Samples();
  const std::string labels = "{database=\"orders\",family=\"a\\\\xff\\\"b\",level=\"0\"}";
  ASSERT_TRUE(samples.contains("nacre_db_level_tables" + labels));
  EXPECT_EQ(samples.at("nacre_db_level_tables" + labels), 1);
  EXPECT_EQ(samples.at("nacre_db_level_tables{database=\"orders\",family=\"default\",level=\"0\"}"),
            0);
  ASSERT_TRUE(IsOk(db->DestroyColumnFamilyHandle(family)));
}

TEST_F(DatabaseMetricsTest, DatabasesOfAProcessShareTheAddress) {
  const Options options = MakeOptions();
  std::unique_ptr<DB> first;
  std::unique_ptr<DB> second;
  ASSERT_TRUE(IsOk(DB::Open(options, "first", &first)));
  ASSERT_TRUE(IsOk(DB::Open(options, "second", &second)));
  ASSERT_TRUE(IsOk(second->Put(NoLog(), "key", "value")));
  std::map<std::string, double> samples = Samples();
  EXPECT_EQ(samples.at("nacre_db_sequence{database=\"first\"}"), 0);
  EXPECT_EQ(samples.at("nacre_db_sequence{database=\"second\"}"), 1);
  first.reset();
  samples = Samples();
  EXPECT_FALSE(samples.contains("nacre_db_sequence{database=\"first\"}"));
  EXPECT_EQ(samples.at("nacre_db_sequence{database=\"second\"}"), 1);
}

TEST_F(DatabaseMetricsTest, AnAddressThatIsNamedHasToBeFree) {
  Options options = MakeOptions();
  std::unique_ptr<DB> db;
  for (const char* address : {"nowhere", "192.0.2.1:9100"}) {
    options.metrics_address = address;
    const Status status = DB::Open(options, "orders", &db);
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.ToString().find(address), std::string::npos) << status.ToString();
  }
  // Nothing was claimed.
  options.metrics_address = kAddress;
  EXPECT_TRUE(IsOk(DB::Open(options, "orders", &db)));
}

TEST_F(DatabaseMetricsTest, WhatTheEnvironmentNamesNeedNotBe) {
  const auto log = std::make_shared<Lines>();
  Options options = MakeOptions();
  options.info_log = log;
  options.metrics_address.clear();
  std::unique_ptr<DB> db;
  for (const char* address : {"nowhere", "192.0.2.1:9100"}) {
    ::setenv("NACRE_METRICS", address, /*overwrite=*/1);
    ASSERT_TRUE(IsOk(DB::Open(options, "orders", &db)));
    EXPECT_NE(log->warnings().find(address), std::string::npos) << log->warnings();
    EXPECT_EQ(db->GetDBOptions().statistics, nullptr);
    db.reset();
  }
  ::setenv("NACRE_METRICS", kAddress, /*overwrite=*/1);
  ASSERT_TRUE(IsOk(DB::Open(options, "orders", &db)));
  EXPECT_TRUE(HasNacre(Samples(), "nacre_db_sequence{database=\"orders\"}"));
  // Which comes second.
  db.reset();
  ::setenv("NACRE_METRICS", "nowhere", /*overwrite=*/1);
  options.metrics_address = kAddress;
  ASSERT_TRUE(IsOk(DB::Open(options, "orders", &db)));
  EXPECT_TRUE(HasNacre(Samples(), "nacre_db_sequence{database=\"orders\"}"));
}

TEST_F(DatabaseMetricsTest, AFollowerShowsHowItKeepsUpAndANodeThatDies) {
  MemnodeProcesses nodes(3);
  Options options = SmallTableOptions(ConnectTestPool(nodes.pool_uri()));
  options.redundancy = "rep(2)";
  std::unique_ptr<DB> owner;
  ASSERT_TRUE(IsOk(DB::Open(options, "orders", &owner)));
  Options following = SmallTableOptions(ConnectTestPool(nodes.pool_uri()));
  following.metrics_address = kAddress;
  following.follow_interval = std::chrono::milliseconds(10);
  std::unique_ptr<DB> follower;
  ASSERT_TRUE(IsOk(DB::OpenAsSecondary(following, "orders", &follower)));
  ASSERT_TRUE(IsOk(owner->Put({}, "key", "value")));
  EXPECT_TRUE(Eventually(
      [&] { return Samples().at("nacre_follower_sequence{database=\"orders\"}") == 1; }));
  const std::map<std::string, double> samples = Samples();
  EXPECT_EQ(samples.at("nacre_follower_healthy{database=\"orders\"}"), 1);
  EXPECT_EQ(samples.at("nacre_follower_interval_seconds{database=\"orders\"}"), 0.01);
  EXPECT_GT(samples.at("nacre_follower_catch_ups_total{database=\"orders\"}"), 0);
  EXPECT_GE(samples.at("nacre_follower_lag_seconds{database=\"orders\"}"), 0);
  EXPECT_FALSE(HasNacre(samples, "nacre_db_"));

  const std::string up = "nacre_pool_node_up{database=\"orders\",role=\"follower\",node=\"" +
                         nodes[1].address() + "\"}";
  ASSERT_TRUE(samples.contains(up)) << GetMetrics(share_->address());
  EXPECT_EQ(samples.at(up), 1);
  nodes[1].Kill();
  EXPECT_TRUE(Eventually([&] { return Samples().at(up) == 0; }));

  ASSERT_TRUE(IsOk(follower->Close()));
  EXPECT_FALSE(HasNacre(Samples(), "nacre_follower_"));
}

}  // namespace
}  // namespace nacre
