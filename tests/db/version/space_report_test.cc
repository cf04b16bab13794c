// Goal: the account of a database's space adds up to what its nodes have leased to it, names what
// each byte is for, and says how much of the user's bytes is garbage.
// Method: databases at rest under several redundancies, whose figures must sum up, before and after
// a node is lost; garbage, tables that only an iterator reads, and freed space made on purpose.

#include "db/version/space_report.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "nacre/db.h"
#include "pool/reports.h"
#include "pool/wire/database_report.h"
#include "tests/support/status_assert.h"
#include "tests/support/table/stored_tables.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

class SpaceReportTest : public testing::Test {
 protected:
  void Open(const std::string& redundancy) {
    db_.reset();
    pool_ = OpenTestPool({.nodes = 6, .node_bytes = 64 << 20});
    ASSERT_NE(pool_, nullptr);
    Options options = SmallTableOptions(pool_);
    options.redundancy = redundancy;
    options.chunk_size = 4 << 10;
    options.disable_auto_compactions = true;
    // What is lost stays lost.
    pool::Directions now;
    ASSERT_TRUE(IsOk(pool::SetDirections(
        pool_->client(), 0,
        {.version = 1, .draining = {}, .repair_paused = true, .added_addresses = {}}, &now)));
    ASSERT_TRUE(IsOk(DB::Open(options, "space", &db_)));
  }

  static std::string Key(size_t i) {
    const std::string digits = std::to_string(i);
    return "key" + std::string(8 - digits.size(), '0') + digits;
  }
  void Fill(size_t begin, size_t end, size_t value_size) {
    for (size_t i = begin; i < end; ++i) {
      ASSERT_TRUE(IsOk(db_->Put(NoLog(), Key(i), TestValue(i, value_size))));
    }
    ASSERT_TRUE(IsOk(db_->Flush({})));
  }

  uint64_t Space(const std::string& name) { return GetNumber(db_.get(), "nacre.space." + name); }
  void CheckSum() {
    // Each figure is asked for by itself, and slabs come and go in the background.
    EXPECT_TRUE(Eventually([&] {
      return Space("leased-bytes") + Space("lost-bytes") ==
             Space("user-bytes") + Space("header-bytes") + Space("remote-index-bytes") +
                 Space("parity-bytes") + Space("padding-bytes") + Space("log-bytes") +
                 Space("unlinked-bytes") + Space("free-bytes");
    })) << GetTextProperty(db_.get(), "nacre.space");
    EXPECT_EQ(Space("data-bytes"),
              Space("user-bytes") + Space("header-bytes") + Space("remote-index-bytes"));
    EXPECT_EQ(Space("data-bytes"), GetNumber(db_.get(), "nacre.total-sst-files-size"));
    EXPECT_TRUE(Eventually([&] {
      return Space("used-bytes") + Space("log-bytes") + Space("free-bytes") ==
             Space("leased-bytes");
    })) << GetTextProperty(db_.get(), "nacre.space");
  }

  std::shared_ptr<pool::PoolImpl> pool_;
  std::unique_ptr<DB> db_;
};

