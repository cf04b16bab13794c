// Goal: the fault decorator lets requests fail, dawdle and get lost as planned, and whatever it
// does, the contract's promises about order, flushing and broken pairs hold.
// Method: faults by schedule on a clock that moves only when told; then faults by chance, with a
// seed, against a model of what each request may do.

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "tests/support/manual_clock.h"
#include "tests/support/rdma/fault_device.h"
#include "tests/support/rdma/rdma_endpoint.h"
#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre::rdma {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

class FaultTest : public testing::Test {
 protected:
  FaultTest() : far_({}) {
    EXPECT_TRUE(far_.Listen(FreshAddress()).ok());
    far_.Allocate(1 << 16);
  }
  ~FaultTest() override { pair_.reset(); }

  /// Opens the near side and connects it.
  void Open(FaultPlan plan) {
    std::unique_ptr<Device> inner;
    ASSERT_TRUE(OpenDevice("shm", {}, Clock::System(), &inner).ok());
    device_ = WrapWithFaults(std::move(inner), std::move(plan), &clock_, &control_);
    ASSERT_TRUE(device_->CreateCompletionQueue(256, &queue_).ok());
    ASSERT_TRUE(device_->AllocateRegion(1 << 16, Access::kRemoteAll, &region_).ok());
    Connect();
  }
  void Connect() {
    pair_.reset();
    far_.queue_pairs.clear();
    std::thread accepting([&] { EXPECT_TRUE(far_.Accept("").ok()); });
    std::string reply;
    const Status status = device_->Connect(
        far_.listener->address(), "", {.send = 64, .receive = 16}, queue_.get(), queue_.get(),
        Deadline::After(Clock::System(), seconds(20)), &reply, &pair_);
    ASSERT_TRUE(status.ok()) << status.ToString();
    accepting.join();
  }

  LocalBuffer Near(size_t offset, size_t size) const {
    return {region_->data() + offset, static_cast<uint32_t>(size), region_.get()};
  }
  RemoteBuffer Far(size_t offset) const {
    const RemoteKey key = far_.regions[0]->remote_key();
    return {key.address + offset, key.key};
  }
  /// Writes one byte of the far region.
  void Write(uint64_t id, size_t at, char byte, uint8_t flags = kSignaled) {
    region_->data()[at] = byte;
    ASSERT_TRUE(pair_->PostWrite(id, Near(at, 1), Far(at), flags).ok());
  }
  void ExpectNext(uint64_t id, CompletionCode code = CompletionCode::kSuccess) {
    Completion completion;
    ASSERT_EQ(queue_->Poll(&completion, 1), 1) << id;
    EXPECT_EQ(completion.id, id);
    EXPECT_EQ(completion.queue_pair, pair_.get());
    EXPECT_EQ(completion.code, code) << ToString(completion.code);
  }
  void ExpectNothing() {
    Completion completion;
    EXPECT_EQ(queue_->Poll(&completion, 1), 0) << completion.id;
  }

  ManualClock clock_;
  Endpoint far_;
  std::shared_ptr<FaultControl> control_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<CompletionQueue> queue_;
  std::unique_ptr<MemoryRegion> region_;
  std::unique_ptr<QueuePair> pair_;
};

TEST_F(FaultTest, TheNthRequestFails) {
  Open({.schedule = {
            {.post = 3, .kind = Fault::Kind::kFail, .code = CompletionCode::kRemoteAccessError}}});
  ASSERT_TRUE(pair_->PostRecv(100, Near(0, 8)).ok());
  for (uint64_t i = 1; i <= 5; i++) Write(i, i, 'x', i % 2 == 0 ? kSignaled : 0);
  ExpectNext(2);
  ExpectNext(3, CompletionCode::kRemoteAccessError);
  // Those behind it have not taken place, nor does anything from now on.
  ExpectNext(4, CompletionCode::kFlushed);
  ExpectNext(5, CompletionCode::kFlushed);
  ExpectNext(100, CompletionCode::kFlushed);
  EXPECT_TRUE(pair_->broken());
  EXPECT_EQ(std::string(far_.Data(0), 6), std::string("\0xx\0\0\0", 6));
  Write(6, 6, 'y', 0);
  ASSERT_TRUE(pair_->PostRecv(101, Near(0, 8)).ok());
  ExpectNext(6, CompletionCode::kFlushed);
  ExpectNext(101, CompletionCode::kFlushed);
  ExpectNothing();
  // The peer's end is broken as well.
  ASSERT_TRUE(far_.queue_pairs[0]->PostRecv(1, far_.Buffer(0, 0, 8)).ok());
  EXPECT_EQ(far_.Next().code, CompletionCode::kFlushed);
  EXPECT_EQ(control_->posts(), 3u);
  // Connecting again works.
  Connect();
  Write(7, 7, 'z');
  ExpectNext(7);
}

