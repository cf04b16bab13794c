// Goal: space comes back. Tombstones vanish at the bottom, overwriting leaks nothing, a full pool
// refuses writes and nothing else, and takes writes again once there is room.
// Method: the allocator's and the nodes' own accounts, before and after; writes until NoSpace.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nacre/db.h"
#include "pool/wire/node_stats.h"
#include "tests/support/scale.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

class DBSpaceTest : public testing::Test {
 protected:
  void Open(
      const TestPoolOptions& pool_options = {},
      const std::function<void(Options*)>& change = [](Options*) {}) {
    pool_ = OpenTestPool(pool_options);
    ASSERT_NE(pool_, nullptr);
    options_ = SmallTableOptions(pool_);
    change(&options_);
    ASSERT_TRUE(IsOk(DB::Open(options_, "space", &db_)));
  }

  static std::string Key(size_t i) { return "key" + std::to_string(i); }

  /// Stops at the first failure.
  Status Fill(size_t keys, size_t value_size, uint64_t seed, size_t* written = nullptr) {
    for (size_t i = 0; i < keys; ++i) {
      NACRE_RETURN_IF_ERROR(db_->Put(NoLog(), Key(i), TestValue(seed + i, value_size)));
      if (written != nullptr) *written = i + 1;
    }
    return Status::OK();
  }

  /// What a closed database without tables keeps, of each copy, at most: its manifest, which is
  /// smaller than a slab and may lie across two, and the state record, wherever there was room.
  static constexpr uint64_t kSlabsAtRest = 3;

  uint64_t Used() { return GetNumber(db_.get(), "nacre.space.used-bytes"); }
  uint64_t SlabsLeased() { return SumOverNodes(pool_.get(), &pool::NodeStats::slabs_leased); }

  std::shared_ptr<pool::PoolImpl> pool_;
  Options options_;
  std::unique_ptr<DB> db_;
};

TEST_F(DBSpaceTest, TombstonesVanishAtTheBottom) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const size_t keys = Scaled(20'000);
  ASSERT_TRUE(IsOk(Fill(keys, 200, 1)));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  const uint64_t peak = Used();
  ASSERT_GT(peak, keys * 200);
  for (size_t i = 0; i < keys; ++i) ASSERT_TRUE(IsOk(db_->Delete(NoLog(), Key(i))));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ASSERT_TRUE(IsOk(db_->WaitForCompact()));
  EXPECT_EQ(GetNumber(db_.get(), "nacre.num-tombstones"), 0u);
  EXPECT_EQ(GetNumber(db_.get(), "nacre.num-live-tables"), 0u)
      << GetTextProperty(db_.get(), "nacre.sstables");
  EXPECT_LT(Used(), peak / 20);
  // The nodes have it back too, for other databases; all but where manifest and state record are.
  ASSERT_TRUE(IsOk(db_->Close()));
  EXPECT_LE(SlabsLeased(), kSlabsAtRest);
}

TEST_F(DBSpaceTest, TombstonesThatASnapshotNeedsStay) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_TRUE(IsOk(Fill(500, 200, 1)));
  const Snapshot* snapshot = db_->GetSnapshot();
  for (size_t i = 0; i < 500; ++i) ASSERT_TRUE(IsOk(db_->Delete(NoLog(), Key(i))));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ReadOptions options;
  options.snapshot = snapshot;
  std::string value;
  for (size_t i = 0; i < 500; ++i) {
    ASSERT_TRUE(IsOk(db_->Get(options, Key(i), &value)));
    ASSERT_TRUE(db_->Get({}, Key(i), &value).IsNotFound());
  }
  db_->ReleaseSnapshot(snapshot);
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  EXPECT_EQ(GetNumber(db_.get(), "nacre.num-live-tables"), 0u)
      << GetTextProperty(db_.get(), "nacre.sstables");
  EXPECT_EQ(Used(), 0u);
}

