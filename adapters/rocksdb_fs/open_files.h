#pragma once

#include <rocksdb/file_system.h>

#include <memory>
#include <string>
#include <vector>

#include "adapters/rocksdb_fs/remote_file.h"

namespace nacre::rocksfs {

// The files of PoolFileSystem as RocksDB has them open: thin covers of RemoteFile, FileWriter and
// ReadFile. Each keeps its file, and the space that it lies in, alive. `path` is for messages.

std::unique_ptr<rocksdb::FSSequentialFile> NewSequentialFile(std::shared_ptr<RemoteFile> file,
                                                             std::string path);
/// Reads that RocksDB asks for together (MultiRead) or ahead (ReadAsync) are in flight together.
std::unique_ptr<rocksdb::FSRandomAccessFile> NewRandomAccessFile(std::shared_ptr<RemoteFile> file,
                                                                 std::string path);
/// Appended bytes are on their way when Flush returns, and on every copy when Sync does. As POSIX
/// has it, Sync may be called beside Append.
std::unique_ptr<rocksdb::FSWritableFile> NewWritableFile(std::shared_ptr<RemoteFile> file,
                                                         std::string path,
                                                         const rocksdb::FileOptions& options);

/// Serves FileSystem::Poll and AbortIO: handles are those of ReadAsync.
void PollReads(const std::vector<void*>& handles);
void AbortReads(const std::vector<void*>& handles);

}  // namespace nacre::rocksfs
