// Goal: what is written to a file in the pool is what is read from it, by each of the ways in which
// RocksDB reads, at any offset, while it is written and later; with copies, as long as one is left.
// Method: random appends, flushes and syncs, and random reads, against a string in memory; nodes of
// the embedded pool are killed.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/rocksdb_fs/files_fixture.h"
#include "tests/support/pool_fixture.h"
#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre::rocksfs {
namespace {

class BytesTest : public FilesTest {
 protected:
  /// A piece of the file at `offset`, as the model has it.
  static std::string Piece(const std::string& model, uint64_t offset, size_t n) {
    return offset >= model.size() ? "" : model.substr(offset, n);
  }
  size_t SomeLength() {
    // Small ones, and such as take several requests and several extents.
    return random_.Uniform(4) == 0 ? random_.Uniform(900 << 10) : random_.Uniform(20000);
  }

  void ReadSome(rocksdb::FSRandomAccessFile* file, const std::string& model) {
    const uint64_t offset = random_.Uniform(model.size() + 1000);
    const size_t n = SomeLength();
    std::string scratch(n, '?');
    rocksdb::Slice result;
    ASSERT_TRUE(IsOk(file->Read(offset, n, io_, &result, scratch.data(), nullptr)));
    ASSERT_EQ(result.ToString(), Piece(model, offset, n)) << offset << ", " << n;
  }

  void ReadMany(rocksdb::FSRandomAccessFile* file, const std::string& model) {
    std::vector<rocksdb::FSReadRequest> requests(1 + random_.Uniform(60));
    std::vector<std::string> scratches(requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      requests[i].offset = random_.Uniform(model.size() + 1000);
      requests[i].len = i == 0 ? SomeLength() : random_.Uniform(9000);
      scratches[i].resize(requests[i].len);
      requests[i].scratch = scratches[i].data();
    }
    ASSERT_TRUE(IsOk(file->MultiRead(requests.data(), requests.size(), io_, nullptr)));
    for (const rocksdb::FSReadRequest& request : requests) {
      ASSERT_TRUE(IsOk(request.status));
      ASSERT_EQ(request.result.ToString(), Piece(model, request.offset, request.len));
    }
  }

  /// Two under way at a time, as RocksDB has them; of some the end is never awaited.
  void ReadAhead(rocksdb::FSRandomAccessFile* file, const std::string& model) {
    struct Ended {
      int calls = 0;
      std::string bytes;
      bool aborted = false;
    };
    Ended ended[2];
    std::string scratches[2];
    std::vector<void*> handles;
    std::vector<rocksdb::IOHandleDeleter> deleters;
    std::vector<std::string> expected;
    for (int i = 0; i < 2; ++i) {
      rocksdb::FSReadRequest request;
      request.offset = random_.Uniform(model.size() + 1000);
      request.len = 1 + SomeLength();
      scratches[i].resize(request.len);
      request.scratch = scratches[i].data();
      expected.push_back(Piece(model, request.offset, request.len));
      const auto callback = [](const rocksdb::FSReadRequest& done, void* argument) {
        auto* const mine = static_cast<Ended*>(argument);
        ++mine->calls;
        mine->aborted = done.status.IsAborted();
        if (done.status.ok()) mine->bytes = done.result.ToString();
      };
      void* handle = nullptr;
      rocksdb::IOHandleDeleter deleter;
      ASSERT_TRUE(
          IsOk(file->ReadAsync(request, io_, callback, &ended[i], &handle, &deleter, nullptr)));
      handles.push_back(handle);
      deleters.push_back(std::move(deleter));
    }
    const bool abort = random_.Uniform(4) == 0;
    ASSERT_TRUE(IsOk(abort ? files_->AbortIO(handles) : files_->Poll(handles, handles.size())));
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(ended[i].calls, 1);
      ASSERT_EQ(ended[i].aborted, abort);
      ASSERT_EQ(ended[i].bytes, abort ? "" : expected[i]);
      deleters[i](handles[i]);
    }
  }

  /// In pieces, from the beginning to the end, and over some.
  void ReadInOrder(const std::string& path, const std::string& model) {
    std::unique_ptr<rocksdb::FSSequentialFile> file;
    ASSERT_TRUE(IsOk(files_->NewSequentialFile(path, file_options_, &file, nullptr)));
    uint64_t offset = 0;
    while (offset < model.size()) {
      if (random_.Uniform(8) == 0) {
        const uint64_t n = random_.Uniform(50000);
        ASSERT_TRUE(IsOk(file->Skip(n)));
        offset = std::min<uint64_t>(model.size(), offset + n);
      }
      std::string scratch(1 + random_.Uniform(100000), '?');
      rocksdb::Slice result;
      ASSERT_TRUE(IsOk(file->Read(scratch.size(), io_, &result, scratch.data(), nullptr)));
      ASSERT_EQ(result.ToString(), Piece(model, offset, scratch.size()));
      offset += result.size();
    }
  }

