#include "rdma/verbs/completion_queue.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cerrno>
#include <utility>

#include "rdma/verbs/queue_pair.h"

namespace nacre::rdma {

namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr int kMaxCompletions = 1 << 24;
// A round trip takes a few microseconds, a sleep through the completion channel about ten: worth
// spinning for several round trips, unless that was in vain before.
constexpr nanoseconds kSpinMin{1000};
constexpr nanoseconds kSpinMax{32'000};

}  // namespace

VerbsCompletionQueue::VerbsCompletionQueue(int capacity, int heartbeats,
                                           UniqueCompletionChannel channel,
                                           UniqueCompletionQueue queue,
                                           std::shared_ptr<CompletionSignal> signal)
    : signal_(std::move(signal)),
      channel_(std::move(channel)),
      queue_(std::move(queue)),
      capacity_(static_cast<uint64_t>(capacity)),
      ready_mask_(std::bit_ceil(capacity_) - 1),
      ready_(std::make_unique<Completion[]>(ready_mask_ + 1)),
      spin_(kSpinMin, kSpinMax),
      heartbeats_max_(static_cast<uint64_t>(heartbeats)) {}

Status VerbsCompletionQueue::Create(const Adapter& adapter, int capacity,
                                    std::unique_ptr<CompletionQueue>* queue) {
  // A heartbeat whose queue pair breaks takes room for the latter's last request as well.
  const int capacity_max = std::min(kMaxCompletions, adapter.attributes().max_cqe / 2 - 1);
  if (capacity < 1 || capacity > capacity_max) {
    return Status::InvalidArgument("a completion queue for " + std::to_string(capacity) +
                                   " completions; " + adapter.name() + " has them for 1 to " +
                                   std::to_string(capacity_max));
  }
  const int heartbeats =
      std::min(capacity / 2 + 1, (adapter.attributes().max_cqe - 2 * capacity) / 2);
  UniqueCompletionChannel channel(ibv_create_comp_channel(adapter.context()));
  if (channel == nullptr) {
    return VerbsError("ibv_create_comp_channel on " + adapter.name(), errno);
  }
  const int flags = fcntl(channel->fd, F_GETFL);
  UniqueFd event_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event_fd.valid() || flags < 0 || fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    return VerbsError("create a completion queue", errno);
  }
  UniqueCompletionQueue made(
      ibv_create_cq(adapter.context(), 2 * (capacity + heartbeats), nullptr, channel.get(), 0));
  if (made == nullptr) return VerbsError("ibv_create_cq on " + adapter.name(), errno);
  queue->reset(new VerbsCompletionQueue(capacity, heartbeats, std::move(channel), std::move(made),
                                        std::make_shared<CompletionSignal>(std::move(event_fd))));
  return Status::OK();
}

VerbsCompletionQueue::~VerbsCompletionQueue() {
  assert(std::all_of(queue_pairs_.begin(), queue_pairs_.end(),
                     [](const VerbsQueuePair* pair) { return pair == nullptr; }) &&
         "a completion queue outlives its queue pairs");
}

uint32_t VerbsCompletionQueue::Attach(VerbsQueuePair* queue_pair) {
  const auto free = std::find(queue_pairs_.begin(), queue_pairs_.end(), nullptr);
  const auto number = static_cast<uint32_t>(free - queue_pairs_.begin());
  if (free == queue_pairs_.end()) {
    queue_pairs_.push_back(queue_pair);
  } else {
    *free = queue_pair;
  }
  return number;
}

void VerbsCompletionQueue::Detach(VerbsQueuePair* queue_pair) {
  std::replace(queue_pairs_.begin(), queue_pairs_.end(), queue_pair,
               static_cast<VerbsQueuePair*>(nullptr));
  // All of the adapter's: the number may be given to another queue pair next.
  while (Collect()) {
  }
  uint64_t kept = ready_tail_;
  for (uint64_t i = ready_tail_; i != ready_head_; i++) {
    const Completion& completion = ready_[i & ready_mask_];
    if (completion.queue_pair != queue_pair) ready_[kept++ & ready_mask_] = completion;
  }
  ready_head_ = kept;
}

