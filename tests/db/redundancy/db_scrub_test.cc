// Goal: scrubbing finds each damaged place, and nothing else, and says what is beyond reading.
// Method: bits flipped in the memory of embedded nodes.

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "table/format/fragment_checksums.h"
#include "tests/support/redundant_db.h"
#include "tests/support/status_assert.h"
#include "tests/support/table/stored_tables.h"

namespace nacre {
namespace {

class DBScrubTest : public RedundantDBTest {
 protected:
  void OpenWithTables(const char* redundancy, int nodes) {
    options_.disable_auto_compactions = true;
    pause_repair_ = true;
    ASSERT_NO_FATAL_FAILURE(Open(redundancy, nodes));
    ASSERT_NO_FATAL_FAILURE(Fill(4000));
    ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
    ASSERT_NO_FATAL_FAILURE(Fill(1000));
    ASSERT_TRUE(IsOk(db_->Flush({})));
    tables_ = StoredTables(db_.get(), pool_.get());
  }

  void Reopen(uint64_t bytes_per_second) {
    db_.reset();
    options_.scrub_bytes_per_second = bytes_per_second;
    ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_)));
  }

  uint64_t Number(const char* name) { return GetNumber(db_.get(), name); }

  void Flip(const TableMeta& table, size_t fragment, int64_t offset) {
    char* const byte = StoredByte(pool_.get(), table, fragment, offset);
    *byte = static_cast<char>(*byte ^ 1 << random_.Uniform(8));
  }

  std::vector<TableMeta> tables_;
};

TEST_F(DBScrubTest, FindsABitWhereverItIs) {
  for (const char* redundancy : {"none", "rep(2)", "rs(4,2)"}) {
    SCOPED_TRACE(redundancy);
    ASSERT_NO_FATAL_FAILURE(OpenWithTables(redundancy, 6));
    const bool none = std::string(redundancy) == "none";
    ASSERT_NO_FATAL_FAILURE(Reopen(0));
    ASSERT_TRUE(IsOk(db_->VerifyChecksum()));
    EXPECT_EQ(Number("nacre.damage.fragments"), 0u);
    uint64_t stored = 0;
    for (const TableMeta& table : tables_) {
      for (size_t i = 0; i < table.placement.fragments.size(); ++i) {
        stored += FragmentBytes(table.placement, static_cast<int>(i), table.size);
      }
    }
    EXPECT_EQ(Number("nacre.scrub.bytes"), stored);
    EXPECT_EQ(Number("nacre.scrub.passes"), 1u);
    size_t flips = 0;
    for (const TableMeta& table : tables_) {
      // One that has bytes: of a short table the last ones of data have none.
      size_t fragment = 0;
      uint64_t bytes = 0;
      while (bytes == 0) {
        fragment = random_.Uniform(table.placement.fragments.size());
        bytes = FragmentBytes(table.placement, static_cast<int>(fragment), table.size);
      }
      const uint64_t tail = FragmentTailBytes(bytes, table.chunk_size);
      // Any byte of the head that is its meta's: the fixed part is.
      const int64_t places[] = {0, static_cast<int64_t>(bytes) - 1,
                                static_cast<int64_t>(random_.Uniform(bytes)),
                                static_cast<int64_t>(bytes + random_.Uniform(tail)),
                                -static_cast<int64_t>(kFragmentHeadBytes - random_.Uniform(200))};
      const int64_t place = places[flips++ % 5];
      char* const byte = StoredByte(pool_.get(), table, fragment, place);
      const char before = *byte;
      Flip(table, fragment, place);
      const uint64_t found = Number("nacre.scrub.damaged-fragments");
      const Status status = db_->VerifyChecksum();
      const bool of_data = place >= 0 && place < static_cast<int64_t>(bytes);
      if (none && of_data) {
        EXPECT_TRUE(
            IsFailure(status, Status::Code::kCorruption, "table " + std::to_string(table.id)));
      } else {
        EXPECT_TRUE(IsOk(status));
      }
      EXPECT_EQ(Number("nacre.scrub.damaged-fragments"), found + 1);
      // What is known stays known.
      EXPECT_EQ(Number("nacre.damage.fragments"), flips);
      *byte = before;
    }
    ASSERT_GT(flips, 4u);
    ASSERT_NO_FATAL_FAILURE(Check());
  }
}

TEST_F(DBScrubTest, MoreThanCanBeReadAroundIsNamed) {
  ASSERT_NO_FATAL_FAILURE(OpenWithTables("rs(4,2)", 6));
  const TableMeta* striped = nullptr;
  for (const TableMeta& table : tables_) {
    if (table.placement.redundancy.striped()) striped = &table;
  }
  ASSERT_NE(striped, nullptr);
  Flip(*striped, 0, 5);
  Flip(*striped, 4, 7);
  EXPECT_TRUE(IsOk(db_->VerifyChecksum()));
  EXPECT_EQ(Number("nacre.damage.fragments"), 2u);
  EXPECT_EQ(Number("nacre.damage.reads"), 0u);
  ASSERT_NO_FATAL_FAILURE(Check());
  Flip(*striped, 2, 100);
  EXPECT_TRUE(IsFailure(db_->VerifyChecksum(), Status::Code::kCorruption,
                        "table " + std::to_string(striped->id)));
}

