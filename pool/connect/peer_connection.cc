#include "pool/connect/peer_connection.h"

#include <fmt/format.h>

#include <utility>

#include "pool/wire/control.pb.h"
#include "pool/wire/protocol.h"
#include "util/draw_id.h"

namespace nacre::pool {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// Wake-ups tell of all that happens; this bounds the damage if one is missed.
constexpr nanoseconds kPeerIdle = milliseconds(500);
/// Nothing arrives on a lifeline; the receive is there to be flushed.
constexpr uint32_t kPeerReceiveBytes = 64;

}  // namespace

class PeerConnection::Turn {
 public:
  explicit Turn(PeerConnection* connection) : connection_(connection) {}
  ~Turn() {
    if (!taken_) return;
    MutexLock lock(&connection_->mutex_);
    --connection_->in_flight_;
    connection_->turn_free_.Signal();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  Status Await(const Waiting& waiting) {
    NACRE_RETURN_IF_ERROR(connection_->AwaitTurn(waiting));
    taken_ = true;
    return Status::OK();
  }

 private:
  PeerConnection* const connection_;
  bool taken_ = false;
};

PeerConnection::PeerConnection(rdma::Device* device, Clock* clock, const std::string& address)
    : link_(&context_, kLostNode, address) {
  context_.device = device;
  context_.clock = clock;
  context_.options.slab_bytes = 0;
}

Status PeerConnection::Connect(rdma::Device* device, Clock* clock, const std::string& address,
                               Deadline deadline, std::unique_ptr<PeerConnection>* connection) {
  std::unique_ptr<PeerConnection> result(new PeerConnection(device, clock, address));
  NACRE_RETURN_IF_ERROR(result->Begin(deadline));
  *connection = std::move(result);
  return Status::OK();
}

Status PeerConnection::Begin(Deadline deadline) {
  rdma::Device* const device = context_.device;
  NACRE_RETURN_IF_ERROR(DrawId(&context_.client_id));
  NACRE_RETURN_IF_ERROR(device->CreateCompletionQueue(/*capacity=*/8, &queue_));
  NACRE_RETURN_IF_ERROR(
      device->AllocateRegion(kPeerReceiveBytes, rdma::Access::kLocalOnly, &region_));
  NACRE_RETURN_IF_ERROR(link_.ConnectLifeline(device, rdma::QueueDepths{.send = 2, .receive = 2},
                                              queue_.get(), deadline, &lifeline_));
  NACRE_RETURN_IF_ERROR(lifeline_->PostRecv(
      /*id=*/1, {.data = region_->data(), .size = kPeerReceiveBytes, .region = region_.get()}));
  thread_ = Thread("nacre-peer", [this] { Watch(); });
  return Status::OK();
}

PeerConnection::~PeerConnection() {
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_release);
  queue_->Wake();
  thread_.Join();
}

// ---- The lifeline -------------------------------------------------------------------------------

void PeerConnection::Watch() {
  while (!stopping_.load(std::memory_order_acquire)) {
    uint64_t looks = 0;
    bool look = false;
    {
      MutexLock lock(&mutex_);
      looks = looks_wanted_;
      look = looks != looks_taken_;
    }
    if (look) lifeline_->LookAtPeer();
    const bool stands = Stands();
    if (!stands) hung_up_.store(lifeline_->peer_hung_up(), std::memory_order_relaxed);
    std::vector<std::unique_ptr<RequestChannel>> closed;
    {
      MutexLock lock(&mutex_);
      looks_taken_ = looks;
      if (!stands) {
        ended_.store(true, std::memory_order_release);
        closed.swap(idle_);
        turn_free_.SignalAll();
      }
      if (look || !stands) looked_.SignalAll();
    }
    if (!stands) return;
    const Status woken = queue_->Wait(kPeerIdle);
    // A queue that cannot be waited for leaves polling.
    if (!woken.ok() && !woken.IsTimedOut()) context_.clock->SleepFor(milliseconds(10));
  }
}

