// Goal: what is lost with a node, or is to leave one, is made anew on others, so that nodes may go
// one after the other without end; and nothing is freed that is in use, or kept that is not.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "pool/reports.h"
#include "pool/wire/database_report.h"
#include "pool/wire/node_stats.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/redundant_db.h"
#include "tests/support/status_assert.h"
#include "util/memory/loadable_memory.h"
#include "util/named_point.h"

namespace nacre {
namespace {

class DBRepairTest : public RedundantDBTest {
 protected:
  /// Known to be lost when this returns.
  void Kill(int node) {
    pool_->KillEmbeddedNode(static_cast<NodeId>(node));
    ASSERT_TRUE(Eventually([&] { return !pool_->client()->alive(static_cast<NodeId>(node)); }));
  }

  void AwaitRepair() {
    ASSERT_TRUE(Eventually([&] { return GetNumber(db_.get(), "nacre.repair.tables-left") == 0; }))
        << GetTextProperty(db_.get(), "nacre.sstables");
  }

  /// Whether any table has a fragment on `node`.
  bool Holds(NodeId node) const {
    const std::string tables = GetTextProperty(db_.get(), "nacre.sstables");
    return tables.find("node " + std::to_string(node) + " at") != std::string::npos;
  }

  void AddNode() {
    const int before = pool_->node_count();
    ASSERT_TRUE(IsOk(pool_->AddEmbeddedNode()));
    ASSERT_TRUE(Eventually([&] { return pool_->node_count() > before; }));
  }

  void Drain(std::vector<NodeId> nodes) {
    pool::Directions directions{.version = ++directions_version_};
    for (const NodeId node : nodes) {
      directions.draining.push_back(pool_->client()->instance_id(node));
    }
    pool::Directions now;
    for (int i = 0; i < pool_->node_count(); ++i) {
      const auto node = static_cast<NodeId>(i);
      if (!pool_->client()->alive(node)) continue;
      ASSERT_TRUE(IsOk(pool::SetDirections(pool_->client(), node, directions, &now)));
    }
  }