TEST_F(DBScrubTest, LostNodesAreLeftOut) {
  ASSERT_NO_FATAL_FAILURE(OpenWithTables("rep(2)", 3));
  pool_->KillEmbeddedNode(1);
  EXPECT_TRUE(IsOk(db_->VerifyChecksum()));
  // The other copy of something.
  for (const TableMeta& table : tables_) {
    for (size_t i = 0; i < 2; ++i) {
      if (table.placement.fragments[1 - i].start.node == 1) Flip(table, i, 3);
    }
  }
  EXPECT_TRUE(IsFailure(db_->VerifyChecksum(), Status::Code::kCorruption, "table "));
  pool_->KillEmbeddedNode(2);
  EXPECT_FALSE(db_->VerifyChecksum().ok());
}

TEST_F(DBScrubTest, GoesOnByItself) {
  ASSERT_NO_FATAL_FAILURE(OpenWithTables("rs(2,1)", 4));
  // Slow enough that closing and asking interrupt it.
  for (const uint64_t pace : {uint64_t{1} << 30, uint64_t{100'000}}) {
    ASSERT_NO_FATAL_FAILURE(Reopen(pace));
    while (Number("nacre.scrub.bytes") == 0) std::this_thread::yield();
    ASSERT_TRUE(IsOk(db_->VerifyChecksum()));
  }
  db_.reset();
  Flip(tables_.front(), 0, 5);
  ASSERT_NO_FATAL_FAILURE(Reopen(uint64_t{1} << 30));
  while (Number("nacre.damage.fragments") == 0) std::this_thread::yield();
  ASSERT_NO_FATAL_FAILURE(Check());
}

TEST_F(DBScrubTest, WhatIsFoundIsRepaired) {
  options_.disable_auto_compactions = true;
  for (const char* redundancy : {"rs(4,2)", "rep(3)"}) {
    SCOPED_TRACE(redundancy);
    ASSERT_NO_FATAL_FAILURE(Open(redundancy, 6));
    ASSERT_NO_FATAL_FAILURE(Fill(4000));
    ASSERT_TRUE(IsOk(db_->Flush({})));
    // Each time others than before: without repair it would soon be too much.
    for (int round = 0; round < 4; ++round) {
      tables_ = StoredTables(db_.get(), pool_.get());
      for (const TableMeta& table : tables_) {
        for (size_t i = 0; i < 2; ++i) {
          const size_t fragment =
              (static_cast<size_t>(2 * round) + i) % table.placement.fragments.size();
          Flip(table, fragment, 10);
        }
      }
      ASSERT_TRUE(IsOk(db_->VerifyChecksum()));
      EXPECT_EQ(Number("nacre.scrub.damaged-fragments"), (round + 1) * 2 * tables_.size());
      ASSERT_TRUE(Eventually([&] { return Number("nacre.damage.fragments") == 0; }));
      ASSERT_NO_FATAL_FAILURE(Check());
    }
    const uint64_t found = Number("nacre.scrub.damaged-fragments");
    ASSERT_TRUE(IsOk(db_->VerifyChecksum()));
    EXPECT_EQ(Number("nacre.scrub.damaged-fragments"), found);
    EXPECT_EQ(Number("nacre.damage.reads"), 0u);
  }
}

TEST_F(DBScrubTest, AFragmentOfWhichTheHeadIsDamagedTooIsRepaired) {
  options_.disable_auto_compactions = true;
  for (const char* redundancy : {"rs(4,2)", "rep(2)"}) {
    SCOPED_TRACE(redundancy);
    ASSERT_NO_FATAL_FAILURE(Open(redundancy, 6));
    ASSERT_NO_FATAL_FAILURE(Fill(4000));
    ASSERT_TRUE(IsOk(db_->Flush({})));
    tables_ = StoredTables(db_.get(), pool_.get());
    for (const TableMeta& table : tables_) {
      // This damages the copy that a repair reads first.
      Flip(table, 0, 10);
      Flip(table, 0, -static_cast<int64_t>(kFragmentHeadBytes - random_.Uniform(200)));
    }
    ASSERT_TRUE(IsOk(db_->VerifyChecksum()));
    const uint64_t found = Number("nacre.scrub.damaged-fragments");
    EXPECT_GE(found, tables_.size());
    ASSERT_TRUE(Eventually([&] { return Number("nacre.damage.fragments") == 0; }));
    ASSERT_TRUE(IsOk(db_->VerifyChecksum()));
    EXPECT_EQ(Number("nacre.scrub.damaged-fragments"), found);
    ASSERT_NO_FATAL_FAILURE(Check());
  }
}

TEST_F(DBScrubTest, TablesComeAndGoMeanwhile) {
  scrub_bytes_per_second_ = uint64_t{1} << 30;
  ASSERT_NO_FATAL_FAILURE(Open("rs(2,1)", 4));
  std::atomic<bool> done{false};
  std::thread verifier([&] {
    while (!done.load()) ASSERT_TRUE(IsOk(db_->VerifyChecksum()));
  });
  ASSERT_NO_FATAL_FAILURE(Fill(20'000));
  done.store(true);
  verifier.join();
  EXPECT_EQ(Number("nacre.damage.fragments"), 0u);
  ASSERT_NO_FATAL_FAILURE(Check());
  for (const auto& [key, value] : model_) ASSERT_TRUE(IsOk(db_->Delete(NoLog(), key)));
  model_.clear();
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  // A batch under way pins its tables.
  while (Number("nacre.space.used-bytes") > 0) std::this_thread::yield();
}

}  // namespace
}  // namespace nacre
