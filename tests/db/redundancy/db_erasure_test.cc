// Goal: a database under an erasure code loses nothing and answers nothing wrong, whichever nodes
// it may lose are lost: at rest, by every pattern of loss, and under flushes and compactions.

#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nacre/db.h"
#include "tests/support/process/test_nodes.h"
#include "tests/support/redundant_db.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

using DBErasureTest = RedundantDBTest;

TEST_F(DBErasureTest, HoldsAModelAndGivesItsSpaceBack) {
  for (const char* redundancy : {"rs(2,1)", "rs(4,2)", "rs(5,0)", "L0:rep(3),*:rs(4,2)"}) {
    SCOPED_TRACE(redundancy);
    ASSERT_NO_FATAL_FAILURE(Open(redundancy, 6));
    ASSERT_NO_FATAL_FAILURE(Fill(20'000));
    ASSERT_NO_FATAL_FAILURE(Check());
    ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
    ASSERT_NO_FATAL_FAILURE(Check());
    // Opened again, it is all there.
    db_.reset();
    ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_)));
    ASSERT_NO_FATAL_FAILURE(Check());
    for (const auto& [key, value] : model_) ASSERT_TRUE(IsOk(db_->Delete(NoLog(), key)));
    model_.clear();
    ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
    EXPECT_EQ(GetNumber(db_.get(), "nacre.space.used-bytes"), 0u);
  }
}

// As many copies as an option can ask for, of tables and manifest.
TEST_F(DBErasureTest, ManyCopiesOutliveAllNodesButOne) {
  for (const int copies : {9, 16}) {
    SCOPED_TRACE(copies);
    options_.disable_auto_compactions = true;
    ASSERT_NO_FATAL_FAILURE(Open("rep(" + std::to_string(copies) + ")", copies));
    ASSERT_NO_FATAL_FAILURE(Fill(500));
    ASSERT_TRUE(IsOk(db_->Flush({})));
    db_.reset();
    ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_)));
    for (NodeId node = 1; node < copies; ++node) pool_->KillEmbeddedNode(node);
    ASSERT_NO_FATAL_FAILURE(Check());
  }
}

class LossTest : public RedundantDBTest, public testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Codes, LossTest, testing::Values("rs(2,1)", "rs(4,2)", "rs(6,3)"),
                         [](const auto& code) {
                           std::string name = code.param;
                           for (char& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           }
                           return name;
                         });

TEST_P(LossTest, EveryPatternReadsBack) {
  Redundancy redundancy;
  ASSERT_TRUE(IsOk(ParseRedundancy(GetParam(), &redundancy)));
  const auto nodes = static_cast<uint32_t>(redundancy.fragments());
  for (uint32_t pattern = 1; pattern < uint32_t{1} << nodes; ++pattern) {
    // The patterns within each are met on the way.
    if (std::popcount(pattern) != redundancy.parity) continue;
    SCOPED_TRACE("nodes lost: " + std::to_string(pattern));
    // Compactions that meet a dead node would only take time.
    options_.disable_auto_compactions = true;
    ASSERT_NO_FATAL_FAILURE(Open(GetParam(), redundancy.fragments()));
    ASSERT_NO_FATAL_FAILURE(Fill(2000));
    ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
    ASSERT_NO_FATAL_FAILURE(Fill(1000));
    ASSERT_TRUE(IsOk(db_->Flush({})));
    for (uint32_t node = 0; node < nodes; ++node) {
      if ((pattern >> node & 1) == 0) continue;
      pool_->KillEmbeddedNode(static_cast<NodeId>(node));
      ASSERT_NO_FATAL_FAILURE(Check());
    }
  }
}

TEST_F(DBErasureTest, GoesOnWithFewerNodesIfThatIsAllowed) {
  ASSERT_NO_FATAL_FAILURE(Open("rs(4,2)", 6, /*degraded_writes=*/true));
  ASSERT_NO_FATAL_FAILURE(Fill(5000));
  for (const NodeId node : {1, 4}) {
    pool_->KillEmbeddedNode(node);
    ASSERT_NO_FATAL_FAILURE(Fill(5000));
    ASSERT_TRUE(IsOk(db_->Flush({})));
    ASSERT_NO_FATAL_FAILURE(Check());
  }
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ASSERT_NO_FATAL_FAILURE(Check());
  // All tables have been written anew on four nodes, of which any two may go.
  pool_->KillEmbeddedNode(0);
  pool_->KillEmbeddedNode(5);
  ASSERT_NO_FATAL_FAILURE(Check());
}

TEST_F(DBErasureTest, ANarrowerCodeToleratesAsManyLosses) {
  ASSERT_NO_FATAL_FAILURE(Open("rs(4,2)", 6));
  ASSERT_NO_FATAL_FAILURE(Fill(5000));
  for (const NodeId node : {1, 4}) {
    pool_->KillEmbeddedNode(node);
    ASSERT_NO_FATAL_FAILURE(Fill(5000));
    ASSERT_TRUE(IsOk(db_->Flush({})));
    ASSERT_NO_FATAL_FAILURE(Check());
  }
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  // All tables have been written anew on four nodes, of which any two may go.
  pool_->KillEmbeddedNode(0);
  ASSERT_NO_FATAL_FAILURE(Fill(500));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  pool_->KillEmbeddedNode(5);
  ASSERT_NO_FATAL_FAILURE(Check());
  // On the two that are left nothing tolerates as much.
  model_["key1"] = TestValue(1, 100'000);
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "key1", model_["key1"])));
  EXPECT_TRUE(IsFailure(db_->Flush({}), Status::Code::kUnavailable, "rs(4,2) needs 6 nodes"));
  ASSERT_NO_FATAL_FAILURE(Check());
}

TEST_F(DBErasureTest, FlushesWaitForNodesIfNeitherIsAllowed) {
  options_.allow_narrow_writes = false;
  ASSERT_NO_FATAL_FAILURE(Open("rs(4,2)", 6));
  ASSERT_NO_FATAL_FAILURE(Fill(3000));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  const std::string address = pool_->client()->node_address(2);
  pool_->KillEmbeddedNode(2);
  // Too much for a table that is replicated.
  model_["key1"] = TestValue(1, 100'000);
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "key1", model_["key1"])));
  EXPECT_TRUE(IsFailure(db_->Flush({}), Status::Code::kUnavailable, address));
  ASSERT_NO_FATAL_FAILURE(Check());
}

TEST_F(DBErasureTest, WithSpareNodesWritesKeepTheirRedundancy) {
  ASSERT_NO_FATAL_FAILURE(Open("rs(2,1)", 5));
  ASSERT_NO_FATAL_FAILURE(Fill(5000));
  pool_->KillEmbeddedNode(1);
  ASSERT_NO_FATAL_FAILURE(Fill(5000));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ASSERT_NO_FATAL_FAILURE(Check());
  pool_->KillEmbeddedNode(3);
  ASSERT_NO_FATAL_FAILURE(Check());
}

TEST_F(DBErasureTest, TooFewNodesAreRefused) {
  pool_ = OpenTestPool({.nodes = 5, .node_bytes = 64 << 20});
  ASSERT_NE(pool_, nullptr);
  options_ = SmallTableOptions(pool_);
  options_.redundancy = "L0:rep(2),*:rs(4,2)";
  EXPECT_TRUE(
      IsFailure(DB::Open(options_, "db", &db_), Status::Code::kInvalidArgument, "needs 6 nodes"));
}

}  // namespace
}  // namespace nacre
