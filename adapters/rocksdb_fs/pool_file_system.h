#pragma once

#include <rocksdb/file_system.h>

#include <memory>
#include <string>
#include <vector>

#include "adapters/rocksdb_fs/file_space.h"
#include "adapters/rocksdb_fs/name_table.h"
#include "nacre/pool.h"
#include "nacre/status.h"

namespace nacre::rocksfs {

/// Says where the files of a PoolFileSystem go.
struct PoolFileSystemOptions {
  /// The database whose memory the files get; no other process may have it open in the pool.
  std::string name = "rocksdb-files";
  std::string redundancy = "none";  ///< "rep(n)" keeps whole copies on n nodes.
};

/// A file system for RocksDB whose files lie in the memory of a pool's nodes, as in the baselines
/// of dLSM (ICDE 2023, section XI): RocksDB itself, with block-based tables, is unchanged.
///
/// In the pool are the bytes of files. A file consists of extents of up to 8 MiB on one node each
/// (or on n, by the redundancy), read and written by one-sided operations. Names, sizes and
/// the addresses of extents are in this process, and gone with it, so that a database can be opened
/// again within this process only; what Sync promises is that the nodes have the bytes.
///
/// Not supported: hard links, reopening for writing, files that are written at random or mapped.
/// A folder may be made before the one that it lies in is, which is then made as well.
///
/// To be used by way of rocksdb::NewCompositeEnv.
///
/// Thread safety: all methods may be called from many threads at once. Files that are open may
/// outlive it.
class PoolFileSystem final : public rocksdb::FileSystem {
 public:
  /// Failures: see FileSpace::Open.
  static Status Open(std::shared_ptr<Pool> pool, const PoolFileSystemOptions& options,
                     std::shared_ptr<PoolFileSystem>* file_system);

  static const char* kClassName() { return "NacrePoolFileSystem"; }
  const char* Name() const override { return kClassName(); }

  /// Usage of the nodes' memory.
  pool::SpaceUsage Usage() const { return space_->Usage(); }

  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* directory,
                                 rocksdb::IODebugContext* debug) override;

  rocksdb::IOStatus NewLogger(const std::string& path, const rocksdb::IOOptions& options,
                              std::shared_ptr<rocksdb::Logger>* logger,
                              rocksdb::IODebugContext* debug) override;

  rocksdb::IOStatus FileExists(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus GetChildren(const std::string& path, const rocksdb::IOOptions& options,
                                std::vector<std::string>* names,
                                rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus GetFileSize(const std::string& path, const rocksdb::IOOptions& options,
                                uint64_t* bytes, rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus GetFileModificationTime(const std::string& path,
                                            const rocksdb::IOOptions& options, uint64_t* seconds,
                                            rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus IsDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                bool* is_directory, rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus CreateDir(const std::string& path, const rocksdb::IOOptions& options,
                              rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus CreateDirIfMissing(const std::string& path, const rocksdb::IOOptions& options,
                                       rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteDir(const std::string& path, const rocksdb::IOOptions& options,
                              rocksdb::IODebugContext* debug) override;

  rocksdb::IOStatus LockFile(const std::string& path, const rocksdb::IOOptions& options,
                             rocksdb::FileLock** lock, rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus UnlockFile(rocksdb::FileLock* lock, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus GetTestDirectory(const rocksdb::IOOptions& options, std::string* path,
                                     rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus GetAbsolutePath(const std::string& path, const rocksdb::IOOptions& options,
                                    std::string* absolute, rocksdb::IODebugContext* debug) override;

  rocksdb::IOStatus Poll(std::vector<void*>& handles, size_t min_completions) override;
  rocksdb::IOStatus AbortIO(std::vector<void*>& handles) override;

 private:
  /// A new file of that name, or null.
  std::shared_ptr<RemoteFile> NewFile(const std::string& path);

  explicit PoolFileSystem(std::shared_ptr<FileSpace> space) : space_(std::move(space)) {}

  const std::shared_ptr<FileSpace> space_;
  NameTable names_;
};

}  // namespace nacre::rocksfs
