// Goal: nacre-ctl makes checkpoints of databases that no process has open, says why it does not of
// others, lists and checks them, and restores them. Method: the tool as a process, over
// nacre-memnode processes; this test is the database's owner.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "pool/pool_impl.h"
#include "tests/support/checkpoint_fixture.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre::ctl {
namespace {

constexpr int kKeys = 400;
constexpr int kPatienceSeconds = 120;

class CheckpointCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    pool_ = ConnectTestPool(nodes_.pool_uri());
    ASSERT_NE(pool_, nullptr);
    options_ = SmallTableOptions(pool_);
    options_.redundancy = "rep(2)";
    ASSERT_TRUE(IsOk(DB::Open(options_, "orders", &db_)));
    for (int i = 0; i < kKeys; ++i) {
      ASSERT_TRUE(IsOk(db_->Put({}, Key(i), TestValue(static_cast<uint64_t>(i), 2000))));
    }
  }
  static std::string Key(int i) { return "key" + std::to_string(i); }

  /// With `code` as its exit status, and each of `texts` in its output.
  void Ctl(std::vector<std::string> arguments, int code, const std::vector<std::string>& texts,
           bool with_pool = true) {
    if (with_pool) arguments.push_back("--pool=" + nodes_.pool_uri());
    const ProcessResult result = RunBinary("nacre-ctl", arguments, kPatienceSeconds);
    EXPECT_EQ(result.exit_code, code) << result.output;
    for (const std::string& text : texts) {
      EXPECT_NE(result.output.find(text), std::string::npos) << text << "\n" << result.output;
    }
  }

  const TempFolder folder_;
  MemnodeProcesses nodes_{3, {.size = "64MiB", .slab_size = "1MiB"}};
  std::shared_ptr<pool::PoolImpl> pool_;
  Options options_;
  std::unique_ptr<DB> db_;
};

TEST_F(CheckpointCommandTest, MakesListsChecksAndRestores) {
  const std::string dir = folder_.File("checkpoints");
  Ctl({"checkpoint", "orders", dir}, 1, {"is open", "nacre/checkpoint.h"});
  ASSERT_TRUE(IsOk(db_->Close()));
  db_.reset();
  Ctl({"checkpoint", "orders", dir}, 0,
      {"checkpoint 1 of", "database orders at sequence 400", "100 %"});
  Ctl({"checkpoint", "orders", dir, "--json", "--rate=1GiB"}, 0,
      {"\"number\": 2", "\"sequence\": 400", "\"bytes_new\": 0"});
  Ctl({"checkpoints", dir, "--verify"}, 0, {"checkpoint 1 of", "checkpoint 2 of", ": OK"},
      /*with_pool=*/false);
  Ctl({"checkpoints", dir, "--verify", "--json"}, 0,
      {"\"number\": 2", "\"verified\": \"OK\"", "\"status\": \"OK\""}, /*with_pool=*/false);

  Ctl({"restore", dir, "copy"}, 1, {"--redundancy is missing"});
  Ctl({"restore", dir, "copy", "--redundancy=rs(2,1)", "--checkpoint=7"}, 1, {"checkpoint 7"});
  Ctl({"restore", dir, "copy", "--redundancy=rs(2,1)", "--checkpoint=1"}, 0,
      {"database copy is restored"});
  Ctl({"restore", dir, "copy", "--redundancy=rs(2,1)"}, 1, {"there is one already"});
  Ctl({"fsck", "--full"}, 0, {});
  options_.create_if_missing = false;
  options_.redundancy = "rs(2,1)";
  ASSERT_TRUE(IsOk(DB::Open(options_, "copy", &db_)));
  for (int i = 0; i < kKeys; ++i) {
    std::string value;
    ASSERT_TRUE(IsOk(db_->Get({}, Key(i), &value)));
    EXPECT_TRUE(value == TestValue(static_cast<uint64_t>(i), 2000));
  }

  // One is damaged, and then gone.
  const std::string first = dir + "/CHECKPOINT-000001";
  std::string bytes = ReadAll(first);
  bytes[30] ^= 1;
  WriteAll(first, bytes);
  Ctl({"checkpoints", dir}, 1, {"damaged: " + first, "checkpoint 2 of"}, /*with_pool=*/false);
  Ctl({"checkpoints", dir, "--remove=1", "--verify"}, 0, {"checkpoint 2 of"},
      /*with_pool=*/false);
  Ctl({"checkpoints", dir, "--remove=1"}, 1, {"there is no checkpoint 1"}, /*with_pool=*/false);
  Ctl({"checkpoints", folder_.File("nowhere")}, 1, {"nowhere"}, /*with_pool=*/false);
}

}  // namespace
}  // namespace nacre::ctl
