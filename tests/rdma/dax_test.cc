// Goal: a dax device is known by what the kernel says of it, anything else is refused by name; and
// memory whose owner is gone can be taken away from this process, so that nothing here reaches it
// any more and a thread that copied from it notices. Method: the device of /dev/null with files in
// the place of the kernel's; files in memory, locked through the descriptor that is mapped, while
// threads copy to and from the mapping.

#include "rdma/dax.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "rdma/memory.h"
#include "rdma/transport.h"
#include "rdma/unique_fd.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"

namespace nacre::rdma {
namespace {

class DaxTest : public testing::Test {
 protected:
  UniqueFd Open(const std::string& path) const {
    return UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  }
  /// What the kernel would say of /dev/null, which is device 1:3.
  void SaySo(const std::string& subsystem, const std::string& size, const std::string& align) {
    const std::string device = folder_.File("dev/char/1:3");
    std::filesystem::remove_all(device);
    std::filesystem::create_directories(device);
    std::filesystem::create_directory_symlink("../../../bus/" + subsystem, device + "/subsystem");
    if (!size.empty()) std::ofstream(device + "/size") << size << "\n";
    if (!align.empty()) std::ofstream(device + "/align") << align << "\n";
  }
  Status DescribeNull(DaxMemory* memory) {
    const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    return DescribeDax(null.get(), folder_.path(), memory);
  }

  const TempFolder folder_{MemoryFolder()};
};

TEST_F(DaxTest, AFileStandsForADevice) {
  const UniqueFd fd = Open(folder_.File("memory"));
  ASSERT_EQ(::ftruncate(fd.get(), 5 * 4096), 0);
  DaxMemory memory;
  ASSERT_TRUE(IsOk(DescribeDax(fd.get(), "/sys", &memory)));
  EXPECT_EQ(memory.bytes, 5u * 4096);
  EXPECT_EQ(memory.alignment, 4096u);
  EXPECT_FALSE(memory.device);
  ASSERT_EQ(::ftruncate(fd.get(), 5 * 4096 + 1), 0);
  const Status status = DescribeDax(fd.get(), "/sys", &memory);
  EXPECT_TRUE(IsFailure(status, Status::Code::kInvalidArgument, "20481"));
}

TEST_F(DaxTest, TheKernelSaysHowLargeADeviceIs) {
  DaxMemory memory;
  SaySo("dax", "8589934592", "2097152");
  ASSERT_TRUE(IsOk(DescribeNull(&memory)));
  EXPECT_EQ(memory.bytes, uint64_t{8} << 30);
  EXPECT_EQ(memory.alignment, 2u << 20);
  EXPECT_TRUE(memory.device);
  SaySo("dax", "8589934593", "2097152");
  EXPECT_TRUE(IsFailure(DescribeNull(&memory), Status::Code::kInvalidArgument, "8589934593"));
  SaySo("dax", "8589934592", "0");
  EXPECT_TRUE(DescribeNull(&memory).IsInvalidArgument());
  SaySo("dax", "", "2097152");
  EXPECT_TRUE(IsFailure(DescribeNull(&memory), Status::Code::kIOError, "size"));
  SaySo("dax", "8589934592", "large");
  EXPECT_TRUE(IsFailure(DescribeNull(&memory), Status::Code::kIOError, "align"));
}

TEST_F(DaxTest, WhatIsNoDaxDeviceIsRefused) {
  DaxMemory memory;
  EXPECT_TRUE(IsFailure(DescribeNull(&memory), Status::Code::kInvalidArgument, "no dax device"));
  SaySo("mem", "8589934592", "2097152");
  EXPECT_TRUE(IsFailure(DescribeNull(&memory), Status::Code::kInvalidArgument, "no dax device"));
  const UniqueFd folder(::open(folder_.path().c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(IsFailure(DescribeDax(folder.get(), "/sys", &memory), Status::Code::kInvalidArgument,
                        "neither"));
}

TEST_F(DaxTest, MemoryThatIsTakenAwayIsReachedNoMore) {
  for (const size_t bytes : {size_t{8192}, size_t{6} << 20}) {
    SCOPED_TRACE(bytes);
    const std::string path = folder_.File("memory" + std::to_string(bytes));
    const UniqueFd other = Open(path);
    ASSERT_EQ(::ftruncate(other.get(), static_cast<off_t>(bytes)), 0);
    std::shared_ptr<Mapping> mapping;
    {
      const UniqueFd sent = Open(path);
      ASSERT_EQ(::flock(sent.get(), LOCK_EX | LOCK_NB), 0);
      ASSERT_TRUE(IsOk(MappingTable::Process()->FindOrMap(
          {NewDeviceId(), RegionObject(1)}, sent.get(), bytes, /*writable=*/true, &mapping)));
    }
    ASSERT_TRUE(mapping->kept());
    ASSERT_NE(::flock(other.get(), LOCK_EX | LOCK_NB), 0) << "the mapping does not hold the lock";
    std::atomic_ref<uint64_t> last(*reinterpret_cast<uint64_t*>(mapping->data() + bytes - 8));
    std::atomic_ref<uint64_t> moved(
        *reinterpret_cast<uint64_t*>(mapping->data() + Device::kMovedAwayAt));
    last.store(7);

    // A reader that finds anything else knows that it does not count.
    std::atomic<bool> begun{false};
    std::thread reader([&] {
      for (;;) {
        const uint64_t seen = last.load();
        begun.store(true);
        if (moved.load() != 0) return;
        EXPECT_EQ(seen, 7u);
      }
    });
    while (!begun.load()) std::this_thread::yield();
    mapping->TakeAway();
    reader.join();
    EXPECT_EQ(::flock(other.get(), LOCK_EX | LOCK_NB), 0) << "something here still reaches it";
    last.store(8);
    mapping->TakeAway();
    EXPECT_EQ(last.load(), 8u);
    uint64_t there = 0;
    ASSERT_EQ(::pread(other.get(), &there, sizeof(there), static_cast<off_t>(bytes - 8)), 8);
    EXPECT_EQ(there, 7u);
    ASSERT_EQ(::pread(other.get(), &there, sizeof(there), Device::kMovedAwayAt), 8);
    EXPECT_EQ(there, 0u) << "others were told";
  }
}

}  // namespace
}  // namespace nacre::rdma