TEST_F(FaultTest, ADelayedRequestHoldsBackThoseBehindIt) {
  Open({.schedule = {{.post = 1, .kind = Fault::Kind::kDelay, .delay = milliseconds(5)}}});
  Write(1, 1, 'x');
  Write(2, 2, 'x');
  EXPECT_EQ(std::string(far_.Data(0) + 1, 2), "xx");  // Only the completion is late.
  clock_.Advance(milliseconds(5) - nanoseconds(1));
  ExpectNothing();
  clock_.Advance(nanoseconds(1));
  ExpectNext(1);
  ExpectNext(2);
  EXPECT_FALSE(pair_->broken());
}

TEST_F(FaultTest, ALostRequestIsGivenUpAsPeerGone) {
  Open({.schedule = {{.post = 2, .kind = Fault::Kind::kLose}}, .give_up = seconds(1)});
  for (uint64_t i = 1; i <= 3; i++) Write(i, i, 'x');
  ExpectNext(1);
  ExpectNothing();
  EXPECT_FALSE(pair_->broken());
  clock_.Advance(seconds(1));
  ExpectNext(2, CompletionCode::kPeerGone);
  ExpectNext(3, CompletionCode::kFlushed);
  EXPECT_TRUE(pair_->broken());
  EXPECT_EQ(std::string(far_.Data(0) + 1, 3), std::string("x\0\0", 3));
}

TEST_F(FaultTest, ALostResponseLeavesTheEffect) {
  Open({.schedule = {{.post = 1, .kind = Fault::Kind::kLoseResponse}}, .give_up = seconds(1)});
  Write(1, 1, 'x', 0);
  Write(2, 2, 'x');
  clock_.Advance(seconds(1));
  ExpectNext(1, CompletionCode::kPeerGone);
  ExpectNext(2, CompletionCode::kFlushed);
  ExpectNothing();
  EXPECT_EQ(std::string(far_.Data(0) + 1, 2), std::string("x\0", 2));
}

TEST_F(FaultTest, AFaultWithinABatchLetsTheRequestsBeforeItComplete) {
  Open({.schedule = {{.post = 3, .kind = Fault::Kind::kLose}}, .give_up = seconds(1)});
  for (uint64_t i = 1; i <= 4; i++) {
    ASSERT_TRUE(pair_
                    ->PostRead(i, Near(0, 8), Far(0),
                               static_cast<uint8_t>(i < 4 ? kSignaled | kMore : kSignaled))
                    .ok());
  }
  ExpectNext(1);
  ExpectNext(2);
  clock_.Advance(seconds(1));
  ExpectNext(3, CompletionCode::kPeerGone);
  ExpectNext(4, CompletionCode::kFlushed);
}

TEST_F(FaultTest, APartitionCutsBothWaysUntilItHeals) {
  Open({.give_up = seconds(1)});
  ASSERT_TRUE(pair_->PostRecv(100, Near(0, 8)).ok());
  control_->Partition("shm:somebody else");
  Write(1, 1, 'x');
  ExpectNext(1);
  control_->Partition(pair_->peer());
  // Messages wait for the end.
  ASSERT_TRUE(far_.queue_pairs[0]->PostSend(1, far_.Buffer(0, 0, 8), kSignaled).ok());
  ExpectNothing();
  control_->Heal(pair_->peer());
  ExpectNext(100);
  EXPECT_FALSE(pair_->broken());
  // A request does not.
  control_->Partition("");
  Write(2, 2, 'x');
  control_->Heal("");
  Write(3, 3, 'x');
  ExpectNothing();
  clock_.Advance(seconds(1));
  ExpectNext(2, CompletionCode::kPeerGone);
  ExpectNext(3, CompletionCode::kFlushed);
  EXPECT_EQ(std::string(far_.Data(0) + 1, 3), std::string("x\0\0", 3));
}

TEST_F(FaultTest, AMessageBehindAPartitionIsLostWithThePair) {
  Open({.give_up = seconds(1)});
  ASSERT_TRUE(pair_->PostRecv(100, Near(0, 8)).ok());
  control_->Partition("");
  ASSERT_TRUE(far_.queue_pairs[0]->PostSend(1, far_.Buffer(0, 0, 8), kSignaled).ok());
  Write(1, 1, 'x');
  clock_.Advance(seconds(1));
  ExpectNext(1, CompletionCode::kPeerGone);
  ExpectNext(100, CompletionCode::kFlushed);
}

