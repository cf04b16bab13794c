// Goal: CompactRange does what its options ask, and says what it cannot do. It takes little space,
// keeps what it has done when it fails, and lets other compactions go on.
// Method: the same data compacted in different ways reads the same; the nodes count how it was
// done. Trees of several levels in pools that have not got the space for a copy of the largest,
// with a damaged table, and beside a piece that a filter keeps from ending.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "nacre/compaction_filter.h"
#include "nacre/db.h"
#include "nacre/logger.h"
#include "pool/databases.h"
#include "pool/space/space_allocator.h"
#include "pool/wire/node_stats.h"
#include "tests/support/status_assert.h"
#include "tests/support/table/stored_tables.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {
namespace {

class CompactRangeTest : public testing::Test {
 protected:
  void SetUp() override {
    pool_ = OpenTestPool();
    ASSERT_NE(pool_, nullptr);
    Options options = SmallTableOptions(pool_);
    options.disable_auto_compactions = true;
    ASSERT_TRUE(IsOk(DB::Open(options, "compact", &db_)));
  }

  static std::string Key(size_t i) { return "key" + std::to_string(100'000 + i); }
  void Fill(uint64_t seed) {
    for (size_t i = 0; i < kKeys; ++i) {
      ASSERT_TRUE(IsOk(db_->Put(NoLog(), Key(i), TestValue(seed + i, 200))));
    }
  }
  void CheckAll(uint64_t seed) {
    const auto iterator = db_->NewIterator({});
    size_t i = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++i) {
      ASSERT_EQ(iterator->key().ToString(), Key(i));
      ASSERT_EQ(iterator->value().ToString(), TestValue(seed + i, 200));
    }
    ASSERT_TRUE(IsOk(iterator->status()));
    EXPECT_EQ(i, kKeys);
  }

  /// Those that nodes have run: a compaction in pieces counts for as many.
  uint64_t Compactions() { return SumOverNodes(pool_.get(), &pool::NodeStats::compactions); }

  /// "1 3 " if levels 1 and 3 have tables.
  std::string LevelsWithTables() {
    std::string levels;
    for (int level = 0; level < db_->NumberLevels(); ++level) {
      const std::string name = "nacre.num-files-at-level" + std::to_string(level);
      if (GetNumber(db_.get(), name) > 0) levels += std::to_string(level) + " ";
    }
    return levels;
  }

  static constexpr size_t kKeys = 20'000;
  std::shared_ptr<pool::PoolImpl> pool_;
  std::unique_ptr<DB> db_;
};

TEST_F(CompactRangeTest, InPieces) {
  ASSERT_NO_FATAL_FAILURE(Fill(1));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  for (const uint32_t pieces : {1u, 3u, 256u}) {
    ASSERT_NO_FATAL_FAILURE(Fill(pieces));
    CompactRangeOptions options;
    options.max_subcompactions = pieces;
    const uint64_t before = Compactions();
    ASSERT_TRUE(IsOk(db_->CompactRange(options, nullptr, nullptr)));
    if (pieces == 1) {
      EXPECT_EQ(Compactions(), before + 1);
    } else {
      EXPECT_GT(Compactions(), before + 1) << pieces;
    }
    ASSERT_NO_FATAL_FAILURE(CheckAll(pieces));
  }
}

TEST_F(CompactRangeTest, UsesAllIdleWorkersUnlessItIsTold) {
  ASSERT_NO_FATAL_FAILURE(Fill(1));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ASSERT_NO_FATAL_FAILURE(Fill(3));
  uint64_t before = Compactions();
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  // The nodes have one each, and run nothing else.
  EXPECT_EQ(Compactions(), before + static_cast<uint64_t>(pool_->client()->node_count()));
  ASSERT_NO_FATAL_FAILURE(CheckAll(3));
  ASSERT_TRUE(IsOk(db_->SetDBOptions({{"max_subcompactions", "1"}})));
  ASSERT_NO_FATAL_FAILURE(Fill(2));
  before = Compactions();
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  EXPECT_EQ(Compactions(), before + 1);
  // Little is not cut.
  ASSERT_TRUE(IsOk(db_->SetDBOptions({{"max_subcompactions", "0"}})));
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), Key(0), TestValue(2, 200))));
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), Key(1), TestValue(3, 200))));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  before = Compactions();
  const std::string last = Key(1);
  const Slice end(last);
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, &end)));
  EXPECT_LE(Compactions(), before + 1);
  ASSERT_NO_FATAL_FAILURE(CheckAll(2));
}

