// Goal: a keyspace whose memory nodes have all lost their memory fails, and does not come back
// empty.
// Method: a member over memory nodes that are killed and started anew, and an etcd that knows the
// keyspace still.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "nacre/utilities/etcd.h"
#include "nacre/utilities/sharded_db.h"
#include "tests/support/process/etcd_process.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/clock.h"

namespace nacre {
namespace {

TEST(LostPoolTest, NothingTakesThePlaceOfWhatWasLost) {
  if (!EtcdProcess::Installed()) GTEST_SKIP() << "etcd is not installed";
  UseEtcd();
  EtcdProcess etcd;
  MemnodeProcesses nodes(3, {.size = "256MiB"});
  ShardedOptions options(SmallTableOptions(nullptr));
  options.pool_uri = nodes.pool_uri();
  options.redundancy = "rep(2)";
  options.boundaries = {"m"};
  options.coordinator = "etcd:" + etcd.endpoint();
  options.member_address = "tcp:127.0.0.1:0";
  options.operation_timeout = std::chrono::milliseconds(1000);
  std::unique_ptr<ShardedDB> db;
  ASSERT_TRUE(IsOk(ShardedDB::Open(options, "keys", &db)));
  ASSERT_TRUE(IsOk(db->Put({}, "a", "1")));
  for (size_t i = 0; i < nodes.size(); ++i) nodes[i].Kill();
  for (size_t i = 0; i < nodes.size(); ++i) nodes[i].Start();
  // Longer than it takes until the member that leads has looked after the pool.
  for (int i = 0; i < 8; ++i) {
    std::string value;
    const Status status = db->Get({}, "a", &value);
    EXPECT_FALSE(status.ok() || status.IsNotFound()) << status.ToString();
    Clock::System()->SleepFor(std::chrono::milliseconds(500));
  }
  db->Close().IgnoreError();
}

}  // namespace
}  // namespace nacre
