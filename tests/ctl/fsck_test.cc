// Goal: fsck finds nothing in databases that are well, open or closed, and names what is wrong with
// one that is not: the node, the table, and how many more nodes may be lost.
// Method: databases on an embedded pool, whose memory and nodes the test damages; nacre-ctl as a
// process over nacre-memnode processes, with an owner that is killed.

#include "ctl/fsck.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ctl/database_view.h"
#include "pool/read/pool_reader.h"
#include "pool/read/slab_map.h"
#include "pool/space/slab_leases.h"
#include "pool/wire/region_layout.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/process/owner_process.h"
#include "tests/support/process/served_nodes.h"
#include "tests/support/redundant_db.h"
#include "tests/support/status_assert.h"
#include "tests/support/table/stored_tables.h"
#include "tests/support/test_db.h"

OWNER_PROCESS_CHILD()

namespace nacre::ctl {
namespace {

using pool::PoolReader;
using pool::ReadSlabMap;
using pool::SlabMap;

class FsckTest : public RedundantDBTest {
 protected:
  void SetUp() override {
    pause_repair_ = true;
    Open("rs(2,1)", 5);
    Fill(8000);
    ASSERT_TRUE(IsOk(db_->Flush({})));
  }
  void Close() { ASSERT_TRUE(IsOk(db_->Close())); }

  FsckReport Look(bool full = false) { return Fsck(pool_->client(), {.full = full}); }
  static std::string Text(const FsckReport& report) {
    std::string text;
    for (const Finding& finding : report.findings) text += ToString(finding) + "\n";
    for (const Status& failure : report.failures) text += failure.ToString() + "\n";
    return text;
  }
  static size_t Count(const FsckReport& report, Problem problem) {
    return static_cast<size_t>(
        std::count_if(report.findings.begin(), report.findings.end(),
                      [&](const Finding& finding) { return finding.problem == problem; }));
  }
  void ExpectClean(const FsckReport& report) {
    EXPECT_EQ(report.exit_status(), 0) << Text(report);
    ASSERT_EQ(report.databases.size(), 1u);
    EXPECT_EQ(report.databases[0].spare_nodes, 1);
    EXPECT_GT(report.databases[0].tables, 1u);
  }

  DatabaseView View() {
    DatabaseView view;
    EXPECT_TRUE(IsOk(ViewDatabase(pool_->client(), "db", &view)));
    return view;
  }
  /// A table with bytes in each of three fragments.
  static const TableMeta& Striped(const DatabaseView& view) {
    for (const auto& [id, table] : view.state.tables) {
      const TableMeta& meta = table.second;
      if (meta.placement.redundancy.striped() && meta.size > 4 * meta.chunk_size) return meta;
    }
    ADD_FAILURE() << "no table is striped";
    return view.state.tables.begin()->second.second;
  }
  /// A byte of an extent, in the node's memory.
  char* ByteOf(const ExtentAddr& extent, uint64_t offset) {
    TableMeta fake;
    fake.placement.fragments = {extent};
    return StoredByte(pool_.get(), fake, 0,
                      static_cast<int64_t>(offset) - static_cast<int64_t>(kFragmentHeadBytes));
  }
  /// The database that the slab is leased to, according to the slab table of `node`.
  char* SlabOwner(NodeId node, uint64_t slab) {
    ExtentAddr table;
    table.start.node = node;
    table.start.offset = pool::kSlabTableOffset;
    return ByteOf(table, slab * sizeof(pool::SlabEntry));
  }
  SlabMap Slabs(NodeId node) {
    std::unique_ptr<PoolReader> reader;
    SlabMap map;
    EXPECT_TRUE(IsOk(PoolReader::Open(pool_->client()->fabric(), &reader)));
    EXPECT_TRUE(IsOk(ReadSlabMap(reader.get(), node, &map)));
    return map;
  }
};

TEST_F(FsckTest, NothingIsFoundInADatabaseThatIsWell) {
  const FsckReport open = Look(/*full=*/true);
  ExpectClean(open);
  EXPECT_TRUE(open.databases[0].open);
  Close();
  const FsckReport closed = Look(/*full=*/true);
  ExpectClean(closed);
  EXPECT_FALSE(closed.databases[0].open);
  EXPECT_GT(closed.databases[0].bytes_checked, closed.databases[0].table_bytes / 2);
}

TEST_F(FsckTest, WhatAnOwnerDoesMeanwhileIsNoFinding) {
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) {
      const std::string key = "key" + std::to_string(i % 5000);
      EXPECT_TRUE(IsOk(db_->Put({}, key, TestValue(static_cast<uint64_t>(i), 300))));
    }
  });
  for (int i = 0; i < 8; ++i) {
    const FsckReport report = Look(/*full=*/i % 2 == 0);
    EXPECT_EQ(report.exit_status(), 0) << Text(report);
    ASSERT_EQ(report.databases.size(), 1u);
  }
  stop = true;
  writer.join();
}