TEST_F(CompactRangeTest, CutsInsideATable) {
  ASSERT_TRUE(IsOk(db_->SetOptions({{"target_file_size_base", "67108864"}})));
  ASSERT_NO_FATAL_FAILURE(Fill(1));
  CompactRangeOptions options;
  options.max_subcompactions = 1;
  ASSERT_TRUE(IsOk(db_->CompactRange(options, nullptr, nullptr)));
  ASSERT_EQ(GetNumber(db_.get(), "nacre.num-files-at-level1"), 1u);
  // A few keys above one table that has nearly all bytes.
  for (size_t i = 0; i < kKeys; i += kKeys / 4) {
    ASSERT_TRUE(IsOk(db_->Put(NoLog(), Key(i), TestValue(1 + i, 200))));
  }
  ASSERT_TRUE(IsOk(db_->Flush({})));
  options.max_subcompactions = 3;
  const uint64_t before = Compactions();
  ASSERT_TRUE(IsOk(db_->CompactRange(options, nullptr, nullptr)));
  EXPECT_EQ(Compactions(), before + 3);
  // Each has about a third.
  std::vector<LiveTableMetaData> tables;
  db_->GetLiveTablesMetaData(&tables);
  ASSERT_EQ(tables.size(), 3u);
  uint64_t bytes = 0;
  for (const auto& table : tables) bytes += table.size;
  for (const auto& table : tables) EXPECT_NEAR(double(table.size), double(bytes) / 3, bytes / 10.0);
  ASSERT_NO_FATAL_FAILURE(CheckAll(1));
}

TEST_F(CompactRangeTest, SaysWhatItCannotDo) {
  CompactRangeOptions options;
  options.max_subcompactions = 257;
  EXPECT_TRUE(IsFailure(db_->CompactRange(options, nullptr, nullptr),
                        Status::Code::kInvalidArgument, "max_subcompactions is 257"));
  ASSERT_NO_FATAL_FAILURE(Fill(1));
  options = {};
  options.change_level = true;
  options.target_level = 7;
  EXPECT_TRUE(IsFailure(db_->CompactRange(options, nullptr, nullptr),
                        Status::Code::kInvalidArgument, "target_level is 7"));
  options.target_level = 0;
  EXPECT_TRUE(IsFailure(db_->CompactRange(options, nullptr, nullptr), Status::Code::kNotSupported,
                        "change_level from level 1 to 0"));
  ASSERT_NO_FATAL_FAILURE(CheckAll(1));
}

