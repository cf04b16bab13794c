// Goal: a read that is handed over is carried out by another thread, once; one that is needed
// before it has begun is given back, and one that is not needed any more is not carried out. Reads
// of an extent are the same with and without that, by many threads, whichever of them they give up.
// Method: a carrier whose reads begin and end when the test says; extents of an embedded pool.

#include "pool/read/read_carrier.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/pool_fixture.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "util/random.h"

namespace nacre::pool {
namespace {

class ReadCarrierTest : public ::testing::Test {
 protected:
  ReadCarrierTest()
      : carrier_(
            std::make_unique<ReadCarrier>([this](const ReadCarrier::Work& work) { Start(work); },
                                          [](const StreamRead&, const std::atomic<bool>& ended) {
                                            while (!ended.load()) std::this_thread::yield();
                                          })) {}
  ~ReadCarrierTest() override { may_start_ = true; }

  std::shared_ptr<StreamRead> Give(uint64_t offset) {
    auto read = std::make_shared<StreamRead>();
    const StreamPart part{.node = 1, .offset = offset, .length = 10, .at = 0};
    EXPECT_TRUE(carrier_->Take({&part, 1}, read));
    return read;
  }
  void AwaitStarts(size_t count) {
    while (starts_.load() < count) std::this_thread::yield();
  }

  std::atomic<bool> may_start_{true};
  std::atomic<size_t> starts_{0};
  std::vector<uint64_t> offsets_;  ///< The carrier's until it has ended, or what starts_ tells of.
  std::thread::id starter_;
  std::unique_ptr<ReadCarrier> carrier_;

 private:
  void Start(const ReadCarrier::Work& work) {
    starter_ = std::this_thread::get_id();
    offsets_.push_back(work.parts.at(0).offset);
    ++starts_;
    while (!may_start_.load()) std::this_thread::yield();
  }
};

TEST_F(ReadCarrierTest, AnotherThreadStartsReadsInTheirOrder) {
  // All are there before the first has begun: then the carrier waits for a read, which ends with
  // it.
  may_start_ = false;
  std::vector<std::shared_ptr<StreamRead>> reads;
  for (uint64_t i = 0; i < 3; ++i) reads.push_back(Give(i));
  may_start_ = true;
  AwaitStarts(3);
  EXPECT_EQ(offsets_, (std::vector<uint64_t>{0, 1, 2}));
  EXPECT_NE(starter_, std::this_thread::get_id());
  ReadCarrier::Work work;
  EXPECT_FALSE(carrier_->GiveBack(*reads[1], &work)) << "it is under way";
}

TEST_F(ReadCarrierTest, ReadThatHasNotBegunIsGivenBackOnce) {
  may_start_ = false;
  const auto first = Give(7);
  AwaitStarts(1);
  const auto second = Give(8);
  const auto third = Give(9);
  ReadCarrier::Work work;
  EXPECT_FALSE(carrier_->GiveBack(*first, &work));
  ASSERT_TRUE(carrier_->GiveBack(*second, &work));
  EXPECT_EQ(work.read, second);
  EXPECT_EQ(work.parts.at(0).offset, 8u);
  EXPECT_FALSE(carrier_->GiveBack(*second, &work));
  may_start_ = true;
  AwaitStarts(2);
  EXPECT_EQ(offsets_, (std::vector<uint64_t>{7, 9}));
}

TEST_F(ReadCarrierTest, ReadThatIsGivenUpIsNotStarted) {
  may_start_ = false;
  const auto first = Give(1);
  AwaitStarts(1);
  Give(2);
  const auto third = Give(3);
  may_start_ = true;
  AwaitStarts(2);
  EXPECT_EQ(offsets_, (std::vector<uint64_t>{1, 3}));
}

TEST_F(ReadCarrierTest, TakesSoManyAndEndsWithoutThem) {
  may_start_ = false;
  std::vector<std::shared_ptr<StreamRead>> reads{Give(0)};
  AwaitStarts(1);
  while (reads.size() <= 64) reads.push_back(Give(reads.size()));
  const StreamPart part{.node = 1, .offset = 99, .length = 10, .at = 0};
  EXPECT_FALSE(carrier_->Take({&part, 1}, std::make_shared<StreamRead>()));
  may_start_ = true;
  carrier_.reset();
  EXPECT_LE(starts_.load(), 65u);
  EXPECT_FALSE(reads[64]->done());
}

class ReadAheadTest : public PoolFixture {};

TEST_F(ReadAheadTest, ManyThreadsReadAheadAndGiveUp) {
  const uint64_t seed = TestSeed(8811);
  OpenPoolAt("embedded:?nodes=4&size=64MiB");
  CreateDatabase();
  const std::string written = RandomBytes(seed, 1 << 20);
  Placement placement;
  ASSERT_TRUE(IsOk(space_->Reserve(Copies(2), written.size(), kNoNode, &placement)));
  ASSERT_TRUE(IsOk(WriteBytes(placement, written)));
  const auto extent = store_->OpenExtent(1, placement, written.size());
  std::vector<std::thread> threads;
  for (uint64_t number = 0; number < 6; ++number) {
    threads.emplace_back([&, number] {
      Random random(seed + number);
      struct Ahead {
        uint64_t offset;
        size_t length;
        std::unique_ptr<PendingRead> read;
      };
      std::vector<Ahead> ahead;
      for (int i = 0; i < 300; ++i) {
        const uint64_t offset = random.Uniform(written.size());
        const size_t length =
            1 + random.Uniform(std::min<uint64_t>(written.size() - offset, 99'999));
        ahead.push_back({offset, length,
                         random.OneIn(4) ? extent->StartRead(offset, length)
                                         : extent->StartReadAhead(offset, length)});
        if (random.OneIn(3)) continue;
        const size_t chosen = random.Uniform(ahead.size());
        const Ahead one = std::move(ahead[chosen]);
        ahead.erase(ahead.begin() + static_cast<std::ptrdiff_t>(chosen));
        if (random.OneIn(4)) continue;
        Slice bytes;
        ASSERT_TRUE(IsOk(one.read->Await(&bytes)));
        ASSERT_EQ(bytes.size(), one.length);
        ASSERT_EQ(std::memcmp(bytes.data(), written.data() + one.offset, one.length), 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ReadAheadTest, ReadsUnderWayEndWithTheirNode) {
  OpenPoolAt("embedded:?nodes=2&size=64MiB");
  CreateDatabase();
  const std::string written = RandomBytes(TestSeed(8812), 512 << 10);
  Placement placement;
  ASSERT_TRUE(IsOk(space_->Reserve(Copies(1), written.size(), kNoNode, &placement)));
  ASSERT_TRUE(IsOk(WriteBytes(placement, written)));
  const auto extent = store_->OpenExtent(1, placement, written.size());
  Slice bytes;
  ASSERT_TRUE(IsOk(extent->StartReadAhead(0, 1000)->Await(&bytes)));
  pool_->KillEmbeddedNode(placement.fragments[0].start.node);
  const auto read = extent->StartReadAhead(5000, 100'000);
  const Status status = read->Await(&bytes);
  EXPECT_TRUE(status.IsUnavailable()) << status.ToString();
}

}  // namespace
}  // namespace nacre::pool
