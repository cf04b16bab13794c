// Goal: a keyspace with a coordinator can be destroyed, with what the coordinator has of it, once
// it has no members; and then be made anew with other boundaries.
// Method: an etcd and memory nodes that are processes; members within this process.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "nacre/utilities/etcd.h"
#include "nacre/utilities/sharded_db.h"
#include "sharding/members/coordinator.h"
#include "sharding/members/membership.h"
#include "tests/support/process/etcd_process.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/status_assert.h"

namespace nacre {
namespace {

class KeyspaceDestroyTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!EtcdProcess::Installed()) GTEST_SKIP() << "etcd is not installed";
    UseEtcd();
    etcd_ = std::make_unique<EtcdProcess>();
    nodes_ = std::make_unique<MemnodeProcesses>(
        2, MemnodeProcessOptions{.size = "128MiB", .slab_size = "1MiB"});
  }

  ShardedOptions OptionsOf(const std::vector<std::string>& boundaries) const {
    ShardedOptions options;
    options.create_if_missing = true;
    options.pool_uri = nodes_->pool_uri();
    options.slab_size = 1 << 20;
    options.write_buffer_size = 1 << 20;
    options.boundaries = boundaries;
    options.coordinator = "etcd:" + etcd_->endpoint();
    options.member_address = "shm:@";
    return options;
  }
  /// Keys that the coordinator has for keyspaces whose names begin so.
  std::vector<std::string> Known(const std::string& name) const {
    std::shared_ptr<Coordinator> coordinator;
    EXPECT_TRUE(IsOk(OpenCoordinator("etcd:" + etcd_->endpoint(), &coordinator)));
    std::vector<Coordinator::Entry> entries;
    int64_t revision = 0;
    EXPECT_TRUE(IsOk(coordinator->Read(KeyspacePrefix("default", name),
                                       Deadline::After(Clock::System(), std::chrono::seconds(60)),
                                       &entries, &revision)));
    std::vector<std::string> keys;
    for (const Coordinator::Entry& entry : entries) keys.push_back(entry.key);
    return keys;
  }

  std::unique_ptr<EtcdProcess> etcd_;
  std::unique_ptr<MemnodeProcesses> nodes_;
};

TEST_F(KeyspaceDestroyTest, WaitsForItsMembersToLeave) {
  std::unique_ptr<ShardedDB> db;
  ASSERT_TRUE(IsOk(ShardedDB::Open(OptionsOf({"m"}), "keys", &db)));
  ASSERT_TRUE(IsOk(db->Put({}, "a", "1")));
  ASSERT_TRUE(IsOk(db->Put({}, "z", "2")));
  const Status busy = DestroyShardedDB("keys", OptionsOf({}));
  EXPECT_TRUE(busy.IsBusy()) << busy.ToString();
  std::string value;
  ASSERT_TRUE(IsOk(db->Get({}, "z", &value)));
  EXPECT_EQ(value, "2");

  ASSERT_TRUE(IsOk(db->Close()));
  EXPECT_FALSE(Known("keys").empty());
  ASSERT_TRUE(IsOk(DestroyShardedDB("keys", OptionsOf({}))));
  EXPECT_TRUE(Known("keys").empty());
  std::vector<std::string> databases;
  ASSERT_TRUE(IsOk(ListDBs(OptionsOf({}), &databases)));
  EXPECT_TRUE(databases.empty());
  // There is none.
  EXPECT_TRUE(IsOk(DestroyShardedDB("keys", OptionsOf({}))));

  ASSERT_TRUE(IsOk(ShardedDB::Open(OptionsOf({"g", "t"}), "keys", &db)));
  EXPECT_EQ(db->GetShards().size(), 3u);
  EXPECT_TRUE(db->Get({}, "z", &value).IsNotFound());
}

TEST_F(KeyspaceDestroyTest, LeavesOtherKeyspacesAlone) {
  std::unique_ptr<ShardedDB> db;
  ASSERT_TRUE(IsOk(ShardedDB::Open(OptionsOf({"m"}), "keys", &db)));
  std::unique_ptr<ShardedDB> other;
  ASSERT_TRUE(IsOk(ShardedDB::Open(OptionsOf({"m"}), "keys2", &other)));
  ASSERT_TRUE(IsOk(other->Put({}, "a", "1")));
  ASSERT_TRUE(IsOk(db->Close()));
  ASSERT_TRUE(IsOk(DestroyShardedDB("keys", OptionsOf({}))));
  EXPECT_FALSE(Known("keys2").empty());
  std::string value;
  EXPECT_TRUE(IsOk(other->Get({}, "a", &value)));
}

TEST_F(KeyspaceDestroyTest, NamesWhatIsWrongWithTheCoordinator) {
  ShardedOptions options = OptionsOf({});
  options.coordinator = "paper:1";
  EXPECT_TRUE(DestroyShardedDB("keys", options).IsNotSupported());
  options.coordinator = "etcd:127.0.0.1:" + std::to_string(FreePort());
  options.operation_timeout = std::chrono::milliseconds(500);
  const Status status = DestroyShardedDB("keys", options);
  EXPECT_TRUE(status.IsUnavailable() || status.IsTimedOut()) << status.ToString();
}

}  // namespace
}  // namespace nacre
