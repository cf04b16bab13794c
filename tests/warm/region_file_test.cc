// Goal: a region file gives back what was saved in it whenever its process is killed, never the
// memory of another boot, of a copy or of a damaged file, and never lets a process that mapped it
// for its predecessor reach it.
// Method: files in memory. Processes of the test's own save states, or move the content, until they
// are killed at a random moment; what they had been told is shared with the test. Heads and states
// are changed on disk by hand, byte by byte.

#include "memnode/region_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "memnode/region_move.h"
#include "pool/wire/node_stats.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_db.h"
#include "util/clock.h"
#include "util/codes/crc32c.h"
#include "util/random.h"

namespace nacre::pool {
namespace {

constexpr uint64_t kRegionBytes = 40 << 20;  // Several parts of a move.
constexpr uint64_t kSlabBytes = 1 << 20;
constexpr off_t kHeadAt = 2048;
constexpr off_t kVersionAt = kHeadAt + 8;

/// Whether it is `fd` that has the path.
bool IsAt(const std::string& path, int fd) {
  struct stat open {};
  struct stat there {};
  return ::fstat(fd, &open) == 0 && ::stat(path.c_str(), &there) == 0 &&
         open.st_ino == there.st_ino;
}

class RegionFileTest : public testing::Test {
 protected:
  RegionFileOptions Plan() const {
    return {.path = path_,
            .region_bytes = kRegionBytes,
            .slab_bytes = kSlabBytes,
            .clock = Clock::System()};
  }
  Status Open(const RegionFileOptions& options, std::unique_ptr<RegionFile>* file) const {
    file->reset();
    return RegionFile::Open(options, file);
  }
  /// One that holds `state`, and is closed.
  void Make(const std::string& state) {
    std::unique_ptr<RegionFile> file;
    ASSERT_TRUE(IsOk(Open(Plan(), &file)));
    ASSERT_EQ(file->keeping(), Keeping::kEmpty);
    ASSERT_TRUE(IsOk(file->Save(state)));
    instance_id_ = file->instance_id();
  }
  void ExpectState(const std::string& state) {
    std::unique_ptr<RegionFile> file;
    ASSERT_TRUE(IsOk(Open(Plan(), &file)));
    EXPECT_EQ(file->keeping(), Keeping::kWarm);
    EXPECT_EQ(file->instance_id(), instance_id_);
    EXPECT_TRUE(file->state() == Slice(state));
  }
  void ExpectRefused(const RegionFileOptions& options, Status::Code code, const std::string& why) {
    std::unique_ptr<RegionFile> file;
    const Status s = Open(options, &file);
    EXPECT_EQ(s.code(), code) << s.ToString();
    EXPECT_NE(s.ToString().find(why), std::string::npos) << s.ToString();
    EXPECT_NE(s.ToString().find(path_), std::string::npos) << s.ToString();
  }