  /// Appends, with some pieces on their way and some awaited. `*synced`: bytes that readers have.
  void AppendSome(rocksdb::FSWritableFile* file, std::string* model, size_t* synced) {
    const std::string bytes = pool::RandomBytes(random_.Next(), SomeLength());
    ASSERT_TRUE(IsOk(file->Append(bytes, io_, nullptr)));
    *model += bytes;
    ASSERT_EQ(file->GetFileSize(io_, nullptr), model->size());
    switch (random_.Uniform(4)) {
      case 0:
        ASSERT_TRUE(IsOk(file->Sync(io_, nullptr)));
        *synced = model->size();
        break;
      case 1:
        ASSERT_TRUE(IsOk(file->Flush(io_, nullptr)));
        break;
      default:
        break;
    }
  }

  Random random_{TestSeed(20260101)};
};

TEST_F(BytesTest, AreReadAsTheyWereWritten) {
  ASSERT_NO_FATAL_FAILURE(OpenFiles());
  for (int round = 0; round < 4; ++round) {
    const std::string path = "/d/" + std::to_string(round);
    const auto writer = NewWriter(path);
    const auto reader_beside = NewReader(path);
    std::string model;
    size_t synced = 0;
    for (int i = 0; i < 20; ++i) {
      ASSERT_NO_FATAL_FAILURE(AppendSome(writer.get(), &model, &synced));
      if (synced == model.size() && synced > 0) {
        ASSERT_NO_FATAL_FAILURE(ReadSome(reader_beside.get(), model));
      }
    }
    ASSERT_TRUE(IsOk(writer->Close(io_, nullptr)));
    ASSERT_EQ(Content(path), model);
    const auto reader = NewReader(path);
    for (int i = 0; i < 20; ++i) {
      ASSERT_NO_FATAL_FAILURE(ReadSome(reader.get(), model));
      ASSERT_NO_FATAL_FAILURE(ReadMany(reader.get(), model));
      ASSERT_NO_FATAL_FAILURE(ReadAhead(reader.get(), model));
    }
    ASSERT_NO_FATAL_FAILURE(ReadInOrder(path, model));
    // Room for the next one.
    ASSERT_TRUE(IsOk(files_->DeleteFile(path, io_, nullptr)));
  }
}

TEST_F(BytesTest, OutliveANodeIfThereIsAnotherCopy) {
  ASSERT_NO_FATAL_FAILURE(OpenFiles("rep(2)"));
  const std::string model = pool::RandomBytes(random_.Next(), 5 << 20);
  WriteFile("/d/f", model);
  pool_->KillEmbeddedNode(1);
  const auto reader = NewReader("/d/f");
  for (int i = 0; i < 20; ++i) {
    ASSERT_NO_FATAL_FAILURE(ReadSome(reader.get(), model));
    ASSERT_NO_FATAL_FAILURE(ReadMany(reader.get(), model));
    ASSERT_NO_FATAL_FAILURE(ReadAhead(reader.get(), model));
  }
}

TEST_F(BytesTest, WithoutACopyFailNamingTheNode) {
  ASSERT_NO_FATAL_FAILURE(OpenFiles("none", "embedded:?nodes=1&size=64MiB"));
  WriteFile("/d/f", pool::RandomBytes(random_.Next(), 100000));
  const auto reader = NewReader("/d/f");
  const auto writer = NewWriter("/d/g");
  ASSERT_TRUE(IsOk(writer->Append("some", io_, nullptr)));
  pool_->KillEmbeddedNode(0);
  // What the node's memory held stays readable over this transport until the loss is noticed.
  while (pool_->client()->alive(0)) Clock::System()->SleepFor(std::chrono::milliseconds(1));

  char scratch[100];
  rocksdb::Slice result;
  const rocksdb::IOStatus read = reader->Read(0, 100, io_, &result, scratch, nullptr);
  EXPECT_TRUE(read.IsIOError()) << read.ToString();
  EXPECT_NE(read.ToString().find(pool_->client()->node_address(0)), std::string::npos)
      << read.ToString();
  EXPECT_TRUE(result.empty());
  const rocksdb::IOStatus written = writer->Sync(io_, nullptr);
  EXPECT_TRUE(written.IsIOError()) << written.ToString();
  // The first failure is the writer's last word.
  EXPECT_EQ(writer->Append("more", io_, nullptr).ToString(), written.ToString());
}

TEST_F(BytesTest, ThatFindNoRoomFail) {
  ASSERT_NO_FATAL_FAILURE(OpenFiles("none", "embedded:?nodes=1&size=8MiB"));
  const auto writer = NewWriter("/d/f");
  const std::string bytes = pool::RandomBytes(random_.Next(), 16 << 20);
  const rocksdb::IOStatus status = writer->Append(bytes, io_, nullptr);
  EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
}

}  // namespace
}  // namespace nacre::rocksfs
