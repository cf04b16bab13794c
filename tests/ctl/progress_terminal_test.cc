// Goal: on a terminal, long commands show how far they are in one line, which is gone when they
// end, and leave their results.
// Method: the tool as a process on a pseudo terminal, over nacre-memnode processes; the test is the
// owner of a database, or has written one.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "pool/databases.h"
#include "pool/pool_impl.h"
#include "pool/space/slab_leases.h"
#include "tests/ctl/pseudo_terminal.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_db.h"

namespace nacre::ctl {
namespace {

constexpr const char* kCtl = NACRE_TEST_BIN_DIR "/nacre-ctl";

class ProgressTerminalTest : public testing::Test {
 protected:
  void SetUp() override {
    pool_ = ConnectTestPool(nodes_.pool_uri());
    ASSERT_NE(pool_, nullptr);
  }
  std::vector<std::string> WithPool(std::vector<std::string> arguments) const {
    arguments.push_back("--pool=" + nodes_.pool_uri());
    return arguments;
  }
  /// Runs a command to its end: it showed `progress` meanwhile, and leaves `result` only.
  void Run(const std::vector<std::string>& arguments, const std::string& progress,
           const std::string& result) {
    PseudoTerminal command(kCtl, WithPool(arguments));
    EXPECT_TRUE(command.AwaitBytes("\r" + progress + " [")) << command.bytes();
    EXPECT_EQ(command.AwaitExit(), 0) << command.bytes();
    const std::string left = command.screen().Text();
    EXPECT_NE(left.find(result), std::string::npos) << left;
    EXPECT_EQ(left.find('%'), std::string::npos) << left;
    EXPECT_TRUE(command.IsRestored());
    EXPECT_EQ(command.screen().unknown(), "");
  }

  MemnodeProcesses nodes_{3, {.size = "64MiB", .slab_size = "1MiB"}};
  std::shared_ptr<pool::PoolImpl> pool_;
};

TEST_F(ProgressTerminalTest, DrainShowsHowMuchHasLeft) {
  pool::PoolClient* const client = pool_->client();
  pool::DatabaseLease lease;
  std::vector<uint64_t> slabs;
  ASSERT_TRUE(IsOk(client->databases()->Open("orders", {.create_if_missing = true}, &lease)));
  ASSERT_TRUE(IsOk(pool::LeaseSlabs(client, 1, lease.database_id, {.count = 4}, &slabs)));
  ASSERT_EQ(slabs.size(), 4u);
  const std::string title = "drain " + nodes_[1].address();
  PseudoTerminal drain(kCtl, WithPool({"drain", "1"}));
  EXPECT_TRUE(drain.AwaitShown(title + " [------------------------------]   0 %  0 B of 4.0 MiB"))
      << drain.screen().Text();
  ASSERT_TRUE(IsOk(pool::ReturnSlabs(client, 1, lease.database_id, {slabs[0]})));
  EXPECT_TRUE(
      drain.AwaitShown(title + " [#######-----------------------]  25 %  1.0 MiB of 4.0 MiB"))
      << drain.screen().Text();
  slabs.erase(slabs.begin());
  ASSERT_TRUE(IsOk(pool::ReturnSlabs(client, 1, lease.database_id, slabs)));
  EXPECT_EQ(drain.AwaitExit(), 0);
  EXPECT_EQ(drain.screen().Text().find(nodes_[1].address() + ": holds nothing any more\n"), 0u)
      << drain.screen().Text();
  EXPECT_TRUE(drain.IsRestored());
}

TEST_F(ProgressTerminalTest, CopiesAndChecksShowHowMuchIsDone) {
  Options options = SmallTableOptions(pool_);
  options.redundancy = "rep(2)";
  std::unique_ptr<DB> db;
  ASSERT_TRUE(IsOk(DB::Open(options, "orders", &db)));
  constexpr uint64_t kKeys = 400;
  for (uint64_t i = 0; i < kKeys; ++i) {
    ASSERT_TRUE(IsOk(db->Put({}, "key" + std::to_string(i), TestValue(i, 2000))));
  }
  ASSERT_TRUE(IsOk(db->Flush({})));
  ASSERT_TRUE(IsOk(db->Close()));
  const TempFolder folder;
  const std::string dir = folder.File("checkpoints");
  Run({"checkpoint", "orders", dir}, "checkpoint orders", "database orders at sequence 400");
  Run({"checkpoints", dir, "--verify"}, "checkpoint 1", ": OK");
  Run({"restore", dir, "copy", "--redundancy=rs(2,1)"}, "restore copy",
      "database copy is restored");
  Run({"fsck", "orders", "--full"}, "fsck orders", "clean");
  Run({"repair", "orders", "--from_footers", "--force", "--dry_run"}, "repair orders", "scanned");
}

}  // namespace
}  // namespace nacre::ctl
