#include "rdma/tcp/session.h"

#include <utility>

namespace nacre::rdma {

Session::Session(const Parts& parts)
    : broken_(parts.broken),
      messages_(parts.messages),
      requester_(parts.depths.send, parts.send_queue, parts.queue_pair, &outbox_, parts.counters),
      responder_(parts.depths.send, parts.regions, parts.peer_may_write, &outbox_),
      mailbox_(parts.depths.receive, parts.receive_queue, parts.queue_pair),
      reader_(this) {}

void Session::Post(const TcpRequest& request) {
  requester_.Post(request);
  if (state_ == State::kBroken) {
    requester_.Flush(std::exchange(peer_gone_unreported_, false) ? CompletionCode::kPeerGone
                                                                 : CompletionCode::kFlushed);
    return;
  }
  if (request.opcode == Opcode::kSend || request.opcode == Opcode::kWriteWithImm) {
    mailbox_.CountSent();
  }
}

void Session::PostReceive(uint64_t id, const LocalBuffer& buffer) {
  const bool fits = mailbox_.PostReceive(id, buffer);
  if (state_ == State::kBroken) {
    mailbox_.Flush();
  } else if (!fits) {
    Break(CompletionCode::kFlushed);
  }
}

void Session::Detach() {
  state_ = State::kBroken;
  outbox_.Clear();
  requester_.Forget();
  mailbox_.Forget();
}

bool Session::Take(const char* bytes, size_t size) {
  if (state_ != State::kOpen) return false;
  if (reader_.Take(bytes, size)) return true;
  Fail();
  return false;
}

void Session::BeginTurn() {
  if (state_ == State::kOpen && !responder_.BeginTurn()) Fail();
}

void Session::Fail() {
  if (requester_.failed()) {
    Break(requester_.failure());
  } else if (mailbox_.failed()) {
    Break(CompletionCode::kFlushed);
  } else if (responder_.failed()) {
    state_ = State::kFailing;
    AfterSending();
  } else {
    malformed_ = true;
    Break(CompletionCode::kPeerGone);
  }
}

bool Session::TakeFrame(const FrameHeader& header, const char* payload) {
  return mailbox_.TakeConsumed(header.consumed) && Dispatch(header, payload);
}

bool Session::Dispatch(const FrameHeader& header, const char* payload) {
  switch (header.type) {
    case FrameType::kSend:
      return messages_ && TakeMessage(header, payload, header.length);
    case FrameType::kWriteWithImm:
      return responder_.Take(header, payload) &&
             TakeMessage(header, nullptr, responder_.bytes_of_write());
    case FrameType::kRead:
    case FrameType::kWrite:
    case FrameType::kCompareSwap:
    case FrameType::kFetchAdd:
      return responder_.Take(header, payload);
    case FrameType::kReadReply:
    case FrameType::kAtomicReply:
    case FrameType::kAck:
    case FrameType::kFailure:
      return requester_.Take(header, payload) && !requester_.failed();
    case FrameType::kCredit:
      return true;
  }
  return false;
}

bool Session::TakeMessage(const FrameHeader& header, const char* payload, uint32_t bytes) {
  if (header.type == FrameType::kSend) responder_.MessageTaken(header);
  return mailbox_.TakeMessage(header, payload, bytes);
}

bool Session::BeginFrame(const FrameHeader& header, char** place) {
  if (!mailbox_.TakeConsumed(header.consumed)) return false;
  if (header.type == FrameType::kReadReply) return requester_.Begin(header, place);
  return responder_.Begin(header, place);
}

bool Session::EndFrame(const FrameHeader& header, char* place_of_last, const char* last,
                       size_t size) {
  if (header.type == FrameType::kReadReply) {
    return requester_.End(header, place_of_last, last, size);
  }
  if (!responder_.End(header, place_of_last, last, size)) return false;
  return header.type != FrameType::kWriteWithImm ||
         TakeMessage(header, nullptr, responder_.bytes_of_write());
}

void Session::FillOutbox() {
  if (state_ != State::kOpen) return;
  outbox_.set_consumed(mailbox_.consumed());
  responder_.AddAck();
  requester_.Encode();
  if (!mailbox_.OwesCredit(outbox_.told_consumed())) return;
  FrameHeader credit;
  credit.type = FrameType::kCredit;
  outbox_.Add(credit, nullptr);
}

void Session::AfterSending() {
  if (state_ == State::kFailing && outbox_.empty()) Break(CompletionCode::kFlushed);
}

void Session::PeerGone() { Break(CompletionCode::kPeerGone); }

void Session::Break(CompletionCode first) {
  if (state_ == State::kBroken) return;
  state_ = State::kBroken;
  broken_->store(true, std::memory_order_release);
  outbox_.Clear();
  peer_gone_unreported_ = first == CompletionCode::kPeerGone && requester_.outstanding() == 0;
  requester_.Flush(first);
  mailbox_.Flush();
}

}  // namespace nacre::rdma
