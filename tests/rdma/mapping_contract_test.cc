// Goal: what a queue pair lets this process load of its peer's memory is what a read would bring,
// until the memory is freed or either end goes; from then on it does not count, and is still there.
// Method: each device that maps, against a peer here and in another process, which is also killed.
// All others say that they do not.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "tests/rdma/contract_fixture.h"
#include "tests/support/status_assert.h"

namespace nacre::rdma {
namespace {

class MappingContractTest : public ContractTest {
 protected:
  bool Maps() const { return near_.device->may_map(); }

  std::shared_ptr<const LoadableMemory> Map(QueuePair* pair, size_t offset, size_t size) {
    std::shared_ptr<const LoadableMemory> memory;
    EXPECT_TRUE(IsOk(pair->Map(Far(offset), size, &memory)));
    return memory;
  }
  static std::string Copy(const LoadableMemory& memory, size_t offset, size_t size) {
    std::string bytes(size, '\0');
    LoadableMemory::Copy(bytes.data(), memory.data() + offset, size);
    return bytes;
  }
  /// A peer's death or hang-up takes a moment to be seen.
  static bool Ends(const LoadableMemory& memory) {
    const auto limit = std::chrono::steady_clock::now() + Endpoint::kPatience;
    while (memory.Valid() && std::chrono::steady_clock::now() < limit) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return !memory.Valid();
  }
};

INSTANTIATE_TEST_SUITE_P(All, MappingContractTest, testing::ValuesIn(AllSetups()), NameOf);

TEST_P(MappingContractTest, OnlyDevicesThatSaySoMap) {
  QueuePair* pair = Connect();
  std::shared_ptr<const LoadableMemory> memory;
  const Status mapped = pair->Map(Far(0), kRegionBytes, &memory);
  EXPECT_EQ(mapped.ok(), Maps()) << mapped.ToString();
  EXPECT_EQ(memory != nullptr, Maps());
  EXPECT_EQ(mapped.IsNotSupported(), !Maps()) << mapped.ToString();
  const std::string& scheme = GetParam().spec.scheme;
  const bool local = scheme == "shm" || scheme == "cxl" || scheme == "embedded";
  EXPECT_EQ(Maps(), local && !GetParam().spec.with_faults && GetParam().spec.parameters.empty());
}

TEST_P(MappingContractTest, LoadsBringTheFarBytes) {
  if (!Maps()) return;
  QueuePair* pair = Connect();
  const auto memory = Map(pair, 100, kRegionBytes - 100);
  EXPECT_EQ(memory->size(), kRegionBytes - 100);
  for (const std::string bytes : {"far bytes", "other one"}) {
    StoreFar(300, bytes);
    EXPECT_EQ(Copy(*memory, 200, 9), bytes);
    EXPECT_TRUE(memory->Valid());
  }
}

TEST_P(MappingContractTest, OnlyWhatMayBeReadIsMapped) {
  if (!Maps()) return;
  QueuePair* pair = Connect();
  std::shared_ptr<const LoadableMemory> memory;
  EXPECT_TRUE(pair->Map(Far(1), kRegionBytes, &memory).IsInvalidArgument());
  EXPECT_TRUE(pair->Map({far_key_.address, far_key_.key + 1}, 1, &memory).IsInvalidArgument());
  RemoteKey key;
  peer_->Allocate(4096, Access::kLocalOnly, &key);
  EXPECT_TRUE(pair->Map({key.address, key.key}, 1, &memory).IsInvalidArgument());
  EXPECT_EQ(memory, nullptr);
  // The queue pair is as good as before.
  EXPECT_NE(Map(pair, 0, 1), nullptr);
}

TEST_P(MappingContractTest, FreedMemoryDoesNotCount) {
  if (!Maps()) return;
  QueuePair* pair = Connect();
  const auto memory = Map(pair, 0, kRegionBytes);
  peer_->Free(far_region_);
  EXPECT_FALSE(memory->Valid());
  EXPECT_EQ(Copy(*memory, 0, kRegionBytes).size(), kRegionBytes);
  std::shared_ptr<const LoadableMemory> again;
  EXPECT_TRUE(pair->Map(Far(0), 1, &again).IsInvalidArgument());
}

TEST_P(MappingContractTest, MemoryEndsWithEitherEndOfTheQueuePair) {
  if (!Maps()) return;
  for (const bool peer_ends : {true, false}) {
    const int number = static_cast<int>(near_.queue_pairs.size());
    QueuePair* pair = Connect();
    StoreFar(0, "stays");
    const auto memory = Map(pair, 0, kRegionBytes);
    if (peer_ends) {
      peer_->DropQueuePair(number);
    } else {
      near_.queue_pairs.back().reset();
    }
    EXPECT_TRUE(Ends(*memory));
    EXPECT_EQ(Copy(*memory, 0, 5), "stays");
  }
}

TEST_P(MappingContractTest, MemoryOfAKilledPeerStaysButDoesNotCount) {
  if (!Maps() || !GetParam().child) return;
  QueuePair* pair = Connect();
  StoreFar(kRegionBytes - 5, "stays");
  const auto memory = Map(pair, 0, kRegionBytes);
  ASSERT_TRUE(peer_->Kill());
  EXPECT_TRUE(Ends(*memory));
  EXPECT_EQ(Copy(*memory, kRegionBytes - 5, 5), "stays");
}

TEST(MappingTest, AParameterForbidsIt) {
  for (const char* scheme : {"shm", "cxl", "embedded"}) {
    std::unique_ptr<Device> device;
    EXPECT_TRUE(IsOk(OpenForTest({.scheme = scheme, .parameters = {{"map", "0"}}}, &device)));
    EXPECT_FALSE(device->may_map());
    EXPECT_TRUE(IsOk(OpenForTest({.scheme = scheme, .parameters = {{"map", "1"}}}, &device)));
    EXPECT_TRUE(device->may_map());
    EXPECT_TRUE(OpenForTest({.scheme = scheme, .parameters = {{"map", "yes"}}}, &device)
                    .IsInvalidArgument());
  }
  std::unique_ptr<Device> device;
  EXPECT_TRUE(
      OpenForTest({.scheme = "tcp", .parameters = {{"map", "0"}}}, &device).IsInvalidArgument());
}

}  // namespace
}  // namespace nacre::rdma