TEST_F(FsckTest, DamagedBytesAreNamed) {
  Close();
  const DatabaseView view = View();
  const TableMeta& meta = Striped(view);
  *StoredByte(pool_.get(), meta, 1, 5) ^= 4;
  EXPECT_EQ(Look().exit_status(), 0) << "bytes of chunks are only compared if that is asked for";
  FsckReport report = Look(/*full=*/true);
  EXPECT_EQ(report.exit_status(), 1);
  ASSERT_EQ(report.findings.size(), 2u) << Text(report);
  EXPECT_EQ(report.findings[0].problem, Problem::kDamage);
  EXPECT_EQ(report.findings[0].database, "db");
  EXPECT_EQ(report.findings[0].table, meta.id);
  EXPECT_EQ(report.findings[0].node,
            pool_->client()->node_address(meta.placement.fragments[1].start.node));
  EXPECT_NE(report.findings[0].text.find("chunk 0 of fragment 1"), std::string::npos);
  EXPECT_EQ(report.findings[1].problem, Problem::kDegraded);
  EXPECT_EQ(report.databases[0].spare_nodes, 0);

  *StoredByte(pool_.get(), meta, 2, 7) ^= 4;  // This is in the same row.
  report = Look(/*full=*/true);
  EXPECT_EQ(Count(report, Problem::kLost), 1u) << Text(report);
  EXPECT_EQ(report.databases[0].spare_nodes, -1);
  *StoredByte(pool_.get(), meta, 1, 5) ^= 4;
  *StoredByte(pool_.get(), meta, 2, 7) ^= 4;

  *StoredByte(pool_.get(), meta, 0, 20 - static_cast<int64_t>(kFragmentHeadBytes)) ^= 4;
  report = Look();
  ASSERT_EQ(report.findings.size(), 1u) << Text(report);
  EXPECT_NE(report.findings[0].text.find("head of fragment 0"), std::string::npos);
}

TEST_F(FsckTest, ALostNodeCostsRedundancy) {
  Close();
  const DatabaseView view = View();
  // Two nodes that have fragments of one table, but not both copies of the manifest.
  std::vector<NodeId> nodes;
  for (const ExtentAddr& fragment : Striped(view).placement.fragments) {
    nodes.push_back(static_cast<NodeId>(fragment.start.node));
  }
  const auto& copies = view.manifest.copies;
  ASSERT_EQ(copies.size(), 2u);
  std::stable_partition(nodes.begin(), nodes.end(), [&](NodeId node) {
    return node != copies[0].start.node && node != copies[1].start.node;
  });
  pool_->KillEmbeddedNode(nodes[0]);
  FsckReport report = Look();
  EXPECT_EQ(report.exit_status(), 1);
  EXPECT_EQ(Count(report, Problem::kNode), 1u) << Text(report);
  EXPECT_GT(Count(report, Problem::kDegraded), 0u);
  EXPECT_EQ(Count(report, Problem::kLost), 0u) << Text(report);
  EXPECT_EQ(report.databases[0].spare_nodes, 0);
  EXPECT_NE(Text(report).find(pool_->client()->node_address(nodes[0])), std::string::npos);
  pool_->KillEmbeddedNode(nodes[1]);
  report = Look();
  EXPECT_GT(Count(report, Problem::kLost), 0u) << Text(report);
  EXPECT_EQ(report.databases[0].spare_nodes, -1);
  pool_->KillEmbeddedNode(nodes[2]);
  EXPECT_EQ(Look().exit_status(), 2) << "the root cannot be read any more";
}

