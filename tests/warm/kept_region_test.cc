// Goal: a region of a file is one like any other, whose bytes stay when it is gone; and once its
// content has been moved elsewhere, no request of a peer that reaches what is left succeeds.
// Method: two devices in this process, over each backend that shares memory or moves it, and a file
// in memory; the word that says so is set by hand.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>

#include "rdma/transport.h"
#include "rdma/unique_fd.h"
#include "tests/support/rdma/rdma_endpoint.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_db.h"

namespace nacre::rdma {
namespace {

constexpr size_t kBytes = 1 << 20;
constexpr size_t kAt = 64 << 10;

class KeptRegionTest : public testing::TestWithParam<std::string> {
 protected:
  KeptRegionTest()
      : fd_(::open(folder_.File("region").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    EXPECT_EQ(::ftruncate(fd_.get(), kBytes), 0);
  }

  Status Map(Device* device, std::unique_ptr<MemoryRegion>* region) const {
    return device->MapRegion(fd_.get(), kBytes, Access::kRemoteReadOnly, region);
  }
  std::string InFile(size_t offset, size_t size) const {
    std::string bytes(size, '\0');
    EXPECT_EQ(::pread(fd_.get(), bytes.data(), size, static_cast<off_t>(offset)),
              static_cast<ssize_t>(size));
    return bytes;
  }

  const TempFolder folder_{MemoryFolder()};
  const UniqueFd fd_;
};

TEST_P(KeptRegionTest, KeepsWhatPeersWrite) {
  const std::string first = TestValue(1, 5000);
  const std::string second = TestValue(2, 5000);
  ASSERT_EQ(::pwrite(fd_.get(), first.data(), first.size(), kAt),
            static_cast<ssize_t>(first.size()));
  {
    Endpoint near({.scheme = GetParam()});
    Endpoint far({.scheme = GetParam()});
    std::unique_ptr<MemoryRegion> region;
    ASSERT_TRUE(IsOk(Map(far.device.get(), &region)));
    ASSERT_TRUE(IsOk(far.Listen(AnyAddress(GetParam()))));
    ASSERT_NO_FATAL_FAILURE(ConnectEndpoints(&near, &far, far.listener->address()));
    const int buffer = near.Allocate(8192, Access::kLocalOnly);
    QueuePair* const pair = near.queue_pairs.back().get();
    const RemoteKey key = region->remote_key();
    ASSERT_TRUE(IsOk(pair->PostRead(1, near.Buffer(buffer, 0, first.size()),
                                    {.address = key.address + kAt, .key = key.key}, kSignaled)));
    ASSERT_EQ(near.Next().code, CompletionCode::kSuccess);
    EXPECT_EQ(std::memcmp(near.Data(buffer), first.data(), first.size()), 0);

    std::unique_ptr<RegionGrant> grant;
    ASSERT_TRUE(IsOk(region->Grant(kAt, kAt, Access::kRemoteAll, &grant)));
    std::memcpy(near.Data(buffer), second.data(), second.size());
    const RemoteKey to = grant->remote_key();
    ASSERT_TRUE(IsOk(pair->PostWrite(2, near.Buffer(buffer, 0, second.size()),
                                     {.address = to.address, .key = to.key}, kSignaled)));
    ASSERT_EQ(near.Next().code, CompletionCode::kSuccess);
    grant.reset();
  }
  EXPECT_TRUE(InFile(kAt, second.size()) == second);
  Endpoint next({.scheme = GetParam()});
  std::unique_ptr<MemoryRegion> region;
  ASSERT_TRUE(IsOk(Map(next.device.get(), &region)));
  EXPECT_EQ(std::memcmp(region->data() + kAt, second.data(), second.size()), 0);
}

TEST_P(KeptRegionTest, RefusesAFileThatIsTooSmall) {
  Endpoint near({.scheme = GetParam()});
  std::unique_ptr<MemoryRegion> region;
  const Status s = near.device->MapRegion(fd_.get(), 2 * kBytes, Access::kRemoteReadOnly, &region);
  EXPECT_TRUE(s.IsIOError()) << s.ToString();
  EXPECT_NE(s.ToString().find("too small"), std::string::npos) << s.ToString();
}

INSTANTIATE_TEST_SUITE_P(, KeptRegionTest, testing::Values("shm", "cxl", "tcp"),
                         [](const auto& instance) { return instance.param; });

/// Over `shm` a peer that outlives the owner's process has its memory mapped.
TEST(MovedRegionTest, NothingSucceedsThatComesTooLate) {
  const TempFolder folder(MemoryFolder());
  const UniqueFd fd(::open(folder.File("region").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::ftruncate(fd.get(), kBytes), 0);
  for (const bool write : {false, true}) {
    SCOPED_TRACE(write ? "write" : "read");
    Endpoint near({.scheme = "shm"});
    Endpoint far({.scheme = "shm"});
    std::unique_ptr<MemoryRegion> region;
    ASSERT_TRUE(IsOk(far.device->MapRegion(fd.get(), kBytes, Access::kRemoteReadOnly, &region)));
    ASSERT_TRUE(IsOk(far.Listen(AnyAddress("shm"))));
    ASSERT_NO_FATAL_FAILURE(ConnectEndpoints(&near, &far, far.listener->address()));
    std::unique_ptr<RegionGrant> grant;
    ASSERT_TRUE(IsOk(region->Grant(kAt, kAt, Access::kRemoteAll, &grant)));
    const int buffer = near.Allocate(4096, Access::kLocalOnly);
    QueuePair* const pair = near.queue_pairs.back().get();
    const RemoteBuffer there{.address = grant->remote_key().address,
                             .key = grant->remote_key().key};
    const auto post = [&](uint64_t id) {
      return write ? pair->PostWrite(id, near.Buffer(buffer, 0, 4096), there, kSignaled)
                   : pair->PostRead(id, near.Buffer(buffer, 0, 4096), there, kSignaled);
    };
    ASSERT_TRUE(IsOk(post(1)));
    ASSERT_EQ(near.Next().code, CompletionCode::kSuccess);
    std::atomic_ref<uint64_t> moved(
        *reinterpret_cast<uint64_t*>(region->data() + Device::kMovedAwayAt));
    moved.store(1);
    ASSERT_TRUE(IsOk(post(2)));
    EXPECT_EQ(near.Next().code, CompletionCode::kPeerGone);
    EXPECT_TRUE(pair->broken());
    moved.store(0);
    grant.reset();
  }
}

}  // namespace
}  // namespace nacre::rdma
