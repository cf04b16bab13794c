// Goal: the nic decorator withholds completions for the modelled round trip and for the time on the
// link, which all queue pairs share, and keeps each queue pair's order.
// Method: a clock that moves only when told, so that the model's arithmetic is checked exactly.

#include <gtest/gtest.h>

#include <thread>

#include "rdma/nic_device.h"
#include "rdma/nic_ports.h"
#include "tests/support/manual_clock.h"
#include "tests/support/rdma/rdma_endpoint.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"

namespace nacre::rdma {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

const NicModel kModel{.rtt_us = 10, .gbps = 8};  // One byte a nanosecond.

class NicTest : public testing::Test {
 protected:
  NicTest() : far_({}) {
    std::unique_ptr<Device> inner;
    EXPECT_TRUE(OpenDevice("shm", {}, Clock::System(), &inner).ok());
    EXPECT_TRUE(WrapWithNic(std::move(inner), kModel, &clock_, &device_).ok());
    EXPECT_TRUE(device_->CreateCompletionQueue(64, &queue_).ok());
    EXPECT_TRUE(device_->AllocateRegion(1 << 20, Access::kRemoteAll, &region_).ok());
    EXPECT_TRUE(far_.Listen(FreshAddress()).ok());
    far_.Allocate(1 << 20);
    for (int i = 0; i < 2; i++) Connect();
  }
  ~NicTest() override { pairs_.clear(); }

  void Connect() {
    std::thread accepting([&] { EXPECT_TRUE(far_.Accept("").ok()); });
    std::string reply;
    pairs_.emplace_back();
    EXPECT_TRUE(device_
                    ->Connect(far_.listener->address(), "", {}, queue_.get(), queue_.get(),
                              Deadline::After(Clock::System(), seconds(20)), &reply, &pairs_.back())
                    .ok());
    accepting.join();
  }

  LocalBuffer Near(size_t offset, size_t size) const {
    return {region_->data() + offset, static_cast<uint32_t>(size), region_.get()};
  }
  RemoteBuffer Far(size_t offset) const {
    const RemoteKey key = far_.regions[0]->remote_key();
    return {key.address + offset, key.key};
  }
  Status Read(int pair, uint64_t id, size_t size, uint8_t flags = kSignaled) {
    return pairs_[static_cast<size_t>(pair)]->PostRead(id, Near(0, size), Far(0), flags);
  }
  Status Write(int pair, uint64_t id, size_t size, uint8_t flags = kSignaled) {
    return pairs_[static_cast<size_t>(pair)]->PostWrite(id, Near(0, size), Far(0), flags);
  }

  /// Nothing completes before `time` has passed, and then this request does.
  void ExpectAfter(microseconds time, uint64_t id) {
    Completion completion;
    clock_.Advance(time - std::chrono::nanoseconds(1));
    EXPECT_EQ(queue_->Poll(&completion, 1), 0) << "early: " << completion.id;
    clock_.Advance(std::chrono::nanoseconds(1));
    ASSERT_EQ(queue_->Poll(&completion, 1), 1) << "late: " << id;
    EXPECT_EQ(completion.id, id);
    EXPECT_EQ(completion.code, CompletionCode::kSuccess);
  }