TEST_F(SpaceReportTest, AddsUpUnderEveryRedundancy) {
  const struct {
    const char* redundancy;
    double parity;  ///< Parity bytes per byte of data.
  } kCases[] = {{"none", 0}, {"rep(3)", 2}, {"rs(4,2)", 0.5}, {"rs(2,1)", 0.5}, {"rs(5,0)", 0}};
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.redundancy);
    ASSERT_NO_FATAL_FAILURE(Open(test.redundancy));
    ASSERT_NO_FATAL_FAILURE(CheckSum());
    EXPECT_EQ(Space("data-bytes"), 0u);
    ASSERT_NO_FATAL_FAILURE(Fill(0, 5000, 400));
    ASSERT_NO_FATAL_FAILURE(CheckSum());
    EXPECT_EQ(Space("user-bytes"), 5000u * 411);
    EXPECT_GT(Space("header-bytes"), 5000u * 7) << "at least a checksum and two lengths each";
    EXPECT_GT(Space("remote-index-bytes"), 5000u * 4);
    EXPECT_NEAR(static_cast<double>(Space("parity-bytes")),
                test.parity * static_cast<double>(Space("data-bytes")),
                0.02 * static_cast<double>(Space("data-bytes")));
    EXPECT_GT(Space("padding-bytes"), 0u);
    EXPECT_EQ(Space("unlinked-bytes"), 0u);
    EXPECT_EQ(Space("lost-bytes"), 0u);
    EXPECT_EQ(Space("garbage-bytes"), 0u);

    const uint64_t stored = Space("stored-bytes");
    const auto tables = StoredTables(db_.get(), pool_.get());
    ASSERT_FALSE(tables.empty());
    pool_->KillEmbeddedNode(tables[0].placement.fragments[0].start.node);
    std::string value;
    for (size_t i = 0; i < 5000; i += 10) db_->Get({}, Key(i), &value).IgnoreError();
    ASSERT_NO_FATAL_FAILURE(CheckSum());
    EXPECT_EQ(Space("stored-bytes"), stored);
    EXPECT_GT(Space("lost-bytes"), 0u);
  }
}

TEST_F(SpaceReportTest, CountsWhatIsShadowedInItsTable) {
  ASSERT_NO_FATAL_FAILURE(Open("none"));
  ASSERT_NO_FATAL_FAILURE(Fill(0, 2000, 100));
  EXPECT_EQ(Space("shadowing-bytes"), 0u);
  // A second table over the first: it may shadow as much as it holds.
  const uint64_t first = Space("user-bytes");
  const Snapshot* snapshot = db_->GetSnapshot();
  for (size_t i = 0; i < 500; ++i) ASSERT_TRUE(IsOk(db_->Put(NoLog(), Key(i), "short")));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_EQ(Space("garbage-bytes"), 0u);
  EXPECT_GE(Space("shadowing-bytes"), Space("user-bytes") - first);
  // The snapshot keeps the older versions, now in one table with the newer ones.
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ASSERT_NO_FATAL_FAILURE(CheckSum());
  const double garbage = static_cast<double>(Space("garbage-bytes"));
  EXPECT_GT(garbage, 0.5 * 500 * 100);
  EXPECT_LT(garbage, 1.5 * 500 * 111);
  EXPECT_EQ(Space("shadowing-bytes"), 0u);
  db_->ReleaseSnapshot(snapshot);
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  EXPECT_EQ(Space("garbage-bytes"), 0u);
  // Tombstones above what they delete.
  for (size_t i = 0; i < 300; ++i) ASSERT_TRUE(IsOk(db_->Delete(NoLog(), Key(i))));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_EQ(Space("garbage-bytes"), 300u * Key(0).size());
}

TEST_F(SpaceReportTest, KnowsWhatOnlyIteratorsHold) {
  ASSERT_NO_FATAL_FAILURE(Open("rs(4,2)"));
  ASSERT_NO_FATAL_FAILURE(Fill(0, 3000, 300));
  const uint64_t stored = Space("stored-bytes");
  std::unique_ptr<Iterator> iterator = db_->NewIterator({});
  iterator->SeekToFirst();
  for (size_t i = 0; i < 3000; ++i) ASSERT_TRUE(IsOk(db_->Delete(NoLog(), Key(i))));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ASSERT_NO_FATAL_FAILURE(CheckSum());
  EXPECT_EQ(Space("stored-bytes"), 0u);
  EXPECT_EQ(Space("unlinked-bytes"), stored);
  iterator.reset();
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ASSERT_NO_FATAL_FAILURE(CheckSum());
  EXPECT_EQ(Space("unlinked-bytes"), 0u);
}

TEST_F(SpaceReportTest, PrintsALineForEachFigure) {
  ASSERT_NO_FATAL_FAILURE(Open("rs(4,2)"));
  ASSERT_NO_FATAL_FAILURE(Fill(0, 3000, 300));
  const std::string text = GetTextProperty(db_.get(), "nacre.space");
  for (const SpaceField& field : SpaceFields()) {
    EXPECT_NE(text.find(std::string(field.name)), std::string::npos) << field.name << "\n" << text;
  }
}

}  // namespace
}  // namespace nacre