TEST_F(FsckTest, LeakedSlabsAreCountedOfClosedDatabases) {
  const uint64_t id = View().root.database_id;
  std::vector<uint64_t> slabs;
  ASSERT_TRUE(IsOk(pool::LeaseSlabs(pool_->client(), 2, id, {.count = 3}, &slabs)));
  ExpectClean(Look());
  Close();
  FsckReport report = Look();
  ASSERT_EQ(report.findings.size(), 1u) << Text(report);
  EXPECT_EQ(report.findings[0].problem, Problem::kLeak);
  EXPECT_EQ(report.findings[0].node, pool_->client()->node_address(2));
  EXPECT_NE(report.findings[0].text.find("3 slabs"), std::string::npos);
  ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_)));
  Close();
  ExpectClean(Look());

  const SlabMap map = Slabs(0);
  const auto free = std::find(map.owners.rbegin(), map.owners.rend(), 0u);
  ASSERT_NE(free, map.owners.rend());
  const auto slab = static_cast<uint64_t>(map.owners.rend() - free - 1);
  const uint64_t stranger = 0xabc;
  std::memcpy(SlabOwner(0, slab), &stranger, sizeof(stranger));
  report = Look();
  ASSERT_EQ(report.findings.size(), 1u) << Text(report);
  EXPECT_EQ(report.findings[0].problem, Problem::kLeak);
  EXPECT_NE(report.findings[0].text.find("0000000000000abc"), std::string::npos);
}

TEST_F(FsckTest, WhatLiesElsewhereIsDangling) {
  Close();
  const DatabaseView view = View();
  const ExtentAddr extent = view.state.tables.begin()->second.second.placement.fragments[0];
  const auto node = static_cast<NodeId>(extent.start.node);
  const SlabMap map = Slabs(node);
  const uint64_t stranger = 0xabc;
  std::memcpy(SlabOwner(node, (extent.start.offset - map.slab_area) / map.slab_bytes), &stranger,
              sizeof(stranger));
  const FsckReport report = Look();
  EXPECT_GT(Count(report, Problem::kDangling), 0u) << Text(report);
  EXPECT_EQ(Count(report, Problem::kLeak), 1u) << Text(report);
}

TEST_F(FsckTest, CopiesOfTheManifestAreCompared) {
  Close();
  const DatabaseView view = View();
  const std::vector<ExtentAddr>& copies = view.manifest.copies;
  ASSERT_EQ(copies.size(), 2u);
  const auto ruin = [&](const ExtentAddr& copy) {
    for (uint64_t at = 0; at < view.manifest.root.ring_offset(); at += 16) *ByteOf(copy, at) ^= 1;
  };
  ruin(copies[0]);
  FsckReport report = Look();
  ASSERT_EQ(report.findings.size(), 1u) << Text(report);
  EXPECT_EQ(report.findings[0].problem, Problem::kManifest);
  EXPECT_EQ(report.findings[0].node, pool_->client()->node_address(copies[0].start.node));
  EXPECT_EQ(report.databases[0].spare_nodes, 0);
  ruin(copies[1]);
  report = Look();
  EXPECT_EQ(report.exit_status(), 1);
  EXPECT_EQ(Count(report, Problem::kManifest), 1u) << Text(report);
  EXPECT_TRUE(report.databases.empty());
}