  ManualClock clock_;
  Endpoint far_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<CompletionQueue> queue_;
  std::unique_ptr<MemoryRegion> region_;
  std::vector<std::unique_ptr<QueuePair>> pairs_;
};

TEST_F(NicTest, BatchLeavesWithItsLastRequest) {
  ASSERT_TRUE(Read(0, 1, 1000, kMore).ok());
  clock_.Advance(microseconds(4));
  ASSERT_TRUE(Read(0, 2, 2000, kMore).ok());
  ASSERT_TRUE(Read(0, 3, 1000, kSignaled).ok());
  ASSERT_NO_FATAL_FAILURE(ExpectAfter(microseconds(4 + 10), 3));
  // Each direction of the link has its own bytes.
  ASSERT_TRUE(Write(0, 4, 5000, kMore).ok());
  ASSERT_TRUE(Read(0, 5, 1000, kSignaled).ok());
  ASSERT_NO_FATAL_FAILURE(ExpectAfter(microseconds(5 + 10), 5));
  ASSERT_TRUE(Read(0, 6, 1000, kSignaled).ok());
  ASSERT_NO_FATAL_FAILURE(ExpectAfter(microseconds(1 + 10), 6));
  // One that is signalled within a batch is due by itself.
  ASSERT_TRUE(Read(0, 7, 1000, kMore | kSignaled).ok());
  ASSERT_TRUE(Read(0, 8, 2000, kSignaled).ok());
  ASSERT_NO_FATAL_FAILURE(ExpectAfter(microseconds(1 + 10), 7));
  ASSERT_NO_FATAL_FAILURE(ExpectAfter(microseconds(2), 8));
}

TEST_F(NicTest, ProcessesThatNameAFileShareThePortsOfTheirPeers) {
  const TempFolder folder;
  const auto open = [&](const std::string& ports) {
    std::unique_ptr<NicPorts> opened;
    EXPECT_TRUE(IsOk(NicPorts::Open(ports, &opened)));
    return opened;
  };
  const auto occupy = [](NicPorts* ports, const std::string& peer) {
    return ports->Of(peer)->incoming.Occupy(/*now=*/100, /*bytes=*/1000, /*nanos_per_byte=*/1);
  };
  const std::string file = folder.File("ports");
  const auto here = open(file);
  const auto there = open(file);
  const auto alone = open("");
  EXPECT_EQ(occupy(here.get(), "shm:a"), 1100u);
  EXPECT_EQ(occupy(there.get(), "shm:a"), 2100u);
  EXPECT_EQ(occupy(there.get(), "shm:b"), 1100u);
  EXPECT_EQ(occupy(alone.get(), "shm:a"), 1100u);
  EXPECT_EQ(here->Of("shm:a")->outgoing.Occupy(100, 1000, 1), 1100u);
  std::unique_ptr<NicPorts> none;
  EXPECT_TRUE(IsFailure(NicPorts::Open(folder.File("no/ports"), &none), Status::Code::kIOError,
                        "no/ports"));
}

TEST_F(NicTest, APortIsOccupiedBesideTheLink) {
  std::unique_ptr<Device> inner;
  ASSERT_TRUE(IsOk(OpenDevice("shm", {}, Clock::System(), &inner)));
  pairs_.clear();
  queue_.reset();
  region_.reset();
  device_.reset();
  // Half as fast as the link.
  NicModel model = kModel;
  model.port_gbps = 4;
  ASSERT_TRUE(IsOk(WrapWithNic(std::move(inner), model, &clock_, &device_)));
  ASSERT_TRUE(IsOk(device_->CreateCompletionQueue(64, &queue_)));
  ASSERT_TRUE(IsOk(device_->AllocateRegion(1 << 20, Access::kRemoteAll, &region_)));
  Connect();
  ASSERT_TRUE(Read(0, 1, 20000).ok());
  ExpectAfter(microseconds(10 + 40), 1);
}

TEST_F(NicTest, AnEmptyRequestTakesARoundTrip) {
  ASSERT_TRUE(Read(0, 1, 0).ok());
  ExpectAfter(microseconds(10), 1);
  ASSERT_TRUE(pairs_[0]->PostFetchAdd(2, Near(0, 8), Far(0), 1, kSignaled).ok());
  Completion completion;
  EXPECT_EQ(queue_->Poll(&completion, 1), 0);
  clock_.Advance(microseconds(11));
  EXPECT_EQ(queue_->Poll(&completion, 1), 1);
}

TEST_F(NicTest, BytesTakeTheirTimeOnTheLink) {
  ASSERT_TRUE(Read(0, 1, 20000).ok());
  ExpectAfter(microseconds(10 + 20), 1);
  ASSERT_TRUE(Write(0, 2, 5000).ok());
  ExpectAfter(microseconds(10 + 5), 2);
}

TEST_F(NicTest, RoundTripsOverlapButTheLinkIsShared) {
  // One behind the other on the link, over two queue pairs.
  ASSERT_TRUE(Read(0, 1, 20000).ok());
  ASSERT_TRUE(Read(1, 2, 20000).ok());
  ASSERT_TRUE(Read(0, 3, 20000).ok());
  ExpectAfter(microseconds(10 + 20), 1);
  ExpectAfter(microseconds(20), 2);
  ExpectAfter(microseconds(20), 3);
}

TEST_F(NicTest, TheTwoDirectionsAreIndependent) {
  ASSERT_TRUE(Read(0, 1, 20000).ok());
  ASSERT_TRUE(Write(1, 2, 10000).ok());
  ExpectAfter(microseconds(10 + 10), 2);
  ExpectAfter(microseconds(10), 1);
}

TEST_F(NicTest, APairCompletesInOrder) {
  // The write would be done first, but was posted behind the read.
  ASSERT_TRUE(Read(0, 1, 20000).ok());
  ASSERT_TRUE(Write(0, 2, 1000).ok());
  Completion completion[2];
  clock_.Advance(microseconds(29));
  EXPECT_EQ(queue_->Poll(completion, 2), 0);
  clock_.Advance(microseconds(1));
  ASSERT_EQ(queue_->Poll(completion, 2), 2);
  EXPECT_EQ(completion[0].id, 1u);
  EXPECT_EQ(completion[1].id, 2u);
}

TEST_F(NicTest, UnsignalledRequestsOccupyTheLinkToo) {
  for (int i = 0; i < 10; i++) ASSERT_TRUE(Write(0, 0, 1000, 0).ok());
  ASSERT_TRUE(Write(0, 1, 1000).ok());
  ExpectAfter(microseconds(11 + 10), 1);
}

TEST_F(NicTest, AnIdleLinkDoesNotSaveUp) {
  clock_.Advance(seconds(5));
  ASSERT_TRUE(Write(0, 1, 1000).ok());
  ExpectAfter(microseconds(1 + 10), 1);
}

TEST_F(NicTest, AMessageArrivesHalfARoundTripLate) {
  ASSERT_TRUE(pairs_[0]->PostRecv(7, Near(0, 8)).ok());
  ASSERT_TRUE(far_.queue_pairs[0]->PostSend(1, far_.Buffer(0, 0, 8), kSignaled).ok());
  Completion completion;
  EXPECT_EQ(queue_->Poll(&completion, 1), 0);  // Noticed now.
  ExpectAfter(microseconds(5), 7);
}

TEST_F(NicTest, WaitSleepsUntilTheCompletionIsDue) {
  std::unique_ptr<Device> inner;
  ASSERT_TRUE(OpenDevice("shm", {}, Clock::System(), &inner).ok());
  std::unique_ptr<Device> slow;
  ASSERT_TRUE(WrapWithNic(std::move(inner), {.rtt_us = 3000}, Clock::System(), &slow).ok());
  std::unique_ptr<CompletionQueue> queue;
  ASSERT_TRUE(slow->CreateCompletionQueue(4, &queue).ok());
  std::thread accepting([&] { EXPECT_TRUE(far_.Accept("").ok()); });
  std::string reply;
  std::unique_ptr<QueuePair> pair;
  ASSERT_TRUE(slow->Connect(far_.listener->address(), "", {}, queue.get(), queue.get(),
                            Deadline::After(Clock::System(), seconds(20)), &reply, &pair)
                  .ok());
  accepting.join();
  const uint64_t begin = Clock::System()->NowNanos();
  ASSERT_TRUE(pair->PostRead(1, {}, {}, kSignaled).ok());
  Completion completion;
  EXPECT_EQ(queue->Poll(&completion, 1), 0);
  ASSERT_TRUE(queue->Wait(seconds(20)).ok());
  EXPECT_EQ(queue->Poll(&completion, 1), 1);
  EXPECT_GE(Clock::System()->NowNanos() - begin, 3'000'000u);
}

TEST_F(NicTest, NonsenseIsRefused) {
  for (const NicModel& model : {NicModel{.rtt_us = -1}, NicModel{.gbps = -2}}) {
    std::unique_ptr<Device> inner;
    std::unique_ptr<Device> device;
    ASSERT_TRUE(OpenDevice("shm", {}, Clock::System(), &inner).ok());
    EXPECT_TRUE(WrapWithNic(std::move(inner), model, Clock::System(), &device).IsInvalidArgument());
  }
}

}  // namespace

}  // namespace nacre::rdma
