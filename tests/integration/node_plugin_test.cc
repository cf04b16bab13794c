// Goal: memory nodes that were given a plug-in flush and compact by the application's own order,
// merge operator and compaction filter, as the compute node would; nodes that were not leave it to
// those that were, are not asked twice, and are asked anew when they were started anew; where there
// are no others, the compute node does it; and a file that is no proper plug-in is refused with the
// reason.
// Method: real nacre-memnode processes with the example's plug-in; counters beside a model; a
// filter factory of the same name that counts how often this process asked it, the nodes' own
// counters, and the refusals in the LOG; a node with a region file, killed and started with a
// plug-in; libraries that are no plug-ins, or of another version, on the command line.

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "examples/counters/counters.h"
#include "nacre/db.h"
#include "pool/reports.h"
#include "pool/wire/node_stats.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {
namespace {

const std::string kPlugin = NACRE_TEST_BIN_DIR "/counters_plugin.so";

class CountingFactory final : public counters::ForgetZerosFactory {
 public:
  std::unique_ptr<CompactionFilter> CreateCompactionFilter(
      const CompactionFilter::Context& context) override {
    made.fetch_add(1);
    return ForgetZerosFactory::CreateCompactionFilter(context);
  }
  std::atomic<uint64_t> made{0};
};

/// Counts what nodes say that they do not know.
class RefusalCounter final : public Logger {
 public:
  void Log(LogLevel /*level*/, std::string_view message) override {
    if (message.find("is not known here") != message.npos) refusals.fetch_add(1);
  }
  std::atomic<uint64_t> refusals{0};
};

class NodePluginTest : public testing::Test {
 protected:
  /// Nodes, one with the plug-ins in each of `plugins`.
  void Open(const std::vector<std::string>& plugins, const std::string& redundancy = "none") {
    std::string uri = "shm:";
    for (const std::string& plugin : plugins) {
      nodes_.push_back(std::make_unique<MemnodeProcess>(MemnodeProcessOptions{
          .size = "64MiB", .region_folder = region_folder_, .plugins = plugin}));
      uri += (nodes_.size() == 1 ? "" : ",") + nodes_.back()->socket_path();
    }
    pool_ = ConnectTestPool(uri);
    ASSERT_NE(pool_, nullptr);
    Options options = SmallTableOptions(pool_);
    options.comparator = &order_;
    options.merge_operator = std::make_shared<counters::Add>();
    options.compaction_filter_factory = factory_;
    options.info_log = log_;
    options.redundancy = redundancy;
    options.allow_degraded_writes = true;
    options.max_background_jobs = 1;  // One job after the other.
    options.disable_auto_compactions = true;
    ASSERT_TRUE(IsOk(DB::Open(options, "counters", &db_)));
  }
  void TearDown() override {
    db_.reset();
    pool_.reset();
  }

  /// Counts up and down, flushes now and then, and compacts everything in the end.
  void Count(Random* random) {
    for (int i = 0; i < 6000; ++i) {
      const auto key = static_cast<int64_t>(random->Uniform(3000));
      int64_t& count = model_[key];
      // As often as not a counter goes back to zero.
      const int64_t by =
          random->OneIn(2) ? -count : static_cast<int64_t>(random->Uniform(100)) - 50;
      count += by;
      ASSERT_TRUE(IsOk(db_->Merge({}, std::to_string(key), std::to_string(by))));
      if (i % 1000 == 999) {
        ASSERT_TRUE(IsOk(db_->Flush({})));
      }
    }
    ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
    // What was merged by that compaction is asked about by the next.
    ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  }

  void ExpectCounters() {
    std::erase_if(model_, [](const auto& counter) { return counter.second == 0; });
    const std::unique_ptr<Iterator> iterator(db_->NewIterator({}));
    auto expected = model_.begin();
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++expected) {
      ASSERT_NE(expected, model_.end());
      ASSERT_EQ(std::to_string(expected->first), iterator->key().ToString());
      ASSERT_EQ(std::to_string(expected->second), iterator->value().ToString());
    }
    ASSERT_TRUE(IsOk(iterator->status()));
    EXPECT_EQ(expected, model_.end());
  }

  uint64_t Compactions() { return SumOverNodes(pool_.get(), &pool::NodeStats::compactions); }

  const counters::ByNumber order_;
  const std::shared_ptr<CountingFactory> factory_ = std::make_shared<CountingFactory>();
  const std::shared_ptr<RefusalCounter> log_ = std::make_shared<RefusalCounter>();
  std::string region_folder_;  ///< Empty: the nodes' memory ends with them.
  std::vector<std::unique_ptr<MemnodeProcess>> nodes_;
  std::shared_ptr<pool::PoolImpl> pool_;
  std::unique_ptr<DB> db_;
  std::map<int64_t, int64_t> model_;
};

TEST_F(NodePluginTest, NodesCompactWithWhatThePluginHas) {
  Random random(TestSeed(9310));
  ASSERT_NO_FATAL_FAILURE(Open({kPlugin, kPlugin}));
  ASSERT_NO_FATAL_FAILURE(Count(&random));
  EXPECT_GT(Compactions(), 0U);
  EXPECT_EQ(0U, factory_->made.load()) << "compactions of this process";
  ASSERT_NO_FATAL_FAILURE(ExpectCounters());
}