  uint64_t directions_version_ = 0;
};

// A table that is being made may have lost a fragment that no repair looks for yet.
TEST(DBTablesAtRiskTest, WhatIsBeingMadeIsNotWhole) {
  MemnodeProcesses nodes(6);
  const std::shared_ptr<pool::PoolImpl> pool = ConnectTestPool(nodes.pool_uri());
  ASSERT_NE(pool, nullptr);
  Options options = SmallTableOptions(pool);
  options.redundancy = "rep(2)";
  options.compaction = CompactionSite::kAuto;
  std::unique_ptr<DB> db;
  ASSERT_TRUE(IsOk(DB::Open(options, "risk", &db)));
  for (const char* value : {"old", "new"}) {
    ASSERT_TRUE(IsOk(db->Put({}, "key", value)));
    ASSERT_TRUE(IsOk(db->Flush({})));
  }
  const auto tables_left = [&] { return GetNumber(db.get(), "nacre.repair.tables-left"); };
  EXPECT_EQ(tables_left(), 0);
  const std::string tables = GetTextProperty(db.get(), "nacre.sstables");
  size_t idle = 0;
  while (tables.find("node " + std::to_string(idle) + " at") != std::string::npos) ++idle;
  ASSERT_LT(idle, nodes.size());

  for (size_t i = 0; i < nodes.size(); ++i) {
    if (i != idle) nodes[i].Pause();
  }
  std::thread compaction([&] { EXPECT_TRUE(IsOk(db->CompactRange({}, nullptr, nullptr))); });
  EXPECT_TRUE(Eventually([&] { return GetNumber(db.get(), "nacre.num-running-compactions") > 0; }));
  nodes[idle].Kill();
  EXPECT_TRUE(Eventually([&] { return tables_left() > 0; }));
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (i != idle) nodes[i].Resume();
  }
  compaction.join();
  EXPECT_TRUE(Eventually([&] { return tables_left() == 0; }));
  std::string value;
  ASSERT_TRUE(IsOk(db->Get({}, "key", &value)));
  EXPECT_EQ(value, "new");
}

TEST_F(DBRepairTest, NodesMayGoOneAfterTheOther) {
  for (const char* redundancy : {"rs(2,1)", "rep(2)", "rs(4,2)"}) {
    SCOPED_TRACE(redundancy);
    ASSERT_NO_FATAL_FAILURE(Open(redundancy, 7));
    ASSERT_NO_FATAL_FAILURE(Fill(10'000));
    ASSERT_TRUE(IsOk(db_->Flush({})));
    for (NodeId victim = 0; victim < 7; ++victim) {
      ASSERT_NO_FATAL_FAILURE(Kill(victim));
      ASSERT_NO_FATAL_FAILURE(AddNode());
      ASSERT_NO_FATAL_FAILURE(AwaitRepair());
      EXPECT_FALSE(Holds(victim));
      ASSERT_NO_FATAL_FAILURE(Check());
      ASSERT_NO_FATAL_FAILURE(Fill(500));
    }
    // None of the nodes that it was written to are there any more.
    EXPECT_EQ(pool_->client()->alive_count(), 7);
    ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
    ASSERT_NO_FATAL_FAILURE(Check());
    for (const auto& [key, value] : model_) ASSERT_TRUE(IsOk(db_->Delete(NoLog(), key)));
    model_.clear();
    ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
    // What was written to a node that went may be in quarantine for a while.
    EXPECT_TRUE(Eventually([&] { return GetNumber(db_.get(), "nacre.space.used-bytes") == 0; }));
  }
}

/// Holds up jobs that have made a piece of a fragment, until a node has died.
struct HeldRebuild {
  static void Reach(const NamedPoint& point) {
    const std::string name = point.name;
    if (name == "rebuild.memory-gone") ++memory_gone;
    if (name != "rebuild.piece-made") return;
    held = true;
    // Not for good: it may be a job of the node that is to die.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (!released && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  }

  static inline std::atomic<bool> held{false};
  static inline std::atomic<bool> released{false};
  static inline std::atomic<int> memory_gone{0};
};

// Rebuilds decode what they have mapped where it lies.
TEST_F(DBRepairTest, SourcesMayGoWhileTheyAreDecodedInPlace) {
  if (!LoadableMemory::kInPlace) GTEST_SKIP() << "they are copied";
  HeldRebuild::memory_gone = 0;
  // Which nodes a piece is made of, and whether in time, is chance.
  for (int round = 0; round < 60 && HeldRebuild::memory_gone == 0; ++round) {
    const auto second = static_cast<NodeId>(round % 5);
    ASSERT_NO_FATAL_FAILURE(Open("rs(2,2)", 5));
    ASSERT_NO_FATAL_FAILURE(Fill(5000));
    ASSERT_TRUE(IsOk(db_->Flush({})));
    HeldRebuild::held = HeldRebuild::released = false;
    SetPointHandler(HeldRebuild::Reach);
    NodeId first = 0;
    while (first == second || !Holds(first)) ++first;
    ASSERT_NO_FATAL_FAILURE(Kill(first));
    // A compaction may have made the table superfluous.
    ASSERT_TRUE(Eventually([&] {
      return HeldRebuild::held || GetNumber(db_.get(), "nacre.repair.tables-left") == 0;
    }));
    ASSERT_NO_FATAL_FAILURE(Kill(second));
    HeldRebuild::released = true;
    ASSERT_NO_FATAL_FAILURE(AddNode());
    ASSERT_NO_FATAL_FAILURE(AwaitRepair());
    SetPointHandler(nullptr);
    ASSERT_NO_FATAL_FAILURE(Check());
    // What was made anew has to be right: some of it is needed now.
    NodeId third = 0;
    while (third == first || third == second) ++third;
    ASSERT_NO_FATAL_FAILURE(Kill(third));
    ASSERT_NO_FATAL_FAILURE(Check());
  }
  EXPECT_GT(HeldRebuild::memory_gone, 0);
}

TEST_F(DBRepairTest, AsManyMayGoAtOnceAsTheCodeAllows) {
  ASSERT_NO_FATAL_FAILURE(Open("rs(4,2)", 6));
  ASSERT_NO_FATAL_FAILURE(Fill(10'000));
  for (const NodeId first : {0, 2, 4}) {
    ASSERT_NO_FATAL_FAILURE(Kill(first));
    ASSERT_NO_FATAL_FAILURE(Kill(first + 1));
    ASSERT_NO_FATAL_FAILURE(Check());
    ASSERT_NO_FATAL_FAILURE(AddNode());
    ASSERT_NO_FATAL_FAILURE(AddNode());
    ASSERT_NO_FATAL_FAILURE(AwaitRepair());
    ASSERT_NO_FATAL_FAILURE(Check());
  }
}

TEST_F(DBRepairTest, SpareNodesTakeWhatIsLost) {
  ASSERT_NO_FATAL_FAILURE(Open("rs(2,1)", 5));
  ASSERT_NO_FATAL_FAILURE(Fill(10'000));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  for (const NodeId victim : {3, 0}) {
    ASSERT_NO_FATAL_FAILURE(Kill(victim));
    ASSERT_NO_FATAL_FAILURE(AwaitRepair());
    ASSERT_NO_FATAL_FAILURE(Check());
  }
}

TEST_F(DBRepairTest, AReaderMayHoldWhatWasRepaired) {
  ASSERT_NO_FATAL_FAILURE(Open("rs(2,1)", 4));
  ASSERT_NO_FATAL_FAILURE(Fill(5000));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  const Snapshot* snapshot = db_->GetSnapshot();
  ReadOptions at_snapshot;
  at_snapshot.snapshot = snapshot;
  const std::unique_ptr<Iterator> iterator(db_->NewIterator(at_snapshot));
  const auto old_model = model_;
  ASSERT_NO_FATAL_FAILURE(Kill(2));
  ASSERT_NO_FATAL_FAILURE(AddNode());
  ASSERT_NO_FATAL_FAILURE(AwaitRepair());
  ASSERT_NO_FATAL_FAILURE(Fill(5000));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  auto expected = old_model.begin();
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++expected) {
    ASSERT_NE(expected, old_model.end());
    ASSERT_EQ(iterator->key().ToString(), expected->first);
    ASSERT_TRUE(iterator->value() == Slice(expected->second)) << expected->first;
  }
  ASSERT_TRUE(IsOk(iterator->status()));
  EXPECT_EQ(expected, old_model.end());
  db_->ReleaseSnapshot(snapshot);
}

TEST_F(DBRepairTest, UnderWritesAndCompactions) {
  ASSERT_NO_FATAL_FAILURE(Open("rs(4,2)", 6, /*degraded_writes=*/true));
  for (NodeId victim = 0; victim < 6; ++victim) {
    ASSERT_NO_FATAL_FAILURE(Fill(3000));
    ASSERT_NO_FATAL_FAILURE(Kill(victim));
    ASSERT_NO_FATAL_FAILURE(Fill(3000));
    ASSERT_NO_FATAL_FAILURE(AddNode());
    ASSERT_NO_FATAL_FAILURE(Fill(3000));
    ASSERT_NO_FATAL_FAILURE(AwaitRepair());
  }
  ASSERT_NO_FATAL_FAILURE(Check());
}

TEST_F(DBRepairTest, ADrainedNodeIsLeft) {
  ASSERT_NO_FATAL_FAILURE(Open("rs(2,1)", 5));
  ASSERT_NO_FATAL_FAILURE(Fill(10'000));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  ASSERT_TRUE(Holds(1));
  ASSERT_NO_FATAL_FAILURE(Drain({1, 4}));
  ASSERT_TRUE(Eventually([&] { return !Holds(1) && !Holds(4); }));
  ASSERT_NO_FATAL_FAILURE(Check());
  // Its slabs go back, and nothing new comes.
  ASSERT_NO_FATAL_FAILURE(Fill(10'000));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  EXPECT_FALSE(Holds(1) || Holds(4));
  ASSERT_TRUE(Eventually([&] {
    pool::NodeStats stats;
    return pool::GetStats(pool_->client(), 1, &stats).ok() && stats.slabs_leased == 0;
  }));
  ASSERT_NO_FATAL_FAILURE(Check());
}

TEST_F(DBRepairTest, ANewNodeGetsItsShare) {
  ASSERT_NO_FATAL_FAILURE(Open("rep(2)", 3));
  // Enough for a share to be moved.
  for (uint64_t i = 0; i < 350; ++i) {
    const std::string key = "key" + std::to_string(i);
    model_[key] = TestValue(i, 100'000);
    ASSERT_TRUE(IsOk(db_->Put(NoLog(), key, model_[key])));
  }
  ASSERT_TRUE(IsOk(db_->WaitForCompact()));
  ASSERT_NO_FATAL_FAILURE(AddNode());
  const auto leased = [&](NodeId node) {
    pool::NodeStats stats;
    return pool::GetStats(pool_->client(), node, &stats).ok() ? stats.slabs_leased : 0;
  };
  // The tables have 70 MB.
  EXPECT_TRUE(Eventually([&] { return leased(3) >= 10; })) << leased(3);
  ASSERT_NO_FATAL_FAILURE(Check());
  ASSERT_NO_FATAL_FAILURE(Kill(0));
  ASSERT_NO_FATAL_FAILURE(Check());
}

TEST_F(DBRepairTest, OpenedAgainWithoutANodeItIsRepaired) {
  ASSERT_NO_FATAL_FAILURE(Open("rs(4,2)", 7));
  ASSERT_NO_FATAL_FAILURE(Fill(10'000));
  ASSERT_TRUE(IsOk(db_->Close()));
  db_.reset();
  ASSERT_NO_FATAL_FAILURE(Kill(3));
  ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_)));
  ASSERT_NO_FATAL_FAILURE(Check());
  ASSERT_NO_FATAL_FAILURE(AwaitRepair());
  ASSERT_NO_FATAL_FAILURE(Check());
  ASSERT_NO_FATAL_FAILURE(Fill(5000));
  ASSERT_TRUE(IsOk(db_->Close()));
  db_.reset();
  ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_)));
  ASSERT_NO_FATAL_FAILURE(Kill(0));
  ASSERT_NO_FATAL_FAILURE(Kill(6));
  ASSERT_NO_FATAL_FAILURE(Check());
}

}  // namespace
}  // namespace nacre
