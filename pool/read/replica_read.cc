#include "pool/read/replica_read.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace nacre::pool {
namespace {

/// One request. What a reader works on should still be in the cache, so few of them are ahead;
/// enough for a fast network's round trip.
constexpr size_t kPieceBytes = 128 << 10;
constexpr size_t kPiecesAtOnce = 8;

}  // namespace

Status ReplicaRead::Start(PoolReader* reader, const ExtentAddr& replica, uint64_t offset, size_t n,
                          char* to) {
  AwaitPosted().IgnoreError();
  reader_ = reader;
  size_ = posted_ = arrived_ = 0;
  if (offset > replica.length || n > replica.length - offset) {
    return failure_ = Status::InvalidArgument(fmt::format(
               "a read of {} bytes at {} of an extent of {}", n, offset, replica.length));
  }
  failure_ =
      n == 0 ? Status::OK() : reader->fabric_->context.device->RegisterLocal(to, n, &region_);
  if (n == 0 || !failure_.ok()) return failure_;
  node_ = static_cast<NodeId>(replica.start.node);
  offset_ = replica.start.offset + offset;
  to_ = to;
  size_ = n;
  Post();
  // A node that cannot be reached has failed at once.
  return pieces_.front()->done() ? Take() : Status::OK();
}

Status ReplicaRead::Await(size_t n) {
  NACRE_RETURN_IF_ERROR(failure_);
  // Bytes beyond the end are the caller's mistake, and would never arrive.
  if (n > size_) return Status::InvalidArgument(fmt::format("{} bytes of a read of {}", n, size_));
  while (arrived_ < n) {
    Post();
    NACRE_RETURN_IF_ERROR(Take());
  }
  return Status::OK();
}

Status ReplicaRead::AwaitPosted() {
  while (!pieces_.empty()) NACRE_RETURN_IF_ERROR(Take());
  return failure_;
}

void ReplicaRead::Post() {
  while (posted_ < size_ && pieces_.size() < kPiecesAtOnce) {
    const StreamPart part{.node = node_,
                          .offset = offset_ + posted_,
                          .length = std::min(size_ - posted_, kPieceBytes),
                          .at = posted_};
    pieces_.push_back(reader_->stream_->Start({&part, 1}, to_, region_.get()));
    posted_ += part.length;
  }
}

Status ReplicaRead::Take() {
  const std::shared_ptr<StreamRead> piece = std::move(pieces_.front());
  pieces_.pop_front();
  reader_->stream_->Await(*piece);
  if (!piece->status().ok()) {
    // The others may still be landing.
    for (const std::shared_ptr<StreamRead>& other : pieces_) reader_->stream_->Await(*other);
    pieces_.clear();
    return failure_ = piece->status();
  }
  const size_t before = std::exchange(arrived_, std::min(size_, arrived_ + kPieceBytes));
  reader_->bytes_read_ += arrived_ - before;
  return Status::OK();
}

}  // namespace nacre::pool
