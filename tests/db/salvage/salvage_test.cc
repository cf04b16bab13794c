// Goal: a database whose manifest, or root, is destroyed on all nodes is made anew from its tables
// and its log, with exactly what it held: what was deleted stays deleted, though freed tables are
// still in memory; with as many nodes gone as the redundancy allows; and if the salvage itself
// dies. Method: databases beside a model, on an embedded pool (all in tables) and on processes
// (with a log, and owners that are killed at random moments). The manifest is overwritten as an
// owner that went mad would, by one-sided writes.

#include "db/salvage/salvage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "db/manifest/manifest_recovery.h"
#include "db/manifest/manifest_root.h"
#include "nacre/checkpoint.h"
#include "pool/databases.h"
#include "pool/reports.h"
#include "pool/space/slab_leases.h"
#include "pool/store/mirrored_extent.h"
#include "pool/wire/database_report.h"
#include "pool/wire/node_stats.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/process/owner_process.h"
#include "tests/support/redundant_db.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/table/stored_tables.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_db.h"
#include "util/coding.h"
#include "util/random.h"

namespace nacre {
namespace {

/// What is overwritten.
enum class Harm { kManifest, kRoot };

/// Overwrites all of each copy of the manifest, or sets a root that names none.
void Destroy(pool::PoolClient* client, const std::string& name, Harm harm, Random* random) {
  pool::DatabaseLease lease;
  ASSERT_TRUE(IsOk(client->databases()->Open(name, {.take_over = true}, &lease)));
  if (harm == Harm::kRoot) {
    ASSERT_TRUE(IsOk(client->databases()->PublishRoot(lease.database_id, "no root any more")));
    ASSERT_TRUE(IsOk(client->databases()->Leave(lease.database_id)));
    return;
  }
  ManifestRecovered manifest;
  ASSERT_TRUE(IsOk(RecoverManifest(client, lease.root, lease.database_id, &manifest)));
  const uint64_t bytes = manifest.root.bytes();
  std::unique_ptr<rdma::MemoryRegion> buffer;
  ASSERT_TRUE(IsOk(pool::AllocateBuffer(client->fabric(), bytes, &buffer)));
  for (uint64_t i = 0; i + sizeof(uint64_t) <= bytes; i += sizeof(uint64_t)) {
    const uint64_t garbage = random->Next();
    std::memcpy(buffer->data() + i, &garbage, sizeof(garbage));
  }
  for (ExtentAddr copy : manifest.copies) {
    copy.length = bytes;
    std::unique_ptr<pool::MirroredExtent> extent;
    ASSERT_TRUE(IsOk(pool::MirroredExtent::Open(client->fabric(), {copy}, &extent)));
    uint64_t ticket = 0;
    ASSERT_TRUE(IsOk(extent->Write(
        0, {.data = buffer->data(), .size = static_cast<uint32_t>(bytes), .region = buffer.get()},
        &ticket)));
    ASSERT_TRUE(
        IsOk(extent->Await(ticket, Deadline::After(Clock::System(), std::chrono::seconds(10)))));
  }
  ASSERT_TRUE(IsOk(client->databases()->Leave(lease.database_id)));
}

class SalvageTest : public RedundantDBTest, public testing::WithParamInterface<const char*> {
 protected:
  Status Salvage(const SalvageOptions& options = {}) {
    return SalvageDatabase(pool_->client(), "db", options, &report_);
  }
  void CloseAndDestroy(Harm harm = Harm::kManifest) {
    ASSERT_TRUE(IsOk(db_->Close()));
    db_.reset();
    ASSERT_NO_FATAL_FAILURE(Destroy(pool_->client(), "db", harm, &random_));
  }
  Status Reopen() {
    options_.create_if_missing = false;
    return DB::Open(options_, "db", &db_);
  }

  /// A byte of a node's region.
  char* Memory(NodeId node, uint64_t offset) {
    TableMeta place;
    place.placement.fragments.resize(1);
    place.placement.fragments[0].start.node = node;
    place.placement.fragments[0].start.offset = offset;
    return StoredByte(pool_.get(), place, 0, -static_cast<int64_t>(kFragmentHeadBytes));
  }

