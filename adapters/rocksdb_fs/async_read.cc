#include "adapters/rocksdb_fs/async_read.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "adapters/rocksdb_fs/io_status.h"

namespace nacre::rocksfs {

AsyncRead::AsyncRead(std::shared_ptr<RemoteFile> file, const rocksdb::FSReadRequest& request,
                     Callback callback, void* argument)
    : file_(std::move(file)),
      offset_(request.offset),
      length_(request.len),
      scratch_(request.scratch),
      callback_(std::move(callback)),
      argument_(argument) {
  started_ = Start();
}

Status AsyncRead::Start() {
  FileMap copy;
  const FileMap& map = file_->Map(&copy);
  if (offset_ >= map.size || length_ == 0) return Status::OK();
  bytes_ = std::min<uint64_t>(length_, map.size - offset_);
  std::vector<pool::StreamPart> parts;
  for (size_t done = 0; done < bytes_;) {
    const FileExtent& extent = map.Find(offset_ + done);
    const uint64_t at = offset_ + done - extent.begin;
    const RemoteAddr start = extent.placement.fragments.front().start;
    pool::StreamPart& part = parts.emplace_back();
    part.node = start.node;
    part.offset = start.offset + at;
    part.length = std::min<uint64_t>(bytes_ - done, extent.bytes - at);
    part.at = done;
    done += part.length;
  }
  NACRE_RETURN_IF_ERROR(file_->space()->connections()->Stream(&stream_));
  read_ = stream_->Start(parts, bytes_);
  return Status::OK();
}

Status AsyncRead::Await(size_t* bytes) {
  *bytes = bytes_;
  if (bytes_ == 0) return started_;
  if (read_ != nullptr) {
    stream_->Await(*read_);
    if (read_->status().ok()) {
      std::memcpy(scratch_, read_->buffer().data(), bytes_);
      return Status::OK();
    }
  }
  // Another copy may have it.
  return ReadFile(*file_, offset_, bytes_, scratch_, bytes);
}

void AsyncRead::Finish() {
  if (ended_) return;
  size_t bytes = 0;
  const Status status = Await(&bytes);
  End(ToIOStatus(status, "reading ahead"), status.ok() ? bytes : 0);
}

void AsyncRead::Abort() {
  if (!ended_) End(rocksdb::IOStatus::Aborted(), 0);
}

void AsyncRead::End(rocksdb::IOStatus status, size_t bytes) {
  ended_ = true;
  read_.reset();
  rocksdb::FSReadRequest request;
  request.offset = offset_;
  request.len = length_;
  request.scratch = scratch_;
  request.result = rocksdb::Slice(scratch_, bytes);
  request.status = std::move(status);
  callback_(request, argument_);
}

}  // namespace nacre::rocksfs
