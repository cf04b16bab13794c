#include "rdma/tcp/connection.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "rdma/tcp/io_thread.h"

namespace nacre::rdma {

namespace {

/// Read at a time besides what goes into place.
constexpr size_t kScratchBytes = 64 << 10;
/// The scratch size in bulk traffic: a payload's last bytes, a header, and little of the next
/// payload.
constexpr size_t kBulkScratchBytes = 2 << 10;
constexpr int kVectorsMax = 64;

Session::Parts Announcing(Session::Parts parts, std::atomic<bool>* broken) {
  parts.broken = broken;
  return parts;
}

}  // namespace

TcpConnection::TcpConnection(Parts parts)
    : socket_(std::move(parts.socket)),
      peer_(std::move(parts.peer)),
      io_thread_(parts.io_thread),
      refusals_(parts.refusals),
      control_(parts.session.depths.control),
      tls_(std::move(parts.tls)),
      session_(Announcing(parts.session, &broken_)),
      interest_(EPOLLIN) {}

Status TcpConnection::Post(const TcpRequest& request) {
  MutexLock lock(&mutex_);
  const bool is_message =
      request.opcode == Opcode::kSend || request.opcode == Opcode::kWriteWithImm;
  if (is_message && session_.open() && !session_.MaySendMessage()) {
    // The peer may have told by now that it consumed some.
    Read();
    Send();
    EndTurn();
    if (session_.open() && !session_.MaySendMessage()) {
      return Status::Busy(peer_ + ": takes no messages");
    }
  }
  session_.Post(request);
  if ((request.flags & kMore) == 0) {
    Send();
    EndTurn();
  }
  return Status::OK();
}

void TcpConnection::Flush() {
  MutexLock lock(&mutex_);
  Send();
  EndTurn();
}

void TcpConnection::PostReceive(uint64_t id, const LocalBuffer& buffer) {
  MutexLock lock(&mutex_);
  session_.PostReceive(id, buffer);
  session_.FillOutbox();  // The peer may wait for room.
  if (session_.open() && session_.outbox()->empty()) return;
  Send();
  EndTurn();
}

void TcpConnection::TakeTurn() {
  MutexLock lock(&mutex_);
  Read();
  Send();
  EndTurn();
}

uint64_t TcpConnection::receives_outstanding() {
  MutexLock lock(&mutex_);
  return session_.receives_outstanding();
}

void TcpConnection::Close() {
  {
    MutexLock lock(&mutex_);
    session_.Detach();
    closed_ = true;
    silent_periods_ = 0;
    EndTurn();
  }
  io_thread_->Retire(this);
}

ssize_t TcpConnection::Receive(iovec* vectors, size_t count) {
  // The kernel takes one vector by itself sooner than a message of one.
  if (count == 1) return recv(socket_.get(), vectors->iov_base, vectors->iov_len, MSG_DONTWAIT);
  msghdr message{};
  message.msg_iov = vectors;
  message.msg_iovlen = count;
  return recvmsg(socket_.get(), &message, MSG_DONTWAIT);
}

bool TcpConnection::WantsToSend() {
  if (session_.broken()) return false;
  return !session_.outbox()->empty() || (tls_ != nullptr && tls_->wants_to_send());
}

bool TcpConnection::MayKeep() {
  if (!session_.open()) return false;
  if (session_.awaited() > 0) return true;
  return !control_ && session_.receives_outstanding() == 0 && !WantsToSend();
}

void TcpConnection::Read() {
  // What a broken session is told is dropped, whatever it is.
  if (tls_ != nullptr && session_.open()) {
    TlsStream::Ahead ahead;
    ReadBytes(&ahead);
  } else {
    ReadBytes(nullptr);
  }
}

void TcpConnection::ReadBytes(TlsStream::Ahead* ahead) {
  // This is not initialised, as only bytes that the kernel wrote are read.
  char scratch[kScratchBytes];
  // Epoll knows nothing of these.
  const auto held = [&]() REQUIRES(mutex_) {
    return ahead != nullptr && (ahead->holds_bytes() || tls_->has_pending());
  };
  for (size_t taken = 0; (taken < kTurnBytes || held()) && !ended_;) {
    if (ahead != nullptr && !session_.open()) return;
    size_t place_size = 0;
    const Session::Turn turn(&session_);
    char* const place = session_.open() ? session_.reader().place(&place_size) : nullptr;
    if (place == nullptr) place_size = 0;
    const size_t scratch_size = session_.reader().bulk() ? kBulkScratchBytes : kScratchBytes;
    iovec vectors[2] = {{.iov_base = place, .iov_len = place_size},
                        {.iov_base = scratch, .iov_len = scratch_size}};
    iovec* const first = place == nullptr ? &vectors[1] : &vectors[0];
    ssize_t received;
    if (ahead != nullptr) {
      ahead->closed = taken >= kTurnBytes;
      received = tls_->Receive(first->iov_base, first->iov_len, ahead);
    } else {
      received = Receive(first, place == nullptr ? 1 : 2);
    }
    if (received < 0 && errno == EINTR) continue;
    if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (received <= 0) {
      if (received < 0 && errno == EBADMSG) refusals_->Malformed(peer_, "no TLS of this pool");
      ended_ = true;
      if (received == 0 && session_.open()) peer_hung_up_.store(true, std::memory_order_release);
      session_.PeerGone();
      return;
    }
    const auto size = static_cast<size_t>(received);
    taken += size;
    if (session_.open()) moved_ += size;  // What is dropped is no progress.
    const size_t in_place = std::min(size, place_size);
    if (in_place > 0) session_.Advance(in_place);
    // What a broken session is told is dropped.
    if (size > in_place) session_.Take(scratch, size - in_place);
    // TLS hands out one record at a time.
    if (ahead == nullptr ? size < place_size + scratch_size : ahead->drained && !held()) return;
  }
}

ssize_t TcpConnection::SendBytes(iovec* vectors, int count) {
  constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
  if (count == 1) return send(socket_.get(), vectors->iov_base, vectors->iov_len, kFlags);
  msghdr message{};
  message.msg_iov = vectors;
  message.msg_iovlen = static_cast<size_t>(count);
  return sendmsg(socket_.get(), &message, kFlags);
}

void TcpConnection::Send() {
  Outbox* const outbox = session_.outbox();
  const size_t step = tls_ == nullptr ? kTurnBytes : TlsStream::kRecordBytes;
  for (size_t sent_bytes = 0; sent_bytes < kTurnBytes && !session_.broken();) {
    session_.FillOutbox();
    iovec vectors[kVectorsMax];
    const int count = outbox->Gather(vectors, kVectorsMax, step);
    if (count == 0) break;
    const ssize_t sent = tls_ != nullptr ? tls_->Send(vectors, count) : SendBytes(vectors, count);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)) break;
    if (sent < 0) {
      // What the peer said before it went comes first.
      while (!ended_ && session_.open()) {
        const uint64_t before = moved_;
        Read();
        if (moved_ == before) break;
      }
      session_.PeerGone();
      break;
    }
    const auto size = static_cast<size_t>(sent);
    outbox->Sent(size);
    moved_ += size;
    sent_bytes += size;
  }
  session_.AfterSending();
}