  void FlipBit(off_t offset, int bit) const {
    const rdma::UniqueFd fd(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
    char byte = 0;
    ASSERT_EQ(::pread(fd.get(), &byte, 1, offset), 1);
    byte = static_cast<char>(byte ^ 1 << bit);
    ASSERT_EQ(::pwrite(fd.get(), &byte, 1, offset), 1);
  }
  /// Where the states are, by the file's own words.
  off_t StateAt(int place) const {
    const rdma::UniqueFd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    uint64_t numbers[2] = {0, 0};  // Offset of the first, bytes of each.
    EXPECT_EQ(::pread(fd.get(), numbers, sizeof(numbers), kHeadAt + 40),
              static_cast<ssize_t>(sizeof(numbers)));
    return static_cast<off_t>(numbers[0] + static_cast<uint64_t>(place) * numbers[1]);
  }

  const TempFolder folder_{MemoryFolder()};
  const std::string path_ = folder_.File("region");
  uint64_t instance_id_ = 0;
};

TEST_F(RegionFileTest, GivesBackWhatWasSavedLast) {
  ASSERT_NO_FATAL_FAILURE(Make("first"));
  ExpectState("first");
  {
    std::unique_ptr<RegionFile> file;
    ASSERT_TRUE(IsOk(Open(Plan(), &file)));
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(IsOk(file->Save(std::to_string(i))));
    const Status s = file->Save(std::string(8 << 20, 'x'));
    EXPECT_TRUE(s.IsNoSpace()) << s.ToString();
    EXPECT_TRUE(file->state() == Slice("4"));
  }
  ExpectState("4");
}

TEST_F(RegionFileTest, ResetBeginsEmptyAsAnotherInstance) {
  ASSERT_NO_FATAL_FAILURE(Make("state"));
  RegionFileOptions options = Plan();
  options.reset = true;
  std::unique_ptr<RegionFile> file;
  ASSERT_TRUE(IsOk(Open(options, &file)));
  EXPECT_EQ(file->keeping(), Keeping::kEmpty);
  EXPECT_NE(file->instance_id(), instance_id_);
  EXPECT_TRUE(file->state().empty());
}

TEST_F(RegionFileTest, RefusesWhatIsNotItsOwn) {
  ASSERT_NO_FATAL_FAILURE(Make("state"));
  RegionFileOptions larger = Plan();
  larger.region_bytes *= 2;
  ExpectRefused(larger, Status::Code::kInvalidArgument, "80.0 MiB");
  RegionFileOptions other_slabs = Plan();
  other_slabs.slab_bytes *= 2;
  ExpectRefused(other_slabs, Status::Code::kInvalidArgument, "slabs of 2.0 MiB");
  {
    std::unique_ptr<RegionFile> file;
    ASSERT_TRUE(IsOk(Open(Plan(), &file)));
    ExpectRefused(Plan(), Status::Code::kBusy, "another process");
  }
  std::filesystem::rename(path_, path_ + ".first");
  std::filesystem::copy_file(path_ + ".first", path_);
  ExpectRefused(Plan(), Status::Code::kInvalidArgument, "copy");
  std::filesystem::rename(path_ + ".first", path_);
  ExpectState("state");
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 4096);
  ExpectRefused(Plan(), Status::Code::kCorruption, "bytes");
}

TEST_F(RegionFileTest, RefusesWhatIsNoRegionFile) {
  std::filesystem::create_directory(path_);
  ExpectRefused(Plan(), Status::Code::kIOError, "directory");
  std::filesystem::remove(path_);
  std::ofstream(path_) << "something else";
  ExpectRefused(Plan(), Status::Code::kCorruption, "--region_reset");
  std::filesystem::remove(path_);
  RegionFileOptions enormous = Plan();
  enormous.region_bytes = uint64_t{1} << 46;
  std::unique_ptr<RegionFile> file;
  const Status s = Open(enormous, &file);
  EXPECT_FALSE(s.ok());
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".new"));
}

class RegionInPlaceTest : public RegionFileTest {
 protected:
  static constexpr uint64_t kMemoryBytes = kRegionBytes + (2 << 20);

  RegionInPlaceTest() { Resize(kMemoryBytes); }
  void Resize(uint64_t bytes) const {
    if (!std::filesystem::exists(path_)) std::ofstream(path_).flush();
    std::filesystem::resize_file(path_, bytes);
  }
  RegionFileOptions InPlace() const {
    RegionFileOptions options = Plan();
    options.in_place = true;
    options.head_bytes = kSlabBytes;
    return options;
  }
  /// Opens it, expects it to be warm or empty, and to have the state.
  void Expect(Keeping keeping, const std::string& state, RegionFileOptions options) {
    std::unique_ptr<RegionFile> file;
    ASSERT_TRUE(IsOk(Open(options, &file)));
    EXPECT_EQ(file->keeping(), keeping);
    EXPECT_TRUE(file->state() == Slice(state));
    EXPECT_EQ(file->instance_id() == instance_id_, keeping == Keeping::kWarm);
    instance_id_ = file->instance_id();
    ASSERT_TRUE(IsOk(file->Save("next")));
  }
};

