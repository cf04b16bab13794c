#include "pool/read/copy_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "pool/connect/spin_wait.h"

namespace nacre::pool {
namespace {

/// One request. What a reader works on should still be in the cache, so few of them are ahead;
/// enough for a fast network's round trip.
constexpr size_t kPieceBytes = 128 << 10;
constexpr int kPiecesAtOnce = 8;
static_assert(kPiecesAtOnce <= Lane::kDepth);

/// An id is the number of the read, then where the piece ends.
constexpr int kEndBits = 40;

}  // namespace

Status CopyReader::Create(Fabric* fabric, std::unique_ptr<CopyReader>* reader) {
  std::unique_ptr<Lane> lane;
  NACRE_RETURN_IF_ERROR(Lane::Create(fabric, 1, &lane));
  reader->reset(new CopyReader(std::move(lane)));
  return Status::OK();
}

Status CopyReader::Read(const ExtentAddr& copy, uint64_t offset, size_t n, char* to) {
  CopyRead read;
  NACRE_RETURN_IF_ERROR(read.Start(this, copy, offset, n, to));
  return read.AwaitFirst(n);
}

Status CopyRead::Start(CopyReader* reader, const ExtentAddr& copy, uint64_t offset, size_t n,
                       char* to) {
  Pause().IgnoreError();
  reader_ = reader;
  posted_ = arrived_ = size_ = 0;
  if (offset > copy.length || n > copy.length - offset || n >> kEndBits != 0) {
    return failure_ = Status::InvalidArgument(
               fmt::format("a read of {} bytes at {} of an extent of {}", n, offset, copy.length));
  }
  failure_ = Status::OK();
  if (n == 0) return failure_;
  const Fabric* fabric = reader->lane_->fabric();
  link_ = fabric->link(copy.start.node);
  if (link_ == nullptr) {
    return failure_ = Status::Unavailable(fmt::format("the pool has no node {}", copy.start.node));
  }
  number_ = ++reader->reads_;
  offset_ = copy.start.offset + offset;
  to_ = to;
  failure_ = reader->lane_->Get(link_, &queue_pair_);
  if (failure_.ok()) failure_ = Fabric::CheckRange(link_, offset_, n);
  if (failure_.ok()) failure_ = fabric->context.device->RegisterLocal(to, n, &region_);
  if (failure_.ok()) size_ = n;
  return failure_;
}

Status CopyRead::Await(size_t n) {
  NACRE_RETURN_IF_ERROR(failure_);
  // Bytes beyond the end are the caller's mistake, and would never arrive.
  if (n > size_) return Status::InvalidArgument(fmt::format("{} bytes of a read of {}", n, size_));
  while (arrived_ < n) {
    NACRE_RETURN_IF_ERROR(Post(size_));
    // The oldest piece first: those behind it are asked for as it arrives.
    NACRE_RETURN_IF_ERROR(WaitFor(std::min(n, arrived_ + 1)));
  }
  return Status::OK();
}

Status CopyRead::Pause() {
  if (outstanding_ == 0) return failure_;
  return WaitFor(posted_);
}

Status CopyRead::Post(size_t end) {
  while (posted_ < end && outstanding_ < kPiecesAtOnce) {
    uint64_t contiguous = 0;
    const rdma::RemoteBuffer from = link_->Translate(offset_ + posted_, &contiguous);
    const auto bytes =
        static_cast<uint32_t>(std::min<uint64_t>({end - posted_, contiguous, kPieceBytes}));
    const rdma::LocalBuffer to{.data = to_ + posted_, .size = bytes, .region = region_.get()};
    const uint64_t id = number_ << kEndBits | (posted_ + bytes);
    if (Status s = queue_pair_->PostRead(id, to, from, rdma::kSignaled); !s.ok()) {
      return Fail(std::move(s));
    }
    ++outstanding_;
    posted_ += bytes;
  }
  return Status::OK();
}

Status CopyRead::TakeCompletions() {
  rdma::Completion completions[kPiecesAtOnce];
  const int n = reader_->lane_->queue()->Poll(completions, kPiecesAtOnce);
  for (int i = 0; i < n; ++i) {
    // It belongs to a read that was given up.
    if (completions[i].id >> kEndBits != number_) continue;
    if (completions[i].code != rdma::CompletionCode::kSuccess) {
      return Fail(StatusOfCompletion(link_->address(), completions[i].code));
    }
    --outstanding_;
    // They complete in their order.
    arrived_ = completions[i].id & ((uint64_t{1} << kEndBits) - 1);
  }
  return Status::OK();
}

Status CopyRead::WaitFor(size_t n) {
  const ClientContext& context = reader_->lane_->fabric()->context;
  SpinWait pause(context.clock);
  const Deadline deadline = context.OperationDeadline();
  while (arrived_ < n) {
    NACRE_RETURN_IF_ERROR(TakeCompletions());
    if (arrived_ >= n) break;
    if (pause.TimeToCheckClock()) {
      if (!link_->alive()) return Fail(link_->CheckUp());
      if (deadline.Expired()) {
        return Fail(Status::Unavailable(link_->address() + ": a read did not end"));
      }
    }
    pause.Pause();
  }
  return Status::OK();
}

Status CopyRead::Fail(Status why) {
  if (why.ok()) why = Status::Unavailable(link_->address() + ": connection lost");
  reader_->lane_->Discard(link_, why);
  outstanding_ = 0;
  return failure_ = std::move(why);
}

Status ReadCopy(Fabric* fabric, const ExtentAddr& copy, uint64_t offset, size_t n, char* to) {
  std::unique_ptr<CopyReader> reader;
  NACRE_RETURN_IF_ERROR(CopyReader::Create(fabric, &reader));
  return reader->Read(copy, offset, n, to);
}

}  // namespace nacre::pool
