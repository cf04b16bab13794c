#include "rdma/dax.h"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "rdma/memory.h"
#include "util/uri.h"

namespace nacre::rdma {

namespace {

Status ReadNumber(const std::string& path, uint64_t* number) {
  std::ifstream file(path);
  if (file >> *number) return Status::OK();
  return Status::IOError(path + ": has no number");
}

Status DescribeFile(int fd, const struct stat& attributes, DaxMemory* memory) {
  struct statfs system {};
  if (fstatfs(fd, &system) != 0) return SystemError("look at its file system");
  memory->bytes = static_cast<uint64_t>(attributes.st_size);
  if (system.f_type == HUGETLBFS_MAGIC) memory->alignment = static_cast<uint64_t>(system.f_bsize);
  return Status::OK();
}

Status DescribeDevice(const struct stat& attributes, const std::string& sysfs, DaxMemory* memory) {
  const std::string folder =
      fmt::format("{}/dev/char/{}:{}", sysfs, major(attributes.st_rdev), minor(attributes.st_rdev));
  std::error_code error;
  const auto subsystem = std::filesystem::read_symlink(folder + "/subsystem", error);
  if (error || subsystem.filename() != "dax") {
    return Status::InvalidArgument("it is a device, but no dax device");
  }
  memory->device = true;
  NACRE_RETURN_IF_ERROR(ReadNumber(folder + "/size", &memory->bytes));
  return ReadNumber(folder + "/align", &memory->alignment);
}

}  // namespace

Status DescribeDax(int fd, const std::string& sysfs, DaxMemory* memory) {
  *memory = {};
  struct stat attributes {};
  if (fstat(fd, &attributes) != 0) return SystemError("look at it");
  if (S_ISREG(attributes.st_mode)) {
    NACRE_RETURN_IF_ERROR(DescribeFile(fd, attributes, memory));
  } else if (S_ISCHR(attributes.st_mode)) {
    NACRE_RETURN_IF_ERROR(DescribeDevice(attributes, sysfs, memory));
  } else {
    return Status::InvalidArgument("it is neither a dax device nor a file");
  }
  if (memory->alignment == 0 || memory->bytes % memory->alignment != 0) {
    return Status::InvalidArgument(fmt::format("it has {} bytes, no multiple of its pages of {}",
                                               memory->bytes, FormatBytes(memory->alignment)));
  }
  return Status::OK();
}

}  // namespace nacre::rdma