TEST_F(NodePluginTest, ANodeWithoutItLeavesTheJobsToTheOther) {
  Random random(TestSeed(9311));
  ASSERT_NO_FATAL_FAILURE(Open({"", kPlugin}));
  ASSERT_NO_FATAL_FAILURE(Count(&random));
  EXPECT_GT(Compactions(), 0U);
  EXPECT_EQ(0U, factory_->made.load()) << "compactions of this process";
  EXPECT_GT(log_->refusals.load(), 0U);
  // Flushes and compactions of operands, and compactions of what is merged.
  EXPECT_LE(log_->refusals.load(), 3U);
  ASSERT_NO_FATAL_FAILURE(ExpectCounters());
}

TEST_F(NodePluginTest, NodesThatWereStartedAnewAreAskedAnew) {
  Random random(TestSeed(9313));
  const TempFolder folder(MemoryFolder());
  region_folder_ = folder.path();
  ASSERT_NO_FATAL_FAILURE(Open({"", "", ""}, "rep(2)"));
  ASSERT_NO_FATAL_FAILURE(Count(&random));
  EXPECT_EQ(0U, Compactions());
  EXPECT_LE(log_->refusals.load(), 3U * nodes_.size());

  pool::PoolClient* const client = pool_->client();
  const WriteOptions write;
  for (NodeId node = 0; node < nodes_.size(); ++node) {
    const uint32_t before = client->start_id(node);
    nodes_[node]->set_plugins(kPlugin);
    nodes_[node]->Kill();
    nodes_[node]->Start();
    ASSERT_TRUE(Eventually([&] {
      return client->start_id(node) != before && client->Ping(node).ok() &&
             db_->Put(write, "5000", "7").ok() && db_->Flush({}).ok();
    }));
  }
  model_[5000] = 7;
  ASSERT_EQ(static_cast<int>(nodes_.size()), client->node_count()) << "a node came back empty";
  // What still leads to the processes before is found out by using it, so that a try may fail.
  ASSERT_TRUE(Eventually([&] {
    if (!db_->Put(write, "5000", "7").ok() || !db_->Flush({}).ok() ||
        !db_->CompactRange({}, nullptr, nullptr).ok()) {
      return false;
    }
    uint64_t compactions = 0;
    for (NodeId node = 0; node < nodes_.size(); ++node) {
      pool::NodeStats stats;
      if (pool::GetStats(client, node, &stats).ok()) compactions += stats.compactions;
    }
    return compactions > 0;
  }));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ASSERT_TRUE(Eventually([&] {
    const std::unique_ptr<Iterator> iterator(db_->NewIterator({}));
    for (iterator->SeekToFirst(); iterator->Valid();) iterator->Next();
    return iterator->status().ok();
  }));
  ASSERT_NO_FATAL_FAILURE(ExpectCounters());
}

TEST_F(NodePluginTest, WithoutAnyTheComputeNodeCompacts) {
  Random random(TestSeed(9312));
  ASSERT_NO_FATAL_FAILURE(Open({"", ""}));
  ASSERT_NO_FATAL_FAILURE(Count(&random));
  EXPECT_EQ(0U, Compactions());
  EXPECT_GT(factory_->made.load(), 0U);
  ASSERT_NO_FATAL_FAILURE(ExpectCounters());
}

/// What a node that cannot start with these plug-ins says.
std::string Refusal(const std::string& plugins) {
  const ProcessResult result = RunBinary(
      "nacre-memnode",
      {"--listen=tcp:127.0.0.1:0", "--size=8MiB", "--slab_size=1MiB", "--plugin=" + plugins});
  EXPECT_EQ(1, result.exit_code) << result.output;
  return result.output;
}

void ExpectSays(const std::string& said, const std::string& what) {
  EXPECT_NE(std::string::npos, said.find(what)) << said;
}

TEST(NodePluginErrorTest, AFileThatIsNoProperPluginIsRefused) {
  const std::string folder = NACRE_TEST_BIN_DIR;
  const std::string none = Refusal(folder + "/no_such_file.so");
  ExpectSays(none, "no_such_file.so");
  ExpectSays(none, "No such file");
  ExpectSays(Refusal(folder + "/nacre-memnode"), "nacre-memnode");
  ExpectSays(Refusal(folder + "/no_plugin.so"), "exports no 'nacre_plugin'");
  const std::string later = Refusal(folder + "/later_plugin.so");
  ExpectSays(later, "later_plugin.so");
  ExpectSays(later, "built for version 2 of the interface, and this node has version 1");
}

TEST(NodePluginErrorTest, ANameIsRegisteredOnce) {
  const std::string said = Refusal(kPlugin + "," + kPlugin);
  ExpectSays(said, "counters_plugin.so");
  ExpectSays(said, "there are two merge operators 'counters.Add'");
}

}  // namespace
}  // namespace nacre
