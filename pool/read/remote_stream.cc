#include "pool/read/remote_stream.h"

#include <algorithm>
#include <utility>

#include "pool/connect/node_waits.h"
#include "pool/connect/pool_pace.h"
#include "pool/connect/spin_wait.h"
#include "util/perf_step.h"

namespace nacre::pool {
namespace {

/// What a byte of a long read adds to the patience: 100 MB/s.
constexpr std::chrono::nanoseconds kSlowestByte{10};

/// The caller's reads, whichever thread carries them out.
void CountPartReads(std::span<const StreamPart> parts) {
  CountPerf(&PerfContext::remote_read_count, parts.size());
  for (const StreamPart& part : parts) CountPerf(&PerfContext::remote_read_bytes, part.length);
}

}  // namespace

RemoteStream::RemoteStream(Fabric* fabric, BufferPool* buffers)
    : fabric_(fabric), buffers_(buffers), slots_(kSlots) {
  for (size_t i = kSlots; i-- > 0;) free_slots_.push_back(static_cast<uint32_t>(i));
  if (!fabric->context.device->callers_move_bytes()) return;
  carrier_ = std::make_unique<ReadCarrier>(
      [this](const ReadCarrier::Work& work) { StartParts(work.parts, work.read); },
      [this](const StreamRead& read, const std::atomic<bool>& ended) {
        AwaitUnless(read, [&ended](bool /*time_to_look*/) {
          return ended.load(std::memory_order_relaxed);
        });
      });
}

Status RemoteStream::Create(Fabric* fabric, BufferPool* buffers,
                            std::unique_ptr<RemoteStream>* stream) {
  std::unique_ptr<RemoteStream> result(new RemoteStream(fabric, buffers));
  MutexLock lock(&result->mutex_);
  NACRE_RETURN_IF_ERROR(Lane::Create(fabric, 1, &result->lane_));
  *stream = std::move(result);
  return Status::OK();
}

RemoteStream::~RemoteStream() {
  carrier_.reset();
  MutexLock lock(&mutex_);
  lane_.reset();
}

/// A read that waits for its parts, or one that is done and failed.
std::shared_ptr<StreamRead> RemoteStream::NewRead(size_t bytes, bool patient) {
  auto read = std::make_shared<StreamRead>();
  read->patient_ = patient;
  read->bytes_ = bytes;
  if (Status s = buffers_->Take(bytes, &read->buffer_); !s.ok()) {
    Fail(read.get(), kNoNode, s);
    EndPart(read.get());
    return read;
  }
  const rdma::LocalBuffer to = read->buffer_.Part(0, 0);
  read->to_ = to.data;
  read->region_ = to.region;
  return read;
}

std::shared_ptr<StreamRead> RemoteStream::Start(std::span<const StreamPart> parts, size_t bytes,
                                                bool patient) {
  CountPartReads(parts);
  std::shared_ptr<StreamRead> read = NewRead(bytes, patient);
  if (!read->done()) StartParts(parts, read);
  return read;
}

std::shared_ptr<StreamRead> RemoteStream::StartAhead(std::span<const StreamPart> parts,
                                                     size_t bytes, bool patient) {
  CountPartReads(parts);
  std::shared_ptr<StreamRead> read = NewRead(bytes, patient);
  if (read->done()) return read;
  read->carried_ = carrier_ != nullptr;
  if (read->carried_ && carrier_->Take(parts, read)) return read;
  read->carried_ = false;
  StartParts(parts, read);
  return read;
}

std::shared_ptr<StreamRead> RemoteStream::Start(std::span<const StreamPart> parts, char* to,
                                                const rdma::MemoryRegion* region) {
  CountPartReads(parts);
  auto read = std::make_shared<StreamRead>();
  read->to_ = to;
  read->region_ = region;
  StartParts(parts, read);
  return read;
}

void RemoteStream::StartParts(std::span<const StreamPart> parts,
                              const std::shared_ptr<StreamRead>& read) {
  MutexLock lock(&mutex_);
  for (const StreamPart& part : parts) {
    if (Status s = StartPart(part, read); !s.ok()) Fail(read.get(), part.node, s);
  }
  EndPart(read.get());
}

Status RemoteStream::StartPart(const StreamPart& part, const std::shared_ptr<StreamRead>& read) {
  NodeLink* link = nullptr;
  NACRE_RETURN_IF_ERROR(fabric_->FindLink(part.node, &link));
  rdma::QueuePair* queue_pair = lane_->GetConnected(part.node);
  if (queue_pair == nullptr || queue_pair->broken()) {
    if (queue_pair != nullptr && !IsIdle(*link)) {
      // What is outstanding on it may never be told of.
      Status s = Status::Unavailable(link->address() + ": connection lost");
      Abandon(link, s);
      return s;
    }
    const auto late = read->patient_ ? Lane::Late::kAwaited : Lane::Late::kGivenUp;
    NACRE_RETURN_IF_ERROR(lane_->Get(link, &queue_pair, late));
  }
  NACRE_RETURN_IF_ERROR(Fabric::CheckRange(link, part.offset, part.length));
  for (uint64_t done = 0; done < part.length;) {
    uint64_t contiguous = 0;
    link->Translate(part.offset + done, &contiguous);
    StreamPart piece = part;
    piece.offset += done;
    piece.at += done;
    piece.length = std::min({part.length - done, contiguous, kMaxRequestBytes});
    NACRE_RETURN_IF_ERROR(Post(link, piece, read));
    done += piece.length;
  }
  return Status::OK();
}

bool RemoteStream::IsIdle(const NodeLink& link) const {
  return std::none_of(slots_.begin(), slots_.end(),
                      [&](const Slot& slot) { return slot.read != nullptr && slot.link == &link; });
}

Status RemoteStream::TakeSlot(size_t* index) {
  SpinWait pause(fabric_->context.clock);
  const Deadline deadline = fabric_->context.OperationDeadline();
  while (free_slots_.empty()) {
    Poll();
    if (!free_slots_.empty()) break;
    if (deadline.Expired()) return Status::TimedOut("too many reads are outstanding");
    pause.Pause();
  }
  *index = free_slots_.back();
  free_slots_.pop_back();
  return Status::OK();
}

Status RemoteStream::Post(NodeLink* link, const StreamPart& part,
                          const std::shared_ptr<StreamRead>& read) {
  size_t index = 0;
  NACRE_RETURN_IF_ERROR(TakeSlot(&index));
  Slot& slot = slots_[index];
  uint64_t contiguous = 0;
  const rdma::RemoteBuffer from = link->Translate(part.offset, &contiguous);
  const rdma::LocalBuffer to{.data = read->to_ + part.at,
                             .size = static_cast<uint32_t>(part.length),
                             .region = read->region_};
  rdma::QueuePair* queue_pair = lane_->GetConnected(link->id());
  Status s = queue_pair == nullptr ? Status::Unavailable(link->address() + ": connection lost")
                                   : queue_pair->PostRead(uint64_t{slot.use} << 32 | index, to,
                                                          from, rdma::kSignaled);
  if (!s.ok()) {
    free_slots_.push_back(static_cast<uint32_t>(index));
    // Earlier parts of this read may be on their way.
    if (queue_pair != nullptr) Abandon(link, s);
    return s;
  }
  slot.read = read;
  slot.link = link;
  ++read->parts_;
  // A read that is complete at once (as on shm) frees its slot, and its waiter finds it done.
  Poll();
  return Status::OK();
}

void RemoteStream::Poll() {
  rdma::Completion completions[16];
  int n = 0;
  while ((n = lane_->queue()->Poll(completions, 16)) > 0) {
    for (int i = 0; i < n; ++i) {
      const size_t index = completions[i].id & UINT32_MAX;
      Slot& slot = slots_[index];
      if (slot.read == nullptr || slot.use != completions[i].id >> 32) continue;
      if (completions[i].code == rdma::CompletionCode::kSuccess) {
        Finish(&slot, index, Status::OK());
      } else {
        NodeLink* link = slot.link;
        Abandon(link, StatusOfCompletion(link->address(), completions[i].code));
      }
    }
    if (n < 16) return;
  }
}

void RemoteStream::Abandon(NodeLink* link, const Status& why) {
  lane_->Discard(link, why);
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].read != nullptr && slots_[i].link == link) Finish(&slots_[i], i, why);
  }
}