bool PeerConnection::Stands() {
  bool stands = true;
  rdma::Completion completions[8];
  while (queue_->Poll(completions, 8) > 0) stands = false;
  return stands && !lifeline_->broken();
}

void PeerConnection::LookAtPeer() {
  MutexLock lock(&mutex_);
  const uint64_t mine = ++looks_wanted_;
  queue_->Wake();
  while (looks_taken_ < mine && !ended()) looked_.Wait();
}

Status PeerConnection::Lost() const { return Status::Unavailable(address() + ": connection lost"); }

// ---- Requests -----------------------------------------------------------------------------------

Status PeerConnection::Call(const Slice& request, Deadline deadline, std::string* reply,
                            bool* sent) {
  const Waiting waiting{
      .period = [&] { return deadline.Remaining(); },
      .still_wanted =
          [&] {
            if (!deadline.Expired()) return Status::OK();
            return Status::TimedOut(
                fmt::format("{}: {} requests are under way", address(), kMaxInFlight));
          },
  };
  const auto exchange = [&](RequestChannel* channel, control::Request* message,
                            control::Reply* answer) {
    return channel->Call(message, deadline, answer);
  };
  return CallOn(
      request, waiting, [&] { return deadline; }, exchange, reply, sent);
}

Status PeerConnection::CallAndSleep(const Slice& request, nanoseconds period,
                                    const std::function<Status()>& still_wanted, std::string* reply,
                                    bool* sent) {
  const Waiting waiting{.period = [&] { return period; }, .still_wanted = still_wanted};
  const auto exchange = [&](RequestChannel* channel, control::Request* message,
                            control::Reply* answer) {
    return channel->CallAndSleep(message, period, still_wanted, answer);
  };
  return CallOn(
      request, waiting, [&] { return context_.OperationDeadline(); }, exchange, reply, sent);
}

Status PeerConnection::CallOn(const Slice& request, const Waiting& waiting,
                              const std::function<Deadline()>& connect_deadline,
                              const Exchange& exchange, std::string* reply, bool* sent) {
  *sent = false;
  Turn turn(this);
  NACRE_RETURN_IF_ERROR(turn.Await(waiting));
  control::Request message;
  message.set_member_request(request.data(), request.size());
  control::Reply answer;
  while (true) {
    std::unique_ptr<RequestChannel> channel = TakeIdle();
    const bool kept = channel != nullptr;
    if (!kept) {
      NACRE_RETURN_IF_ERROR(RequestChannel::Open(&context_, &link_, connect_deadline(), &channel));
    }
    Status s = exchange(channel.get(), &message, &answer);
    *sent = channel->sent();
    if (s.ok()) {
      GiveIdle(std::move(channel));
      break;
    }
    // A channel that was kept may have ended unnoticed.
    if (!kept || *sent || !s.IsUnavailable() || ended()) return s;
  }
  Status s = GetStatus(answer);
  if (s.ok()) *reply = std::move(*answer.mutable_member_reply());
  return s;
}

Status PeerConnection::AwaitTurn(const Waiting& waiting) {
  MutexLock lock(&mutex_);
  while (true) {
    if (ended()) return Lost();
    if (in_flight_ < kMaxInFlight) break;
    Status wanted;
    {
      MutexUnlock unlock(&mutex_);
      wanted = waiting.still_wanted();
    }
    NACRE_RETURN_IF_ERROR(std::move(wanted));
    if (in_flight_ == kMaxInFlight && !ended()) turn_free_.WaitFor(waiting.period());
  }
  ++in_flight_;
  return Status::OK();
}

std::unique_ptr<RequestChannel> PeerConnection::TakeIdle() {
  MutexLock lock(&mutex_);
  while (!idle_.empty()) {
    std::unique_ptr<RequestChannel> channel = std::move(idle_.back());
    idle_.pop_back();
    if (!channel->broken()) return channel;
  }
  return nullptr;
}

void PeerConnection::GiveIdle(std::unique_ptr<RequestChannel> channel) {
  if (channel->broken()) return;
  MutexLock lock(&mutex_);
  if (!ended()) idle_.push_back(std::move(channel));
}

}  // namespace nacre::pool
