#include "memnode/region_move.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>

#include "rdma/memory.h"
#include "util/uri.h"

namespace nacre::pool {
namespace {

/// How much is in both files at a time.
constexpr uint64_t kPartBytes = 16 << 20;

std::atomic_ref<uint64_t> WordAt(char* data, uint64_t offset) {
  return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(data + offset));
}

/// Returns when whatever any processor stored before this is seen by all, and none goes on with
/// what it had read before.
void AwaitAllProcessors() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0) return;
  // A kernel without it: stores leave a processor within microseconds.
  const timespec long_enough{.tv_sec = 0, .tv_nsec = 50'000'000};
  ::nanosleep(&long_enough, nullptr);
}

Status MapAll(int fd, uint64_t bytes, char** data) {
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return rdma::SystemError("map a region file");
  *data = static_cast<char*>(mapped);
  return Status::OK();
}

/// The file that is moved to: a new one, or that of a move which had begun.
Status OpenTarget(const std::string& path, uint64_t bytes, char* from, bool begun,
                  rdma::UniqueFd* to) {
  const auto inode = WordAt(from, RegionMove::kAt + offsetof(RegionMove, to_inode));
  struct stat attributes {};
  if (begun) {
    *to = rdma::UniqueFd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!to->valid() || ::fstat(to->get(), &attributes) != 0 || attributes.st_ino != inode.load()) {
      return Status::Corruption("what was moved to " + path + " is not there");
    }
    return Status::OK();
  }
  ::unlink(path.c_str());
  *to = rdma::UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!to->valid() || ::ftruncate(to->get(), static_cast<off_t>(bytes)) != 0 ||
      ::fstat(to->get(), &attributes) != 0) {
    return rdma::SystemError("make " + path);
  }
  inode.store(attributes.st_ino);
  return Status::OK();
}

Status MovePart(const std::string& path, int to, char* from, char* target, uint64_t begin,
                uint64_t end) {
  while (::fallocate(to, 0, static_cast<off_t>(begin), static_cast<off_t>(end - begin)) != 0) {
    if (errno == EINTR) continue;
    const std::string what = fmt::format(
        "{} for {}, into which the content is moved because peers of the last process "
        "still have the old file mapped",
        FormatBytes(end - begin), path);
    return errno == ENOSPC ? Status::NoSpace("there is no room of " + what)
                           : rdma::SystemError("room of " + what);
  }
  std::memcpy(target + begin, from + begin, end - begin);
  return Status::OK();
}

}  // namespace

bool IsFileShared(int fd, Clock* clock) {
  constexpr int kTries = 20;
  for (int i = 0; i < kTries; ++i) {
    // The kernel gives this lease only if no other process has the file open, or mapped. An open
    // before it is given back sends a signal, which ends nothing.
    ::fcntl(fd, F_SETSIG, SIGURG);
    if (::fcntl(fd, F_SETLEASE, F_WRLCK) == 0) {
      ::fcntl(fd, F_SETLEASE, F_UNLCK);
      return false;
    }
    if (errno != EAGAIN) return true;
    clock->SleepFor(std::chrono::milliseconds(10));
  }
  return true;
}

Status MoveContent(const std::string& path, int fd, char* data, uint64_t bytes, uint64_t page_bytes,
                   rdma::UniqueFd* to) {
  const auto moved_from = WordAt(data, RegionMove::kAt + offsetof(RegionMove, moved_from));
  const std::string to_path = path + ".new";
  const uint64_t part = std::max(kPartBytes, page_bytes);
  uint64_t end = moved_from.load();
  const bool begun = end != bytes;
  if (begun && (end % part != 0 || end == 0 || end > bytes)) {
    return Status::Corruption("its head is damaged (--region_reset makes a new, empty one)");
  }
  NACRE_RETURN_IF_ERROR(OpenTarget(to_path, bytes, data, begun, to));
  char* target = nullptr;
  NACRE_RETURN_IF_ERROR(MapAll(to->get(), bytes, &target));
  WordAt(data, rdma::Device::kMovedAwayAt).store(1);
  AwaitAllProcessors();

  Status status;
  while (status.ok()) {
    const uint64_t begin = (end - 1) / part * part;
    status = MovePart(to_path, to->get(), data, target, begin, end);
    if (!status.ok() || begin == 0) break;
    moved_from.store(begin);
    // If this fails, both parts are there for longer, which does no harm.
    ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
                static_cast<off_t>(end - begin));
    end = begin;
  }
  ::munmap(target, bytes);
  return status;
}

}  // namespace nacre::pool
