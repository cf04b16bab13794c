// Goal: column families survive what happens to owners and nodes as the default one does: batches
// are there in all families or in none after their owner is gone, whether they are in the log or in
// tables, flushed by this process or by the nodes; followers see them; checkpoints have them; and a
// manifest that is made anew from the tables has them, and not those that were dropped.
// Method: nacre-memnode processes, and clients of this process: owners that are taken over in the
// middle of their writes, followers beside them, and models of std::map.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "db/salvage/salvage.h"
#include "nacre/checkpoint.h"
#include "nacre/column_family.h"
#include "nacre/db.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {
namespace {

using Model = std::map<std::string, std::string>;

/// A database with its handles, by one client.
struct Opened {
  std::unique_ptr<DB> db;
  std::vector<ColumnFamilyHandle*> handles;

  ~Opened() { Close(); }
  void Close() {
    if (db == nullptr) return;
    for (ColumnFamilyHandle* handle : handles) db->DestroyColumnFamilyHandle(handle).IgnoreError();
    handles.clear();
    db->Close().IgnoreError();
    db.reset();
  }
};

class ColumnFamilyPoolTest : public testing::Test {
 protected:
  static constexpr size_t kFamilies = 3;

  void SetUp() override {
    nodes_ = std::make_unique<MemnodeProcesses>(
        3, MemnodeProcessOptions{.size = "128MiB", .slab_size = "1MiB"});
    options_ = SmallTableOptions(nullptr);
    options_.pool_uri = nodes_->pool_uri();
    options_.redundancy = "rep(2)";
    options_.create_if_missing = true;
    options_.create_missing_column_families = true;
  }

  std::vector<ColumnFamilyDescriptor> Families() const {
    return {{"default", options_}, {"a", options_}, {"b", options_}};
  }
  void Open(Opened* opened, bool take_over = false) {
    options_.take_over = take_over;
    Status status;
    ASSERT_TRUE(Eventually([&] {
      status = DB::Open(options_, "db", Families(), &opened->handles, &opened->db);
      return !status.IsBusy();
    }));
    ASSERT_TRUE(IsOk(status));
  }

  /// A batch of changes in all families, and to their models.
  Status WriteBatchTo(Opened* opened, std::vector<Model>* models) {
    WriteBatch batch;
    std::vector<Model> next = *models;
    for (int i = 0; i < 10; ++i) {
      const size_t family = random_.Uniform(kFamilies);
      const std::string key = "key" + std::to_string(random_.Uniform(800));
      if (random_.Uniform(6) == 0) {
        NACRE_RETURN_IF_ERROR(batch.Delete(opened->handles[family], key));
        next[family].erase(key);
      } else {
        const std::string value = TestValue(random_.Next(), random_.Uniform(300));
        NACRE_RETURN_IF_ERROR(batch.Put(opened->handles[family], key, value));
        next[family][key] = value;
      }
    }
    NACRE_RETURN_IF_ERROR(opened->db->Write({}, &batch));
    *models = std::move(next);
    return Status::OK();
  }
  static Model ReadAll(Opened* opened, size_t family) {
    Model all;
    const std::unique_ptr<Iterator> it = opened->db->NewIterator({}, opened->handles[family]);
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      all.emplace(it->key().ToString(), it->value().ToString());
    }
    EXPECT_TRUE(IsOk(it->status()));
    return all;
  }
  static void Check(Opened* opened, const std::vector<Model>& models) {
    for (size_t i = 0; i < models.size(); ++i) {
      SCOPED_TRACE("family " + std::to_string(i));
      EXPECT_EQ(ReadAll(opened, i), models[i]);
      size_t nth = 0;
      for (const auto& [key, value] : models[i]) {
        if (++nth % 50 != 0) continue;
        std::string got;
        EXPECT_TRUE(IsOk(opened->db->Get({}, opened->handles[i], key, &got)));
        EXPECT_EQ(got, value);
      }
    }
  }

  Random random_{TestSeed(8102)};
  std::unique_ptr<MemnodeProcesses> nodes_;
  Options options_;
};

TEST_F(ColumnFamilyPoolTest, AnOwnerIsTakenOverInTheMiddle) {
  std::vector<Model> models(kFamilies);
  auto owner = std::make_unique<Opened>();
  ASSERT_NO_FATAL_FAILURE(Open(owner.get()));
  for (int round = 0; round < 4; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    for (size_t i = 0; i < Scaled(200); ++i) {
      ASSERT_TRUE(IsOk(WriteBatchTo(owner.get(), &models)));
      if (round % 2 == 1 && i == 100) {
        ASSERT_TRUE(IsOk(owner->db->Flush({}, owner->handles[1])));
      }
    }
    auto next = std::make_unique<Opened>();
    ASSERT_NO_FATAL_FAILURE(Open(next.get(), /*take_over=*/true));
    ASSERT_NO_FATAL_FAILURE(Check(next.get(), models));
    std::vector<Model> refused = models;
    EXPECT_TRUE(WriteBatchTo(owner.get(), &refused).IsFenced());
    owner = std::move(next);
    ASSERT_NO_FATAL_FAILURE(Check(owner.get(), models));
  }
  ASSERT_TRUE(IsOk(owner->db->CompactRange({}, owner->handles[2], nullptr, nullptr)));
  ASSERT_NO_FATAL_FAILURE(Check(owner.get(), models));
}

