// Goal: in a pool that was filled until it refused, an application can delete all that it stored,
// with pauses only, and write again afterwards; Close and the next Open work at each moment.
// Method: pools that hold some thousand records under each kind of redundancy, with records of
// 4 KB, of some bytes and of half a megabyte; deletions in key order and in random order, in
// batches; the database is closed and opened again when the pool is full and as it empties.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "nacre/db.h"
#include "nacre/write_batch.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

struct FullPoolCase {
  const char* name;
  const char* redundancy;
  size_t value_bytes;
  bool in_order;  ///< The order of the keys; if false, it is random.
  uint64_t node_bytes = 40 << 20;
};

std::ostream& operator<<(std::ostream& out, const FullPoolCase& it) { return out << it.name; }

class DeletingInAFullPoolTest : public testing::TestWithParam<FullPoolCase> {
 protected:
  static constexpr size_t kBatch = 50;

  static std::string Key(size_t i) {
    const std::string number = std::to_string(i);
    return "key" + std::string(7 - number.size(), '0') + number;
  }

  void SetOptions(std::shared_ptr<Pool> pool) {
    options_ = SmallTableOptions(std::move(pool));
    options_.redundancy = GetParam().redundancy;
    options_.slab_size = 4 << 20;
    options_.chunk_size = 16 << 10;
    options_.write_buffer_size = 1 << 20;
    options_.target_file_size_base = 1 << 20;
    options_.max_bytes_for_level_base = 4 << 20;
  }

  void Open() {
    const Status status = DB::Open(options_, "full", &db_);
    ASSERT_TRUE(IsOk(status));
  }

  void CloseAndOpen() {
    ASSERT_TRUE(IsOk(db_->Close()));
    db_.reset();
    ASSERT_NO_FATAL_FAILURE(Open());
  }

  std::string Value(size_t i) const { return TestValue(i, GetParam().value_bytes); }

  /// Writes until a write is refused.
  void FillUp() {
    Status status;
    for (written_ = 0; written_ < 10'000'000; ++written_) {
      status = db_->Put(write_, Key(written_), Value(written_));
      if (!status.ok()) break;
    }
    ASSERT_TRUE(IsFailure(status, Status::Code::kNoSpace)) << "after " << written_ << " writes";
    ASSERT_GT(written_, 20u);
  }