int VerbsCompletionQueue::Take(int max) {
  std::array<ibv_wc, kBatch> completions;
  const int count = ibv_poll_cq(get(), std::min(max, kBatch), completions.data());
  for (int i = 0; i < count; i++) {
    const ibv_wc& completion = completions[static_cast<size_t>(i)];
    VerbsQueuePair* const pair = queue_pairs_[WorkRequestId::QueuePairOf(completion.wr_id)];
    if (pair != nullptr) [[likely]]
      pair->Complete(completion);
  }
  return count;
}

int VerbsCompletionQueue::Poll(Completion* completions, int n) {
  if (signal_->Has(CompletionSignal::kAttention)) [[unlikely]]
    Attend();
  int taken = 0;
  while (taken < n && ReadyCount() > 0) {
    completions[taken++] = ready_[ready_tail_++ & ready_mask_];
  }
  if (taken == n || ReadyCount() > 0) return taken;
  out_ = completions + taken;
  room_ = n - taken;
  while (room_ > 0) {
    const int asked = std::min(room_, kBatch);
    // What it took may belong to no queue pair, or be more completions than it took.
    if (Take(asked) < asked) break;
  }
  taken = n - std::exchange(room_, 0);
  return taken;
}

bool VerbsCompletionQueue::Collect() { return Take(kBatch) > 0; }

void VerbsCompletionQueue::Attend() {
  signal_->Take(CompletionSignal::kAttention);
  // A queue pair may leave the list meanwhile only by its owner's hand, which is busy here.
  for (VerbsQueuePair* pair : queue_pairs_) {
    if (pair != nullptr) pair->Attend();
  }
}

bool VerbsCompletionQueue::TakeReason() {
  if (signal_->Has(CompletionSignal::kAttention)) [[unlikely]]
    Attend();
  const bool woken =
      signal_->Has(CompletionSignal::kWake) && signal_->Take(CompletionSignal::kWake) != 0;
  return ReadyCount() > 0 || (Collect() && ReadyCount() > 0) || woken;
}

Status VerbsCompletionQueue::Wait(nanoseconds timeout) {
  if (TakeReason() || spin_.Until([this] { return TakeReason(); }, timeout)) return Status::OK();
  return Sleep(timeout);
}

Status VerbsCompletionQueue::Sleep(nanoseconds timeout) {
  const auto start = steady_clock::now();
  std::array<pollfd, 2> entries{{{.fd = channel_->fd, .events = POLLIN, .revents = 0},
                                 {.fd = signal_->event_fd(), .events = POLLIN, .revents = 0}}};
  while (true) {
    // Invariant of CompletionSignal; and completions after the arming are told, so those before it
    // are looked for once more.
    signal_->FallAsleep();
    if (!armed_) {
      if (const int error = ibv_req_notify_cq(get(), 0); error != 0) {
        signal_->Take(CompletionSignal::kSleeping);
        return VerbsError("ibv_req_notify_cq", error);
      }
      armed_ = true;
    }
    const bool found = TakeReason();
    const nanoseconds waited = steady_clock::now() - start;
    if (!found && waited < timeout) {
      WaitForAny(entries.data(), entries.size(), timeout - waited);
    }
    signal_->Take(CompletionSignal::kSleeping);
    uint64_t tokens;
    if ((entries[1].revents & POLLIN) != 0) {
      [[maybe_unused]] const ssize_t size = read(signal_->event_fd(), &tokens, sizeof(tokens));
    }
    if (entries[0].revents != 0) {
      ibv_cq* queue = nullptr;
      void* context = nullptr;
      if (ibv_get_cq_event(channel_.get(), &queue, &context) == 0) {
        ibv_ack_cq_events(queue, 1);
        armed_ = false;
      }
    }
    if (found || TakeReason()) return Status::OK();
    if (waited >= timeout) return Status::TimedOut("no completion");
    entries[0].revents = entries[1].revents = 0;
  }
}

}  // namespace nacre::rdma