// An embedded pool has no log.
TEST(FsckLogTest, ASegmentThatIsLeftUnusedIsNotMissed) {
  ServedNodes nodes(3, 64 << 20, 1 << 20);
  const auto pool =
      ConnectTestPool(PoolUriOf({nodes.address(0), nodes.address(1), nodes.address(2)}));
  Options options = SmallTableOptions(pool);
  options.redundancy = "rep(2)";
  options.write_buffer_size = 4 << 20;
  std::unique_ptr<DB> db;
  ASSERT_TRUE(IsOk(DB::Open(options, "db", &db)));
  // The next segment of the log is too short for each, so that a longer one is used instead.
  for (const size_t kib : {1, 100, 400, 900}) {
    ASSERT_TRUE(IsOk(db->Put({}, "long", std::string(kib << 10, 'v'))));
  }
  DatabaseView view;
  ASSERT_TRUE(IsOk(ViewDatabase(pool->client(), "db", &view)));
  EXPECT_GT(view.state.segments.size(), 4u);
  const FsckReport report = Fsck(pool->client(), {.full = true});
  for (const Finding& finding : report.findings) ADD_FAILURE() << ToString(finding);
  EXPECT_EQ(report.exit_status(), 0);
  ASSERT_EQ(report.databases.size(), 1u);
  EXPECT_EQ(report.databases[0].spare_nodes, 1);
  ASSERT_TRUE(IsOk(db->Close()));
}

TEST(FsckToolTest, AfterACrashNothingIsDamagedAndTheNextOwnerLeavesNoLeaks) {
  MemnodeProcesses nodes(4, {.size = "128MiB", .slab_size = "1MiB"});
  const auto ctl = [&](std::vector<std::string> arguments) {
    arguments.push_back("--pool=" + nodes.pool_uri());
    return RunBinary("nacre-ctl", arguments);
  };
  EXPECT_EQ(ctl({"fsck", "db"}).exit_code, 2) << "there is none";
  EXPECT_EQ(ctl({"fsck"}).exit_code, 0);
  {
    OwnerProcess owner(NACRE_TEST_BIN_DIR "/ctl_tests",
                       {.pool_uri = nodes.pool_uri(), .redundancy = "rep(2)"});
    ASSERT_TRUE(owner.AwaitProgress(2000));
    const ProcessResult open = ctl({"fsck", "--full"});
    EXPECT_EQ(open.exit_code, 0) << open.output;
    EXPECT_NE(open.output.find("database db: open"), std::string::npos) << open.output;
    const ProcessResult manifest = ctl({"manifest", "db"});
    EXPECT_EQ(manifest.exit_code, 0) << manifest.output;
    EXPECT_NE(manifest.output.find("root of db: open"), std::string::npos) << manifest.output;
    EXPECT_NE(manifest.output.find("segment "), std::string::npos) << manifest.output;
    owner.Kill();
  }
  std::string after;
  ASSERT_TRUE(Eventually([&] {
    after = ctl({"fsck", "--full", "--json"}).output;
    return after.find("\"open\": false") != std::string::npos;
  }));
  for (const char* problem : {"damage", "lost", "dangling", "overlap", "manifest", "root"}) {
    EXPECT_EQ(after.find(std::string("\"problem\": \"") + problem), std::string::npos) << after;
  }
  {
    Options options = SmallTableOptions(nullptr);
    options.pool_uri = nodes.pool_uri();
    options.redundancy = "rep(2)";
    std::unique_ptr<DB> db;
    ASSERT_TRUE(IsOk(DB::Open(options, "db", &db)));
    ASSERT_TRUE(IsOk(db->Close()));
  }
  const ProcessResult closed = ctl({"fsck", "--full"});
  EXPECT_EQ(closed.exit_code, 0) << closed.output;
  EXPECT_NE(closed.output.find("any 1 node may be lost"), std::string::npos) << closed.output;
  const ProcessResult json = ctl({"manifest", "db", "--json"});
  EXPECT_EQ(json.exit_code, 0) << json.output;
  EXPECT_NE(json.output.find("\"members\": ["), std::string::npos) << json.output;
  EXPECT_EQ(ctl({"manifest", "other"}).exit_code, 1);
  nodes[2].Kill();
  const ProcessResult degraded = ctl({"fsck", "db"});
  EXPECT_EQ(degraded.exit_code, 1) << degraded.output;
  EXPECT_NE(degraded.output.find("degraded: database db: "), std::string::npos) << degraded.output;
}

}  // namespace
}  // namespace nacre::ctl
