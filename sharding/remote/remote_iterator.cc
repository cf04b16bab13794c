#include "sharding/remote/remote_iterator.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "db/read/iterator_bounds.h"
#include "sharding/remote/member_codec.h"
#include "sharding/remote/remote_snapshot.h"
#include "util/exceptions.h"

namespace nacre {
namespace {

/// A first piece, after a seek or a turn, has so many bytes. Each further one is larger.
constexpr size_t kFirstBytes = 16 << 10;
constexpr size_t kMostBytes = 1 << 20;
constexpr size_t kGrowth = 4;
/// A piece has at most one entry for so many of its bytes.
constexpr size_t kBytesPerEntry = 256;

/// Invariant: the entries of `piece()` are neighbours, in the order of travel when it was fetched,
/// which is `backward_`. While the iterator is valid it stands on entry `index_` of them.
class RemoteIterator final : public Iterator {
 public:
  RemoteIterator(const ReadOptions& options, const RemoteScan& scan,
                 std::shared_ptr<RemoteOwner> owner)
      : bounds_(options),
        scan_(scan),
        owner_(std::move(owner)),
        most_bytes_(options.readahead_size == 0 ? kMostBytes
                                                : std::min(options.readahead_size, kMostBytes)) {
    request_.set_shard(scan.shard);
    request_.mutable_scan()->set_family(scan.family);
    EncodeOptions(options, scan.snapshot, request_.mutable_scan()->mutable_flags());
  }
  ~RemoteIterator() override {
    if (scan_.owns_snapshot) owner_->ReleaseSnapshot(scan_.shard, scan_.snapshot);
  }

  bool Valid() const override { return valid_; }
  void SeekToFirst() override { Start(/*backward=*/false, nullptr); }
  void SeekToLast() override { Start(/*backward=*/true, nullptr); }
  void Seek(const Slice& target) override { Start(/*backward=*/false, &target); }
  void SeekForPrev(const Slice& target) override { Start(/*backward=*/true, &target); }
  void Next() override { Step(/*backward=*/false); }
  void Prev() override { Step(/*backward=*/true); }
  Slice key() const override { return piece().keys(index_); }
  Slice value() const override { return piece().values(index_); }
  Status status() const override { return status_; }

 private:
  const sharding::ScanReply& piece() const { return reply_.scan(); }

  void Start(bool backward, const Slice* from) {
    bounds_.CopyTo(&lower_, &upper_);
    sharding::ScanRequest* const scan = request_.mutable_scan();
    if (lower_.has_value()) scan->set_lower_bound(*lower_);
    if (upper_.has_value()) scan->set_upper_bound(*upper_);
    piece_bytes_ = std::min(kFirstBytes, most_bytes_);
    Fetch(backward, from, /*after=*/false);
  }

  void Step(bool backward) {
    const bool turned = backward != backward_;
    if (turned ? index_ > 0 : index_ + 1 < piece().keys_size()) {
      index_ += turned ? -1 : 1;
      return;
    }
    if (!turned && piece().end()) {
      valid_ = false;
      return;
    }
    piece_bytes_ = std::min(turned ? kFirstBytes : piece_bytes_ * kGrowth, most_bytes_);
    const Slice from = key();
    Fetch(backward, &from, /*after=*/true);
  }

  /// The bytes of `from` may be those of the piece that there is.
  void Fetch(bool backward, const Slice* from, bool after) {
    sharding::ScanRequest* const scan = request_.mutable_scan();
    scan->set_backward(backward);
    scan->set_after(after);
    if (from == nullptr) {
      scan->clear_from();
    } else {
      scan->set_from(from->data(), from->size());
    }
    scan->set_max_bytes(static_cast<uint32_t>(piece_bytes_));
    scan->set_max_entries(
        static_cast<uint32_t>(std::max<size_t>(piece_bytes_ / kBytesPerEntry, 1)));
    backward_ = backward;
    index_ = 0;
    status_ = CatchAll([&] {
      return AtSnapshot(owner_->Call(&request_, owner_->OperationDeadline(),
                                     RemoteOwner::Unanswered::kRetry, &reply_));
    });
    const bool none = piece().keys_size() == 0;
    if (status_.ok() &&
        (piece().keys_size() != piece().values_size() || (none && !piece().end()))) {
      status_ = Status::Corruption("a member answers a scan by no piece of one");
    }
    valid_ = status_.ok() && !none;
  }

  const IteratorBounds bounds_;
  const RemoteScan scan_;
  const std::shared_ptr<RemoteOwner> owner_;
  const size_t most_bytes_;
  std::optional<std::string> lower_;  ///< As of the latest seek.
  std::optional<std::string> upper_;
  sharding::MemberRequest request_;  ///< Kept for its memory, as the reply is.
  sharding::MemberReply reply_;
  size_t piece_bytes_ = kFirstBytes;
  bool backward_ = false;
  int index_ = 0;
  bool valid_ = false;
  Status status_;
};

}  // namespace

std::unique_ptr<Iterator> NewRemoteIterator(const ReadOptions& options, const RemoteScan& scan,
                                            std::shared_ptr<RemoteOwner> owner) {
  return std::make_unique<RemoteIterator>(options, scan, std::move(owner));
}

}  // namespace nacre
