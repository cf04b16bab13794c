// Goal: a client outlives any number of restarts of its nodes, each of which takes a NodeId of its
// own. Method: nodes end and come back empty, until there have been more than can be connected at a
// time; what is written on the latest is read, by readers that were there from the beginning.

#include <gtest/gtest.h>

#include <cstring>

#include "jobs/job_client.h"
#include "pool/read/point_reader.h"
#include "pool/space/pending_writes.h"
#include "tests/support/pool_fixture.h"
#include "tests/support/process/served_nodes.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre::pool {
namespace {

constexpr size_t kNodes = 8;
constexpr int kMoreThanAtATime = 300;

class ReturningNodesTest : public PoolFixture {
 protected:
  void SetUp() override {
    OpenPoolAt(PoolUri());
    CreateDatabase();
  }
  std::string PoolUri() const {
    std::vector<std::string> addresses;
    for (size_t i = 0; i < kNodes; ++i) addresses.push_back(nodes_.address(i));
    return PoolUriOf(addresses);
  }
  void TearDown() override { ClosePool(); }

  /// All but the first, which keeps the database.
  void RestartNodes() {
    const int before = client_->node_count();
    for (size_t i = 1; i < kNodes; ++i) nodes_.Kill(i);
    for (int i = 1; i < before; ++i) {
      ASSERT_TRUE(Eventually([&] { return !client_->alive(static_cast<NodeId>(i)); })) << i;
    }
    for (size_t i = 1; i < kNodes; ++i) nodes_.StartAnew(i);
    const int after = before + static_cast<int>(kNodes) - 1;
    ASSERT_TRUE(Eventually([&] { return client_->node_count() == after; })) << before;
  }

  /// One of each kind, with input and output on `executor` and others.
  void RunJobs(NodeId executor) {
    std::shared_ptr<const TableMeta> table;
    ASSERT_TRUE(IsOk(
        WriteTable({{.user_key = "key", .tag = PackTag(1, ValueType::kValue), .value = "value"}}, 2,
                   executor, &table)));
    const CompactionJob compaction = MakeJob({{table}}, 2, 1, 400'000);
    CompactionResult compacted;
    JobEnd end;
    ASSERT_TRUE(IsOk(pool::RunOnNode(client_, executor, compaction, nullptr, &compacted, &end)));
    EXPECT_TRUE(end.ended());
    EXPECT_EQ(compacted.tables.size(), 1u);

    RebuildJob rebuild;
    rebuild.database_id = database_id_;
    TableRebuild& one = rebuild.tables.emplace_back();
    one.table_id = table->id;
    one.table_bytes = table->size;
    one.placement = table->placement;
    std::vector<ExtentAddr> extents;
    ASSERT_TRUE(IsOk(space_->ReserveFragments(table->placement, table->size, 1, &extents)));
    one.fragments.push_back({.fragment = 0, .to = extents[0]});
    RebuildResult rebuilt;
    ASSERT_TRUE(IsOk(pool::RunOnNode(client_, executor, rebuild, nullptr, &rebuilt, &end)));
    EXPECT_TRUE(end.ended());
    EXPECT_TRUE(IsOk(rebuilt.tables[0]));

    ScrubJob scrub;
    scrub.database_id = database_id_;
    for (uint32_t i = 0; i < 2; ++i) {
      const ExtentAddr& extent = table->placement.fragments[i];
      if (extent.start.node != executor) continue;
      scrub.fragments.push_back(
          {.table_id = table->id, .fragment = i, .extent = extent, .bytes = table->size});
    }
    ASSERT_EQ(scrub.fragments.size(), 1u);
    ScrubResult scrubbed;
    ASSERT_TRUE(IsOk(pool::RunOnNode(client_, executor, scrub, nullptr, &scrubbed)));
    EXPECT_TRUE(scrubbed.damaged.empty());
  }

  ServedNodes nodes_{kNodes, 8 << 20, 1 << 20};
};

TEST_F(ReturningNodesTest, AnyNumberOfThem) {
  const uint64_t seed = TestSeed(4242);
  PointReader reader(client_->point_sessions());
  while (client_->node_count() < kMoreThanAtATime) {
    ASSERT_NO_FATAL_FAILURE(RestartNodes());
    const auto latest = static_cast<NodeId>(client_->node_count() - 1);
    const std::string bytes = RandomBytes(seed + latest, 100'000);
    Placement placement;
    ASSERT_TRUE(IsOk(space_->Reserve(Copies(2), bytes.size(), latest, &placement)));
    ASSERT_TRUE(IsOk(WriteBytes(placement, bytes)));
    PointRead reads[4];
    for (int i = 0; i < 4; ++i) {
      reads[i].from = store_->Resolve(placement, 1000 * static_cast<uint64_t>(i), i % 2);
      reads[i].length = 777;
    }
    reader.ReadAll(reads);
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(IsOk(reads[i].status)) << latest;
      ASSERT_EQ(std::memcmp(reads[i].data, bytes.data() + 1000 * i, 777), 0) << latest;
    }
    // One alone takes another way.
    reader.ReadAll(std::span<PointRead>(reads, 1));
    ASSERT_TRUE(IsOk(reads[0].status)) << latest;
    ASSERT_EQ(std::memcmp(reads[0].data, bytes.data(), 777), 0) << latest;
    for (const ExtentAddr& extent : placement.fragments) space_->Free(extent);
  }
  ASSERT_NO_FATAL_FAILURE(RunJobs(static_cast<NodeId>(client_->node_count() - 1)));
  EXPECT_TRUE(IsOk(client_->JoinRefusal()));
}

TEST_F(ReturningNodesTest, OneThatCannotJoinIsToldOf) {
  PoolClientOptions options;
  options.slab_bytes = 1 << 20;
  options.slots = kNodes;
  Uri uri;
  ASSERT_TRUE(IsOk(ParseUri(PoolUri(), &uri)));
  std::unique_ptr<PoolClient> client;
  ASSERT_TRUE(IsOk(PoolClient::Connect(uri, options, client_->device(), Clock::System(), &client)));
  nodes_.Kill(3);
  ASSERT_TRUE(Eventually([&] { return !client->alive(3); }));
  nodes_.StartAnew(3);
  ASSERT_TRUE(Eventually([&] { return client->JoinRefusal().IsNoSpace(); }));
  EXPECT_NE(client->JoinRefusal().ToString().find(nodes_.address(3)), std::string::npos);
}

}  // namespace
}  // namespace nacre::pool
