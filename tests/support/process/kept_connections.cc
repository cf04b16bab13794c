#include "tests/support/process/kept_connections.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

namespace nacre {

namespace {

// The calls are made by number: the C library has no functions for them yet. A pidfd and a
// descriptor are returned.
rdma::UniqueFd OpenProcess(pid_t process) {
  return rdma::UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
}
rdma::UniqueFd CopyDescriptor(const rdma::UniqueFd& process, int descriptor) {
  return rdma::UniqueFd(static_cast<int>(syscall(SYS_pidfd_getfd, process.get(), descriptor, 0)));
}

}  // namespace

KeptConnections::KeptConnections(pid_t process) {
  namespace fs = std::filesystem;
  const rdma::UniqueFd opened = OpenProcess(process);
  const fs::path folder = fs::path("/proc") / std::to_string(process) / "fd";
  std::error_code gone;  // Descriptors come and go while they are listed.
  for (fs::directory_iterator file(folder, gone), end; !gone && file != end; file.increment(gone)) {
    std::error_code closed;
    if (fs::read_symlink(file->path(), closed) != "/dev/infiniband/rdma_cm") continue;
    descriptors_.push_back(CopyDescriptor(opened, std::stoi(file->path().filename())));
    EXPECT_TRUE(descriptors_.back().valid()) << std::strerror(errno);
  }
}

}  // namespace nacre