void RemoteStream::Finish(Slot* slot, size_t index, const Status& status) {
  StreamRead* read = slot->read.get();
  if (!status.ok()) Fail(read, slot->link->id(), status);
  EndPart(read);
  slot->read.reset();
  slot->link = nullptr;
  ++slot->use;
  free_slots_.push_back(static_cast<uint32_t>(index));
}

void RemoteStream::Fail(StreamRead* read, NodeId node, const Status& why) {
  if (read->status_.ok()) read->status_ = why;
  if (node == kNoNode) return;
  auto& failed = read->failed_;
  if (std::find(failed.begin(), failed.end(), node) == failed.end()) failed.push_back(node);
}

void RemoteStream::EndPart(StreamRead* read) {
  // Release: pairs with StreamRead::done.
  if (--read->parts_ == 0) read->done_.store(true, std::memory_order_release);
}

/// Counts the time of a wait as one for each node that has a part of the read still to come.
class RemoteStream::StreamWait {
 public:
  StreamWait(RemoteStream* stream, const StreamRead& read)
      : waits_(CurrentNodeWaits()), clock_(stream->fabric_->context.clock) {
    if (waits_ == nullptr) [[likely]]
      return;
    nodes_ = stream->Outstanding(read);
    start_nanos_ = clock_->NowNanos();
  }
  ~StreamWait() {
    if (waits_ == nullptr) [[likely]]
      return;
    const uint64_t nanos = clock_->NowNanos() - start_nanos_;
    for (const NodeId node : nodes_) waits_->Add(NodeWaits::What::kRead, node, nanos);
  }
  StreamWait(const StreamWait&) = delete;
  StreamWait& operator=(const StreamWait&) = delete;

