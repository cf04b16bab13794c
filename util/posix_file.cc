#include "util/posix_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

namespace nacre {
namespace {

constexpr uint64_t kWritebackBytes = 8 << 20;
constexpr mode_t kFileMode = 0644;

Status Failure(const std::string& path, const std::string& what, int error) {
  const std::string message = path + ": " + what + ": " + std::generic_category().message(error);
  return error == ENOENT ? Status::NotFound(message) : Status::IOError(message);
}

int OpenDescriptor(const std::string& path, int flags) {
  int descriptor = -1;
  do {
    descriptor = ::open(path.c_str(), flags | O_CLOEXEC, kFileMode);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

}  // namespace

Status PosixFile::Create(const std::string& path, std::unique_ptr<PosixFile>* file) {
  const int descriptor = OpenDescriptor(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (descriptor < 0) return Failure(path, "cannot be made", errno);
  file->reset(new PosixFile(path, descriptor));
  return Status::OK();
}

Status PosixFile::Open(const std::string& path, std::unique_ptr<PosixFile>* file) {
  const int descriptor = OpenDescriptor(path, O_RDONLY);
  if (descriptor < 0) return Failure(path, "cannot be opened", errno);
  std::unique_ptr<PosixFile> opened(new PosixFile(path, descriptor));
  struct stat info {};
  if (::fstat(descriptor, &info) != 0) return Failure(path, "cannot be looked at", errno);
  if (!S_ISREG(info.st_mode)) return Status::IOError(path + ": is no file");
  opened->size_ = static_cast<uint64_t>(info.st_size);
  *file = std::move(opened);
  return Status::OK();
}

Status PosixFile::OpenToAppend(const std::string& path, std::unique_ptr<PosixFile>* file) {
  const int descriptor = OpenDescriptor(path, O_WRONLY | O_APPEND);
  if (descriptor < 0) return Failure(path, "cannot be opened", errno);
  std::unique_ptr<PosixFile> opened(new PosixFile(path, descriptor));
  struct stat info {};
  if (::fstat(descriptor, &info) != 0) return Failure(path, "cannot be looked at", errno);
  opened->size_ = static_cast<uint64_t>(info.st_size);
  opened->handed_over_ = opened->size_;
  *file = std::move(opened);
  return Status::OK();
}

PosixFile::~PosixFile() { ::close(descriptor_); }

Status PosixFile::Append(const Slice& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::write(descriptor_, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Failure(path_, "cannot be written", errno);
    done += static_cast<size_t>(n);
  }
  size_ += bytes.size();
  if (size_ - handed_over_ >= kWritebackBytes) {
    // If the file system does not support this, Sync does it all.
    (void)::sync_file_range(descriptor_, static_cast<off_t>(handed_over_),
                            static_cast<off_t>(size_ - handed_over_), SYNC_FILE_RANGE_WRITE);
    handed_over_ = size_;
  }
  return Status::OK();
}

Status PosixFile::Sync() {
  if (::fsync(descriptor_) != 0) return Failure(path_, "cannot be brought to the disk", errno);
  return Status::OK();
}

Status PosixFile::SyncData() {
  if (::fdatasync(descriptor_) != 0) return Failure(path_, "cannot be brought to the disk", errno);
  return Status::OK();
}

Status PosixFile::Truncate(uint64_t bytes) {
  if (::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) {
    return Failure(path_, "cannot be cut", errno);
  }
  size_ = bytes;
  handed_over_ = std::min(handed_over_, bytes);
  return Status::OK();
}

Status PosixFile::Read(uint64_t offset, size_t n, char* to) const {
  for (size_t done = 0; done < n;) {
    const ssize_t got =
        ::pread(descriptor_, to + done, n - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failure(path_, "cannot be read", errno);
    if (got == 0)
      return Status::Corruption(path_ + ": ends before byte " + std::to_string(offset + n));
    done += static_cast<size_t>(got);
  }
  return Status::OK();
}

Status ReadSmallFile(const std::string& path, uint64_t most, std::string* bytes) {
  std::unique_ptr<PosixFile> file;
  NACRE_RETURN_IF_ERROR(PosixFile::Open(path, &file));
  if (file->size() > most) {
    return Status::Corruption(path + ": has " + std::to_string(file->size()) + " bytes");
  }
  bytes->resize(file->size());
  return file->Read(0, bytes->size(), bytes->data());
}

Status WriteSmallFile(const std::string& path, const Slice& bytes) {
  const std::string first = path + ".tmp";
  std::unique_ptr<PosixFile> file;
  NACRE_RETURN_IF_ERROR(PosixFile::Create(first, &file));
  NACRE_RETURN_IF_ERROR(file->Append(bytes));
  NACRE_RETURN_IF_ERROR(file->Sync());
  file.reset();
  NACRE_RETURN_IF_ERROR(RenameFile(first, path));
  return SyncFolder(std::filesystem::path(path).parent_path());
}

Status RenameFile(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) == 0) return Status::OK();
  return Failure(from, "cannot be named " + to, errno);
}

Status RemoveFile(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return Status::OK();
  return Failure(path, "cannot be removed", errno);
}

Status SyncFolder(const std::string& path) {
  const int descriptor = OpenDescriptor(path.empty() ? "." : path, O_RDONLY | O_DIRECTORY);
  if (descriptor < 0) return Failure(path, "cannot be opened", errno);
  const int failed = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  // Some file systems have nothing to do here, and say so.
  if (failed == 0 || failed == EINVAL) return Status::OK();
  return Failure(path, "cannot be brought to the disk", failed);
}

Status MakeFolder(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path folder = std::filesystem::absolute(path, failed);
  if (!failed) std::filesystem::create_directories(folder, failed);
  if (failed) return Status::IOError(path + ": cannot be made: " + failed.message());
  return SyncFolder((folder / "").parent_path().parent_path());
}

Status ListFolder(const std::string& path, std::vector<std::string>* names) {
  names->clear();
  std::error_code failed;
  std::filesystem::directory_iterator entry(path, failed);
  for (; !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    names->push_back(entry->path().filename());
  }
  if (failed) return Failure(path, "cannot be listed", failed.value());
  return Status::OK();
}

uint64_t FileTime(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_mtime) : 0;
}

Status FileLock::Take(const std::string& path, Kind kind, std::unique_ptr<FileLock>* lock) {
  int descriptor = OpenDescriptor(path, O_RDWR | O_CREAT);
  if (descriptor < 0 && kind == Kind::kShared) {
    // A folder that cannot be written to cannot change.
    descriptor = OpenDescriptor(path, O_RDONLY);
    if (descriptor < 0) {
      lock->reset(new FileLock(-1));
      return Status::OK();
    }
  }
  if (descriptor < 0) return Failure(path, "cannot be made", errno);
  std::unique_ptr<FileLock> taken(new FileLock(descriptor));
  if (::flock(descriptor, (kind == Kind::kShared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return Failure(path, "cannot be locked", errno);
    return Status::Busy(path + ": another process is at work in this folder");
  }
  *lock = std::move(taken);
  return Status::OK();
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace nacre