TEST_F(ColumnFamilyPoolTest, RecordsOfADroppedFamilyInTheLogAreNobodys) {
  std::vector<Model> models(kFamilies);
  Opened owner;
  ASSERT_NO_FATAL_FAILURE(Open(&owner));
  for (size_t i = 0; i < 50; ++i) ASSERT_TRUE(IsOk(WriteBatchTo(&owner, &models)));
  ASSERT_TRUE(IsOk(owner.db->DropColumnFamily(owner.handles[1])));
  ASSERT_TRUE(IsOk(owner.db->Put({}, owner.handles[2], "last", "one")));
  models[2]["last"] = "one";
  models[1].clear();
  Opened next;  // It has a new family of that name.
  ASSERT_NO_FATAL_FAILURE(Open(&next, /*take_over=*/true));
  EXPECT_EQ(next.handles[1]->GetID(), 3u);
  ASSERT_NO_FATAL_FAILURE(Check(&next, models));
}

TEST_F(ColumnFamilyPoolTest, TheNodesFlushEachFamilysRecords) {
  options_.near_data_flush = NearDataFlush::kOn;
  std::vector<Model> models(kFamilies);
  Opened owner;
  ASSERT_NO_FATAL_FAILURE(Open(&owner));
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < Scaled(150); ++i) {
      ASSERT_TRUE(IsOk(WriteBatchTo(&owner, &models)));
    }
    ASSERT_TRUE(IsOk(owner.db->Flush({})));
    ASSERT_NO_FATAL_FAILURE(Check(&owner, models));
  }
  // A node that is busy leaves a flush to this process.
  const uint64_t near_data = GetNumber(owner.db.get(), "nacre.flush.near-data");
  EXPECT_GT(near_data, 0u);
  EXPECT_GE(near_data + GetNumber(owner.db.get(), "nacre.flush.fallbacks"), 3 * kFamilies);
  ASSERT_TRUE(IsOk(owner.db->VerifyChecksum()));
}

TEST_F(ColumnFamilyPoolTest, FollowersSeeTheFamiliesThatTheyOpen) {
  std::vector<Model> models(kFamilies);
  Opened owner;
  ASSERT_NO_FATAL_FAILURE(Open(&owner));
  for (size_t i = 0; i < 100; ++i) ASSERT_TRUE(IsOk(WriteBatchTo(&owner, &models)));
  Opened follower;
  ASSERT_TRUE(
      IsOk(DB::OpenAsSecondary(options_, "db", Families(), &follower.handles, &follower.db)));
  ASSERT_NO_FATAL_FAILURE(Check(&follower, models));
  EXPECT_TRUE(follower.db->Put({}, follower.handles[1], "k", "v").IsNotSupported());
  EXPECT_TRUE(follower.db->DropColumnFamily(follower.handles[1]).IsNotSupported());
  for (int round = 0; round < 4; ++round) {
    for (size_t i = 0; i < 50; ++i) ASSERT_TRUE(IsOk(WriteBatchTo(&owner, &models)));
    if (round % 2 == 0) {
      ASSERT_TRUE(IsOk(owner.db->Flush({})));
    }
    ASSERT_TRUE(IsOk(follower.db->TryCatchUpWithPrimary()));
    ASSERT_NO_FATAL_FAILURE(Check(&follower, models));
  }
  // One that names fewer, and one that names what there is not.
  std::unique_ptr<DB> of_default;
  ASSERT_TRUE(IsOk(DB::OpenForReadOnly(options_, "db", &of_default)));
  for (const auto& [key, value] : models[0]) {
    std::string got;
    ASSERT_TRUE(IsOk(of_default->Get({}, key, &got)));
    EXPECT_EQ(got, value);
  }
  std::vector<ColumnFamilyHandle*> none;
  std::unique_ptr<DB> refused;
  EXPECT_TRUE(
      DB::OpenAsSecondary(options_, "db", {{"default", options_}, {"z", options_}}, &none, &refused)
          .IsInvalidArgument());
  // A family that is made later is seen by the next one; what is dropped stays as it was.
  ColumnFamilyHandle* later = nullptr;
  ASSERT_TRUE(IsOk(owner.db->CreateColumnFamily(options_, "later", &later)));
  ASSERT_TRUE(IsOk(owner.db->Put({}, later, "k", "v")));
  ASSERT_TRUE(IsOk(follower.db->TryCatchUpWithPrimary()));
  ASSERT_NO_FATAL_FAILURE(Check(&follower, models));
  {
    std::vector<ColumnFamilyDescriptor> families = Families();
    families.emplace_back("later", options_);
    Opened second;
    ASSERT_TRUE(IsOk(DB::OpenForReadOnly(options_, "db", families, &second.handles, &second.db)));
    std::string got;
    ASSERT_TRUE(IsOk(second.db->Get({}, second.handles[3], "k", &got)));
    EXPECT_EQ(got, "v");
  }
  ASSERT_TRUE(IsOk(owner.db->DestroyColumnFamilyHandle(later)));
}