TEST_F(RegionInPlaceTest, KeepsWhatWasSavedAndMakesNothingBesides) {
  ASSERT_NO_FATAL_FAILURE(Expect(Keeping::kEmpty, "", InPlace()));
  ASSERT_NO_FATAL_FAILURE(Expect(Keeping::kWarm, "next", InPlace()));
  RegionFileOptions reset = InPlace();
  reset.reset = true;
  ASSERT_NO_FATAL_FAILURE(Expect(Keeping::kEmpty, "", reset));
  ASSERT_NO_FATAL_FAILURE(Expect(Keeping::kWarm, "next", InPlace()));
  EXPECT_EQ(std::filesystem::file_size(path_), kMemoryBytes);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".lock"));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".new"));
}

TEST_F(RegionInPlaceTest, WhatIsEmptyHasNoSlabs) {
  const std::string rest(kRegionBytes, 'x');
  {
    const rdma::UniqueFd fd(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::pwrite(fd.get(), rest.data(), rest.size(), 4096),
              static_cast<ssize_t>(rest.size()));
  }
  ASSERT_NO_FATAL_FAILURE(Expect(Keeping::kEmpty, "", InPlace()));
  std::string head(kSlabBytes - 4096, 'y');
  const rdma::UniqueFd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::pread(fd.get(), head.data(), head.size(), 4096), static_cast<ssize_t>(head.size()));
  EXPECT_EQ(head, std::string(head.size(), '\0'));
}

TEST_F(RegionInPlaceTest, WaitsForThoseThatHaveItMapped) {
  std::unique_ptr<RegionFile> file;
  ASSERT_TRUE(IsOk(Open(InPlace(), &file)));
  ExpectRefused(InPlace(), Status::Code::kBusy, "another process");
  // As a peer does with the descriptor that it is sent: the mapping is left when it is closed.
  void* mapped = MAP_FAILED;
  {
    const rdma::UniqueFd sent(::fcntl(file->fd(), F_DUPFD_CLOEXEC, 0));
    mapped = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, sent.get(), 0);
    ASSERT_NE(mapped, MAP_FAILED);
  }
  file.reset();
  ExpectRefused(InPlace(), Status::Code::kBusy, "stopped peer");
  std::thread lets_go([mapped] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ::munmap(mapped, 4096);
  });
  ASSERT_TRUE(IsOk(Open(InPlace(), &file)));
  lets_go.join();
  EXPECT_EQ(file->keeping(), Keeping::kWarm);
}

TEST_F(RegionInPlaceTest, RefusesWhatItCannotUse) {
  Resize(kRegionBytes);
  ExpectRefused(InPlace(), Status::Code::kInvalidArgument, std::to_string(kRegionBytes));
  Resize(kMemoryBytes + 1);
  ExpectRefused(InPlace(), Status::Code::kInvalidArgument, "no multiple");
  Resize(kMemoryBytes);
  {
    const rdma::UniqueFd fd(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::pwrite(fd.get(), "something else", 14, 100), 14);
  }
  ExpectRefused(InPlace(), Status::Code::kCorruption, "--region_reset");
  RegionFileOptions reset = InPlace();
  reset.reset = true;
  ASSERT_NO_FATAL_FAILURE(Expect(Keeping::kEmpty, "", reset));
  FlipBit(kHeadAt + 30, 3);
  ExpectRefused(InPlace(), Status::Code::kCorruption, "--region_reset");
  FlipBit(kHeadAt + 30, 3);
  std::filesystem::rename(path_, path_ + ".first");
  std::filesystem::copy_file(path_ + ".first", path_);
  ExpectRefused(InPlace(), Status::Code::kInvalidArgument, "copy");
  std::filesystem::remove(path_);
  ExpectRefused(InPlace(), Status::Code::kIOError, "No such file");
}