  SalvageReport report_;
};

TEST_P(SalvageTest, GivesAllThatWasRestored) {
  ASSERT_NO_FATAL_FAILURE(Open(GetParam(), 4));
  ASSERT_NO_FATAL_FAILURE(Fill(6000));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ASSERT_NO_FATAL_FAILURE(Fill(2000));
  const TempFolder folder;
  std::unique_ptr<Checkpoint> checkpoint;
  ASSERT_TRUE(IsOk(Checkpoint::Create(db_.get(), &checkpoint)));
  ASSERT_TRUE(IsOk(checkpoint->CreateCheckpoint(folder.path(), {}, nullptr)));
  db_.reset();
  ASSERT_TRUE(IsOk(DestroyDB("db", options_)));
  // Ended once, and gone on with.
  RestoreOptions restore;
  restore.progress = [](const CheckpointProgress& progress) { return progress.tables_done < 2; };
  ASSERT_TRUE(IsFailure(RestoreDB(options_, "db", folder.path(), restore), Status::Code::kAborted));
  ASSERT_TRUE(IsOk(RestoreDB(options_, "db", folder.path())));
  ASSERT_NO_FATAL_FAILURE(Destroy(pool_->client(), "db", Harm::kManifest, &random_));
  ASSERT_FALSE(Reopen().ok());
  ASSERT_TRUE(IsOk(Salvage()));
  ASSERT_TRUE(report_.salvaged);
  EXPECT_TRUE(report_.plan.lost.empty());
  ASSERT_TRUE(IsOk(Reopen()));
  ASSERT_NO_FATAL_FAILURE(Check());
  ASSERT_NO_FATAL_FAILURE(Fill(2000));
  ASSERT_NO_FATAL_FAILURE(Check());
}

TEST_P(SalvageTest, GivesAllThatWasInTables) {
  ASSERT_NO_FATAL_FAILURE(Open(GetParam(), 4));
  uint64_t dead = 0;
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    ASSERT_NO_FATAL_FAILURE(Fill(1000 + random_.Uniform(8000)));
    if (random_.OneIn(3)) {
      ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
    }
    ASSERT_NO_FATAL_FAILURE(CloseAndDestroy(random_.OneIn(3) ? Harm::kRoot : Harm::kManifest));
    ASSERT_FALSE(Reopen().ok());
    ASSERT_TRUE(IsOk(Salvage()));
    EXPECT_TRUE(report_.salvaged);
    EXPECT_FALSE(report_.manifest.empty());
    dead += report_.plan.dead_tables;
    ASSERT_TRUE(IsOk(Reopen()));
    ASSERT_NO_FATAL_FAILURE(Check());
  }
  EXPECT_GT(dead, 0u) << "nothing dead was found, so that nothing could come back";
}

TEST_P(SalvageTest, DoesWithoutTheNodesThatMayBeLost) {
  ASSERT_NO_FATAL_FAILURE(Open(GetParam(), 5));
  ASSERT_NO_FATAL_FAILURE(Fill(9000));
  ASSERT_NO_FATAL_FAILURE(CloseAndDestroy());
  pool_->KillEmbeddedNode(static_cast<NodeId>(random_.Uniform(5)));
  ASSERT_TRUE(IsOk(Salvage()));
  ASSERT_TRUE(IsOk(Reopen()));
  ASSERT_NO_FATAL_FAILURE(Check());
}

TEST_P(SalvageTest, DeletionsOfEverythingStay) {
  ASSERT_NO_FATAL_FAILURE(Open(GetParam(), 4));
  for (int round = 0; round < 3; ++round) {
    ASSERT_NO_FATAL_FAILURE(Fill(3000));
    ASSERT_TRUE(IsOk(db_->Flush({})));
    for (const auto& [key, value] : model_) ASSERT_TRUE(IsOk(db_->Delete(NoLog(), key)));
    model_.clear();
    ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
    ASSERT_NO_FATAL_FAILURE(CloseAndDestroy());
    // Where no table is left, or only old ones, no table may be missed.
    ASSERT_TRUE(
        IsOk(Salvage({.defaults = {.comparator = options_.comparator->Name(), .num_levels = 7}})));
    ASSERT_TRUE(IsOk(Reopen()));
    ASSERT_NO_FATAL_FAILURE(Check());
  }
}

TEST_P(SalvageTest, TheStateOfAnEmptyDatabaseLeavesDrainedNodes) {
  ASSERT_NO_FATAL_FAILURE(Open(GetParam(), 4));
  ASSERT_NO_FATAL_FAILURE(Fill(3000));
  for (const auto& [key, value] : model_) ASSERT_TRUE(IsOk(db_->Delete(NoLog(), key)));
  model_.clear();
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  pool::PoolClient* const client = pool_->client();
  for (NodeId drained = 0; drained < 4; ++drained) {
    pool::Directions now;
    for (NodeId node = 0; node < 4; ++node) {
      ASSERT_TRUE(IsOk(pool::SetDirections(
          client, node, {.version = 10u + drained, .draining = {client->instance_id(drained)}},
          &now)));
    }
    EXPECT_TRUE(Eventually([&] {
      pool::NodeStats stats;
      return pool::GetStats(client, drained, &stats).ok() && stats.slabs_leased == 0;
    })) << "node "
        << drained;
  }
  ASSERT_NO_FATAL_FAILURE(CloseAndDestroy());
  ASSERT_TRUE(IsOk(Salvage()));
  ASSERT_TRUE(IsOk(Reopen()));
  ASSERT_NO_FATAL_FAILURE(Check());
}

TEST_P(SalvageTest, AManifestThatCanBeReadIsLeftAlone) {
  ASSERT_NO_FATAL_FAILURE(Open(GetParam(), 4));
  ASSERT_NO_FATAL_FAILURE(Fill(4000));
  ASSERT_TRUE(IsOk(db_->Close()));
  const Status status = Salvage();
  EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
  EXPECT_FALSE(report_.salvaged);
  ASSERT_TRUE(IsOk(Salvage({.dry_run = true})));
  EXPECT_FALSE(report_.salvaged);
  EXPECT_GT(report_.plan.state.tables.size(), 1u);
  ASSERT_TRUE(IsOk(Salvage({.force = true})));
  EXPECT_TRUE(report_.salvaged);
  ASSERT_TRUE(IsOk(Reopen()));
  ASSERT_NO_FATAL_FAILURE(Check());
}

TEST_P(SalvageTest, WhatIsLostIsNamed) {
  ASSERT_NO_FATAL_FAILURE(Open(GetParam(), 5));
  ASSERT_NO_FATAL_FAILURE(Fill(9000));
  ASSERT_NO_FATAL_FAILURE(CloseAndDestroy());
  // One more than may be lost: the root still counts on the other three.
  pool_->KillEmbeddedNode(1);
  pool_->KillEmbeddedNode(3);
  const Status status = Salvage();
  EXPECT_TRUE(status.IsUnavailable()) << status.ToString();
  EXPECT_NE(status.ToString().find("2 of the 5 nodes"), std::string::npos) << status.ToString();
  EXPECT_FALSE(report_.salvaged);
  ASSERT_TRUE(IsOk(Salvage({.force = true})));
}

TEST_P(SalvageTest, WhatLooksLikeTablesIsNotTakenForThem) {
  ASSERT_NO_FATAL_FAILURE(Open(GetParam(), 4));
  ASSERT_NO_FATAL_FAILURE(Fill(6000));
  ASSERT_NO_FATAL_FAILURE(CloseAndDestroy());
  pool::PoolClient* const client = pool_->client();
  for (size_t round = 0; round < Scaled(20); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    // Memory of the database that is in no use, full of random bytes, of pages of its own in other
    // places, whole or with some bits flipped.
    pool::DatabaseLease lease;
    ASSERT_TRUE(IsOk(client->databases()->Open("db", {.take_over = true}, &lease)));
    const auto node = static_cast<NodeId>(random_.Uniform(4));
    std::vector<uint64_t> slabs;
    ASSERT_TRUE(IsOk(pool::LeaseSlabs(client, node, lease.database_id,
                                      {.count = 2, .contiguous = true}, &slabs)));
    ASSERT_TRUE(IsOk(client->databases()->Leave(lease.database_id)));
    constexpr size_t kPage = 4096;
    const size_t slab_bytes = slabs[1] - slabs[0];
    const std::vector<uint64_t>& sources = lease.slabs[node];
    char* const to = Memory(node, slabs[0]);
    for (size_t at = 0; at < 2 * slab_bytes; at += kPage) {
      if (sources.empty() || random_.OneIn(4)) {
        for (size_t i = 0; i < kPage; i += 8) EncodeFixed64(to + at + i, random_.Next());
        continue;
      }
      const uint64_t source = sources[random_.Uniform(sources.size())];
      const size_t run = kPage * (1 + random_.Uniform(40));
      const size_t from = kPage * random_.Uniform(slab_bytes / kPage);
      const size_t bytes = std::min({run, slab_bytes - from, 2 * slab_bytes - at});
      std::memcpy(to + at, Memory(node, source + from), bytes);
      if (random_.OneIn(2)) to[at + random_.Uniform(300)] ^= 1;
      at += bytes - kPage;
    }
    ASSERT_TRUE(IsOk(Salvage({.force = true})));
    ASSERT_TRUE(IsOk(Reopen()));
    ASSERT_NO_FATAL_FAILURE(Check());
    ASSERT_TRUE(IsOk(db_->Close()));
  }
}

INSTANTIATE_TEST_SUITE_P(Redundancies, SalvageTest, testing::Values("rep(2)", "rs(2,1)"),
                         [](const auto& each) {
                           return std::string(each.param).substr(0, 2) == "rs" ? "Rs" : "Rep";
                         });

/// Owners with a log that are killed.
class SalvageProcessTest : public testing::Test {
 protected:
  void Connect() {
    pool_ = ConnectTestPool(nodes_->pool_uri());
    ASSERT_NE(pool_, nullptr);
  }
  /// The nodes may be about to notice that the last owner is gone.
  void Open(const OwnerPlan& plan, std::unique_ptr<DB>* db) {
    Options options = SmallTableOptions(pool_);
    options.redundancy = plan.redundancy;
    options.allow_degraded_writes = true;
    options.create_if_missing = false;
    ASSERT_TRUE(IsOk(DB::Open(options, plan.database, db)));
  }

