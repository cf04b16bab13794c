#pragma once

#include <gtest/gtest.h>
#include <rocksdb/file_system.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "adapters/rocksdb_fs/pool_file_system.h"
#include "pool/pool_impl.h"
#include "tests/support/status_assert.h"
#include "util/clock.h"

namespace nacre::rocksfs {

template <typename ForeignStatus>
testing::AssertionResult IsOk(const ForeignStatus& status) {
  if (status.ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << status.ToString();
}

/// An embedded pool with a file system over it.
class FilesTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kSlabBytes = 1 << 20;

  void OpenFiles(const std::string& redundancy = "none",
                 const std::string& uri = "embedded:?nodes=3&size=64MiB") {
    pool::PoolOpenOptions options;
    options.slab_bytes = kSlabBytes;
    ASSERT_TRUE(nacre::IsOk(pool::OpenPool(uri, options, Clock::System(), &pool_)));
    PoolFileSystemOptions file_options;
    file_options.redundancy = redundancy;
    ASSERT_TRUE(nacre::IsOk(PoolFileSystem::Open(pool_, file_options, &files_)));
    ASSERT_TRUE(IsOk(files_->CreateDir("/d", io_, nullptr)));
  }

  std::unique_ptr<rocksdb::FSWritableFile> NewWriter(const std::string& path) {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    EXPECT_TRUE(IsOk(files_->NewWritableFile(path, file_options_, &file, nullptr)));
    return file;
  }
  std::unique_ptr<rocksdb::FSRandomAccessFile> NewReader(const std::string& path) {
    std::unique_ptr<rocksdb::FSRandomAccessFile> file;
    EXPECT_TRUE(IsOk(files_->NewRandomAccessFile(path, file_options_, &file, nullptr)));
    return file;
  }
  void WriteFile(const std::string& path, const std::string& content) {
    const auto file = NewWriter(path);
    ASSERT_TRUE(IsOk(file->Append(content, io_, nullptr)));
    ASSERT_TRUE(IsOk(file->Close(io_, nullptr)));
  }
  /// The whole file; a failure fails the test.
  std::string Content(const std::string& path) {
    uint64_t size = 0;
    EXPECT_TRUE(IsOk(files_->GetFileSize(path, io_, &size, nullptr)));
    std::string content(size, '\0');
    rocksdb::Slice result;
    const auto file = NewReader(path);
    EXPECT_TRUE(IsOk(file->Read(0, size, io_, &result, content.data(), nullptr)));
    EXPECT_EQ(result.size(), size);
    return content;
  }
  std::vector<std::string> Children(const std::string& path) {
    std::vector<std::string> names;
    EXPECT_TRUE(IsOk(files_->GetChildren(path, io_, &names, nullptr)));
    return names;
  }

  const rocksdb::IOOptions io_;
  const rocksdb::FileOptions file_options_;
  std::shared_ptr<pool::PoolImpl> pool_;
  std::shared_ptr<PoolFileSystem> files_;
};

}  // namespace nacre::rocksfs
