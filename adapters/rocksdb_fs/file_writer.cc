#include "adapters/rocksdb_fs/file_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace nacre::rocksfs {

FileWriter::FileWriter(std::shared_ptr<RemoteFile> file)
    : file_(std::move(file)),
      writes_(file_->space()->client()->fabric(), file_->space()->connections(), kBuffers) {}

Status FileWriter::Append(const Slice& bytes) {
  NACRE_RETURN_IF_ERROR(CheckOpen());
  const char* from = bytes.data();
  for (size_t left = bytes.size(); left > 0;) {
    if (current().buffer == nullptr || current().filled == kBufferBytes) {
      NACRE_RETURN_IF_ERROR(PostGathered());
      NACRE_RETURN_IF_ERROR(NextBuffer());
    }
    Gathered& into = current();
    const size_t n = std::min(left, kBufferBytes - into.filled);
    std::memcpy(into.buffer->data() + into.filled, from, n);
    into.filled += n;
    size_ += n;
    from += n;
    left -= n;
  }
  return current().filled == kBufferBytes ? PostGathered() : Status::OK();
}

Status FileWriter::Post() {
  NACRE_RETURN_IF_ERROR(PostGathered());
  writes_.Poll();
  NACRE_RETURN_IF_ERROR(writes_.failure());
  if (!writes_.AnyUnderWay() && published_ < size_) {
    file_->Publish(size_);
    published_ = size_;
  }
  return Status::OK();
}

Status FileWriter::Sync() {
  NACRE_RETURN_IF_ERROR(PostGathered());
  NACRE_RETURN_IF_ERROR(writes_.AwaitAll());
  return Post();
}

Status FileWriter::Close() {
  NACRE_RETURN_IF_ERROR(Sync());
  file_->Finish(size_);
  closed_ = true;
  return Status::OK();
}

Status FileWriter::NextBuffer() {
  writes_.Poll();
  // The one that was used last, if it is free, is in the processor's cache. If all are under way,
  // the one that was posted first ends first.
  size_t next = current_;
  for (size_t i = 1; i < kBuffers && writes_.IsUnderWay(next); ++i) {
    next = (next + kBuffers - 1) % kBuffers;
  }
  NACRE_RETURN_IF_ERROR(writes_.Buffered(next, kBufferBytes, &buffers_[next].buffer));
  current_ = next;
  current().begin = size_;
  current().filled = 0;
  current().posted = 0;
  return Status::OK();
}

Status FileWriter::PostGathered() {
  NACRE_RETURN_IF_ERROR(CheckOpen());
  Gathered& from = current();
  while (from.posted < from.filled) {
    const uint64_t at = from.begin + from.posted;
    const size_t left = from.filled - from.posted;
    if (at == extent_.end()) {
      if (Status s = file_->Extend(left, &extent_); !s.ok()) return writes_.Fail(std::move(s));
    }
    const auto n = static_cast<uint32_t>(std::min<uint64_t>(left, extent_.end() - at));
    for (const ExtentAddr& copy : extent_.placement.fragments) {
      NACRE_RETURN_IF_ERROR(writes_.WriteTo(copy.start.node,
                                            copy.start.offset + (at - extent_.begin),
                                            from.buffer->Part(from.posted, n), current_));
    }
    from.posted += n;
  }
  return Status::OK();
}

}  // namespace nacre::rocksfs