TEST_F(CompactRangeTest, MovesTheResultToAnotherLevel) {
  CompactRangeOptions options;
  options.change_level = true;
  options.target_level = 5;
  ASSERT_NO_FATAL_FAILURE(Fill(1));
  ASSERT_TRUE(IsOk(db_->CompactRange(options, nullptr, nullptr)));
  EXPECT_EQ(LevelsWithTables(), "5 ");
  ASSERT_NO_FATAL_FAILURE(CheckAll(1));
  // Newer versions come from above.
  ASSERT_NO_FATAL_FAILURE(Fill(2));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  ASSERT_NO_FATAL_FAILURE(CheckAll(2));
  options.target_level = 2;
  ASSERT_TRUE(IsOk(db_->CompactRange(options, nullptr, nullptr)));
  EXPECT_EQ(LevelsWithTables(), "2 ");
  const uint64_t before = Compactions();
  options.target_level = 6;
  const Slice first("key2");  // There is no such key, so there is nothing to move.
  ASSERT_TRUE(IsOk(db_->CompactRange(options, &first, nullptr)));
  EXPECT_EQ(LevelsWithTables(), "2 ");
  ASSERT_TRUE(IsOk(db_->CompactRange(options, nullptr, nullptr)));
  EXPECT_EQ(LevelsWithTables(), "6 ");
  EXPECT_EQ(Compactions(), before) << "no table is written for a move";
  ASSERT_NO_FATAL_FAILURE(CheckAll(2));
  // Level 3 is meant to have 4 MiB, and there is somewhat more.
  options.target_level = -1;
  ASSERT_TRUE(IsOk(db_->CompactRange(options, nullptr, nullptr)));
  EXPECT_EQ(LevelsWithTables(), "4 ");
  ASSERT_NO_FATAL_FAILURE(CheckAll(2));
  ASSERT_TRUE(IsOk(db_->Close()));
  ASSERT_TRUE(IsOk(DB::Open(SmallTableOptions(pool_), "compact", &db_)));
  EXPECT_EQ(LevelsWithTables(), "4 ") << "the manifest has the move";
  ASSERT_NO_FATAL_FAILURE(CheckAll(2));
}

TEST_F(CompactRangeTest, MovesNothingAcrossAnotherLevel) {
  CompactRangeOptions options;
  options.change_level = true;
  options.target_level = 4;
  ASSERT_NO_FATAL_FAILURE(Fill(1));
  ASSERT_TRUE(IsOk(db_->CompactRange(options, nullptr, nullptr)));
  // Other keys, in a table of level 1 that the deepest level's move would have to pass.
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "other", "1")));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  const Slice other("other");
  ASSERT_TRUE(IsOk(db_->SuggestCompactRange(nullptr, &other, &other)));
  ASSERT_TRUE(IsOk(db_->EnableAutoCompaction({db_->DefaultColumnFamily()})));
  ASSERT_TRUE(IsOk(db_->WaitForCompact()));
  ASSERT_TRUE(IsOk(db_->SetOptions({{"disable_auto_compactions", "true"}})));
  const std::string levels = LevelsWithTables();
  ASSERT_TRUE(levels == "1 4 " || levels == "2 4 " || levels == "3 4 ") << levels;
  options.target_level = 1;
  const Slice first("key");
  const Slice last("kez");
  EXPECT_TRUE(IsFailure(db_->CompactRange(options, &first, &last), Status::Code::kNotSupported,
                        "the levels on the way are not empty"));
  EXPECT_EQ(LevelsWithTables(), levels);
  options.target_level = 6;
  ASSERT_TRUE(IsOk(db_->CompactRange(options, &first, &last)));
  EXPECT_EQ(LevelsWithTables(), levels.substr(0, 2) + "6 ");
  ASSERT_TRUE(IsOk(db_->Delete(NoLog(), "other")));
  ASSERT_NO_FATAL_FAILURE(CheckAll(1));
}

// Moves beside writes, flushes and automatic compactions.
TEST_F(CompactRangeTest, MovesBesideOtherWork) {
  ASSERT_TRUE(IsOk(db_->SetOptions({{"disable_auto_compactions", "false"}})));
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (uint64_t seed = 1; !stop; ++seed) {
      for (size_t i = 0; i < kKeys; i += 7) {
        ASSERT_TRUE(IsOk(db_->Put(NoLog(), Key(i), TestValue(seed + i, 200))));
      }
    }
  });
  int moved = 0;
  for (int i = 0; i < 20; ++i) {
    CompactRangeOptions options;
    options.change_level = true;
    options.target_level = 1 + i % 6;
    const Status status = db_->CompactRange(options, nullptr, nullptr);
    EXPECT_TRUE(status.ok() || status.IsNotSupported()) << status.ToString();
    moved += status.ok() ? 1 : 0;
  }
  stop = true;
  writer.join();
  EXPECT_GT(moved, 0);
  ASSERT_NO_FATAL_FAILURE(Fill(9));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ASSERT_NO_FATAL_FAILURE(CheckAll(9));
}