TEST_F(ColumnFamilyPoolTest, CheckpointsHaveAllFamilies) {
  std::vector<Model> models(kFamilies);
  const TempFolder folder;
  {
    Opened owner;
    ASSERT_NO_FATAL_FAILURE(Open(&owner));
    for (size_t i = 0; i < Scaled(300); ++i) ASSERT_TRUE(IsOk(WriteBatchTo(&owner, &models)));
    std::unique_ptr<Checkpoint> checkpoint;
    ASSERT_TRUE(IsOk(Checkpoint::Create(owner.db.get(), &checkpoint)));
    ASSERT_TRUE(IsOk(checkpoint->CreateCheckpoint(folder.path(), {}, nullptr)));
    std::vector<Model> later = models;
    for (size_t i = 0; i < 20; ++i) ASSERT_TRUE(IsOk(WriteBatchTo(&owner, &later)));
  }
  options_.take_over = false;
  ASSERT_TRUE(IsOk(VerifyCheckpoint(folder.path(), 0, {})));
  ASSERT_TRUE(IsOk(RestoreDB(options_, "restored", folder.path(), {})));
  std::vector<std::string> names;
  ASSERT_TRUE(IsOk(DB::ListColumnFamilies(options_, "restored", &names)));
  EXPECT_EQ(names, (std::vector<std::string>{"default", "a", "b"}));
  Opened restored;
  ASSERT_TRUE(IsOk(DB::Open(options_, "restored", Families(), &restored.handles, &restored.db)));
  ASSERT_NO_FATAL_FAILURE(Check(&restored, models));
  ASSERT_TRUE(IsOk(WriteBatchTo(&restored, &models)));
  ASSERT_NO_FATAL_FAILURE(Check(&restored, models));
}

TEST_F(ColumnFamilyPoolTest, AManifestMadeFromTablesHasTheFamilies) {
  std::vector<Model> models(kFamilies);
  {
    Opened owner;
    ASSERT_NO_FATAL_FAILURE(Open(&owner));
    for (size_t i = 0; i < Scaled(300); ++i) ASSERT_TRUE(IsOk(WriteBatchTo(&owner, &models)));
    ASSERT_TRUE(IsOk(owner.db->Flush({})));
    // Dropped, and another one of that name; and one without tables.
    ASSERT_TRUE(IsOk(owner.db->DropColumnFamily(owner.handles[1])));
    ColumnFamilyHandle* empty = nullptr;
    ASSERT_TRUE(IsOk(owner.db->CreateColumnFamily(options_, "empty", &empty)));
    ASSERT_TRUE(IsOk(owner.db->DestroyColumnFamilyHandle(empty)));
    models[1].clear();
  }
  const std::shared_ptr<pool::PoolImpl> pool = ConnectTestPool(nodes_->pool_uri());
  ASSERT_NE(pool, nullptr);
  SalvageOptions force;
  force.force = true;
  force.defaults = {.comparator = BytewiseComparator()->Name(), .num_levels = 7};
  SalvageReport report;
  Status status;
  ASSERT_TRUE(Eventually([&] {
    status = SalvageDatabase(pool->client(), "db", force, &report);
    return !status.IsBusy();
  }));
  ASSERT_TRUE(IsOk(status));
  std::vector<std::string> names;
  ASSERT_TRUE(IsOk(DB::ListColumnFamilies(options_, "db", &names)));
  EXPECT_EQ(names, (std::vector<std::string>{"default", "b", "empty"}));
  std::vector<ColumnFamilyDescriptor> families = Families();
  families.emplace_back("empty", options_);
  Opened repaired;
  options_.take_over = false;
  ASSERT_TRUE(IsOk(DB::Open(options_, "db", families, &repaired.handles, &repaired.db)));
  models.emplace_back();
  ASSERT_NO_FATAL_FAILURE(Check(&repaired, models));
}

}  // namespace
}  // namespace nacre
