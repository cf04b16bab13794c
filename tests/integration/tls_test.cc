// Goal: a pool over tcp whose control connections, or all, are encrypted works, and refuses peers
// that do not encrypt the same. Method: nacre-memnode processes with tls, and pools with the same,
// with another one, and without.

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
constexpr size_t kTlsKeys = 5'000;

class TlsTest : public testing::TestWithParam<std::string> {};

TEST_P(TlsTest, APoolThatEncrypts) {
  const std::string tls = "?tls=" + GetParam();
  const std::string other = GetParam() == "all" ? "?tls=1" : "?tls=all";
  const MemnodeProcesses nodes(
      3, {.scheme = "tcp", .parameters = tls, .environment = {kSecretVariable}});
  pool::PoolOpenOptions open;
  open.slab_bytes = 1 << 20;
  open.pool.secret = kSecret;
  std::shared_ptr<pool::PoolImpl> pool;
  for (const std::string& wrong : {std::string(), other}) {
    EXPECT_TRUE(IsFailure(pool::OpenPool(nodes.pool_uri() + wrong, open, Clock::System(), &pool),
                          Status::Code::kUnavailable, "connect with tls=" + GetParam()));
  }
  ASSERT_TRUE(IsOk(pool::OpenPool(nodes.pool_uri() + tls, open, Clock::System(), &pool)));
  std::unique_ptr<DB> db;
  ASSERT_TRUE(IsOk(DB::Open(SmallTableOptions(pool), "db", &db)));
  // Half of them by the log, and with compactions by the nodes, which so are one another's clients.
  for (size_t i = 0; i < kTlsKeys; ++i) {
    const WriteOptions options = i % 2 == 0 ? NoLog() : WriteOptions();
    ASSERT_TRUE(IsOk(db->Put(options, "key" + std::to_string(i), TestValue(i, 300))));
  }
  ASSERT_TRUE(IsOk(db->CompactRange({}, nullptr, nullptr)));
  std::string value;
  for (size_t i = 0; i < kTlsKeys; ++i) {
    ASSERT_TRUE(IsOk(db->Get({}, "key" + std::to_string(i), &value)));
    ASSERT_EQ(value, TestValue(i, 300));
  }
  EXPECT_EQ(SumOverNodes(pool.get(), &pool::NodeStats::compactions_failed), 0u);
  EXPECT_GT(SumOverNodes(pool.get(), &pool::NodeStats::compactions), 0u);
  EXPECT_EQ(SumOverNodes(pool.get(), &pool::NodeStats::frames_malformed), 0u);
  EXPECT_TRUE(IsOk(db->Close()));
}

INSTANTIATE_TEST_SUITE_P(WhatIsEncrypted, TlsTest, testing::Values("1", "all"));

}  // namespace
}  // namespace nacre
