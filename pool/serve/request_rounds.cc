#include <cassert>
#include <cstring>
#include <memory>
#include <utility>

#include "pool/serve/request_server.h"
#include "util/codes/crc32c.h"
#include "util/log.h"

namespace nacre::pool {

Status RequestServer::PostReceive(ServerConnection* connection) {
  rdma::LocalBuffer buffer{.data = scratch_->data(), .size = 64, .region = scratch_.get()};
  if (connection->kind == ConnectionKind::kRequest) {
    buffer = {.data = connection->memory->data(),
              .size = static_cast<uint32_t>(ServerConnection::kReceiveBytes),
              .region = connection->memory.get()};
  }
  return connection->queue_pair->PostRecv(IdOf(*connection, Work::kReceive), buffer);
}

void RequestServer::Malformed(ServerConnection* connection, const Status& why) {
  counters_.malformed.fetch_add(1, std::memory_order_relaxed);
  Log(options_.log, LogLevel::kWarn, "{}: closed a connection: {}", address_, why.ToString());
  CloseConnection(connection->id);
}

void RequestServer::Received(ServerConnection* connection, uint32_t bytes) {
  if (connection->kind != ConnectionKind::kRequest) {
    return Malformed(connection, Status::InvalidArgument("a request on a data connection"));
  }
  auto request = std::make_unique<control::Request>();
  // Parsed before the buffer is posted again.
  const Status decoded = DecodeRequest(Slice(connection->memory->data(), bytes), request.get());
  if (!decoded.ok()) return Malformed(connection, decoded);
  if (const Status s = PostReceive(connection); !s.ok()) return CloseConnection(connection->id);
  if (connection->phase == ServerConnection::Phase::kReplying &&
      connection->next_request == nullptr) {
    // The client saw the reply before this thread saw that it was written.
    connection->next_request = std::move(request);
    return;
  }
  if (connection->phase != ServerConnection::Phase::kIdle) {
    return Malformed(connection, Status::InvalidArgument("two requests at once"));
  }
  connection->request.Swap(request.get());
  Accepted(connection);
}

void RequestServer::Accepted(ServerConnection* connection) {
  counters_.taken.fetch_add(1, std::memory_order_relaxed);
  counters_.open.fetch_add(1, std::memory_order_relaxed);
  connection->taken_nanos = clock_->NowNanos();
  connection->phase = ServerConnection::Phase::kFetching;
  control::Request& request = connection->request;
  if (!request.has_large()) return Execute(connection);

  const uint64_t bytes = request.large().length();
  if (bytes == 0) return Malformed(connection, Status::InvalidArgument("an empty large request"));
  Status s = device_->AllocateRegion(bytes, rdma::Access::kLocalOnly, &connection->large_request);
  if (!s.ok()) return Answer(connection, s, {});
  s = connection->queue_pair->PostRead(
      IdOf(*connection, Work::kFetch),
      {.data = connection->large_request->data(),
       .size = static_cast<uint32_t>(bytes),
       .region = connection->large_request.get()},
      {.address = request.large().address(), .key = request.large().key()}, rdma::kSignaled);
  if (!s.ok()) CloseConnection(connection->id);
}

void RequestServer::Fetched(ServerConnection* connection) {
  if (connection->phase != ServerConnection::Phase::kFetching) return;
  const std::unique_ptr<rdma::MemoryRegion> fetched = std::move(connection->large_request);
  control::Request& envelope = connection->request;
  const Slice bytes(fetched->data(), envelope.large().length());
  control::Request body;
  if (Crc32c(bytes.data(), bytes.size()) != envelope.large_crc() ||
      !DecodeRequest(bytes, &body).ok() || !IsLargeBodyOf(body, envelope)) {
    return Malformed(connection, Status::InvalidArgument("a large request is damaged"));
  }
  // The reply goes where the envelope says, which the sender cannot change any more.
  *body.mutable_reply() = envelope.reply();
  body.set_wake(envelope.wake());
  envelope.Swap(&body);
  Execute(connection);
}

void RequestServer::Execute(ServerConnection* connection) {
  if (connection->credential->revoked()) return CloseConnection(connection->id);
  connection->phase = ServerConnection::Phase::kExecuting;
  const control::Request& request = connection->request;
  if (stopping()) {
    return Answer(connection, Status::Unavailable("the " + options_.kind + " is stopping"), {});
  }
  if (request.body_case() == control::Request::kFetchReply) {
    if (connection->held_reply == nullptr) {
      return Answer(connection, Status::InvalidArgument("there is no reply to fetch"), {});
    }
    const std::unique_ptr<control::Reply> held = std::move(connection->held_reply);
    return Answer(connection, GetStatus(*held), std::move(*held));
  }
  connection->held_reply.reset();
  handler_->Execute(connection);
}

void RequestServer::Answer(ServerConnection* connection, const Status& status,
                           control::Reply reply) {
  if (silent_.load(std::memory_order_acquire)) return;
  SetStatus(status, &reply);
  counters_.open.fetch_sub(1, std::memory_order_relaxed);
  if (handler_->CountsTime(connection->request)) {
    counters_.nanos.fetch_add(clock_->NowNanos() - connection->taken_nanos,
                              std::memory_order_relaxed);
  }
  const uint64_t id = connection->request.id();
  const uint64_t room = connection->request.reply().length();
  std::string frame = EncodeReplyFrame(reply, id);
  if (frame.size() > room) {
    control::Reply notice;
    notice.set_needed_bytes(frame.size());
    connection->held_reply = std::make_unique<control::Reply>(std::move(reply));
    frame = EncodeReplyFrame(notice, id);
  }
  assert(frame.size() <= room);
  connection->phase = ServerConnection::Phase::kReplying;
  if (!PostReply(connection, frame).ok()) CloseConnection(connection->id);
}

Status RequestServer::PostReply(ServerConnection* connection, const std::string& frame) {
  char* data = connection->memory->data() + ServerConnection::kReceiveBytes;
  const rdma::MemoryRegion* region = connection->memory.get();
  if (frame.size() > ServerConnection::kShortReplyBytes) {
    NACRE_RETURN_IF_ERROR(
        device_->AllocateRegion(frame.size(), rdma::Access::kLocalOnly, &connection->large_reply));
    data = connection->large_reply->data();
    region = connection->large_reply.get();
  }
  std::memcpy(data, frame.data(), frame.size());
  const rdma::LocalBuffer from{
      .data = data, .size = static_cast<uint32_t>(frame.size()), .region = region};
  const control::RemoteMemory& buffer = connection->request.reply();
  const rdma::RemoteBuffer to{.address = buffer.address() + buffer.length() - frame.size(),
                              .key = buffer.key()};
  const uint64_t id = IdOf(*connection, Work::kReply);
  if (connection->request.wake()) {
    return connection->queue_pair->PostWriteWithImm(
        id, from, to, static_cast<uint32_t>(connection->request.id()), rdma::kSignaled);
  }
  return connection->queue_pair->PostWrite(id, from, to, rdma::kSignaled);
}

void RequestServer::Answered(ServerConnection* connection) {
  connection->large_reply.reset();
  connection->phase = ServerConnection::Phase::kIdle;
  if (connection->next_request == nullptr) return;
  connection->request.Swap(connection->next_request.get());
  connection->next_request.reset();
  Accepted(connection);
}

}  // namespace nacre::pool