/// Keeps jobs of CompactRange to level `least_level` and deeper from ending, once it is closed.
class Gate final : public CompactionFilterFactory {
 public:
  class Filter final : public CompactionFilter {
   public:
    Filter(Gate* gate, bool manual) : gate_(gate), manual_(manual) {}
    const char* Name() const override { return "Gate"; }
    Decision FilterV2(int level, const Slice& /*key*/, ValueType /*type*/, const Slice& /*value*/,
                      std::string* /*new_value*/, std::string* /*skip_until*/) const override {
      if (manual_ && level >= gate_->least_level && gate_->closed) {
        gate_->reached = true;
        EXPECT_TRUE(Eventually([this] { return !gate_->closed; }));
      }
      return Decision::kKeep;
    }

   private:
    Gate* const gate_;
    const bool manual_;
  };

  const char* Name() const override { return "GateFactory"; }
  std::unique_ptr<CompactionFilter> CreateCompactionFilter(
      const CompactionFilter::Context& context) override {
    if (!context.is_manual_compaction) ++automatic;
    return std::make_unique<Filter>(this, context.is_manual_compaction);
  }

  std::atomic<int> least_level{3};
  std::atomic<bool> closed{false};
  std::atomic<bool> reached{false};
  std::atomic<int> automatic{0};
};

/// Counts the lines of a database's LOG that say something.
class LineCounter final : public Logger {
 public:
  explicit LineCounter(std::string what) : what_(std::move(what)) {}
  void Log(LogLevel /*level*/, std::string_view message) override {
    if (message.find(what_) != std::string_view::npos) ++count;
  }

  std::atomic<int> count{0};

 private:
  const std::string what_;
};

TEST_F(CompactRangeTest, TablesThatTellMuchFitIntoWhatIsReservedForThem) {
  // Each table tells of all families and tables that there are, which takes half of a small one.
  const auto too_few = std::make_shared<LineCounter>("a merge needs more than");
  Options options = SmallTableOptions(pool_);
  options.disable_auto_compactions = true;
  options.max_subcompactions = 1;
  options.info_log = too_few;
  ASSERT_TRUE(IsOk(DB::Open(options, "many", &db_)));
  constexpr int kFamilies = 160;
  for (int i = 0; i < kFamilies; ++i) {
    ColumnFamilyHandle* family = nullptr;
    const std::string name = std::to_string(i) + std::string(200, 'f');
    ASSERT_TRUE(IsOk(db_->CreateColumnFamily(options, name, &family)));
    ASSERT_TRUE(IsOk(db_->DestroyColumnFamilyHandle(family)));
  }
  // Two flushes whose keys alternate: those of one would be moved.
  constexpr size_t kMany = 4'000;
  for (const size_t odd : {0, 1}) {
    for (size_t i = odd; i < kMany; i += 2) {
      ASSERT_TRUE(IsOk(db_->Put(NoLog(), Key(i), TestValue(i, 1000))));
    }
    ASSERT_TRUE(IsOk(db_->Flush({})));
  }
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  EXPECT_EQ(too_few->count, 0);
  std::string value;
  for (size_t i = 0; i < kMany; ++i) {
    ASSERT_TRUE(IsOk(db_->Get({}, Key(i), &value)));
    ASSERT_EQ(value, TestValue(i, 1000));
  }
}