TEST_F(DBSpaceTest, OverwritingDoesNotLeak) {
  for (const char* redundancy : {"none", "rep(2)"}) {
    SCOPED_TRACE(redundancy);
    ASSERT_NO_FATAL_FAILURE(Open({}, [&](Options* options) { options->redundancy = redundancy; }));
    const size_t keys = Scaled(5'000);
    uint64_t used = 0;
    for (int round = 0; round < 10; ++round) {
      ASSERT_TRUE(IsOk(Fill(keys, 400, static_cast<uint64_t>(round))));
      ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
      ASSERT_TRUE(IsOk(db_->WaitForCompact()));
      if (round < 2) used = std::max(used, Used());
      EXPECT_LE(Used(), used + used / 10) << "round " << round;
    }
    // The slabs that the nodes have leased are those that the database knows, and what lies in
    // them is what it uses: without data, none but a few spare ones.
    const uint64_t slabs = SlabsLeased();
    const uint64_t most = std::max<uint64_t>(slabs / 2, 4);  // One for each node.
    for (size_t i = 0; i < keys; ++i) ASSERT_TRUE(IsOk(db_->Delete(NoLog(), Key(i))));
    ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
    uint64_t left = 0;
    uint64_t known = 0;
    for (int i = 0; i < 1000; ++i) {  // Tables and slabs go in the background.
      left = SlabsLeased();
      known = GetNumber(db_.get(), "nacre.space.leased-bytes") / TestPoolOptions().slab_bytes;
      if (Used() == 0 && left == known && left <= most) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(Used(), 0u);
    EXPECT_EQ(left, known);
    EXPECT_LE(left, most) << "of " << slabs;
    ASSERT_TRUE(IsOk(db_->Close()));
    EXPECT_LE(SlabsLeased(), (redundancy == std::string("none") ? 1 : 2) * kSlabsAtRest);
    db_.reset();
  }
}

TEST_F(DBSpaceTest, ReopeningDoesNotLeak) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_TRUE(IsOk(Fill(3'000, 400, 1)));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ASSERT_TRUE(IsOk(db_->Close()));
  const uint64_t slabs = SlabsLeased();
  for (int round = 0; round < 10; ++round) {
    ASSERT_TRUE(IsOk(DB::Open(options_, "space", &db_)));
    ASSERT_TRUE(IsOk(Fill(3'000, 400, static_cast<uint64_t>(round))));
    ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
    ASSERT_TRUE(IsOk(db_->Close()));
    EXPECT_LE(SlabsLeased(), 2 * slabs + 4) << "round " << round;
    db_.reset();
  }
}

TEST_F(DBSpaceTest, IteratorsKeepTheirTablesAndNothingElse) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_TRUE(IsOk(Fill(3'000, 400, 1)));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  const uint64_t used = Used();
  auto iterator = db_->NewIterator({});
  ASSERT_TRUE(IsOk(Fill(3'000, 400, 2)));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  EXPECT_GT(Used(), used + used / 2) << "the iterator's tables are gone";
  size_t seen = 0;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) ++seen;
  ASSERT_TRUE(IsOk(iterator->status()));
  EXPECT_EQ(seen, 3'000u);
  iterator.reset();
  ASSERT_TRUE(IsOk(db_->WaitForCompact()));
  EXPECT_LE(Used(), used + used / 10);
}

// ---- A full pool ------------------------------------------------------------------------------

/// A pool that is full after a few thousand writes. Tables are large beside what compaction
/// reserves for each beyond its size, and small beside the pool.
TestPoolOptions SmallPool() {
  TestPoolOptions options;
  options.nodes = 2;
  options.node_bytes = 64 << 20;
  options.slab_bytes = 4 << 20;
  return options;
}

void LargerTables(Options* options) {
  options->slab_size = 4 << 20;
  options->chunk_size = 16 << 10;
  options->write_buffer_size = 1 << 20;
  options->target_file_size_base = 1 << 20;
  options->max_bytes_for_level_base = 4 << 20;
}

class FullPoolTest : public DBSpaceTest {
 protected:
  static constexpr size_t kValue = 4000;

  /// Different keys, until a write is refused. `*written`: keys that were acknowledged.
  void FillUp(size_t* written) {
    const Status status = Fill(1'000'000, kValue, 7, written);
    ASSERT_TRUE(IsFailure(status, Status::Code::kNoSpace)) << "after " << *written << " writes";
    ASSERT_GT(*written, 1000u);
  }

  void CheckReads(size_t written) {
    std::string value;
    for (size_t i = 0; i < written; i += 97) {
      ASSERT_TRUE(IsOk(db_->Get({}, Key(i), &value))) << Key(i);
      ASSERT_EQ(value, TestValue(7 + i, kValue));
    }
    const auto iterator = db_->NewIterator({});
    size_t seen = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) ++seen;
    ASSERT_TRUE(IsOk(iterator->status()));
    ASSERT_EQ(seen, written);
  }

  /// A refusal may outlive its cause for as long as background work waits before it tries again.
  Status PutSoon(const std::string& key, const std::string& value) {
    Status status;
    for (int i = 0; i < 400; ++i) {
      status = db_->Put(NoLog(), key, value);
      if (status.ok()) return status;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return status;
  }
};

TEST_F(FullPoolTest, RefusesWritesAndKeepsReading) {
  ASSERT_NO_FATAL_FAILURE(Open(SmallPool(), LargerTables));
  size_t written = 0;
  ASSERT_NO_FATAL_FAILURE(FillUp(&written));
  ASSERT_NO_FATAL_FAILURE(CheckReads(written));
  // Compaction goes on and may find some room still; whatever is asked, the answer is one of two.
  for (int i = 0; i < 20; ++i) {
    for (const Status& status :
         {db_->Put(NoLog(), "one more", "x"), db_->Delete(NoLog(), "one more"), db_->Flush({}),
          db_->CompactRange({}, nullptr, nullptr)}) {
      ASSERT_TRUE(status.ok() || status.IsNoSpace()) << status.ToString();
    }
  }
  WriteOptions no_wait = NoLog();
  no_wait.no_slowdown = true;
  const Status status = db_->Put(no_wait, Key(0), TestValue(7, kValue));
  EXPECT_TRUE(status.ok() || status.IsNoSpace() || status.IsIncomplete()) << status.ToString();
  ASSERT_NO_FATAL_FAILURE(CheckReads(written));
}

TEST_F(FullPoolTest, SpaceOfAnotherDatabaseMakesWritesWorkAgain) {
  ASSERT_NO_FATAL_FAILURE(Open(SmallPool(), LargerTables));
  // The other one's iterator keeps a good part of the pool in use, until it goes.
  std::unique_ptr<DB> other;
  ASSERT_TRUE(IsOk(DB::Open(options_, "other", &other)));
  constexpr size_t kOthers = 6'000;
  for (size_t i = 0; i < kOthers; ++i) {
    ASSERT_TRUE(IsOk(other->Put(NoLog(), Key(i), TestValue(i, kValue))));
  }
  ASSERT_TRUE(IsOk(other->CompactRange({}, nullptr, nullptr)));
  auto iterator = other->NewIterator({});
  for (size_t i = 0; i < kOthers; ++i) ASSERT_TRUE(IsOk(other->Delete(NoLog(), Key(i))));
  ASSERT_TRUE(IsOk(other->CompactRange({}, nullptr, nullptr)));
  ASSERT_TRUE(IsOk(other->WaitForCompact()));

  size_t written = 0;
  ASSERT_NO_FATAL_FAILURE(FillUp(&written));
  iterator->SeekToFirst();
  ASSERT_TRUE(iterator->Valid()) << iterator->status().ToString();
  iterator.reset();
  ASSERT_TRUE(IsOk(other->Close()));
  size_t again = 0;
  for (; again < kOthers / 2; ++again) {
    ASSERT_TRUE(IsOk(PutSoon(Key(written + again), TestValue(7 + written + again, kValue))))
        << "after " << again << " writes";
  }
  ASSERT_NO_FATAL_FAILURE(CheckReads(written + again));
}

TEST_F(FullPoolTest, ReleasedSnapshotMakesWritesWorkAgain) {
  ASSERT_NO_FATAL_FAILURE(Open(SmallPool(), LargerTables));
  // Versions that snapshots hold fill the pool although the keys are few.
  std::vector<const Snapshot*> snapshots;
  Status status;
  size_t rounds = 0;
  for (; status.ok(); ++rounds) {
    ASSERT_LT(rounds, 1000u);
    snapshots.push_back(db_->GetSnapshot());
    status = Fill(500, kValue, rounds);
  }
  ASSERT_TRUE(IsFailure(status, Status::Code::kNoSpace));
  for (const Snapshot* snapshot : snapshots) db_->ReleaseSnapshot(snapshot);
  ASSERT_TRUE(IsOk(PutSoon("one more", "x"))) << "nothing but one version of each key is needed";
  for (size_t round = 0; round < 20; ++round) {
    for (size_t i = 0; i < 500; ++i) {
      ASSERT_TRUE(IsOk(PutSoon(Key(i), TestValue(7 + i, kValue))));
    }
  }
  ASSERT_TRUE(IsOk(db_->Delete(NoLog(), "one more")));
  ASSERT_NO_FATAL_FAILURE(CheckReads(500));
}

TEST_F(FullPoolTest, OverwritingGoesOnForEver) {
  // The data fits four times over, so shadowed versions must never fill the pool.
  ASSERT_NO_FATAL_FAILURE(Open(SmallPool(), LargerTables));
  for (size_t round = 0; round < Scaled(20); ++round) {
    ASSERT_TRUE(IsOk(Fill(6'000, kValue, 7))) << "round " << round;
  }
  ASSERT_NO_FATAL_FAILURE(CheckReads(6'000));
}

TEST_F(FullPoolTest, OverwritingGoesOnWhereNoCompactionIsDue) {
  // What is shadowed is all in level 0, which is merged for its space alone.
  ASSERT_NO_FATAL_FAILURE(Open(SmallPool(), [](Options* options) {
    LargerTables(options);
    options->level0_file_num_compaction_trigger = 1000;
    options->level0_slowdown_writes_trigger = 1000;
    options->level0_stop_writes_trigger = 1000;
    options->max_bytes_for_level_base = 1 << 30;
  }));
  for (size_t round = 0; round < 10; ++round) {
    ASSERT_TRUE(IsOk(Fill(6'000, kValue, 7))) << "round " << round;
  }
  ASSERT_NO_FATAL_FAILURE(CheckReads(6'000));
}

TEST_F(FullPoolTest, DeletingMakesRoom) {
  ASSERT_NO_FATAL_FAILURE(Open(SmallPool(), LargerTables));
  constexpr size_t kKeys = 12'000;  // Two fifths of the pool.
  for (int round = 0; round < 4; ++round) {
    SCOPED_TRACE(round);
    ASSERT_TRUE(IsOk(Fill(kKeys, kValue, 7)));
    ASSERT_NO_FATAL_FAILURE(CheckReads(kKeys));
    for (size_t i = 0; i < kKeys; ++i) ASSERT_TRUE(IsOk(db_->Delete(NoLog(), Key(i))));
    ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
    EXPECT_EQ(Used(), 0u);
  }
}

TEST_F(FullPoolTest, CloseKeepsWhatWasAcknowledged) {
  ASSERT_NO_FATAL_FAILURE(Open(SmallPool(), LargerTables));
  size_t written = 0;
  ASSERT_NO_FATAL_FAILURE(FillUp(&written));
  const Status status = db_->Close();
  // The MemTables do not fit: that is told, and what is in tables stays.
  EXPECT_TRUE(status.ok() || status.IsNoSpace()) << status.ToString();
  db_.reset();
  ASSERT_TRUE(IsOk(DB::Open(options_, "space", &db_))) << "a failed close keeps the name for ever";
  std::string value;
  size_t found = 0;
  for (size_t i = 0; i < written; ++i) {
    const Status got = db_->Get({}, Key(i), &value);
    ASSERT_TRUE(got.ok() || got.IsNotFound()) << got.ToString();
    found += got.ok();
  }
  EXPECT_GT(found, written / 2);
  if (status.ok()) {
    EXPECT_EQ(found, written);
  }
}

}  // namespace
}  // namespace nacre
