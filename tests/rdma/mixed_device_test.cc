// Goal: one device over several transports connects to each peer over the peer's own, uses the same
// local memory for all, and reports all completions in one queue. Method: peers on shm and tcp, in
// this process, each with a region of its own.

#include "rdma/mixed_device.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "tests/support/rdma/rdma_endpoint.h"
#include "tests/support/status_assert.h"

namespace nacre::rdma {
namespace {

constexpr size_t kMixedBytes = 64 << 10;

class MixedDeviceTest : public testing::Test {
 protected:
  MixedDeviceTest() {
    EXPECT_TRUE(IsOk(OpenMixedDevice({"shm", "tcp"}, {}, Clock::System(), &device_)));
    EXPECT_TRUE(IsOk(device_->CreateCompletionQueue(256, &queue_)));
    EXPECT_TRUE(IsOk(device_->AllocateRegion(kMixedBytes, Access::kLocalOnly, &region_)));
    for (const char* scheme : {"shm", "tcp"}) {
      peers_.push_back(std::make_unique<Endpoint>(DeviceSpec{.scheme = scheme}));
      Endpoint* peer = peers_.back().get();
      peer->Allocate(kMixedBytes);
      EXPECT_TRUE(IsOk(peer->Listen(AnyAddress(scheme))));
      Status accepted;
      std::thread accepting([&] { accepted = peer->Accept(""); });
      std::string reply;
      const std::string address = peer->listener->address();
      EXPECT_TRUE(IsOk(device_->Connect(address, "", {}, queue_.get(), queue_.get(),
                                        Deadline::After(Clock::System(), Endpoint::kPatience),
                                        &reply, &pairs_.emplace_back())));
      accepting.join();
      EXPECT_TRUE(IsOk(accepted));
    }
  }
  ~MixedDeviceTest() override { pairs_.clear(); }

  LocalBuffer Buffer(size_t offset, size_t size) {
    return {region_->data() + offset, static_cast<uint32_t>(size), region_.get()};
  }
  RemoteBuffer Far(size_t peer, size_t offset) {
    const RemoteKey key = peers_[peer]->regions[0]->remote_key();
    return {key.address + offset, key.key};
  }
  Completion Next() {
    const Deadline deadline = Deadline::After(Clock::System(), Endpoint::kPatience);
    Completion completion{.code = CompletionCode::kReceiverNotReady};
    while (queue_->Poll(&completion, 1) == 0 && !deadline.Expired()) {
      queue_->Wait(std::chrono::milliseconds(100)).IgnoreError();
    }
    return completion;
  }

