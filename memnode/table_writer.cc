#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "memnode/spin_wait.h"
#include "memnode/table_store_rep.h"

namespace nacre::memnode {
namespace {

/// Writes one table to all of its copies. Chunks are built in registered buffers, or, when a copy
/// lies in local memory, right where they are to stay; remote copies are sent from there while the
/// next chunk is built.
class TableWriter : public ExtentWriter {
 public:
  TableWriter(TableStore::Rep* store, std::unique_ptr<Lane> lane, const Placement& placement,
              size_t chunk_size);
  ~TableWriter() override;

  size_t chunk_size() const override { return chunk_size_; }
  uint64_t capacity() const override { return capacity_; }
  Status NextChunk(char** buffer) override;
  Status Commit(size_t n) override;
  Status Finish(const Slice& head) override;

 private:
  struct Target {
    NodeLink* link = nullptr;
    uint64_t offset = 0;  ///< Of the fragment in the region.
    int outstanding = 0;  ///< Writes that have not completed.
  };
  /// One of the chunks in flight.
  struct Flight {
    Buffer buffer;        ///< Unless the chunk was built in place.
    int outstanding = 0;  ///< Writes from it that have not completed.
  };

  bool BuiltInPlace() const { return !local_.empty() && chunk_size_ <= capacity_ - written_; }
  Flight& CurrentFlight() { return flights_[chunks_ % flights_.size()]; }
  Status PostToAll(rdma::LocalBuffer from, uint64_t offset, size_t flight);
  Status PostTo(size_t target, rdma::LocalBuffer from, uint64_t offset, size_t flight);
  /// Waits until `*outstanding` is 0.
  Status AwaitZero(const int* outstanding);
  void Poll();
  /// The table cannot be finished any more. Nothing will be written once this returns.
  Status Fail(Status why);