TEST_F(CompactRangeTest, AFamilyMayBeDroppedAndItsHandleDestroyedMeanwhile) {
  ColumnFamilyHandle* family = nullptr;
  Options options = SmallTableOptions(pool_);
  options.disable_auto_compactions = true;
  const auto gate = std::make_shared<Gate>();
  options.compaction_filter_factory = gate;
  ASSERT_TRUE(IsOk(db_->CreateColumnFamily(options, "family", &family)));
  for (size_t i = 0; i < 2'000; ++i) {
    ASSERT_TRUE(IsOk(db_->Put(NoLog(), family, Key(i), TestValue(i, 200))));
  }
  gate->least_level = 0;
  gate->closed = true;
  Status status;
  std::thread compaction([&, family] { status = db_->CompactRange({}, family, nullptr, nullptr); });
  EXPECT_TRUE(Eventually([&] { return gate->reached.load(); }));
  EXPECT_TRUE(IsOk(db_->DropColumnFamily(family)));
  EXPECT_TRUE(IsOk(db_->DestroyColumnFamilyHandle(family)));
  gate->closed = false;
  compaction.join();
  EXPECT_TRUE(IsOk(status));
  EXPECT_TRUE(IsOk(db_->Put(NoLog(), "k", "v")));
}

/// Trees that automatic compactions have made: most is in the deepest level, and the others are
/// full.
class CompactTreeTest : public CompactRangeTest {
 protected:
  void SetUp() override {}

  void OpenTree(const TestPoolOptions& pool, uint64_t bytes, uint64_t table_bytes = 64 << 10) {
    pool_ = OpenTestPool(pool);
    ASSERT_NE(pool_, nullptr);
    Options options = SmallTableOptions(pool_);
    options.compaction_filter_factory = gate_;
    options.target_file_size_base = table_bytes;
    options.max_bytes_for_level_base = 4 * table_bytes;
    ASSERT_TRUE(IsOk(DB::Open(options, "tree", &db_)));
    keys_ = bytes / kValueBytes;
    ASSERT_NO_FATAL_FAILURE(FillTree(1));
  }
  /// All keys, in an order of chance.
  void FillTree(uint64_t seed) {
    Random random(seed);
    std::vector<size_t> order(keys_);
    for (size_t i = 0; i < keys_; ++i) order[i] = i;
    for (size_t i = keys_; i > 1; --i) std::swap(order[i - 1], order[random.Uniform(i)]);
    size_t written = 0;
    for (const size_t i : order) {
      ASSERT_TRUE(IsOk(db_->Put(NoLog(), Key(i), TestValue(i, kValueBytes))));
      // Or level 0 would take what room there is.
      if (++written % 1000 != 0) continue;
      ASSERT_TRUE(IsOk(db_->WaitForCompact()));
    }
    ASSERT_TRUE(IsOk(db_->Flush({})));
    ASSERT_TRUE(IsOk(db_->WaitForCompact()));
  }
  void CheckTree() {
    std::string value;
    for (size_t i = 0; i < keys_; i += 7) {
      ASSERT_TRUE(IsOk(db_->Get({}, Key(i), &value))) << i;
      ASSERT_EQ(value, TestValue(i, kValueBytes)) << i;
    }
  }
  uint64_t Files(int level) {
    return GetNumber(db_.get(), "nacre.num-files-at-level" + std::to_string(level));
  }
  int Depth() {
    int depth = 7;
    while (depth > 0 && Files(depth - 1) == 0) --depth;
    return depth;
  }

  static constexpr size_t kValueBytes = 1000;
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  size_t keys_ = 0;
};