 private:
  NodeWaits* const waits_;
  Clock* const clock_;
  std::vector<NodeId> nodes_;
  uint64_t start_nanos_ = 0;
};

void RemoteStream::Await(const StreamRead& read) {
  if (read.done()) return;
  const PerfTimer timer(&PerfContext::remote_read_wait_nanos);
  TakeBack(read);
  const StreamWait wait(this, read);
  AwaitUnless(read, [](bool /*time_to_look*/) { return false; });
}

bool RemoteStream::Await(const StreamRead& read, int patience, std::vector<NodeId>* late) {
  if (read.done()) return true;
  const PerfTimer timer(&PerfContext::remote_read_wait_nanos);
  TakeBack(read);
  const StreamWait wait(this, read);
  PoolPace* const pace = &fabric_->pace;
  Clock* const clock = fabric_->context.clock;
  const uint64_t start = clock->NowNanos();
  const std::chrono::nanoseconds most =
      std::max(patience, 1) * (pace->Patience(NodeOperation::kRead) + kSlowestByte * read.bytes_);
  int late_looks = 0;
  AwaitUnless(read, [&](bool time_to_look) {
    if (!time_to_look || std::chrono::nanoseconds(clock->NowNanos() - start) <= most ||
        ++late_looks <= PoolPace::kLateLooks) {
      return false;
    }
    *late = Outstanding(read);
    std::vector<NodeLink*> up;
    for (const NodeId node : *late) {
      if (fabric_->link(node)->alive()) up.push_back(fabric_->link(node));
    }
    if (up.size() < late->size()) {
      for (NodeLink* const link : up) pace->NoteLate(link);
      return true;
    }
    const bool again = late_looks > PoolPace::kLateLooks + 1;
    if (patience > 0 && !up.empty() && pace->MayHedge(up, again)) return true;
    late->clear();
    return false;
  });
  return late->empty();
}

void RemoteStream::TakeBack(const StreamRead& read) {
  ReadCarrier::Work work;
  if (read.carried_ && carrier_->GiveBack(read, &work)) StartParts(work.parts, work.read);
}

std::vector<NodeId> RemoteStream::Outstanding(const StreamRead& read) {
  std::vector<NodeId> nodes;
  MutexLock lock(&mutex_);
  for (const Slot& slot : slots_) {
    if (slot.read.get() != &read) continue;
    const NodeId node = slot.link->id();
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
  }
  return nodes;
}

template <typename Stop>
void RemoteStream::AwaitUnless(const StreamRead& read, const Stop& stop) {
  SpinWait pause(fabric_->context.clock);
  const Deadline deadline = fabric_->context.OperationDeadline();
  while (!read.done() && !stop(pause.TimeToCheckClock())) {
    // A thread that holds the mutex posts or polls, and takes what has arrived for all.
    if (mutex_.TryLock()) {
      MutexLock lock(&mutex_, std::adopt_lock);
      Poll();
      if (!read.done() && pause.TimeToCheckClock()) AbandonFor(read, deadline.Expired());
    }
    if (!read.done()) pause.Pause();
  }
}

void RemoteStream::AbandonFor(const StreamRead& read, bool late) {
  for (const Slot& slot : slots_) {
    if (slot.read.get() != &read) continue;
    // Ends this slot, and all others of the node.
    if (slot.link->cut_off()) {
      const Status why = slot.link->CheckUp();
      Abandon(slot.link,
              why.ok() ? Status::Unavailable(slot.link->address() + ": connection lost") : why);
    } else if (late) {
      Abandon(slot.link, Status::TimedOut(slot.link->address() + ": a read did not end"));
    }
  }
}

}  // namespace nacre::pool
