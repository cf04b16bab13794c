// Goal: no two fragments of a table lie in one failure domain, whatever is lost, and too few
// domains are told as such. Method: embedded nodes with labels; the tables' places as the database
// tells them.

#include <gtest/gtest.h>

#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

class DBDomainTest : public testing::Test {
 protected:
  void OpenPool(std::vector<std::string> domains) {
    db_.reset();
    domains_ = domains;
    pool_ = OpenTestPool({.nodes = static_cast<int>(domains.size()),
                          .node_bytes = 64 << 20,
                          .domains = std::move(domains)});
    ASSERT_NE(pool_, nullptr);
  }
  Status Open(const std::string& redundancy, bool degraded_writes = false) {
    Options options = SmallTableOptions(pool_);
    options.redundancy = redundancy;
    options.chunk_size = 4 << 10;
    options.allow_degraded_writes = degraded_writes;
    options.allow_narrow_writes = false;
    return DB::Open(options, "db", &db_);
  }
  Status Write(size_t keys) {
    for (size_t i = 0; i < keys; ++i) {
      NACRE_RETURN_IF_ERROR(
          db_->Put(NoLog(), "key" + std::to_string(i * 7919 % keys), TestValue(i, 300)));
    }
    return db_->Flush({});
  }

  /// Checks each table, of `fragments` fragments unless it is small. How many there are.
  size_t CheckTables(size_t fragments) {
    std::istringstream tables(GetTextProperty(db_.get(), "nacre.sstables"));
    static const std::regex kNode(" node (\\d+) at");
    size_t count = 0;
    for (std::string line; std::getline(tables, line); ++count) {
      std::multiset<std::string> used;
      for (std::sregex_iterator it(line.begin(), line.end(), kNode), end; it != end; ++it) {
        const auto node = static_cast<size_t>(std::stoi((*it)[1]));
        used.insert(domains_[node].empty() ? "node " + std::to_string(node) : domains_[node]);
      }
      EXPECT_EQ(std::set<std::string>(used.begin(), used.end()).size(), used.size()) << line;
      EXPECT_LE(used.size(), fragments) << line;
    }
    return count;
  }

  std::vector<std::string> domains_;
  std::shared_ptr<pool::PoolImpl> pool_;
  std::unique_ptr<DB> db_;
};

TEST_F(DBDomainTest, FragmentsLieApart) {
  ASSERT_NO_FATAL_FAILURE(OpenPool({"a", "a", "b", "b", "c", "", "", "c"}));
  for (const char* redundancy : {"rs(3,2)", "rep(3)", "rs(2,1)"}) {
    SCOPED_TRACE(redundancy);
    ASSERT_TRUE(IsOk(Open(redundancy)));
    ASSERT_TRUE(IsOk(Write(10'000)));
    ASSERT_TRUE(IsOk(db_->WaitForCompact()));
    EXPECT_GT(CheckTables(5), 5u);
    EXPECT_GT(GetNumber(db_.get(), "nacre.compaction.bytes-written"), 0u);
    ASSERT_TRUE(IsOk(db_->Close()));
  }
}

TEST_F(DBDomainTest, TooFewAreNamedAtOpen) {
  ASSERT_NO_FATAL_FAILURE(OpenPool({"a", "a", "b", "b", "c", "c"}));
  const Status status = Open("rs(4,2)");
  EXPECT_TRUE(IsFailure(status, Status::Code::kInvalidArgument));
  EXPECT_NE(status.ToString().find("needs 6 failure domains"), std::string::npos)
      << status.ToString();
  EXPECT_NE(status.ToString().find("has 3"), std::string::npos) << status.ToString();
  EXPECT_TRUE(IsOk(Open("rs(2,1)")));
}

TEST_F(DBDomainTest, ALostDomainIsAsALostNode) {
  for (const bool degraded_writes : {false, true}) {
    SCOPED_TRACE(degraded_writes);
    ASSERT_NO_FATAL_FAILURE(OpenPool({"a", "a", "b", "b", "c", "c"}));
    ASSERT_TRUE(IsOk(Open("rs(2,1)", degraded_writes)));
    ASSERT_TRUE(IsOk(Write(5'000)));
    pool_->KillEmbeddedNode(2);
    ASSERT_TRUE(IsOk(Write(5'000))) << "another one of its domain is left";
    pool_->KillEmbeddedNode(3);
    const Status status = Write(5'000);
    if (degraded_writes) {
      EXPECT_TRUE(IsOk(status));
    } else {
      EXPECT_TRUE(IsFailure(status, Status::Code::kUnavailable));
      EXPECT_NE(status.ToString().find("2 failure domains"), std::string::npos)
          << status.ToString();
    }
    CheckTables(3);
    std::string value;
    for (size_t i = 0; i < 5'000; i += 7) {
      EXPECT_TRUE(IsOk(db_->Get({}, "key" + std::to_string(i), &value)));
    }
    db_->Close().IgnoreError();
  }
}

}  // namespace
}  // namespace nacre
