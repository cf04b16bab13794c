#include "adapters/rocksdb_fs/file_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "pool/connect/node_link.h"
#include "pool/connect/spin_wait.h"
#include "util/clock.h"

namespace nacre::rocksfs {
namespace {

/// An id is the buffer, then the node.
constexpr int kNodeBits = 16;
constexpr int kMaxOutstanding = pool::Lane::kDepth;

}  // namespace

FileWriter::~FileWriter() {
  // Whatever is under way ends with its connections, before its buffers.
  if (outstanding_ == 0 && lane_ != nullptr)
    file_->space()->connections()->GiveLane(std::move(lane_));
}

Status FileWriter::Append(const Slice& bytes) {
  NACRE_RETURN_IF_ERROR(failure_);
  const char* from = bytes.data();
  for (size_t left = bytes.size(); left > 0;) {
    if (!current().buffer.valid() || current().filled == kBufferBytes) {
      NACRE_RETURN_IF_ERROR(PostGathered());
      NACRE_RETURN_IF_ERROR(NextBuffer());
    }
    Gathered& into = current();
    const size_t n = std::min(left, kBufferBytes - into.filled);
    std::memcpy(into.buffer.data() + into.filled, from, n);
    into.filled += n;
    size_ += n;
    from += n;
    left -= n;
  }
  if (current().filled == kBufferBytes) return PostGathered();
  return Status::OK();
}

Status FileWriter::Post() {
  NACRE_RETURN_IF_ERROR(PostGathered());
  TakeCompletions();
  NACRE_RETURN_IF_ERROR(failure_);
  if (outstanding_ == 0 && published_ < size_) {
    file_->Publish(size_);
    published_ = size_;
  }
  return Status::OK();
}

Status FileWriter::Sync() {
  NACRE_RETURN_IF_ERROR(PostGathered());
  NACRE_RETURN_IF_ERROR(AwaitBelow(&outstanding_, 1));
  return Post();
}

Status FileWriter::Close() {
  NACRE_RETURN_IF_ERROR(Sync());
  file_->Finish(size_);
  failure_ = Status::InvalidArgument("the file is closed");
  return Status::OK();
}

Status FileWriter::NextBuffer() {
  TakeCompletions();
  NACRE_RETURN_IF_ERROR(failure_);
  // The one that was used last, if it is free, is in the processor's cache.
  for (size_t i = 0; i < kBuffers; ++i) {
    const size_t number = (current_ + kBuffers - i) % kBuffers;
    if (buffers_[number].outstanding == 0) {
      current_ = number;
      break;
    }
    // All are under way: the one that was posted first ends first.
    if (i + 1 == kBuffers) {
      current_ = number;
      NACRE_RETURN_IF_ERROR(AwaitBelow(&buffers_[number].outstanding, 1));
    }
  }
  Gathered& next = current();
  if (!next.buffer.valid()) {
    if (Status s = file_->space()->connections()->buffers()->Take(kBufferBytes, &next.buffer);
        !s.ok())
      return Fail(std::move(s));
  }
  next.begin = size_;
  next.filled = 0;
  next.posted = 0;
  return Status::OK();
}

Status FileWriter::PostGathered() {
  NACRE_RETURN_IF_ERROR(failure_);
  Gathered& from = current();
  while (from.posted < from.filled) {
    const uint64_t at = from.begin + from.posted;
    const size_t left = from.filled - from.posted;
    if (at == extent_.end()) {
      if (Status s = file_->Extend(left, &extent_); !s.ok()) return Fail(std::move(s));
    }
    const auto n = static_cast<uint32_t>(std::min<uint64_t>(left, extent_.end() - at));
    NACRE_RETURN_IF_ERROR(PostPart(extent_, at, from.buffer.Part(from.posted, n)));
    from.posted += n;
  }
  return Status::OK();
}

Status FileWriter::PostPart(const FileExtent& extent, uint64_t offset, rdma::LocalBuffer from) {
  if (lane_ == nullptr) {
    if (Status s = file_->space()->connections()->TakeLane(&lane_); !s.ok())
      return Fail(std::move(s));
  }
  for (const ExtentAddr& copy : extent.placement.fragments) {
    if (Status s = PostCopy(copy, offset - extent.begin, from); !s.ok()) return Fail(std::move(s));
  }
  return Status::OK();
}

Status FileWriter::PostCopy(const ExtentAddr& copy, uint64_t offset, rdma::LocalBuffer from) {
  pool::NodeLink* const link = file_->space()->client()->fabric()->link(copy.start.node);
  if (link == nullptr) return Status::Unavailable("the pool has no such node");
  rdma::QueuePair* queue_pair = nullptr;
  NACRE_RETURN_IF_ERROR(lane_->Get(link, &queue_pair));
  const uint64_t id = uint64_t{current_} << kNodeBits | copy.start.node;
  while (from.size > 0) {
    NACRE_RETURN_IF_ERROR(AwaitBelow(&outstanding_, kMaxOutstanding));
    uint64_t contiguous = 0;
    rdma::RemoteBuffer to;
    if (!link->TranslateWrite(copy.start.offset + offset, &to, &contiguous)) {
      return Status::InvalidArgument(
          fmt::format("{}: no key to write at {}: the slab is not leased to this client",
                      link->address(), copy.start.offset + offset));
    }
    rdma::LocalBuffer part = from;
    part.size = static_cast<uint32_t>(std::min<uint64_t>(from.size, contiguous));
    NACRE_RETURN_IF_ERROR(queue_pair->PostWrite(id, part, to, rdma::kSignaled));
    ++current().outstanding;
    ++outstanding_;
    from.data += part.size;
    from.size -= part.size;
    offset += part.size;
  }
  return Status::OK();
}

void FileWriter::TakeCompletions() {
  rdma::Completion completions[16];
  int n = 0;
  while (outstanding_ > 0 && (n = lane_->queue()->Poll(completions, 16)) > 0) {
    for (int i = 0; i < n; ++i) {
      const uint64_t id = completions[i].id;
      if (completions[i].code != rdma::CompletionCode::kSuccess) {
        const auto node = static_cast<NodeId>(id & ((1 << kNodeBits) - 1));
        Fail(pool::StatusOfCompletion(file_->space()->client()->node_address(node),
                                      completions[i].code))
            .IgnoreError();  // failure_ tells.
        return;
      }
      --buffers_[id >> kNodeBits].outstanding;
      --outstanding_;
    }
  }
}

Status FileWriter::AwaitBelow(const int* count, int limit) {
  NACRE_RETURN_IF_ERROR(failure_);
  if (*count < limit) return Status::OK();
  const pool::ClientContext& context = file_->space()->client()->fabric()->context;
  pool::SpinWait pause(context.clock);
  Deadline deadline = context.OperationDeadline();
  int before = outstanding_;
  while (true) {
    TakeCompletions();
    NACRE_RETURN_IF_ERROR(failure_);
    if (*count < limit) return Status::OK();
    if (outstanding_ != before) {
      before = outstanding_;
      deadline = context.OperationDeadline();
    }
    if (pause.TimeToCheckClock() && deadline.Expired()) {
      return Fail(Status::TimedOut("writes to the nodes of a file do not end"));
    }
    pause.Pause();
  }
}

Status FileWriter::Fail(Status why) {
  if (failure_.ok()) failure_ = std::move(why);
  if (lane_ != nullptr && outstanding_ > 0) lane_->AbandonAllWrites(failure_);
  lane_.reset();
  for (Gathered& gathered : buffers_) gathered.outstanding = 0;
  outstanding_ = 0;
  return failure_;
}

}  // namespace nacre::rocksfs
