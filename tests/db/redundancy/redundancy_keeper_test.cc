// Goal: what a database has on a node that is lost or drained comes to lie elsewhere: tables,
// manifest and log; what is damaged is found and named.
// Method: the parts of a database with a log, on embedded nodes that the test kills and damages.

#include "db/redundancy/redundancy_keeper.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <vector>

#include "db/wal/log_reader.h"
#include "pool/reports.h"
#include "pool/wire/database_report.h"
#include "tests/support/parts_fixture.h"
#include "tests/support/status_assert.h"
#include "tests/support/table/stored_tables.h"

namespace nacre {
namespace {

class RedundancyKeeperTest : public PartsFixture {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Open());
    ASSERT_TRUE(IsOk(parts_->writes.OpenLog(/*next_number=*/1, LogReadResult(),
                                            /*space=*/&parts_->committer)));
    ASSERT_TRUE(IsOk(FlushKeys("key", 200)));
    parts_->redundancy_keeper = std::make_unique<RedundancyKeeper>(
        RedundancyKeeper::Database{.context = &parts_->context,
                                   .state = &parts_->state,
                                   .committer = &parts_->committer,
                                   .log = parts_->writes.log(),
                                   .flush_log = [this] { ++log_flushes_; },
                                   .settle_writes = [this] { ++settlings_; }});
  }

  RedundancyKeeper& keeper() { return *parts_->redundancy_keeper; }
  TableMeta table() {
    TableMeta meta;
    ForEachTable({version()}, [&](const auto& table, int /*level*/) { meta = table->meta(); });
    return meta;
  }
  static std::set<NodeId> NodesOf(const std::vector<ExtentAddr>& extents) {
    std::set<NodeId> nodes;
    for (const ExtentAddr& extent : extents) nodes.insert(extent.start.node);
    return nodes;
  }
  std::set<NodeId> ManifestNodes() { return NodesOf(parts_->committer.manifest()->place().copies); }

  /// Writes a record, and answers a node that has it.
  NodeId NodeOfTheLog() {
    EXPECT_TRUE(IsOk(Put("in the log", "1")));
    return parts_->committer.manifest()->segments().front().copies[0].start.node;
  }
  /// Whether neither the manifest nor the table is there.
  bool IsEmpty(NodeId node) {
    return !ManifestNodes().contains(node) && !NodesOf(table().placement.fragments).contains(node);
  }

  std::atomic<int> log_flushes_{0};
  std::atomic<int> settlings_{0};
};

TEST_F(RedundancyKeeperTest, MovesWhatALostNodeHadElsewhere) {
  keeper().Start();
  const NodeId lost = NodeOfTheLog();
  const int settled = settlings_;
  pool_->KillEmbeddedNode(lost);
  ASSERT_TRUE(Eventually([&] { return IsEmpty(lost) && settlings_ > settled; }));
  // Segments with records are not copied: what they have is to be flushed.
  EXPECT_TRUE(Eventually([&] { return log_flushes_ > 0; }));
  EXPECT_EQ(ManifestNodes().size(), 2u);
  EXPECT_EQ(NodesOf(table().placement.fragments).size(), 2u);
  EXPECT_TRUE(IsOk(keeper().VerifyChecksum()));
  EXPECT_EQ(Get("key7"), TestValue(7, 100));
  keeper().Stop();
  keeper().Stop();
}

TEST_F(RedundancyKeeperTest, EmptiesANodeThatIsToBeDrained) {
  keeper().Start();
  const NodeId drained = *ManifestNodes().begin();
  pool::Directions now;
  ASSERT_TRUE(IsOk(pool::SetDirections(
      pool_->client(), drained, {.version = 1, .draining = {pool_->client()->instance_id(drained)}},
      &now)));
  EXPECT_TRUE(Eventually([&] { return IsEmpty(drained); }));
  EXPECT_TRUE(pool_->client()->alive(drained));
}

TEST_F(RedundancyKeeperTest, FindsDamageAndNamesWhatCannotBeRead) {
  const TableMeta meta = table();
  ASSERT_TRUE(IsOk(keeper().VerifyChecksum()));
  EXPECT_EQ(keeper().table_scrub().fragments.load(), 0u);
  EXPECT_GT(keeper().metadata_scrub().bytes.load(), 0u);
  const auto damage = [&](size_t fragment) {
    char* const byte = StoredByte(pool_.get(), meta, fragment, /*offset=*/100);
    *byte = static_cast<char>(*byte ^ 1);
  };
  damage(0);
  EXPECT_TRUE(IsOk(keeper().VerifyChecksum())) << "the other replica has it";
  EXPECT_EQ(keeper().table_scrub().fragments.load(), 1u);
  damage(1);
  EXPECT_TRUE(IsFailure(keeper().VerifyChecksum(), Status::Code::kCorruption,
                        "table " + std::to_string(meta.id)));
}

}  // namespace
}  // namespace nacre