  std::vector<std::unique_ptr<Endpoint>> peers_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<CompletionQueue> queue_;
  std::unique_ptr<MemoryRegion> region_;
  std::vector<std::unique_ptr<QueuePair>> pairs_;
};

TEST_F(MixedDeviceTest, ReadsAndWritesOverEach) {
  for (size_t peer = 0; peer < 2; ++peer) {
    const std::string text = "for peer " + std::to_string(peer);
    text.copy(region_->data() + 100 * peer, text.size());
    ASSERT_TRUE(IsOk(
        pairs_[peer]->PostWrite(peer, Buffer(100 * peer, text.size()), Far(peer, 0), kSignaled)));
  }
  std::set<QueuePair*> seen;
  for (int i = 0; i < 2; ++i) {
    const Completion completion = Next();
    EXPECT_EQ(completion.code, CompletionCode::kSuccess);
    EXPECT_EQ(completion.queue_pair, pairs_[completion.id].get());
    seen.insert(completion.queue_pair);
  }
  EXPECT_EQ(seen.size(), 2u);
  for (size_t peer = 0; peer < 2; ++peer) {
    EXPECT_EQ(std::string(peers_[peer]->Data(0), 10), "for peer " + std::to_string(peer));
    ASSERT_TRUE(IsOk(pairs_[peer]->PostRead(9, Buffer(1000, 10), Far(peer, 0), kSignaled)));
    EXPECT_EQ(Next().id, 9u);
    EXPECT_EQ(std::string(region_->data() + 1000, 10), "for peer " + std::to_string(peer));
    ASSERT_TRUE(IsOk(pairs_[peer]->PostFetchAdd(7, Buffer(2000, 8), Far(peer, 512), 5, kSignaled)));
    EXPECT_EQ(Next().opcode, Opcode::kFetchAdd);
  }
  EXPECT_EQ(device_->traffic().reads, 2u);
}

TEST_F(MixedDeviceTest, MemoryOfTheCallers) {
  alignas(64) static char memory[256];
  std::unique_ptr<MemoryRegion> region;
  ASSERT_TRUE(IsOk(device_->RegisterLocal(memory, sizeof(memory), &region)));
  for (size_t peer = 0; peer < 2; ++peer) {
    std::memset(peers_[peer]->Data(0), 'a' + static_cast<int>(peer), 256);
    ASSERT_TRUE(
        IsOk(pairs_[peer]->PostRead(1, {memory, 256, region.get()}, Far(peer, 0), kSignaled)));
    EXPECT_EQ(Next().code, CompletionCode::kSuccess);
    EXPECT_EQ(memory[255], 'a' + static_cast<int>(peer));
    // This grants not one byte beyond it.
    ASSERT_TRUE(
        IsOk(pairs_[peer]->PostRead(1, {memory + 1, 256, region.get()}, Far(peer, 0), kSignaled)));
    EXPECT_EQ(Next().code, CompletionCode::kLocalError);
  }
  region.reset();
  EXPECT_EQ(memory[255], 'b') << "it is the caller's still";
}

TEST_F(MixedDeviceTest, WaitsForAllAndWakes) {
  std::thread other([&] {
    Clock::System()->SleepFor(std::chrono::milliseconds(20));
    queue_->Wake();
  });
  EXPECT_TRUE(IsOk(queue_->Wait(Endpoint::kPatience)));
  other.join();
  for (size_t peer = 0; peer < 2; ++peer) {
    ASSERT_TRUE(IsOk(pairs_[peer]->PostRecv(peer, Buffer(0, 64))));
    std::thread sender([&] {
      Clock::System()->SleepFor(std::chrono::milliseconds(10));
      EXPECT_TRUE(IsOk(
          peers_[peer]->queue_pairs[0]->PostSend(1, peers_[peer]->Buffer(0, 0, 8), kSignaled)));
    });
    const Completion completion = Next();
    sender.join();
    EXPECT_EQ(completion.opcode, Opcode::kRecv);
    EXPECT_EQ(completion.queue_pair, pairs_[peer].get());
  }
}

TEST_F(MixedDeviceTest, ABrokenPeerLeavesTheOthersAlone) {
  peers_[1]->queue_pairs.clear();
  Status posted;
  do {
    posted = pairs_[1]->PostRead(5, Buffer(0, 8), Far(1, 0), kSignaled);
    ASSERT_TRUE(IsOk(posted));
  } while (Next().code == CompletionCode::kSuccess);
  EXPECT_TRUE(pairs_[1]->broken());
  ASSERT_TRUE(IsOk(pairs_[0]->PostRead(6, Buffer(0, 8), Far(0, 0), kSignaled)));
  EXPECT_EQ(Next().code, CompletionCode::kSuccess);
}

TEST_F(MixedDeviceTest, SaysWhatItIsNot) {
  std::unique_ptr<MemoryRegion> region;
  EXPECT_TRUE(device_->AllocateRegion(4096, Access::kRemoteAll, &region).IsInvalidArgument());
  std::unique_ptr<Listener> listener;
  EXPECT_TRUE(device_->Listen("tcp:127.0.0.1:0", &listener).IsNotSupported());
  std::string reply;
  std::unique_ptr<QueuePair> pair;
  EXPECT_TRUE(device_
                  ->Connect("verbs:10.0.0.1:1", "", {}, queue_.get(), queue_.get(),
                            Deadline::After(Clock::System(), Endpoint::kPatience), &reply, &pair)
                  .IsInvalidArgument());
  EXPECT_STREQ(device_->ForPeer("tcp:127.0.0.1:1")->scheme(), "tcp");
  EXPECT_STREQ(device_->ForPeer("shm:/x")->scheme(), "shm");
  std::unique_ptr<Device> device;
  EXPECT_TRUE(IsFailure(
      OpenMixedDevice({"shm"}, {.parameters = {{"tcp.io_threads", "1"}}}, Clock::System(), &device),
      Status::Code::kInvalidArgument, "tcp.io_threads"));
  EXPECT_TRUE(IsFailure(OpenMixedDevice({"shm", "smoke"}, {}, Clock::System(), &device),
                        Status::Code::kInvalidArgument, "smoke"));
  EXPECT_TRUE(OpenMixedDevice({}, {}, Clock::System(), &device).IsInvalidArgument());
}

}  // namespace
}  // namespace nacre::rdma