TEST_F(RegionFileTest, RefusesALaterFormat) {
  ASSERT_NO_FATAL_FAILURE(Make("state"));
  FlipBit(kVersionAt, 3);
  ExpectRefused(Plan(), Status::Code::kNotSupported, "format 9");
}

TEST_F(RegionFileTest, BeginsEmptyAfterAnotherBoot) {
  ASSERT_NO_FATAL_FAILURE(Make("state"));
  // As the file would be that another boot has left: its head, with its checksum.
  struct Head {
    uint64_t magic;
    uint32_t version;
    uint32_t crc;
    uint64_t numbers[8];
    char boot_id[40];
  };
  static_assert(sizeof(Head) == 120);
  {
    const rdma::UniqueFd fd(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
    Head head{};
    ASSERT_EQ(::pread(fd.get(), &head, sizeof(head), kHeadAt), static_cast<ssize_t>(sizeof(head)));
    head.boot_id[0] = static_cast<char>(head.boot_id[0] ^ 1);
    head.crc = 0;
    head.crc = Crc32c(reinterpret_cast<const char*>(&head), sizeof(head));
    ASSERT_EQ(::pwrite(fd.get(), &head, sizeof(head), kHeadAt), static_cast<ssize_t>(sizeof(head)));
  }
  std::unique_ptr<RegionFile> file;
  ASSERT_TRUE(IsOk(Open(Plan(), &file)));
  EXPECT_EQ(file->keeping(), Keeping::kEmpty);
  EXPECT_NE(file->instance_id(), instance_id_);
}

TEST_F(RegionFileTest, DamageIsNeverTakenForEmptiness) {
  const std::string state = TestValue(7, 300);
  ASSERT_NO_FATAL_FAILURE(Make(state));
  Random random(TestSeed(952));
  const auto check = [&](off_t offset) {
    const int bit = static_cast<int>(random.Uniform(8));
    SCOPED_TRACE("bit " + std::to_string(bit) + " of byte " + std::to_string(offset));
    FlipBit(offset, bit);
    std::unique_ptr<RegionFile> file;
    const Status s = Open(Plan(), &file);
    EXPECT_FALSE(s.ok());
    EXPECT_TRUE(s.IsCorruption() || s.IsNotSupported() || s.IsInvalidArgument()) << s.ToString();
    file.reset();
    FlipBit(offset, bit);
  };
  for (off_t at = 0; at < 120; ++at) check(kHeadAt + at);
  // The place with the latest state: what is saved first goes to the second one, when the file is
  // made, and what is saved next to the first.
  for (int i = 0; i < 100; ++i) {
    const off_t at = static_cast<off_t>(random.Uniform(24 + state.size()));
    if (at >= 20 && at < 24) continue;  // Reserved.
    check(StateAt(0) + at);
  }
  ExpectState(state);
}

TEST_F(RegionFileTest, AStateThatWasBeingWrittenDoesNotCount) {
  ASSERT_NO_FATAL_FAILURE(Make("whole"));
  {
    const rdma::UniqueFd fd(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
    const uint64_t mark = uint64_t{0x3a17} << 48 | 3;  // The file's first is 1, the test's is 2.
    ASSERT_EQ(::pwrite(fd.get(), &mark, sizeof(mark), StateAt(1)),
              static_cast<ssize_t>(sizeof(mark)));
  }
  ExpectState("whole");
}

/// Runs `work` in a process of its own, and kills that a random time after `begun`.
void RunUntilKilled(Random* random, const std::function<bool()>& begun,
                    const std::function<void()>& work) {
  const pid_t pid = ::fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    work();
    ::_exit(0);
  }
  EXPECT_TRUE(Eventually(begun));
  std::this_thread::sleep_for(std::chrono::microseconds(random->Uniform(30'000)));
  ::kill(pid, SIGKILL);
  ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
}

TEST_F(RegionFileTest, WhatWasSavedOutlivesAKillAtAnyMoment) {
  ASSERT_NO_FATAL_FAILURE(Make("0"));
  Random random(TestSeed(953));
  void* const shared =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* const saved = new (shared) std::atomic<uint64_t>(0);
  for (int round = 0; round < 20; ++round) {
    const uint64_t before = saved->load();
    const auto begun = [&] { return saved->load() > before; };
    ASSERT_NO_FATAL_FAILURE(RunUntilKilled(&random, begun, [&] {
      std::unique_ptr<RegionFile> file;
      if (!Open(Plan(), &file).ok()) return;
      for (uint64_t number = saved->load() + 1;; ++number) {
        if (!file->Save(std::to_string(number) + " " + TestValue(number, number % 100'000)).ok()) {
          return;
        }
        saved->store(number);
      }
    }));
    std::unique_ptr<RegionFile> file;
    ASSERT_TRUE(IsOk(Open(Plan(), &file)));
    const uint64_t found = std::stoull(file->state().ToString());
    EXPECT_GE(found, saved->load());
    EXPECT_LE(found, saved->load() + 1);
    if (found > 0) {
      EXPECT_TRUE(file->state() ==
                  Slice(std::to_string(found) + " " + TestValue(found, found % 100'000)));
    }
    saved->store(found);
  }
  ::munmap(shared, 4096);
}

TEST_F(RegionFileTest, WhoHasItMappedIsLeftBehind) {
  const std::string content = TestValue(1, kRegionBytes - 8192);
  ASSERT_NO_FATAL_FAILURE(Make("state"));
  const rdma::UniqueFd fd(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  void* const mapped =
      ::mmap(nullptr, kRegionBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  char* const old = static_cast<char*>(mapped);
  std::memcpy(old + 8192, content.data(), content.size());

  ExpectState("state");
  EXPECT_FALSE(IsAt(path_, fd.get()));
  struct stat before {};
  struct stat after {};
  ASSERT_EQ(::fstat(fd.get(), &before), 0);
  ASSERT_EQ(::stat(path_.c_str(), &after), 0);
  EXPECT_NE(*reinterpret_cast<const uint64_t*>(old + rdma::Device::kMovedAwayAt), 0u);
  EXPECT_LT(before.st_blocks, after.st_blocks);  // Its room was given back.
  std::memset(old + 8192, 'x', content.size());

  const rdma::UniqueFd now(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  std::string read(content.size(), '\0');
  ASSERT_EQ(::pread(now.get(), read.data(), read.size(), 8192), static_cast<ssize_t>(read.size()));
  EXPECT_TRUE(read == content);
  ::munmap(mapped, kRegionBytes);
}

TEST_F(RegionFileTest, AMoveThatWasKilledGoesOn) {
  const std::string content = TestValue(1, kRegionBytes - 8192);
  Random random(TestSeed(954));
  for (int round = 0; round < 10; ++round) {
    SCOPED_TRACE(round);
    std::filesystem::remove(path_);
    ASSERT_NO_FATAL_FAILURE(Make("state"));
    const rdma::UniqueFd fd(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::pwrite(fd.get(), content.data(), content.size(), 8192),
              static_cast<ssize_t>(content.size()));
    for (int kill = 0; kill < 3; ++kill) {
      // The first is killed when it has begun to move something, or has moved it already.
      const auto begun = [&] {
        return kill > 0 || std::filesystem::exists(path_ + ".new") || !IsAt(path_, fd.get());
      };
      ASSERT_NO_FATAL_FAILURE(RunUntilKilled(&random, begun, [&] {
        std::unique_ptr<RegionFile> file;
        if (Open(Plan(), &file).ok() && kill == 0) ::pause();
      }));
    }
    ExpectState("state");
    const rdma::UniqueFd now(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    std::string read(content.size(), '\0');
    ASSERT_EQ(::pread(now.get(), read.data(), read.size(), 8192),
              static_cast<ssize_t>(read.size()));
    EXPECT_TRUE(read == content);
  }
}

}  // namespace
}  // namespace nacre::pool
