#include "adapters/rocksdb_fs/open_files.h"

#include <algorithm>
#include <array>
#include <utility>

#include "adapters/rocksdb_fs/async_read.h"
#include "adapters/rocksdb_fs/file_writer.h"
#include "adapters/rocksdb_fs/io_status.h"
#include "util/mutex.h"

namespace nacre::rocksfs {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

class SequentialFile final : public rocksdb::FSSequentialFile {
 public:
  SequentialFile(std::shared_ptr<RemoteFile> file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  IOStatus Read(size_t n, const IOOptions& options, rocksdb::Slice* result, char* scratch,
                IODebugContext* debug) override {
    IOStatus status = PositionedRead(offset_, n, options, result, scratch, debug);
    offset_ += result->size();
    return status;
  }
  IOStatus PositionedRead(uint64_t offset, size_t n, const IOOptions& /*options*/,
                          rocksdb::Slice* result, char* scratch,
                          IODebugContext* /*debug*/) override {
    size_t read = 0;
    const Status status = ReadFile(*file_, offset, n, scratch, &read);
    *result = rocksdb::Slice(scratch, status.ok() ? read : 0);
    return ToIOStatus(status, path_);
  }
  IOStatus Skip(uint64_t n) override {
    const uint64_t size = file_->size();
    offset_ += std::min(n, size - std::min(size, offset_));
    return IOStatus::OK();
  }

 private:
  const std::shared_ptr<RemoteFile> file_;
  const std::string path_;
  uint64_t offset_ = 0;
};

class RandomAccessFile final : public rocksdb::FSRandomAccessFile {
 public:
  RandomAccessFile(std::shared_ptr<RemoteFile> file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  IOStatus Read(uint64_t offset, size_t n, const IOOptions& /*options*/, rocksdb::Slice* result,
                char* scratch, IODebugContext* /*debug*/) const override {
    size_t read = 0;
    const Status status = ReadFile(*file_, offset, n, scratch, &read);
    *result = rocksdb::Slice(scratch, status.ok() ? read : 0);
    return ToIOStatus(status, path_);
  }

  IOStatus MultiRead(rocksdb::FSReadRequest* requests, size_t count, const IOOptions& /*options*/,
                     IODebugContext* /*debug*/) override {
    std::array<FileRead, 32> reads;
    for (size_t done = 0; done < count;) {
      const size_t some = std::min(count - done, reads.size());
      for (size_t i = 0; i < some; ++i) {
        const rocksdb::FSReadRequest& request = requests[done + i];
        reads[i].offset = request.offset;
        reads[i].n = request.len;
        reads[i].to = request.scratch;
      }
      ReadFile(*file_, reads.data(), some);
      for (size_t i = 0; i < some; ++i) {
        rocksdb::FSReadRequest& request = requests[done + i];
        request.result = rocksdb::Slice(request.scratch, reads[i].status.ok() ? reads[i].read : 0);
        request.status = ToIOStatus(reads[i].status, path_);
      }
      done += some;
    }
    return IOStatus::OK();
  }

  IOStatus ReadAsync(rocksdb::FSReadRequest& request, const IOOptions& /*options*/,
                     AsyncRead::Callback callback, void* argument, void** handle,
                     rocksdb::IOHandleDeleter* deleter, IODebugContext* /*debug*/) override {
    *handle = std::make_unique<AsyncRead>(file_, request, std::move(callback), argument).release();
    *deleter = [](void* read) { delete static_cast<AsyncRead*>(read); };
    return IOStatus::OK();
  }

 private:
  const std::shared_ptr<RemoteFile> file_;
  const std::string path_;
};

class WritableFile final : public rocksdb::FSWritableFile {
 public:
  WritableFile(std::shared_ptr<RemoteFile> file, std::string path,
               const rocksdb::FileOptions& options)
      : FSWritableFile(options), path_(std::move(path)), writer_(std::move(file)) {}
  ~WritableFile() override { Close(IOOptions(), nullptr).PermitUncheckedError(); }

  using FSWritableFile::Append;
  IOStatus Append(const rocksdb::Slice& data, const IOOptions& /*options*/,
                  IODebugContext* /*debug*/) override {
    MutexLock lock(&mutex_);
    return ToIOStatus(writer_.Append(Slice(data.data(), data.size())), path_);
  }
  IOStatus Flush(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    MutexLock lock(&mutex_);
    return ToIOStatus(writer_.Post(), path_);
  }
  IOStatus Sync(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    MutexLock lock(&mutex_);
    return ToIOStatus(writer_.Sync(), path_);
  }
  IOStatus Close(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    MutexLock lock(&mutex_);
    if (closed_) return IOStatus::OK();
    closed_ = true;
    return ToIOStatus(writer_.Close(), path_);
  }
  bool IsSyncThreadSafe() const override { return true; }
  uint64_t GetFileSize(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    MutexLock lock(&mutex_);
    return writer_.size();
  }

 private:
  const std::string path_;
  Mutex mutex_;
  bool closed_ GUARDED_BY(mutex_) = false;
  FileWriter writer_ GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<rocksdb::FSSequentialFile> NewSequentialFile(std::shared_ptr<RemoteFile> file,
                                                             std::string path) {
  return std::make_unique<SequentialFile>(std::move(file), std::move(path));
}

std::unique_ptr<rocksdb::FSRandomAccessFile> NewRandomAccessFile(std::shared_ptr<RemoteFile> file,
                                                                 std::string path) {
  return std::make_unique<RandomAccessFile>(std::move(file), std::move(path));
}

std::unique_ptr<rocksdb::FSWritableFile> NewWritableFile(std::shared_ptr<RemoteFile> file,
                                                         std::string path,
                                                         const rocksdb::FileOptions& options) {
  return std::make_unique<WritableFile>(std::move(file), std::move(path), options);
}

void PollReads(const std::vector<void*>& handles) {
  for (void* handle : handles) static_cast<AsyncRead*>(handle)->Finish();
}

void AbortReads(const std::vector<void*>& handles) {
  for (void* handle : handles) static_cast<AsyncRead*>(handle)->Abort();
}

}  // namespace nacre::rocksfs
