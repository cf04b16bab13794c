// Goal: a member reads what another one owns from the memory nodes, if it may, also while that one
// answers nothing; and sees what was written after a while, through moves and splits.
// Method: member processes over memory nodes and an etcd, all real, one of which is stopped.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "nacre/utilities/etcd.h"
#include "nacre/utilities/sharded_db.h"
#include "tests/support/process/bank_process.h"
#include "tests/support/process/etcd_process.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

class ShardFollowersTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!EtcdProcess::Installed()) GTEST_SKIP() << "etcd is not installed";
    UseEtcd();
    etcd_ = std::make_unique<EtcdProcess>();
    nodes_ = std::make_unique<MemnodeProcesses>(3, MemnodeProcessOptions{.size = "256MiB"});
    plan_ = {.pool_uri = nodes_->pool_uri(),
             .coordinator = "etcd:" + etcd_->endpoint(),
             .redundancy = "rep(2)",
             .shards = 2,
             .tellers = 1};
    book_ = std::make_unique<BankBook>(folder_.File("book"), plan_.tellers);
    member_ = std::make_unique<BankProcess>("keyspace_tests", plan_, folder_.File("book"), 0, 1);
    BankPlan client = plan_;
    client.member_address.clear();
    ASSERT_TRUE(IsOk(ShardedDB::Open(client.Options(), plan_.keyspace, &db_)));
    follower_.read_from_follower = true;
  }

  /// "" if it is not there.
  std::string Get(const std::string& key) {
    std::string value;
    const Status status = db_->Get(follower_, key, &value);
    EXPECT_TRUE(status.ok() || status.IsNotFound()) << status.ToString();
    return value;
  }
  std::vector<std::string> MultiGet(const std::vector<std::string>& keys) {
    const std::vector<Slice> slices(keys.begin(), keys.end());
    std::vector<PinnableSlice> found(keys.size());
    std::vector<Status> statuses(keys.size());
    db_->MultiGet(follower_, nullptr, keys.size(), slices.data(), found.data(), statuses.data());
    std::vector<std::string> values;
    for (size_t i = 0; i < keys.size(); ++i) {
      EXPECT_TRUE(statuses[i].ok() || statuses[i].IsNotFound()) << statuses[i].ToString();
      values.push_back(found[i].ToString());
    }
    return values;
  }

  const TempFolder folder_;
  std::unique_ptr<EtcdProcess> etcd_;
  std::unique_ptr<MemnodeProcesses> nodes_;
  BankPlan plan_;
  std::unique_ptr<BankBook> book_;
  std::unique_ptr<BankProcess> member_;
  std::unique_ptr<ShardedDB> db_;
  ReadOptions follower_;
};

TEST_F(ShardFollowersTest, AnswerWhileTheOwnerDoesNot) {
  // The bank has no such keys.
  const std::vector<std::string> keys = {"~a", "~b", "!c"};
  for (const std::string& key : keys) ASSERT_TRUE(IsOk(db_->Put({}, key, "of " + key)));
  const std::vector<std::string> values = {"of ~a", "of ~b", "of !c"};
  ASSERT_TRUE(Eventually([&] { return MultiGet(keys) == values; }));
  member_->Freeze();
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(Get("~a"), "of ~a");
    EXPECT_EQ(Get("none"), "");
    EXPECT_EQ(MultiGet(keys), values);
  }
  member_->Continue();
  ASSERT_TRUE(IsOk(db_->Put({}, "~a", "later")));
  ASSERT_TRUE(Eventually([&] { return Get("~a") == "later"; }));
  // The shard is another one by then.
  ASSERT_TRUE(IsOk(db_->SplitShard(db_->GetShards().back().id, "~b")));
  ASSERT_TRUE(IsOk(db_->Put({}, "~b", "latest")));
  ASSERT_TRUE(Eventually([&] { return Get("~b") == "latest"; }));
  EXPECT_EQ(member_->Close(), 0);
  EXPECT_EQ(book_->Failure(), "");
  ASSERT_TRUE(IsOk(db_->Close()));
}

}  // namespace
}  // namespace nacre
