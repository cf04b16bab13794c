// Goal: what the clients of several members of a keyspace are answered, while shards are moved,
// split and merged, can be explained by an order of their operations that respects time, over all
// shards together.
// Method: three members over memory nodes and an etcd, all real; the clients of history_test.cc are
// divided among the members. Shards are split in the middle of the keys that are in use, moved to
// each other's owners, and merged. The checker of history_test.cc judges.

#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "nacre/utilities/etcd.h"
#include "nacre/utilities/sharded_db.h"
#include "tests/history/run_checker.h"
#include "tests/support/model/history.h"
#include "tests/support/process/etcd_process.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {
namespace {

constexpr size_t kMembers = 3;

/// With how many of 100 operations are on several keys.
class KeyspaceHistoryTest : public testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override {
    if (!EtcdProcess::Installed()) GTEST_SKIP() << "etcd is not installed";
    UseEtcd();
    etcd_ = std::make_unique<EtcdProcess>();
    nodes_ = std::make_unique<MemnodeProcesses>(4, MemnodeProcessOptions{});
    std::vector<std::shared_ptr<DB>> members;
    for (size_t i = 0; i < kMembers; ++i) {
      ShardedOptions options(SmallTableOptions(ConnectTestPool(nodes_->pool_uri())));
      options.redundancy = "rep(2)";
      options.coordinator = "etcd:" + etcd_->endpoint();
      options.member_address = "shm:@";
      std::unique_ptr<ShardedDB> member;
      ASSERT_TRUE(IsOk(ShardedDB::Open(options, "keys", &member)));
      members_.emplace_back(std::move(member));
      members.push_back(members_.back());
    }
    std::vector<ShardMember> known;
    ASSERT_TRUE(IsOk(members_.front()->GetMembers(&known)));
    for (const ShardMember& member : known) ids_.push_back(member.id);
    HistoryOptions history;
    history.clients = 2 * kMembers;
    history.percent_of_many = GetParam();
    history.operations_in_group = 1000;
    history.seed = random_.Next();
    run_ = std::make_unique<HistoryRun>(members, history);
    run_->Start();
  }

  /// A split, a merge or a move. It may be refused: what it is about may have changed meanwhile.
  Status ChangeSomething() {
    ShardedDB* const asks = members_[random_.Uniform(kMembers)].get();
    const std::vector<ShardInfo> shards = asks->GetShards();
    const size_t chosen = random_.Uniform(shards.size());
    switch (random_.Uniform(4)) {
      case 0:
      case 1:
        return asks->MoveShard(shards[chosen].id, ids_[random_.Uniform(ids_.size())]);
      case 2:
        if (chosen + 1 < shards.size()) {
          return asks->MergeShards(shards[chosen].id, shards[chosen + 1].id);
        }
        [[fallthrough]];
      default:
        return asks->SplitShard(shards.back().id, run_->MiddleKey());
    }
  }

  const TempFolder folder_;
  Random random_{TestSeed(602)};
  std::unique_ptr<EtcdProcess> etcd_;
  std::unique_ptr<MemnodeProcesses> nodes_;
  std::vector<std::shared_ptr<ShardedDB>> members_;
  std::vector<int64_t> ids_;
  std::unique_ptr<HistoryRun> run_;
};

TEST_P(KeyspaceHistoryTest, ShardsAreMovedSplitAndMerged) {
  int changed = 0;
  const size_t rounds = Scaled(30);
  for (size_t round = 0; round < rounds && !HasFailure(); ++round) {
    ASSERT_NO_FATAL_FAILURE(run_->AwaitOperations(500));
    if (ChangeSomething().ok()) ++changed;
  }
  ASSERT_NO_FATAL_FAILURE(run_->AwaitOperations(300));
  run_->Stop();
  run_->ReadAll();
  EXPECT_GT(changed, 0);
  const HistoryCounts counts = run_->counts();
  std::cout << counts.operations << " operations, " << counts.unknown_writes << " writes unknown, "
            << counts.failed_reads << " reads failed, " << changed << " changes, "
            << members_.front()->GetShards().size() << " shards\n";
  const std::string path = folder_.File("history");
  ASSERT_NO_FATAL_FAILURE(WriteHistories(run_->histories(), path));
  for (const char* by : {"keys", "groups"}) {
    const ProcessResult result = RunChecker(by, path);
    EXPECT_EQ(result.exit_code, kExplained) << result.output;
    std::cout << result.output;
  }
  run_.reset();
  for (const auto& member : members_) EXPECT_TRUE(IsOk(member->Close()));
}

INSTANTIATE_TEST_SUITE_P(PercentOfMany, KeyspaceHistoryTest, testing::Values(5, 80));

}  // namespace
}  // namespace nacre