  Random random_{TestSeed(903)};
  std::unique_ptr<MemnodeProcesses> nodes_;
  std::shared_ptr<pool::PoolImpl> pool_;
};

TEST_F(SalvageProcessTest, OwnersKilledAtAnyMoment) {
  for (size_t round = 0; round < Scaled(5); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    nodes_ = std::make_unique<MemnodeProcesses>(
        4, MemnodeProcessOptions{.size = "256MiB", .slab_size = "1MiB"});
    OwnerPlan plan{.pool_uri = nodes_->pool_uri(),
                   .redundancy = round % 2 == 0 ? "rep(2)" : "rs(2,1)",
                   .seed = random_.Next() % 1'000'000};
    std::vector<std::unique_ptr<OwnerProcess>> owners;
    for (int life = 0; life < 3; ++life) {
      SCOPED_TRACE("life " + std::to_string(life));
      plan.prefix = "l" + std::to_string(life);
      plan.take_over = true;
      owners.push_back(std::make_unique<OwnerProcess>("db_tests", plan));
      ASSERT_TRUE(owners.back()->AwaitProgress(1 + random_.Uniform(4000)));
      owners.back()->Kill();
      if (random_.OneIn(3)) continue;  // The next owner comes before the salvage.
      ASSERT_NO_FATAL_FAILURE(Connect());
      ASSERT_NO_FATAL_FAILURE(Destroy(pool_->client(), plan.database, Harm::kManifest, &random_));
      if (random_.OneIn(3) && life == 2) {
        (*nodes_)[random_.Uniform(4)].Kill();
      }
      SalvageReport report;
      ASSERT_TRUE(IsOk(SalvageDatabase(pool_->client(), plan.database, {}, &report)));
      std::unique_ptr<DB> db;
      ASSERT_NO_FATAL_FAILURE(Open(plan, &db));
      for (const auto& owner : owners) owner->Check(db.get());
      ASSERT_TRUE(IsOk(db->Close()));
      db.reset();
      pool_.reset();
    }
  }
}

TEST_F(SalvageProcessTest, ASalvageThatDiesIsRunAgain) {
  for (size_t round = 0; round < Scaled(4); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    nodes_ = std::make_unique<MemnodeProcesses>(
        3, MemnodeProcessOptions{.size = "256MiB", .slab_size = "1MiB"});
    OwnerPlan plan{.pool_uri = nodes_->pool_uri(),
                   .redundancy = round % 2 == 0 ? "rs(2,1)" : "rep(2)",
                   .seed = random_.Next() % 1'000'000};
    OwnerProcess owner("db_tests", plan);
    ASSERT_TRUE(owner.AwaitProgress(1000 + random_.Uniform(4000)));
    owner.Kill();
    ASSERT_NO_FATAL_FAILURE(Connect());
    ASSERT_NO_FATAL_FAILURE(Destroy(pool_->client(), plan.database, Harm::kManifest, &random_));
    const std::vector<std::string> repair{"repair", plan.database, "--from_footers", "--force",
                                          "--pool=" + nodes_->pool_uri()};
    const ProcessResult plan_only =
        RunBinary("nacre-ctl", {"repair", plan.database, "--from_footers", "--dry_run", "--json",
                                "--pool=" + nodes_->pool_uri()});
    EXPECT_EQ(plan_only.exit_code, 0) << plan_only.output;
    for (const char* member : {"\"repaired\": false", "\"log_records\": ", "\"lost\": []"}) {
      EXPECT_NE(plan_only.output.find(member), std::string::npos) << plan_only.output;
    }
    for (int death = 0; death < 5; ++death) {
      ChildProcess tool("nacre-ctl", repair);
      std::this_thread::sleep_for(std::chrono::microseconds(random_.Uniform(60'000)));
      tool.Kill();
    }
    const ProcessResult result = RunBinary("nacre-ctl", repair, 60);
    // A table that was being written, or dropped, when its owner died is taken where it can be
    // read.
    const bool degraded = result.output.find("\ndegraded: ") != std::string::npos;
    ASSERT_EQ(result.exit_code, degraded ? 1 : 0) << result.output;
    EXPECT_NE(result.output.find("a new manifest is in place"), std::string::npos) << result.output;
    EXPECT_NE(result.output.find(degraded ? "no node may be lost" : "clean"), std::string::npos)
        << result.output;
    for (const char* worse : {"\nlost: ", "\ndamage: ", "\noverlap: ", "\ndangling: "}) {
      EXPECT_EQ(result.output.find(worse), std::string::npos) << result.output;
    }
    std::unique_ptr<DB> db;
    ASSERT_NO_FATAL_FAILURE(Open(plan, &db));
    owner.Check(db.get());
    ASSERT_TRUE(IsOk(db->Close()));
    pool_.reset();
  }
}

TEST_F(SalvageProcessTest, AnOwnerThatRunsIsFenced) {
  nodes_ = std::make_unique<MemnodeProcesses>(
      3, MemnodeProcessOptions{.size = "256MiB", .slab_size = "1MiB"});
  OwnerPlan plan{.pool_uri = nodes_->pool_uri(), .redundancy = "rep(2)", .seed = 7};
  OwnerProcess owner("db_tests", plan);
  ASSERT_TRUE(owner.AwaitProgress(2000));
  ASSERT_NO_FATAL_FAILURE(Connect());
  SalvageReport report;
  ASSERT_TRUE(IsOk(SalvageDatabase(pool_->client(), plan.database, {.force = true}, &report)));
  for (const int64_t failure : owner.AwaitFailures()) {
    EXPECT_EQ(failure, static_cast<int64_t>(Status::Code::kFenced));
  }
  std::unique_ptr<DB> db;
  ASSERT_NO_FATAL_FAILURE(Open(plan, &db));
  owner.Check(db.get());
  ASSERT_TRUE(IsOk(db->Close()));
}

}  // namespace
}  // namespace nacre