TEST_F(FaultTest, ConnectingAcrossAPartitionMeetsSilence) {
  Open({});
  control_->Partition(far_.listener->address());
  std::string reply;
  std::unique_ptr<QueuePair> pair;
  const uint64_t before = clock_.NowNanos();
  const Status status =
      device_->Connect(far_.listener->address(), "", {}, queue_.get(), queue_.get(),
                       Deadline::After(&clock_, seconds(3)), &reply, &pair);
  EXPECT_TRUE(status.IsUnavailable()) << status.ToString();
  EXPECT_EQ(clock_.NowNanos() - before, 3'000'000'000u);
}

TEST_F(FaultTest, WaitNoticesTheEndOfAPartition) {
  Open({});
  ASSERT_TRUE(pair_->PostRecv(100, Near(0, 8)).ok());
  control_->Partition("");
  ASSERT_TRUE(far_.queue_pairs[0]->PostSend(1, far_.Buffer(0, 0, 8), kSignaled).ok());
  std::thread healer([&] {
    std::this_thread::sleep_for(milliseconds(5));
    control_->Heal("");
  });
  Completion completion;
  while (queue_->Poll(&completion, 1) == 0) ASSERT_TRUE(queue_->Wait(seconds(20)).ok());
  EXPECT_EQ(completion.id, 100u);
  healer.join();
}

TEST_F(FaultTest, ChanceNeverBreaksTheContract) {
  const uint64_t seed = TestSeed(801);
  Random random(seed);
  Open({.seed = seed,
        .fail_probability = 0.01,
        .delay_probability = 0.2,
        .lose_probability = 0.01,
        .delay_max = milliseconds(3),
        .give_up = milliseconds(50)});
  int breaks = 0;
  for (uint64_t round = 0; round < 100; round++) {
    Connect();
    std::memset(far_.Data(0), 0, 1000);
    region_->data()[8] = 'x';
    uint64_t posted = 0;
    uint64_t completed = 0;  // Signalled or failed, up to this number.
    uint64_t failed_at = 0;
    std::vector<bool> signaled{false};
    while (failed_at == 0 || completed < posted) {
      if (posted < 998 && pair_->PostWrite(posted + 1, Near(8, 1), Far(posted + 1), 0).ok()) {
        posted++;
        signaled.push_back(false);
      }
      if (posted < 999 && pair_->PostRead(posted + 1, Near(0, 8), Far(0), kSignaled).ok()) {
        posted++;
        signaled.push_back(true);
      }
      clock_.Advance(nanoseconds(random.Uniform(2'000'000)));
      Completion completion;
      while (queue_->Poll(&completion, 1) == 1) {
        ASSERT_GT(completion.id, completed);
        ASSERT_LE(completion.id, posted);
        // Only unsignalled successes are skipped.
        for (uint64_t id = completed + 1; id < completion.id; id++) {
          ASSERT_FALSE(signaled[id]) << id;
          ASSERT_EQ(failed_at, 0u) << id;
        }
        completed = completion.id;
        if (failed_at != 0) {
          ASSERT_EQ(completion.code, CompletionCode::kFlushed);
        } else if (completion.code != CompletionCode::kSuccess) {
          failed_at = completion.id;
          breaks++;
        }
      }
      if (posted == 999 && failed_at == 0 && completed == posted) break;
    }
    // What succeeded took place; what was flushed did not; the one that failed may go either way.
    for (uint64_t id = 1; id <= posted; id++) {
      if (signaled[id] || id == failed_at) continue;
      ASSERT_EQ(far_.Data(0)[id] != 0, (failed_at == 0 || id < failed_at)) << id;
    }
  }
  EXPECT_GT(breaks, 50);
}

TEST_F(FaultTest, TheSameSeedGivesTheSameFaults) {
  const uint64_t seed = TestSeed(802);
  std::vector<uint64_t> first;
  for (int run = 0; run < 2; run++) {
    pair_.reset();
    region_.reset();
    queue_.reset();
    Open({.seed = seed, .fail_probability = 0.05});
    std::vector<uint64_t> failures;
    for (uint64_t i = 1; i <= 500; i++) {
      ASSERT_TRUE(pair_->PostRead(i, Near(0, 8), Far(0), kSignaled).ok());
      Completion completion;
      ASSERT_EQ(queue_->Poll(&completion, 1), 1);
      if (completion.code == CompletionCode::kSuccess) continue;
      failures.push_back(i);
      Connect();
    }
    EXPECT_GT(failures.size(), 5u);
    if (run == 0) first = failures;
    EXPECT_EQ(failures, first);
  }
}

}  // namespace

}  // namespace nacre::rdma
