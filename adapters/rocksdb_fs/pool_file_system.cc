#include "adapters/rocksdb_fs/pool_file_system.h"

#include <utility>

#include "adapters/rocksdb_fs/io_status.h"
#include "adapters/rocksdb_fs/open_files.h"
#include "adapters/rocksdb_fs/pool_logger.h"

namespace nacre::rocksfs {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

constexpr uint64_t kNanosPerSecond = 1'000'000'000;

IOStatus NoFile(const std::string& path) {
  return IOStatus::PathNotFound("no such file in the pool", path);
}

IOStatus NoPlace(const std::string& path) {
  return IOStatus::PathNotFound("no such folder in the pool, or a folder itself", path);
}

/// Names are in memory: there is nothing to write down.
class Directory final : public rocksdb::FSDirectory {
 public:
  IOStatus Fsync(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return IOStatus::OK();
  }
  IOStatus Close(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return IOStatus::OK();
  }
};

class PathLock final : public rocksdb::FileLock {
 public:
  explicit PathLock(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

}  // namespace

Status PoolFileSystem::Open(std::shared_ptr<Pool> pool, const PoolFileSystemOptions& options,
                            std::shared_ptr<PoolFileSystem>* file_system) {
  std::shared_ptr<FileSpace> space;
  NACRE_RETURN_IF_ERROR(FileSpace::Open(std::move(pool), options.name, options.redundancy, &space));
  file_system->reset(new PoolFileSystem(std::move(space)));
  return Status::OK();
}

IOStatus PoolFileSystem::NewSequentialFile(const std::string& path, const FileOptions& /*options*/,
                                           std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                           IODebugContext* /*debug*/) {
  std::shared_ptr<RemoteFile> found = names_.File(path);
  if (found == nullptr) return NoFile(path);
  *file = rocksfs::NewSequentialFile(std::move(found), path);
  return IOStatus::OK();
}

IOStatus PoolFileSystem::NewRandomAccessFile(const std::string& path,
                                             const FileOptions& /*options*/,
                                             std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                             IODebugContext* /*debug*/) {
  std::shared_ptr<RemoteFile> found = names_.File(path);
  if (found == nullptr) return NoFile(path);
  *file = rocksfs::NewRandomAccessFile(std::move(found), path);
  return IOStatus::OK();
}

IOStatus PoolFileSystem::NewWritableFile(const std::string& path, const FileOptions& options,
                                         std::unique_ptr<rocksdb::FSWritableFile>* file,
                                         IODebugContext* /*debug*/) {
  file->reset();
  std::shared_ptr<RemoteFile> made = NewFile(path);
  if (made == nullptr) return NoPlace(path);
  *file = rocksfs::NewWritableFile(std::move(made), path, options);
  return IOStatus::OK();
}

IOStatus PoolFileSystem::NewDirectory(const std::string& path, const IOOptions& /*options*/,
                                      std::unique_ptr<rocksdb::FSDirectory>* directory,
                                      IODebugContext* /*debug*/) {
  if (names_.Find(path) != NameTable::Kind::kFolder) return NoFile(path);
  *directory = std::make_unique<Directory>();
  return IOStatus::OK();
}

IOStatus PoolFileSystem::NewLogger(const std::string& path, const IOOptions& /*options*/,
                                   std::shared_ptr<rocksdb::Logger>* logger,
                                   IODebugContext* /*debug*/) {
  std::shared_ptr<RemoteFile> made = NewFile(path);
  if (made == nullptr) return NoPlace(path);
  *logger = NewPoolLogger(std::move(made));
  return IOStatus::OK();
}

std::shared_ptr<RemoteFile> PoolFileSystem::NewFile(const std::string& path) {
  auto made = std::make_shared<RemoteFile>(space_);
  made->Publish(0);
  return names_.PutFile(path, made) ? made : nullptr;
}

IOStatus PoolFileSystem::FileExists(const std::string& path, const IOOptions& /*options*/,
                                    IODebugContext* /*debug*/) {
  return names_.Find(path) == NameTable::Kind::kNothing ? IOStatus::NotFound(path) : IOStatus::OK();
}

IOStatus PoolFileSystem::GetChildren(const std::string& path, const IOOptions& /*options*/,
                                     std::vector<std::string>* names, IODebugContext* /*debug*/) {
  names->clear();
  if (names_.Find(path) != NameTable::Kind::kFolder) return IOStatus::NotFound(path);
  *names = names_.Children(path);
  return IOStatus::OK();
}

IOStatus PoolFileSystem::GetFileSize(const std::string& path, const IOOptions& /*options*/,
                                     uint64_t* bytes, IODebugContext* /*debug*/) {
  const std::shared_ptr<RemoteFile> file = names_.File(path);
  if (file == nullptr) return NoFile(path);
  *bytes = file->size();
  return IOStatus::OK();
}

IOStatus PoolFileSystem::GetFileModificationTime(const std::string& path,
                                                 const IOOptions& /*options*/, uint64_t* seconds,
                                                 IODebugContext* /*debug*/) {
  const std::shared_ptr<RemoteFile> file = names_.File(path);
  if (file == nullptr) return NoFile(path);
  *seconds = file->modified_nanos() / kNanosPerSecond;
  return IOStatus::OK();
}

IOStatus PoolFileSystem::IsDirectory(const std::string& path, const IOOptions& /*options*/,
                                     bool* is_directory, IODebugContext* /*debug*/) {
  const NameTable::Kind kind = names_.Find(path);
  if (kind == NameTable::Kind::kNothing) return NoFile(path);
  *is_directory = kind == NameTable::Kind::kFolder;
  return IOStatus::OK();
}

IOStatus PoolFileSystem::DeleteFile(const std::string& path, const IOOptions& /*options*/,
                                    IODebugContext* /*debug*/) {
  return names_.RemoveFile(path) ? IOStatus::OK() : NoFile(path);
}

IOStatus PoolFileSystem::RenameFile(const std::string& from, const std::string& to,
                                    const IOOptions& /*options*/, IODebugContext* /*debug*/) {
  return names_.Rename(from, to) ? IOStatus::OK() : NoFile(from + ", to be " + to);
}

IOStatus PoolFileSystem::CreateDir(const std::string& path, const IOOptions& /*options*/,
                                   IODebugContext* /*debug*/) {
  return names_.MakeFolder(path) ? IOStatus::OK() : IOStatus::IOError("it is there", path);
}

IOStatus PoolFileSystem::CreateDirIfMissing(const std::string& path, const IOOptions& /*options*/,
                                            IODebugContext* /*debug*/) {
  if (names_.MakeFolder(path) || names_.Find(path) == NameTable::Kind::kFolder) {
    return IOStatus::OK();
  }
  return IOStatus::IOError("a file has the name of a folder", path);
}

IOStatus PoolFileSystem::DeleteDir(const std::string& path, const IOOptions& /*options*/,
                                   IODebugContext* /*debug*/) {
  return names_.RemoveFolder(path) ? IOStatus::OK()
                                   : IOStatus::IOError("no such folder, or not empty", path);
}

IOStatus PoolFileSystem::LockFile(const std::string& path, const IOOptions& /*options*/,
                                  rocksdb::FileLock** lock, IODebugContext* /*debug*/) {
  *lock = nullptr;
  if (!names_.Lock(path)) return IOStatus::IOError("locked by this process", path);
  *lock = std::make_unique<PathLock>(path).release();
  return IOStatus::OK();
}

IOStatus PoolFileSystem::UnlockFile(rocksdb::FileLock* lock, const IOOptions& /*options*/,
                                    IODebugContext* /*debug*/) {
  const std::unique_ptr<PathLock> ours(static_cast<PathLock*>(lock));
  names_.Unlock(ours->path());
  return IOStatus::OK();
}

IOStatus PoolFileSystem::GetTestDirectory(const IOOptions& options, std::string* path,
                                          IODebugContext* debug) {
  *path = "/test";
  return CreateDirIfMissing(*path, options, debug);
}

IOStatus PoolFileSystem::GetAbsolutePath(const std::string& path, const IOOptions& /*options*/,
                                         std::string* absolute, IODebugContext* /*debug*/) {
  *absolute = NameTable::Normalize(path);
  return IOStatus::OK();
}

IOStatus PoolFileSystem::Poll(std::vector<void*>& handles, size_t /*min_completions*/) {
  PollReads(handles);
  return IOStatus::OK();
}

IOStatus PoolFileSystem::AbortIO(std::vector<void*>& handles) {
  AbortReads(handles);
  return IOStatus::OK();
}

}  // namespace nacre::rocksfs