  /// A refusal may outlive its cause for as long as background work pauses before it tries again.
  Status WriteSoon(WriteBatch* batch) {
    Status status;
    for (int i = 0; i < 1000; ++i) {
      status = db_->Write(write_, batch);
      if (!status.IsNoSpace()) return status;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return status;
  }

  /// Those of `keys` from `begin` to `end`.
  void Delete(const std::vector<size_t>& keys, size_t begin, size_t end) {
    for (size_t i = begin; i < end;) {
      WriteBatch batch;
      for (size_t j = 0; j < kBatch && i < end; ++j, ++i) {
        ASSERT_TRUE(IsOk(batch.Delete(Key(keys[i]))));
      }
      ASSERT_TRUE(IsOk(WriteSoon(&batch))) << i << " of " << keys.size() << " deletions";
    }
  }

  /// Those of `keys` from `gone` on are there, and no others.
  void CheckWhatIsLeft(const std::vector<size_t>& keys, size_t gone) {
    std::vector<size_t> left(keys.begin() + static_cast<ptrdiff_t>(gone), keys.end());
    std::sort(left.begin(), left.end());
    const std::unique_ptr<Iterator> iterator = db_->NewIterator({});
    iterator->SeekToFirst();
    for (const size_t i : left) {
      ASSERT_TRUE(iterator->Valid()) << Key(i) << ": " << iterator->status().ToString();
      ASSERT_EQ(iterator->key().ToString(), Key(i));
      if (i % 31 == 0) {
        ASSERT_TRUE(iterator->value().ToString() == Value(i)) << Key(i);
      }
      iterator->Next();
    }
    ASSERT_FALSE(iterator->Valid()) << iterator->key().ToString();
    ASSERT_TRUE(IsOk(iterator->status()));
  }

  void FillAndEmpty() {
    ASSERT_NO_FATAL_FAILURE(FillUp());
    std::vector<size_t> keys(written_);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
    if (!GetParam().in_order) std::shuffle(keys.begin(), keys.end(), std::mt19937_64(TestSeed(20)));
    constexpr size_t kParts = 6;
    for (size_t part = 0; part < kParts; ++part) {
      SCOPED_TRACE(part);
      const size_t begin = keys.size() * part / kParts;
      ASSERT_NO_FATAL_FAILURE(CheckWhatIsLeft(keys, begin));
      ASSERT_NO_FATAL_FAILURE(CloseAndOpen());
      ASSERT_NO_FATAL_FAILURE(CheckWhatIsLeft(keys, begin));
      ASSERT_NO_FATAL_FAILURE(Delete(keys, begin, keys.size() * (part + 1) / kParts));
    }
    ASSERT_NO_FATAL_FAILURE(CheckWhatIsLeft(keys, keys.size()));
    for (size_t i = 0; i < keys.size() / 3; ++i) {
      WriteBatch batch;
      ASSERT_TRUE(IsOk(batch.Put(Key(i), Value(i))));
      ASSERT_TRUE(IsOk(WriteSoon(&batch))) << i << " of " << keys.size();
    }
    ASSERT_TRUE(IsOk(db_->Close()));
  }

  WriteOptions write_;
  size_t written_ = 0;
  Options options_;
  std::unique_ptr<DB> db_;
};

TEST_P(DeletingInAFullPoolTest, EmptiesItAndWritesAgain) {
  TestPoolOptions pool;
  pool.nodes = 3;
  pool.node_bytes = GetParam().node_bytes;
  pool.slab_bytes = 4 << 20;
  SetOptions(OpenTestPool(pool));
  ASSERT_NE(options_.pool, nullptr);
  write_ = NoLog();
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(FillAndEmpty());
}

TEST_P(DeletingInAFullPoolTest, EmptiesItWithALogAndWritesAgain) {
  const MemnodeProcesses nodes(
      3, MemnodeProcessOptions{.size = std::to_string(GetParam().node_bytes), .slab_size = "4MiB"});
  SetOptions(nullptr);
  options_.pool_uri = nodes.pool_uri();
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(FillAndEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    All, DeletingInAFullPoolTest,
    testing::Values(FullPoolCase{"NoneInOrder", "none", 4000, true},
                    FullPoolCase{"NoneAtRandom", "none", 4000, false},
                    FullPoolCase{"CopiesAtRandom", "rep(2)", 4000, false},
                    FullPoolCase{"StripedAtRandom", "rs(2,1)", 4000, false},
                    FullPoolCase{"SmallValuesAtRandom", "rep(2)", 30, false, 24 << 20},
                    FullPoolCase{"LargeValuesAtRandom", "rs(2,1)", 500'000, false}),
    [](const auto& param) { return param.param.name; });

// ---- What fails for want of room, and is not wanted any more
// --------------------------------------

TEST(PoolThatWasFullTest, NothingFailsOnceNothingIsToBeDone) {
  const auto pool = OpenTestPool({.nodes = 2, .node_bytes = 32 << 20});
  ASSERT_NE(pool, nullptr);
  Options options = SmallTableOptions(pool);
  options.disable_auto_compactions = true;
  std::unique_ptr<DB> db;
  ASSERT_TRUE(IsOk(DB::Open(options, "db", &db)));
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 600; ++i) {
      ASSERT_TRUE(IsOk(db->Put(NoLog(), "key" + std::to_string(i), TestValue(1, 4000))));
    }
    ASSERT_TRUE(IsOk(db->Flush({})));
  }
  // Others take all the room that there is.
  std::vector<std::unique_ptr<DB>> others;
  Status status;
  for (int other = 0; other < 40 && status.ok(); ++other) {
    status = DB::Open(options, "other" + std::to_string(other), &others.emplace_back());
    Status put;
    for (int i = 0; status.ok() && put.ok(); ++i) {
      put = others.back()->Put(NoLog(), "key" + std::to_string(i), TestValue(1, 4000));
      if (put.ok() && i % 100 == 99) put = others.back()->Flush({});
    }
  }
  EXPECT_TRUE(IsFailure(db->CompactRange({}, nullptr, nullptr), Status::Code::kNoSpace));
  for (size_t i = 0; i < others.size(); ++i) {
    if (others[i] == nullptr) continue;
    others[i]->Close().IgnoreError();
    others[i].reset();
    ASSERT_TRUE(IsOk(DestroyDB("other" + std::to_string(i), options)));
  }
  // It was asked for once, and that call has been told.
  EXPECT_TRUE(IsOk(db->WaitForCompact()));
}

}  // namespace
}  // namespace nacre
