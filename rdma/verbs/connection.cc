#include "rdma/verbs/connection.h"

#include <utility>

namespace nacre::rdma {

namespace {

/// A handshake needs no more than a handful.
constexpr size_t kMaxNotices = 16;

/// Nothing that was waited for comes after it.
bool IsFinal(rdma_cm_event_type type) {
  switch (type) {
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return true;
    default:
      return false;
  }
}

}  // namespace

VerbsConnection::~VerbsConnection() {
  {
    MutexLock lock(&mutex_);
    live_id_ = nullptr;
  }
  id_.reset();  // While the rest of this still stands: its last event may be on its way.
}

void VerbsConnection::Adopt(UniqueCmId id) {
  {
    MutexLock lock(&mutex_);
    live_id_ = nullptr;
  }
  id_ = std::move(id);
  fate_.store(Fate::kStands, std::memory_order_relaxed);
  MutexLock lock(&mutex_);
  notices_.clear();
  live_id_ = id_.get();
}

void VerbsConnection::OnEvent(const rdma_cm_event& event) {
  if (event.event == RDMA_CM_EVENT_DISCONNECTED && !disconnected_.load()) {
    peer_hung_up_.store(true, std::memory_order_release);
  }
  if (IsFinal(event.event)) End(Fate::kPeerGone);
  MutexLock lock(&mutex_);
  if (notices_.size() >= kMaxNotices) return;
  CmNotice notice{.type = event.event, .status = event.status};
  if (event.param.conn.private_data != nullptr) {
    notice.private_data.assign(static_cast<const char*>(event.param.conn.private_data),
                               event.param.conn.private_data_len);
  }
  notices_.push_back(std::move(notice));
  changed_.SignalAll();
}

Status VerbsConnection::Await(rdma_cm_event_type wanted, const Deadline& deadline,
                              CmNotice* notice) {
  MutexLock lock(&mutex_);
  while (true) {
    while (!notices_.empty()) {
      *notice = std::move(notices_.front());
      notices_.pop_front();
      if (notice->type == wanted || IsFinal(notice->type)) return Status::OK();
    }
    if (deadline.Expired()) return Status::TimedOut(peer_ + ": no answer in time");
    changed_.WaitFor(deadline.Remaining());
  }
}

void VerbsConnection::SetSignals(std::shared_ptr<CompletionSignal> send,
                                 std::shared_ptr<CompletionSignal> receive) {
  MutexLock lock(&mutex_);
  send_signal_ = std::move(send);
  receive_signal_ = std::move(receive);
}

void VerbsConnection::End(Fate fate) {
  Fate expected = Fate::kStands;
  fate_.compare_exchange_strong(expected, fate, std::memory_order_acq_rel);
  MutexLock lock(&mutex_);
  if (send_signal_ != nullptr) send_signal_->Set(CompletionSignal::kAttention);
  if (receive_signal_ != nullptr && receive_signal_ != send_signal_) {
    receive_signal_->Set(CompletionSignal::kAttention);
  }
}

void VerbsConnection::RemindOfHeartbeat() {
  if (!wants_heartbeats_.load(std::memory_order_relaxed) || fate() != Fate::kStands) return;
  MutexLock lock(&mutex_);
  if (send_signal_ != nullptr) send_signal_->Set(CompletionSignal::kAttention);
}

void VerbsConnection::NotifyEstablished() {
  MutexLock lock(&mutex_);
  // Fails where the connection is established by now.
  if (live_id_ != nullptr) {
    [[maybe_unused]] const int result = rdma_notify(live_id_, IBV_EVENT_COMM_EST);
  }
}

void VerbsConnection::Disconnect() {
  if (id_ == nullptr || disconnected_.exchange(true)) return;
  // Fails where the connection has ended by itself.
  [[maybe_unused]] const int result = rdma_disconnect(id_.get());
}

}  // namespace nacre::rdma