  TableStore::Rep* const store_;
  std::unique_ptr<Lane> lane_;
  const size_t chunk_size_;
  uint64_t capacity_ = UINT64_MAX;
  std::vector<Target> targets_;  ///< Remote copies.
  std::vector<char*> local_;     ///< Table bytes of local copies; normally at most one.
  std::vector<Flight> flights_;
  Buffer head_;
  uint64_t chunks_ = 0;   ///< Committed.
  uint64_t written_ = 0;  ///< Bytes committed.
  char* current_ = nullptr;
  int outstanding_ = 0;  ///< Over all targets.
  Status failure_;
};

constexpr uint64_t kTargetBits = 8;
constexpr size_t kHeadFlight = SIZE_MAX >> (kTargetBits + 1);

TableWriter::TableWriter(TableStore::Rep* store, std::unique_ptr<Lane> lane,
                         const Placement& placement, size_t chunk_size)
    : store_(store),
      lane_(std::move(lane)),
      chunk_size_(chunk_size),
      flights_(static_cast<size_t>(store->buffers_in_flight)) {
  for (const ExtentAddr& fragment : placement.fragments) {
    capacity_ = std::min(capacity_, fragment.length - kFragmentHeadBytes);
    if (char* bytes = store_->LocalBytes(fragment)) {
      local_.push_back(bytes);
    } else {
      targets_.push_back({.link = store_->fabric->link(fragment.start.node),
                          .offset = fragment.start.offset,
                          .outstanding = 0});
    }
  }
}

TableWriter::~TableWriter() {
  // Normally all is done; a builder that gave up leaves writes behind.
  if (outstanding_ > 0) Fail(Status::Aborted("given up")).IgnoreError();
  // Of one that failed, completions of given up writes may still be in the queue.
  if (failure_.ok()) store_->GiveLane(std::move(lane_));
}

Status TableWriter::NextChunk(char** buffer) {
  NACRE_RETURN_IF_ERROR(failure_);
  Flight& flight = CurrentFlight();
  NACRE_RETURN_IF_ERROR(AwaitZero(&flight.outstanding));
  if (BuiltInPlace()) {
    current_ = local_[0] + written_;
  } else {
    if (!flight.buffer.valid()) {
      if (Status s = store_->buffers.Take(chunk_size_, &flight.buffer); !s.ok()) return Fail(s);
    }
    current_ = flight.buffer.data();
  }
  *buffer = current_;
  return Status::OK();
}

Status TableWriter::Commit(size_t n) {
  NACRE_RETURN_IF_ERROR(failure_);
  assert(current_ != nullptr && n <= chunk_size_);
  if (n > capacity_ - written_) {
    return Fail(
        Status::NoSpace(fmt::format("a table outgrows the {} bytes reserved for it", capacity_)));
  }
  const bool in_place = BuiltInPlace();
  for (char* copy : local_) {
    if (copy + written_ != current_) std::memcpy(copy + written_, current_, n);
  }
  if (!targets_.empty() && n > 0) {
    const rdma::LocalBuffer from{.data = current_,
                                 .size = static_cast<uint32_t>(n),
                                 .region = in_place ? store_->local.region : nullptr};
    Flight& flight = CurrentFlight();
    const size_t number = chunks_ % flights_.size();
    NACRE_RETURN_IF_ERROR(
        PostToAll(in_place ? from : flight.buffer.Part(0, static_cast<uint32_t>(n)),
                  kFragmentHeadBytes + written_, number));
  }
  ++chunks_;
  written_ += n;
  current_ = nullptr;
  Poll();
  return failure_;
}

Status TableWriter::Finish(const Slice& head) {
  NACRE_RETURN_IF_ERROR(failure_);
  if (head.size() > kFragmentHeadBytes) {
    return Fail(Status::InvalidArgument(fmt::format("a head of {} bytes", head.size())));
  }
  for (char* copy : local_) std::memcpy(copy - kFragmentHeadBytes, head.data(), head.size());
  if (!targets_.empty() && !head.empty()) {
    if (Status s = store_->buffers.Take(kFragmentHeadBytes, &head_); !s.ok()) return Fail(s);
    std::memcpy(head_.data(), head.data(), head.size());
    NACRE_RETURN_IF_ERROR(
        PostToAll(head_.Part(0, static_cast<uint32_t>(head.size())), 0, kHeadFlight));
  }
  return AwaitZero(&outstanding_);
}

Status TableWriter::PostToAll(rdma::LocalBuffer from, uint64_t offset, size_t flight) {
  for (size_t i = 0; i < targets_.size(); ++i)
    NACRE_RETURN_IF_ERROR(PostTo(i, from, offset, flight));
  return Status::OK();
}

Status TableWriter::PostTo(size_t target_number, rdma::LocalBuffer from, uint64_t offset,
                           size_t flight) {
  Target& target = targets_[target_number];
  rdma::QueuePair* queue_pair = lane_->GetConnected(target.link->id());
  if (queue_pair == nullptr) {
    return Fail(Status::Unavailable(target.link->address() + ": connection lost"));
  }
  const uint64_t id = static_cast<uint64_t>(flight) << kTargetBits | target_number;
  while (from.size > 0) {
    uint64_t contiguous = 0;
    rdma::RemoteBuffer to;
    if (!target.link->TranslateWrite(target.offset + offset, &to, &contiguous)) {
      return Fail(Status::InvalidArgument(
          fmt::format("{}: no key to write at {}: the slab is not leased to this client",
                      target.link->address(), target.offset + offset)));
    }
    rdma::LocalBuffer part = from;
    part.size = static_cast<uint32_t>(std::min<uint64_t>(from.size, contiguous));
    const uint8_t more = part.size < from.size ? rdma::kMore : 0;
    if (Status s =
            queue_pair->PostWrite(id, part, to, static_cast<uint8_t>(rdma::kSignaled | more));
        !s.ok()) {
      return Fail(std::move(s));
    }
    ++target.outstanding;
    ++outstanding_;
    if (flight != kHeadFlight) ++flights_[flight].outstanding;
    from.data += part.size;
    from.size -= part.size;
    offset += part.size;
  }
  return Status::OK();
}

void TableWriter::Poll() {
  rdma::Completion completions[16];
  int n = 0;
  while (outstanding_ > 0 && (n = lane_->queue()->Poll(completions, 16)) > 0) {
    for (int i = 0; i < n; ++i) {
      const size_t target_number = completions[i].id & ((uint64_t{1} << kTargetBits) - 1);
      const size_t flight = completions[i].id >> kTargetBits;
      Target& target = targets_[target_number];
      if (completions[i].code != rdma::CompletionCode::kSuccess) {
        Fail(StatusOfCompletion(target.link->address(), completions[i].code)).IgnoreError();
        return;
      }
      --target.outstanding;
      --outstanding_;
      if (flight < flights_.size()) --flights_[flight].outstanding;
    }
  }
}

Status TableWriter::AwaitZero(const int* outstanding) {
  if (*outstanding == 0) return Status::OK();
  SpinWait pause(store_->fabric->context.clock);
  Deadline deadline = store_->fabric->context.OperationDeadline();
  int before = outstanding_;
  while (true) {
    Poll();
    NACRE_RETURN_IF_ERROR(failure_);
    if (*outstanding == 0) return Status::OK();
    if (outstanding_ != before) {
      before = outstanding_;
      deadline = store_->fabric->context.OperationDeadline();
    }
    if (deadline.Expired()) {
      std::string slow;
      for (const Target& target : targets_) {
        if (target.outstanding == 0) continue;
        if (!slow.empty()) slow += ", ";
        slow += target.link->address();
      }
      return Fail(Status::TimedOut(slow + ": writes do not end"));
    }
    pause.Pause();
  }
}

Status TableWriter::Fail(Status why) {
  if (failure_.ok()) failure_ = std::move(why);
  for (Target& target : targets_) {
    if (target.outstanding == 0) continue;
    // Not the fault of the other nodes, and nothing to suspect them for.
    const bool culprit = failure_.message().find(target.link->address()) != std::string_view::npos;
    lane_->Discard(target.link, culprit ? failure_ : Status::Aborted(failure_.message()));
    target.outstanding = 0;
  }
  outstanding_ = 0;
  for (Flight& flight : flights_) flight.outstanding = 0;
  return failure_;
}

}  // namespace

std::unique_ptr<ExtentWriter> NewTableWriter(TableStore::Rep* store, std::unique_ptr<Lane> lane,
                                             const Placement& placement, size_t chunk_size) {
  return std::make_unique<TableWriter>(store, std::move(lane), placement, chunk_size);
}

}  // namespace nacre::memnode
