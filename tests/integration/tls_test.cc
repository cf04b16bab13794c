// Goal: a pool over tcp whose control connections are encrypted works, and refuses peers that do
// not encrypt. Method: nacre-memnode processes with tls=1, and pools with it and without it.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "nacre/db.h"
#include "pool/wire/node_stats.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

constexpr char kSecret[] = "the secret of this pool";
constexpr char kSecretVariable[] = "NACRE_SECRET=the secret of this pool";
constexpr size_t kKeys = 5'000;

TEST(TlsTest, APoolWithEncryptedControlConnections) {
  const MemnodeProcesses nodes(
      3, {.scheme = "tcp", .parameters = "?tls=1", .environment = {kSecretVariable}});
  pool::PoolOpenOptions open;
  open.slab_bytes = 1 << 20;
  open.pool.secret = kSecret;
  std::shared_ptr<pool::PoolImpl> pool;
  EXPECT_TRUE(IsFailure(pool::OpenPool(nodes.pool_uri(), open, Clock::System(), &pool),
                        Status::Code::kUnavailable, "connect with tls=1"));
  ASSERT_TRUE(IsOk(pool::OpenPool(nodes.pool_uri() + "?tls=1", open, Clock::System(), &pool)));
  std::unique_ptr<DB> db;
  ASSERT_TRUE(IsOk(DB::Open(SmallTableOptions(pool), "db", &db)));
  // With compactions by the nodes, which so are one another's clients.
  for (size_t i = 0; i < kKeys; ++i) {
    ASSERT_TRUE(IsOk(db->Put(NoLog(), "key" + std::to_string(i), TestValue(i, 300))));
  }
  ASSERT_TRUE(IsOk(db->CompactRange({}, nullptr, nullptr)));
  std::string value;
  for (size_t i = 0; i < kKeys; ++i) {
    ASSERT_TRUE(IsOk(db->Get({}, "key" + std::to_string(i), &value)));
    ASSERT_EQ(value, TestValue(i, 300));
  }
  EXPECT_EQ(SumOverNodes(pool.get(), &pool::NodeStats::compactions_failed), 0u);
  EXPECT_GT(SumOverNodes(pool.get(), &pool::NodeStats::compactions), 0u);
  EXPECT_EQ(SumOverNodes(pool.get(), &pool::NodeStats::frames_malformed), 0u);
  EXPECT_TRUE(IsOk(db->Close()));
}

}  // namespace
}  // namespace nacre
