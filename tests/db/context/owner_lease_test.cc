// Goal: an owner's lease ends when it has to, whatever it is that ends it.
// Method: a lease of a database that another client may take, on a clock that the test moves on.

#include "db/context/owner_lease.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>

#include "pool/databases.h"
#include "pool/wire/protocol.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/boot_clock.h"

namespace nacre {
namespace {

/// That of a host that has slept.
class SleptClock final : public Clock {
 public:
  uint64_t NowNanos() override { return Clock::System()->NowNanos() + slept_.load(); }
  void SleepFor(std::chrono::nanoseconds duration) override { Clock::System()->SleepFor(duration); }
  void Sleep(std::chrono::nanoseconds duration) {
    slept_.fetch_add(static_cast<uint64_t>(duration.count()));
  }

 private:
  std::atomic<uint64_t> slept_{0};
};

class OwnerLeaseTest : public testing::Test {
 protected:
  void SetUp() override {
    pool_ = ConnectTestPool(nodes_.pool_uri());
    ASSERT_NE(pool_, nullptr);
    const pool::OpenDatabaseOptions create{.create_if_missing = true};
    ASSERT_TRUE(IsOk(pool_->client()->databases()->Open("db", create, &database_)));
    ASSERT_TRUE(IsOk(pool_->client()->databases()->PublishRoot(database_.database_id, "root")));
    lease_ = std::make_unique<OwnerLease>(pool_->client(), database_.database_id, &clock_);
  }

  SleptClock clock_;
  MemnodeProcesses nodes_{3};
  std::shared_ptr<pool::PoolImpl> pool_;
  pool::DatabaseLease database_;
  std::unique_ptr<OwnerLease> lease_;
};

TEST_F(OwnerLeaseTest, EndsWhileTheHostSleeps) {
  ASSERT_TRUE(IsOk(lease_->Renew()));
  EXPECT_TRUE(lease_->Lasts());
  clock_.Sleep(pool::kOwnerLease);
  EXPECT_FALSE(lease_->Lasts());
  ASSERT_TRUE(IsOk(lease_->Check()));
  EXPECT_TRUE(lease_->Lasts());
}

// Another one has it since: the lease that there was does not count for what was left of it.
TEST_F(OwnerLeaseTest, EndsWithTheNewsOfASuccessor) {
  ASSERT_TRUE(IsOk(lease_->Renew()));
  ASSERT_TRUE(lease_->Lasts());
  const std::shared_ptr<pool::PoolImpl> other = ConnectTestPool(nodes_.pool_uri());
  ASSERT_NE(other, nullptr);
  pool::DatabaseLease taken;
  // Nodes let the successor in when the lease has run out; so the clock goes back here.
  ASSERT_TRUE(IsOk(other->client()->databases()->Open("db", {.take_over = true}, &taken)));
  clock_.Sleep(-pool::kOwnerLease);
  EXPECT_TRUE(lease_->Lasts());
  EXPECT_TRUE(lease_->Renew().IsFenced());
  EXPECT_FALSE(lease_->Lasts());
  EXPECT_TRUE(lease_->Check().IsFenced());
}

TEST(BootClockTest, NeverGoesBackAndCoarseIsCloseBehind) {
  Clock* const clock = BootClock();
  uint64_t last = 0;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t coarse = clock->CoarseNanos();
    const uint64_t now = clock->NowNanos();
    ASSERT_GE(now, last);
    ASSERT_GE(now + 1'000'000, coarse);
    last = now;
  }
  const uint64_t coarse = clock->CoarseNanos();
  clock->SleepFor(std::chrono::milliseconds(20));
  EXPECT_GT(clock->CoarseNanos(), coarse);
}

}  // namespace
}  // namespace nacre
