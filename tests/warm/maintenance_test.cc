// Goal: an operator's planned restart: nacre-ctl says when a node can be stopped, the database goes
// on without it and copies nothing of what it has, and the node is used again once it is back, with
// no further order. Method: real nacre-memnode processes that keep their memory, stopped and
// started while an owner, this process, writes and a follower of it reads.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

class PlannedRestartTest : public testing::TestWithParam<std::string> {
 protected:
  ProcessResult RunCtl(std::vector<std::string> arguments) {
    arguments.push_back("--pool=" + nodes_.pool_uri());
    return RunBinary("nacre-ctl", arguments, 60);
  }
  void Write(int keys) {
    for (const int end = keys_ + keys; keys_ < end; ++keys_) {
      ASSERT_TRUE(IsOk(db_->Put({}, "key" + std::to_string(keys_), TestValue(keys_, 500))));
    }
  }
  void ExpectAll(DB* db) {
    for (int i = 0; i < keys_; i += 3) {
      std::string value;
      ASSERT_TRUE(IsOk(db->Get({}, "key" + std::to_string(i), &value))) << i;
      ASSERT_TRUE(value == TestValue(i, 500)) << i;
    }
  }
  uint64_t RepairedBytes() {
    uint64_t bytes = 0;
    EXPECT_TRUE(db_->GetIntProperty("nacre.repair.bytes-done", &bytes));
    return bytes;
  }

  const TempFolder files_{MemoryFolder()};
  MemnodeProcesses nodes_{5,
                          {.scheme = GetParam(), .size = "64MiB", .region_folder = files_.path()}};
  std::unique_ptr<DB> db_;
  int keys_ = 0;
};

TEST_P(PlannedRestartTest, NodesAreRestartedOneByOneAndNothingIsCopied) {
  Options options = SmallTableOptions(nullptr);
  options.pool_uri = nodes_.pool_uri();
  options.redundancy = "rs(2,1)";
  options.disable_auto_compactions = true;
  ASSERT_TRUE(IsOk(DB::Open(options, "db", &db_)));
  ASSERT_NO_FATAL_FAILURE(Write(1000));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  std::unique_ptr<DB> follower;
  ASSERT_TRUE(IsOk(DB::OpenAsSecondary(options, "db", &follower)));
  for (const size_t node : {1, 3}) {
    SCOPED_TRACE(node);
    ASSERT_NO_FATAL_FAILURE(Write(200));
    const ProcessResult order = RunCtl({"maintenance", nodes_[node].address(), "--for=1h"});
    ASSERT_EQ(order.exit_code, 0) << order.output;
    EXPECT_NE(order.output.find("can be stopped"), std::string::npos) << order.output;
    EXPECT_EQ(order.output.find("memory ends"), std::string::npos) << order.output;
    ASSERT_EQ(nodes_[node].Terminate(), 0);
    ASSERT_NO_FATAL_FAILURE(Write(500));
    ASSERT_TRUE(IsOk(db_->Flush({})));
    ASSERT_NO_FATAL_FAILURE(ExpectAll(db_.get()));
    ASSERT_TRUE(IsOk(follower->TryCatchUpWithPrimary()));
    ASSERT_NO_FATAL_FAILURE(ExpectAll(follower.get()));
    nodes_[node].Start();
    // It is out of maintenance by itself, and the next one may go.
    std::string seen;
    EXPECT_TRUE(Eventually([&] {
      seen = RunCtl({"fsck", "db", "--json"}).output;
      return seen.find("\"spare_nodes\": 1,") != std::string::npos;
    })) << seen;
    const ProcessResult status = RunCtl({"status"});
    EXPECT_EQ(status.output.find("maintenance"), std::string::npos) << status.output;
    EXPECT_EQ(RepairedBytes(), 0u);
  }
  ASSERT_NO_FATAL_FAILURE(Write(200));
  ASSERT_NO_FATAL_FAILURE(ExpectAll(db_.get()));
  follower.reset();
  ASSERT_TRUE(IsOk(db_->Close()));
}

INSTANTIATE_TEST_SUITE_P(Schemes, PlannedRestartTest, testing::Values("shm", "tcp"),
                         [](const auto& scheme) { return scheme.param; });

}  // namespace
}  // namespace nacre
