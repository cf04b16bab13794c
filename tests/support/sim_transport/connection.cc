#include "tests/support/sim_transport/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "util/hash.h"

namespace nacre::rdma {

namespace {

constexpr uint32_t kAtomicBytes = 8;
/// Requests of fewer bytes take place at once.
constexpr uint32_t kSplitBytes = 64;
/// A message whose receiver is not ready is tried again, for so long.
constexpr uint64_t kNotReadyRetryNanos = 20'000;
constexpr uint64_t kNotReadyNanos = 200'000'000;
/// A process that goes on takes within such a time what has waited in its sockets.
constexpr uint64_t kAdmittedNanos = 1'000'000'000;

enum Recorded : uint64_t { kPosted = 0x100, kExecuted = 0x200, kBroken = 0x300 };

bool IsAtomic(Opcode opcode) {
  return opcode == Opcode::kCompareSwap || opcode == Opcode::kFetchAdd;
}
bool IsWrite(Opcode opcode) { return opcode == Opcode::kWrite || opcode == Opcode::kWriteWithImm; }
bool IsMessage(Opcode opcode) { return opcode == Opcode::kSend || opcode == Opcode::kWriteWithImm; }
uint32_t BytesOf(const SimRequest& request) {
  return IsAtomic(request.opcode) ? kAtomicBytes : request.local.size;
}
bool IsLocal(const LocalBuffer& buffer) {
  return buffer.region != nullptr && static_cast<const SimRegion*>(buffer.region)->Contains(buffer);
}
const char* SourceOf(const SimRequest& request) {
  return request.payload.empty() ? request.local.data : request.payload.data();
}

}  // namespace

SimEnd::SimEnd(SimNetwork* network, SimHost host, QueueDepths depths, std::shared_ptr<SimKeys> keys,
               std::string peer_name)
    : network_(network),
      host_(host),
      depths_(depths),
      keys_(std::move(keys)),
      peer_name_(std::move(peer_name)) {}

void SimEnd::Attach(QueuePair* queue_pair, SimCompletionQueue* send_queue,
                    SimCompletionQueue* receive_queue) {
  queue_pair_ = queue_pair;
  send_queue_ = send_queue;
  receive_queue_ = receive_queue;
}

void SimEnd::At(uint64_t nanos, void (SimEnd::*event)(uint64_t), uint64_t number) {
  network_->simulation()->At(
      nanos, [self = shared_from_this(), event, number] { (self.get()->*event)(number); });
}

// ---- Posting ------------------------------------------------------------------------------------

Status SimEnd::Post(SimRequest request) {
  if (request.opcode == Opcode::kSend && request.local.size > Device::kMaxSendBytes) {
    return Status::InvalidArgument("a SEND of " + std::to_string(request.local.size) +
                                   " bytes; at most " + std::to_string(Device::kMaxSendBytes) +
                                   " are possible");
  }
  if (request.opcode == Opcode::kWrite) network_->Writing(host_, request.local.size);
  network_->simulation()->Yield();
  const uint64_t number = end_number();
  if (!send_queue_->HasRoom() || number - 1 - retired_ >= static_cast<uint64_t>(depths_.send)) {
    return Status::Busy(peer_name_ + ": the queue for requests is full");
  }
  send_queue_->Promise();
  if (broken_) {
    executed_ = ++first_;
    Complete(request,
             std::exchange(gone_unreported_, false) ? CompletionCode::kPeerGone
                                                    : CompletionCode::kFlushed,
             number);
    return Status::OK();
  }
  network_->simulation()->Record(kPosted | static_cast<uint64_t>(request.opcode),
                                 request.remote.address ^ request.local.size);
  if ((request.local.size > 0 && !IsLocal(request.local)) ||
      (IsAtomic(request.opcode) && request.local.size < kAtomicBytes)) {
    request.code = CompletionCode::kLocalError;
  }
  requests_.push_back(std::move(request));
  Depart(number);
  network_->Posted(host_);
  return Status::OK();
}

Status SimEnd::PostRecv(uint64_t id, LocalBuffer to) {
  if (!receive_queue_->HasRoom() || receives_.size() >= static_cast<size_t>(depths_.receive)) {
    return Status::Busy(peer_name_ + ": the queue for receives is full");
  }
  receive_queue_->Promise();
  if (broken_) {
    CompleteReceive({id, to}, Opcode::kRecv, CompletionCode::kFlushed, 0, 0);
  } else {
    receives_.push_back({id, to});
  }
  return Status::OK();
}

// ---- On the way there ---------------------------------------------------------------------------

void SimEnd::Depart(uint64_t number) {
  Simulation* const simulation = network_->simulation();
  const SimRequest& request = Numbered(number);
  const uint64_t bytes = request.opcode == Opcode::kRead ? 0 : BytesOf(request);
  const uint64_t arrival = Now() + network_->Latency(host_, peer_host_, bytes);
  last_arrival_ = std::max(last_arrival_ + 1, arrival);
  const bool splits = request.local.size >= kSplitBytes &&
                      (request.opcode == Opcode::kRead || IsWrite(request.opcode));
  if (splits && simulation->OneIn(2)) {
    const uint64_t early = Now() + simulation->Uniform(last_arrival_ - Now());
    At(early, &SimEnd::ArrivePartly, number);
  }
  At(last_arrival_, &SimEnd::Arrive, number);
}

void SimEnd::ArrivePartly(uint64_t number) {
  const std::shared_ptr<SimEnd> peer = peer_.lock();
  if (number != executed_ || number >= end_number() || failed_ || peer == nullptr ||
      peer->closed_ || peer->broken_ || network_->blocked(host_, peer_host_) ||
      network_->held(peer_host_)) {
    return;
  }
  SimRequest& request = Numbered(number);
  const bool reads = request.opcode == Opcode::kRead;
  if (request.code != CompletionCode::kSuccess || (reads && closed_)) return;
  char* const place = peer->keys_->Find(request.remote, request.local.size,
                                        reads ? Access::kRemoteReadOnly : Access::kRemoteAll);
  if (place == nullptr || request.early_end != 0) return;
  // Whole words, and never the last, which becomes visible after all others.
  const uint32_t words = request.local.size / 8 - 1;
  Simulation* const simulation = network_->simulation();
  // As a rule from the beginning on, which no adapter promises.
  const uint64_t first = simulation->OneIn(4) ? simulation->Uniform(words) : 0;
  const auto begin = static_cast<uint32_t>(first) * 8;
  const auto end = begin + static_cast<uint32_t>(simulation->Uniform(words - begin / 8) + 1) * 8;
  if (!reads) {
    std::memcpy(place + begin, SourceOf(request) + begin, end - begin);
    return;
  }
  request.payload.resize(request.local.size);
  std::memcpy(request.payload.data() + begin, place + begin, end - begin);
  request.early_begin = begin;
  request.early_end = end;
}

void SimEnd::Arrive(uint64_t number) {
  // It may have come before, or not be there any more.
  if (number != executed_ || number >= end_number() || failed_) return;
  if (network_->blocked(host_, peer_host_)) {
    if (closed_) requests_.clear();  // They are not sent again.
    return GiveUpLater(number);
  }
  if (network_->held(peer_host_)) return;
  const std::shared_ptr<SimEnd> peer = peer_.lock();
  SimRequest& request = Numbered(number);
  if (request.code == CompletionCode::kSuccess) {
    // As a rule this end hears of it before its patience ends.
    if (peer == nullptr || peer->closed_ || peer->broken_) return GiveUpLater(number);
    if (IsMessage(request.opcode) && !PeerIsReady(number, *peer)) return;
    Execute(&request, peer.get());
  }
  ++executed_;
  if (request.code != CompletionCode::kSuccess) {
    failed_ = true;
    if (request.code != CompletionCode::kLocalError && peer != nullptr && !closed_) {
      peer->peer_told_ = true;
      peer->Break(CompletionCode::kFlushed);
    }
  }
  if (!closed_) return Return(number);
  requests_.pop_front();
  ++first_;
}

bool SimEnd::PeerIsReady(uint64_t number, const SimEnd& peer) {
  if (!peer.receives_.empty()) {
    if (std::exchange(not_ready_since_, 0) != 0) {
      // Those behind it have come in vain.
      for (uint64_t next = number + 1; next < end_number(); ++next) Depart(next);
    }
    return true;
  }
  if (not_ready_since_ == 0) not_ready_since_ = Now();
  if (Now() - not_ready_since_ < kNotReadyNanos) {
    At(Now() + kNotReadyRetryNanos, &SimEnd::Arrive, number);
    return false;
  }
  Numbered(number).code = CompletionCode::kReceiverNotReady;
  return true;
}

void SimEnd::Execute(SimRequest* request, SimEnd* peer) {
  if (request->code != CompletionCode::kSuccess) return;
  if (IsAtomic(request->opcode)) {
    ExecuteAtomic(request, *peer);
  } else if (request->opcode == Opcode::kRead) {
    ExecuteRead(request, *peer);
  } else {
    if (IsWrite(request->opcode)) ExecuteWrite(request, *peer);
    if (IsMessage(request->opcode) && request->code == CompletionCode::kSuccess) {
      ExecuteMessage(request, peer);
    }
  }
  const char* const bytes = SourceOf(*request);
  network_->simulation()->Record(
      kExecuted | static_cast<uint64_t>(request->opcode),
      bytes == nullptr || closed_ ? 0 : Hash64(Slice(bytes, BytesOf(*request))));
}

void SimEnd::ExecuteRead(SimRequest* request, const SimEnd& peer) {
  const uint32_t size = request->local.size;
  if (size == 0 || closed_) return;
  const char* const from = peer.keys_->Find(request->remote, size, Access::kRemoteReadOnly);
  if (from == nullptr) {
    request->code = CompletionCode::kRemoteAccessError;
    return;
  }
  request->payload.resize(size);
  std::memcpy(request->payload.data(), from, request->early_begin);
  std::memcpy(request->payload.data() + request->early_end, from + request->early_end,
              size - request->early_end);
}

void SimEnd::ExecuteWrite(SimRequest* request, const SimEnd& peer) {
  const uint32_t size = request->local.size;
  if (size == 0) return;
  char* const to = peer.keys_->Find(request->remote, size, Access::kRemoteAll);
  if (to == nullptr) {
    request->code = CompletionCode::kRemoteAccessError;
    return;
  }
  std::memcpy(to, SourceOf(*request), size);
}

void SimEnd::ExecuteAtomic(SimRequest* request, const SimEnd& peer) {
  char* const place = peer.keys_->Find(request->remote, kAtomicBytes, Access::kRemoteAll);
  if (place == nullptr || request->remote.address % kAtomicBytes != 0) {
    request->code = CompletionCode::kRemoteAccessError;
    return;
  }
  uint64_t before = 0;
  std::memcpy(&before, place, sizeof(before));
  uint64_t after = before;
  if (request->opcode == Opcode::kFetchAdd) {
    after += request->first_operand;
  } else if (before == request->first_operand) {
    after = request->second_operand;
  }
  std::memcpy(place, &after, sizeof(after));
  request->payload.resize(kAtomicBytes);
  std::memcpy(request->payload.data(), &before, sizeof(before));
}

void SimEnd::ExecuteMessage(SimRequest* request, SimEnd* peer) {
  const Receive receive = peer->receives_.front();
  peer->receives_.pop_front();
  const uint32_t size = request->local.size;
  if (request->opcode == Opcode::kWriteWithImm) {
    peer->CompleteReceive(receive, Opcode::kRecvWithImm, CompletionCode::kSuccess, size,
                          request->immediate);
    return;
  }
  if (size > 0 && (size > receive.buffer.size || !IsLocal(receive.buffer))) {
    peer->CompleteReceive(receive, Opcode::kRecv, CompletionCode::kLocalError, size, 0);
    request->code = CompletionCode::kRemoteAccessError;
    return;
  }
  if (size > 0) std::memcpy(receive.buffer.data, SourceOf(*request), size);
  peer->CompleteReceive(receive, Opcode::kRecv, CompletionCode::kSuccess, size, 0);
}

// ---- On the way back ----------------------------------------------------------------------------

void SimEnd::Return(uint64_t number) {
  const SimRequest& request = Numbered(number);
  const uint64_t bytes = request.opcode == Opcode::kRead ? request.local.size : 0;
  last_answer_ = std::max(last_answer_ + 1, Now() + network_->Latency(peer_host_, host_, bytes));
  At(last_answer_, &SimEnd::Answer, number);
}

void SimEnd::Answer(uint64_t number) {
  if (closed_ || broken_ || number != first_ || number >= executed_) return;
  if (network_->blocked(peer_host_, host_)) return GiveUpLater(number);
  const SimRequest request = std::move(requests_.front());
  requests_.pop_front();
  ++first_;
  const bool brings = request.opcode == Opcode::kRead || IsAtomic(request.opcode);
  if (brings && request.code == CompletionCode::kSuccess && !request.payload.empty()) {
    std::memcpy(request.local.data, request.payload.data(), request.payload.size());
  }
  if (request.code == CompletionCode::kSuccess) Count(request);
  Complete(request, request.code, number);
  if (request.code != CompletionCode::kSuccess) Break(CompletionCode::kFlushed);
}

void SimEnd::Count(const SimRequest& request) {
  TrafficCounters* const traffic = &keys_->traffic;
  if (request.opcode == Opcode::kRead) {
    ++traffic->reads;
    traffic->bytes_read += request.local.size;
  } else if (!IsAtomic(request.opcode)) {
    ++traffic->writes;
    traffic->bytes_written += request.local.size;
  }
}

void SimEnd::GiveUpLater(uint64_t number) {
  const auto patience = static_cast<uint64_t>(network_->options().patience.count());
  network_->simulation()->At(Now() + patience,
                             [self = shared_from_this(), number, resumed = resumed_] {
                               if (self->closed_ || self->resumed_ != resumed) return;
                               if (number < self->first_ || number >= self->end_number()) return;
                               self->Break(CompletionCode::kPeerGone);
                             });
}

void SimEnd::Resume() {
  ++resumed_;
  if (closed_ || broken_) return TellPeerLater();
  for (uint64_t number = executed_; number < end_number() && !failed_; ++number) Depart(number);
  const std::shared_ptr<SimEnd> peer = peer_.lock();
  for (uint64_t number = first_; number < executed_; ++number) {
    SimRequest& request = Numbered(number);
    // A read that is retransmitted for want of an answer is carried out once more, as reliable
    // connections do; other requests are recognised by their numbers.
    if (request.opcode == Opcode::kRead && request.code == CompletionCode::kSuccess &&
        peer != nullptr && !peer->closed_ && !peer->broken_) {
      request.early_begin = request.early_end = 0;
      ExecuteRead(&request, *peer);
    }
    Return(number);
  }
}

void SimEnd::Admitted() {
  last_arrival_ = std::max(last_arrival_, Now() + network_->simulation()->Uniform(kAdmittedNanos));
  for (uint64_t number = executed_; number < end_number() && !failed_; ++number) Depart(number);
  if (closed_ || broken_) TellPeerLater();
}

void SimEnd::Doubt() {
  if (closed_ || broken_ || !depths_.control) return;
  const auto patience = static_cast<uint64_t>(network_->options().patience.count());
  const uint64_t when = Now() + patience + network_->simulation()->Uniform(patience / 2);
  network_->simulation()->At(when, [self = shared_from_this(), resumed = resumed_] {
    if (!self->closed_ && self->resumed_ == resumed) self->Break(CompletionCode::kPeerGone);
  });
}

// ---- The end ------------------------------------------------------------------------------------

void SimEnd::Detach() {
  // Those that wait for their answers have taken place.
  for (size_t i = 0; i < requests_.size(); ++i) send_queue_->Unpromise();
  for (; first_ < executed_; ++first_) requests_.pop_front();
  for (SimRequest& request : requests_) {
    const bool brings = IsWrite(request.opcode) || request.opcode == Opcode::kSend;
    if (!brings || request.code != CompletionCode::kSuccess || request.local.size == 0) continue;
    request.payload.assign(request.local.data, request.local.data + request.local.size);
  }
  Close();
}

void SimEnd::Die(bool told) {
  if (closed_) return;
  silent_ = !told;
  for (; first_ < executed_; ++first_) requests_.pop_front();
  requests_.resize(network_->simulation()->Uniform(requests_.size() + 1));
  Close();
}

void SimEnd::Close() {
  closed_ = true;
  queue_pair_ = nullptr;
  if (receive_queue_ != nullptr) {
    for (size_t i = 0; i < receives_.size(); ++i) receive_queue_->Unpromise();
  }
  receives_.clear();
  TellPeerLater();
}

void SimEnd::TellPeerLater() {
  if (peer_told_ || silent_ || (gave_up_ && !closed_)) return;
  // The peer hears of the end after everything that was sent before it.
  const uint64_t heard = Now() + network_->Latency(host_, peer_host_, 0);
  At(std::max(last_arrival_ + 1, heard), &SimEnd::TellPeer, 0);
}

void SimEnd::TellPeer(uint64_t /*unused*/) {
  const std::shared_ptr<SimEnd> peer = peer_.lock();
  if (peer_told_ || peer == nullptr || network_->blocked(host_, peer_host_)) return;
  if (network_->held(peer_host_)) return;  // Behind what waits there.
  peer_told_ = true;
  peer->PeerClosed();
}

void SimEnd::PeerClosed() {
  if (closed_ || broken_) return;
  peer_told_ = true;
  peer_hung_up_ = true;
  Break(CompletionCode::kPeerGone);
}

void SimEnd::Break(CompletionCode first_code) {
  if (broken_ || closed_) return;
  broken_ = true;
  gave_up_ = first_code == CompletionCode::kPeerGone;
  network_->simulation()->Record(kBroken, static_cast<uint64_t>(first_code));
  if (network_->simulation()->logs()) {
    network_->simulation()->Log(
        fmt::format("(network) process {}'s end of a connection to process {} breaks: {}{}", host_,
                    peer_host_, ToString(first_code), depths_.control ? ", of control" : ""));
  }
  gone_unreported_ = requests_.empty() && first_code == CompletionCode::kPeerGone;
  CompletionCode code = first_code;
  while (!requests_.empty()) {
    const SimRequest request = std::move(requests_.front());
    requests_.pop_front();
    Complete(request, code, first_++);
    code = CompletionCode::kFlushed;
  }
  executed_ = first_;
  for (const Receive& receive : std::exchange(receives_, {})) {
    CompleteReceive(receive, Opcode::kRecv, CompletionCode::kFlushed, 0, 0);
  }
  TellPeerLater();
}

void SimEnd::Complete(const SimRequest& request, CompletionCode code, uint64_t number) {
  send_queue_->Unpromise();
  if (code == CompletionCode::kSuccess && (request.flags & kSignaled) == 0) return;
  send_queue_->Push({.id = request.id,
                     .queue_pair = queue_pair_,
                     .bytes = BytesOf(request),
                     .immediate = 0,
                     .opcode = request.opcode,
                     .code = code},
                    number);
}

void SimEnd::CompleteReceive(const Receive& receive, Opcode opcode, CompletionCode code,
                             uint32_t bytes, uint32_t immediate) {
  receive_queue_->Unpromise();
  receive_queue_->Push({.id = receive.id,
                        .queue_pair = queue_pair_,
                        .bytes = bytes,
                        .immediate = immediate,
                        .opcode = opcode,
                        .code = code},
                       0);
}

}  // namespace nacre::rdma
