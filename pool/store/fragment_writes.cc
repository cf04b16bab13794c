#include "pool/store/fragment_writes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "pool/connect/spin_wait.h"
#include "util/planted_bug.h"

namespace nacre::pool {

FragmentWrites::FragmentWrites(TableStore::Rep* store, std::unique_ptr<Lane> lane,
                               const Placement& placement, size_t flights, const WriteKeys* keys)
    : store_(store), keys_(keys), lane_(std::move(lane)), flights_(flights) {
  for (const ExtentAddr& extent : placement.fragments) {
    Fragment& fragment = fragments_.emplace_back();
    fragment.offset = extent.start.offset;
    fragment.local = store_->LocalBytes(extent);
    if (fragment.local == nullptr) fragment.link = store_->fabric->link(extent.start.node);
  }
}

FragmentWrites::~FragmentWrites() {
  // Normally all is done; a builder that gave up leaves writes behind.
  if (outstanding_ > 0) Fail(Status::Aborted("given up")).IgnoreError();
  // After a failure, completions of given up writes may still be in the queue.
  if (failure_.ok()) store_->connections.GiveLane(std::move(lane_));
}

Status FragmentWrites::Buffered(size_t flight, size_t bytes, Buffer** buffer) {
  NACRE_RETURN_IF_ERROR(AwaitFlight(flight));
  Flight& mine = flights_[flight];
  if (!mine.buffer.valid()) {
    if (Status s = store_->connections.buffers()->Take(bytes, &mine.buffer); !s.ok())
      return Fail(s);
  }
  *buffer = &mine.buffer;
  return Status::OK();
}

Status FragmentWrites::Write(size_t number, int64_t offset, rdma::LocalBuffer from, size_t flight) {
  NACRE_RETURN_IF_ERROR(failure_);
  if (from.size == 0) return Status::OK();
  Fragment& fragment = fragments_[number];
  if (fragment.local != nullptr) {
    char* const to = fragment.local + offset;
    if (to != from.data) std::memcpy(to, from.data, from.size);
    return Status::OK();
  }
  return Post(
      number,
      fragment.offset + static_cast<uint64_t>(static_cast<int64_t>(kFragmentHeadBytes) + offset),
      from, flight);
}

Status FragmentWrites::Post(size_t number, uint64_t offset, rdma::LocalBuffer from, size_t flight) {
  Fragment& fragment = fragments_[number];
  rdma::QueuePair* queue_pair = lane_->GetConnected(fragment.link->id());
  if (queue_pair == nullptr) {
    return Fail(Status::Unavailable(fragment.link->address() + ": connection lost"));
  }
  const uint64_t id = static_cast<uint64_t>(flight) << kFragmentBits | number;
  while (from.size > 0) {
    uint64_t contiguous = 0;
    rdma::RemoteBuffer to;
    if (!Translate(*fragment.link, offset, &to, &contiguous)) {
      return Fail(Status::InvalidArgument(
          fmt::format("{}: no key to write at {}: it is not this client's, or the job's",
                      fragment.link->address(), offset)));
    }
    rdma::LocalBuffer part = from;
    part.size = static_cast<uint32_t>(std::min<uint64_t>(from.size, contiguous));
    const uint8_t more = part.size < from.size ? rdma::kMore : 0;
    if (Status s =
            queue_pair->PostWrite(id, part, to, static_cast<uint8_t>(rdma::kSignaled | more));
        !s.ok()) {
      return Fail(std::move(s));
    }
    ++fragment.outstanding;
    ++flights_[flight].outstanding;
    ++outstanding_;
    from.data += part.size;
    from.size -= part.size;
    offset += part.size;
  }
  return Status::OK();
}

void FragmentWrites::Poll() {
  rdma::Completion completions[16];
  int n = 0;
  while (outstanding_ > 0 && (n = lane_->queue()->Poll(completions, 16)) > 0) {
    for (int i = 0; i < n; ++i) {
      Fragment& fragment = fragments_[completions[i].id & ((uint64_t{1} << kFragmentBits) - 1)];
      if (completions[i].code != rdma::CompletionCode::kSuccess) {
        Fail(StatusOfCompletion(fragment.link->address(), completions[i].code)).IgnoreError();
        return;
      }
      --fragment.outstanding;
      --flights_[completions[i].id >> kFragmentBits].outstanding;
      --outstanding_;
    }
  }
}

Status FragmentWrites::AwaitZero(const int* outstanding) {
  NACRE_RETURN_IF_ERROR(failure_);
  if (*outstanding == 0) return Status::OK();
  if (outstanding == &outstanding_ &&
      NACRE_PLANTED_BUG("table.recorded-before-its-fragments-are-written")) {
    return Status::OK();
  }
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
      for (const Fragment& fragment : fragments_) {
        if (fragment.outstanding == 0) continue;
        if (!slow.empty()) slow += ", ";
        slow += fragment.link->address();
      }
      return Fail(Status::TimedOut(slow + ": writes do not end"));
    }
    pause.Pause();
  }
}

Status FragmentWrites::Fail(Status why) {
  if (failure_.ok()) failure_ = std::move(why);
  for (Fragment& fragment : fragments_) {
    if (fragment.outstanding == 0) continue;
    // The other nodes are not to blame, and not to be suspected.
    const bool culprit =
        failure_.message().find(fragment.link->address()) != std::string_view::npos;
    const Status told = culprit ? failure_ : Status::Aborted(failure_.message());
    if (keys_ == nullptr) {
      lane_->AbandonWrites(fragment.link, told);
    } else {
      lane_->Discard(fragment.link, told);  // They end with the job's keys.
    }
    fragment.outstanding = 0;
  }
  outstanding_ = 0;
  for (Flight& flight : flights_) flight.outstanding = 0;
  return failure_;
}

}  // namespace nacre::pool