void TcpConnection::EndTurn() {
  awaits_.store(session_.awaited() > 0, std::memory_order_relaxed);
  if (session_.broken() && !shut_) {
    shut_ = true;
    if (session_.malformed()) refusals_->Malformed(peer_, "a frame that makes no sense");
    // What arrives is read on, and dropped: closing a socket that holds unread bytes would make
    // the peer's system drop what was sent to it.
    shutdown(socket_.get(), SHUT_WR);
  }
  // A thread that polls with nothing outstanding waits for something else: the I/O thread is
  // faster.
  if (owned() && !MayKeep()) owned_.store(false, std::memory_order_relaxed);
  SetInterest();
}

void TcpConnection::SetInterest() {
  if (!watched_) return;
  if (ended_) {
    // Hang-ups are reported whatever the interest is, and without end.
    watched_ = false;
    io_thread_->Unwatch(this);
    return;
  }
  uint32_t wanted = 0;
  if (!owned_.load(std::memory_order_relaxed)) {
    wanted = EPOLLIN;
    if (WantsToSend()) wanted |= EPOLLOUT;
  }
  if (wanted == interest_) return;
  interest_ = wanted;
  io_thread_->SetInterest(this, wanted);
}

void TcpConnection::Own() {
  owned_.store(true, std::memory_order_relaxed);
  SetInterest();
  io_thread_->WatchOwned(this);
}

void TcpConnection::ServeAsOwner() {
  if (!awaits_.load(std::memory_order_relaxed)) return;
  if (!mutex_.TryLock()) return;
  if (session_.open() && session_.awaited() > 0) {
    if (!owned_.load(std::memory_order_relaxed)) Own();
    owner_turns_.fetch_add(1, std::memory_order_relaxed);
    Read();
    Send();
    EndTurn();
  }
  mutex_.Unlock();
}

bool TcpConnection::BeginOwnersWait(int* fd, short* events) {
  if (!awaits_.load(std::memory_order_relaxed)) return false;
  MutexLock lock(&mutex_);
  if (!session_.open() || session_.awaited() == 0) return false;
  owner_waits_.store(true, std::memory_order_relaxed);
  if (!owned_.load(std::memory_order_relaxed)) Own();
  *fd = socket_.get();
  *events = WantsToSend() ? POLLIN | POLLOUT : POLLIN;
  return true;
}

void TcpConnection::GiveBack() {
  MutexLock lock(&mutex_);
  owned_.store(false, std::memory_order_relaxed);
  SetInterest();
}

void TcpConnection::TakeEvents(uint32_t events) {
  MutexLock lock(&mutex_);
  // An event from before the connection was owned is its owner's; a hang-up is told to both.
  if (owned_.load(std::memory_order_relaxed) && (events & (EPOLLHUP | EPOLLERR)) == 0) return;
  Read();
  Send();
  EndTurn();
}

void TcpConnection::Tick() {
  const uint32_t turns = owner_turns_.load(std::memory_order_relaxed);
  const bool idle = std::exchange(turns_at_tick_, turns) == turns;
  if (owned() && idle && !owner_waits_.load(std::memory_order_relaxed)) GiveBack();
}

void TcpConnection::Sweep(int periods_max) {
  MutexLock lock(&mutex_);
  const bool silent = std::exchange(moved_at_sweep_, moved_) == moved_;
  silent_periods_ = silent ? silent_periods_ + 1 : 0;
  if (silent) session_.outbox()->Trim();
  if (session_.broken()) return;
  if (session_.awaited() == 0 && session_.outbox()->empty()) {
    silent_periods_ = 0;
  } else if (silent_periods_ > periods_max) {
    session_.PeerGone();
    EndTurn();
  }
}

bool TcpConnection::finished() {
  MutexLock lock(&mutex_);
  return closed_ && (ended_ || silent_periods_ > kLingerPeriods);
}

}  // namespace nacre::rdma
