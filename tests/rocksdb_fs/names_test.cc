// Goal: names are what RocksDB expects of a file system, and memory is given back with the last
// user of a file. Method: each operation on names with what it refuses; the space that the nodes
// count for us.

#include <string>

#include "tests/rocksdb_fs/files_fixture.h"

namespace nacre::rocksfs {
namespace {

using Names = std::vector<std::string>;

class NamesTest : public FilesTest {};

TEST_F(NamesTest, AreListedByFolder) {
  ASSERT_NO_FATAL_FAILURE(OpenFiles());
  WriteFile("/d/b", "1");
  WriteFile("d//a", "2");
  ASSERT_TRUE(IsOk(files_->CreateDir("/d/sub/deep", io_, nullptr)));
  WriteFile("/d/sub/deep/c", "3");
  ASSERT_TRUE(IsOk(files_->CreateDirIfMissing("/d/sub", io_, nullptr)));
  EXPECT_EQ(Children("/"), Names({"d"}));
  EXPECT_EQ(Children("/d/"), Names({"a", "b", "sub"}));
  EXPECT_EQ(Children("/d/sub"), Names({"deep"}));
  bool is_folder = false;
  ASSERT_TRUE(IsOk(files_->IsDirectory("/d/sub", io_, &is_folder, nullptr)));
  EXPECT_TRUE(is_folder);
  ASSERT_TRUE(IsOk(files_->IsDirectory("/d/a", io_, &is_folder, nullptr)));
  EXPECT_FALSE(is_folder);
}

TEST_F(NamesTest, ThatAreNotThereAreNotFound) {
  ASSERT_NO_FATAL_FAILURE(OpenFiles());
  Names names;
  EXPECT_TRUE(files_->FileExists("/d/x", io_, nullptr).IsNotFound());
  EXPECT_TRUE(files_->GetChildren("/x", io_, &names, nullptr).IsNotFound());
  EXPECT_TRUE(files_->DeleteFile("/d/x", io_, nullptr).IsPathNotFound());
  EXPECT_TRUE(files_->RenameFile("/d/x", "/d/y", io_, nullptr).IsPathNotFound());
  std::unique_ptr<rocksdb::FSSequentialFile> file;
  EXPECT_TRUE(files_->NewSequentialFile("/d/x", file_options_, &file, nullptr).IsPathNotFound());
  std::unique_ptr<rocksdb::FSWritableFile> writer;
  EXPECT_TRUE(files_->NewWritableFile("/x/y", file_options_, &writer, nullptr).IsPathNotFound());
  EXPECT_TRUE(files_->NewWritableFile("/d", file_options_, &writer, nullptr).IsPathNotFound());
}

TEST_F(NamesTest, OfFoldersWithFilesStay) {
  ASSERT_NO_FATAL_FAILURE(OpenFiles());
  WriteFile("/d/a", "1");
  EXPECT_TRUE(files_->DeleteDir("/d", io_, nullptr).IsIOError());
  EXPECT_TRUE(files_->CreateDir("/d", io_, nullptr).IsIOError());
  EXPECT_TRUE(files_->CreateDirIfMissing("/d/a", io_, nullptr).IsIOError());
  ASSERT_TRUE(IsOk(files_->DeleteFile("/d/a", io_, nullptr)));
  EXPECT_TRUE(IsOk(files_->DeleteDir("/d", io_, nullptr)));
  EXPECT_TRUE(files_->FileExists("/d", io_, nullptr).IsNotFound());
}

TEST_F(NamesTest, MoveToOthersWithTheirFiles) {
  ASSERT_NO_FATAL_FAILURE(OpenFiles());
  WriteFile("/d/a", "one");
  WriteFile("/d/b", "two");
  ASSERT_TRUE(IsOk(files_->RenameFile("/d/a", "/d/b", io_, nullptr)));
  EXPECT_EQ(Children("/d"), Names({"b"}));
  EXPECT_EQ(Content("/d/b"), "one");
  WriteFile("/d/b", "anew");
  EXPECT_EQ(Content("/d/b"), "anew");
}

TEST_F(NamesTest, GoBeforeTheFileOfWhoReadsIt) {
  ASSERT_NO_FATAL_FAILURE(OpenFiles());
  const std::string content(300000, 'x');
  WriteFile("/d/a", content);
  auto reader = NewReader("/d/a");
  ASSERT_TRUE(IsOk(files_->DeleteFile("/d/a", io_, nullptr)));
  // Takes the memory, if that was given back.
  WriteFile("/d/b", std::string(300000, 'y'));
  std::string scratch(content.size(), '?');
  rocksdb::Slice result;
  ASSERT_TRUE(IsOk(reader->Read(0, scratch.size(), io_, &result, scratch.data(), nullptr)));
  EXPECT_EQ(scratch, content);
  ASSERT_TRUE(IsOk(files_->DeleteFile("/d/b", io_, nullptr)));
  EXPECT_GT(files_->Usage().used_bytes, 0U);
  reader.reset();
  EXPECT_EQ(files_->Usage().used_bytes, 0U);
}

TEST_F(NamesTest, HoldMemoryForTheirBytesOnly) {
  ASSERT_NO_FATAL_FAILURE(OpenFiles("rep(2)"));
  WriteFile("/d/small", "few");
  EXPECT_LE(files_->Usage().used_bytes, 2U * (16 << 10));
  WriteFile("/d/empty", "");
  EXPECT_LE(files_->Usage().used_bytes, 2U * (16 << 10));
  EXPECT_EQ(Content("/d/empty"), "");
  auto writer = NewWriter("/d/small");
  EXPECT_EQ(files_->Usage().used_bytes, 0U);
}

TEST_F(NamesTest, AreLockedOnce) {
  ASSERT_NO_FATAL_FAILURE(OpenFiles());
  rocksdb::FileLock* lock = nullptr;
  rocksdb::FileLock* another = nullptr;
  ASSERT_TRUE(IsOk(files_->LockFile("/d/LOCK", io_, &lock, nullptr)));
  EXPECT_TRUE(files_->LockFile("/d//LOCK", io_, &another, nullptr).IsIOError());
  EXPECT_EQ(another, nullptr);
  ASSERT_TRUE(IsOk(files_->UnlockFile(lock, io_, nullptr)));
  ASSERT_TRUE(IsOk(files_->LockFile("/d/LOCK", io_, &lock, nullptr)));
  ASSERT_TRUE(IsOk(files_->UnlockFile(lock, io_, nullptr)));
}

TEST_F(NamesTest, HaveNoLinks) {
  ASSERT_NO_FATAL_FAILURE(OpenFiles());
  WriteFile("/d/a", "1");
  EXPECT_TRUE(files_->LinkFile("/d/a", "/d/b", io_, nullptr).IsNotSupported());
  std::unique_ptr<rocksdb::FSWritableFile> writer;
  EXPECT_TRUE(files_->ReopenWritableFile("/d/a", file_options_, &writer, nullptr).IsNotSupported());
}

TEST_F(NamesTest, OfAPoolBelongToOneFileSystem) {
  ASSERT_NO_FATAL_FAILURE(OpenFiles());
  std::shared_ptr<PoolFileSystem> another;
  EXPECT_TRUE(IsFailure(PoolFileSystem::Open(pool_, PoolFileSystemOptions(), &another),
                        nacre::Status::Code::kBusy, "rocksdb-files"));
  PoolFileSystemOptions options;
  options.name = "others";
  EXPECT_TRUE(nacre::IsOk(PoolFileSystem::Open(pool_, options, &another)));
  options.redundancy = "rs(2,1)";
  EXPECT_TRUE(IsFailure(PoolFileSystem::Open(pool_, options, &another),
                        nacre::Status::Code::kInvalidArgument, "rs(2,1)"));
  // The name is free again with the last file.
  files_.reset();
  EXPECT_TRUE(nacre::IsOk(PoolFileSystem::Open(pool_, PoolFileSystemOptions(), &another)));
}

}  // namespace
}  // namespace nacre::rocksfs