TEST_F(CompactTreeTest, TakesLessSpaceThanTheLevel) {
  constexpr uint64_t kSlab = 1 << 20;
  // Two tables leave little of a slab, and nothing that another one would fit into.
  ASSERT_NO_FATAL_FAILURE(
      OpenTree({.node_bytes = 32 << 20, .slab_bytes = kSlab}, 28 << 20, kSlab / 2));
  const int depth = Depth();
  ASSERT_GE(depth, 3);
  ASSERT_GT(Files(depth - 2), 0u);
  // Another database takes all free slabs but for a third of what the tree takes.
  const auto free_slabs = [this] {
    return SumOverNodes(pool_.get(), &pool::NodeStats::slabs_total) -
           SumOverNodes(pool_.get(), &pool::NodeStats::slabs_leased);
  };
  pool::DatabaseLease lease;
  ASSERT_TRUE(
      IsOk(pool_->client()->databases()->Open("other", {.create_if_missing = true}, &lease)));
  pool::SpaceAllocator other(pool_->client(), lease.database_id, kSlab, 4096);
  const uint64_t some = GetNumber(db_.get(), "nacre.total-sst-files-size") / kSlab / 3;
  while (free_slabs() > some) {
    Placement placement;
    ASSERT_TRUE(IsOk(other.Reserve(Redundancy(), kSlab * 7 / 8, kNoNode, &placement)));
  }
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  for (int level = 0; level + 1 < Depth(); ++level) EXPECT_EQ(Files(level), 0u) << level;
  ASSERT_NO_FATAL_FAILURE(CheckTree());
}

TEST_F(CompactTreeTest, KeepsWhatItHasDone) {
  ASSERT_NO_FATAL_FAILURE(OpenTree({.node_bytes = 32 << 20}, 14 << 20));
  const int above = Depth() - 2;
  ASSERT_GE(above, 1);
  // The last table of the deepest level that one above it has a key for cannot be read any more.
  const std::vector<TableMeta> tables = StoredTables(db_.get(), pool_.get());
  TableMeta last;
  for (const TableMeta& table : tables) {
    if (table.level != static_cast<uint32_t>(above + 1)) continue;
    const bool merged = std::any_of(tables.begin(), tables.end(), [&](const TableMeta& other) {
      return other.level == static_cast<uint32_t>(above) &&
             table.smallest_user_key().compare(other.smallest_user_key()) <= 0 &&
             other.smallest_user_key().compare(table.largest_user_key()) <= 0;
    });
    if (merged && (last.id == 0 || last.smallest < table.smallest)) last = table;
  }
  ASSERT_NE(last.id, 0u);
  for (uint64_t at = 0; at < last.records.length; at += 64) {
    *StoredByte(pool_.get(), last, 0, static_cast<int64_t>(at)) ^= 1;
  }
  const uint64_t before = Files(above);
  ASSERT_GT(before, 30u) << "several pieces";
  EXPECT_TRUE(db_->CompactRange({}, nullptr, nullptr).IsCorruption());
  EXPECT_LT(Files(above), before / 2) << "all pieces before the last one are done";
  EXPECT_GT(Files(above), 0u);
}

TEST_F(CompactTreeTest, OthersGoOnBesideIt) {
  ASSERT_NO_FATAL_FAILURE(OpenTree({.node_bytes = 32 << 20}, 6 << 20));
  ASSERT_GE(Depth(), 4);
  gate_->closed = true;
  Status status;
  std::thread compaction([&] { status = db_->CompactRange({}, nullptr, nullptr); });
  EXPECT_TRUE(Eventually([&] { return gate_->reached.load(); }));
  const int before = gate_->automatic;
  for (int flush = 0; flush < 4; ++flush) {
    for (size_t i = 0; i < 200; ++i) {
      EXPECT_TRUE(IsOk(db_->Put(NoLog(), Key(i * 31 % keys_), TestValue(i * 31 % keys_, 1000))));
    }
    EXPECT_TRUE(IsOk(db_->Flush({})));
  }
  EXPECT_TRUE(Eventually([&] { return gate_->automatic > before; }));
  gate_->closed = false;
  compaction.join();
  EXPECT_TRUE(IsOk(status));
  ASSERT_NO_FATAL_FAILURE(CheckTree());
}

}  // namespace
}  // namespace nacre
