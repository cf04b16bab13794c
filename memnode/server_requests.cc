#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

#include "memnode/server.h"
#include "pool/wire/control.pb.h"
#include "pool/wire/extent_codec.h"
#include "pool/wire/manifest_image.h"
#include "util/codes/crc32c.h"
#include "util/log.h"
#include "util/named_point.h"

namespace nacre::pool {
Status Server::PostReceive(ServerConnection* connection) {
  rdma::LocalBuffer buffer{.data = scratch_->data(), .size = 64, .region = scratch_.get()};
  if (connection->kind == ConnectionKind::kRequest) {
    buffer = {.data = connection->memory->data(),
              .size = static_cast<uint32_t>(ServerConnection::kReceiveBytes),
              .region = connection->memory.get()};
  }
  return connection->queue_pair->PostRecv(IdOf(*connection, Work::kReceive), buffer);
}

void Server::Malformed(ServerConnection* connection, const Status& why) {
  request_counters_.malformed.fetch_add(1, std::memory_order_relaxed);
  Log(options_.log, LogLevel::kWarn, "{}: closed a connection: {}", address_, why.ToString());
  Close(connection->id);
}

void Server::Received(ServerConnection* connection, uint32_t bytes) {
  if (connection->kind != ConnectionKind::kRequest) {
    return Malformed(connection, Status::InvalidArgument("a request on a data connection"));
  }
  auto request = std::make_unique<control::Request>();
  // Parsed before the buffer is posted again.
  const Status decoded = DecodeRequest(Slice(connection->memory->data(), bytes), request.get());
  if (!decoded.ok()) return Malformed(connection, decoded);
  if (const Status s = PostReceive(connection); !s.ok()) return Close(connection->id);
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

void Server::Accepted(ServerConnection* connection) {
  request_counters_.taken.fetch_add(1, std::memory_order_relaxed);
  request_counters_.open.fetch_add(1, std::memory_order_relaxed);
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
  if (!s.ok()) Close(connection->id);
}

void Server::Fetched(ServerConnection* connection) {
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

void Server::Execute(ServerConnection* connection) {
  connection->phase = ServerConnection::Phase::kExecuting;
  const control::Request& request = connection->request;
  if (stopping_.load(std::memory_order_acquire)) {
    return Answer(connection, Status::Unavailable("the node is stopping"), {});
  }
  if (request.body_case() == control::Request::kFetchReply) {
    if (connection->held_reply == nullptr) {
      return Answer(connection, Status::InvalidArgument("there is no reply to fetch"), {});
    }
    const std::unique_ptr<control::Reply> held = std::move(connection->held_reply);
    return Answer(connection, GetStatus(*held), std::move(*held));
  }
  connection->held_reply.reset();

  if (JobHeaderOf(request) != nullptr) {
    const Status s = StartJob(connection);
    if (!s.ok()) Answer(connection, s, {});
    return;
  }
  control::Reply reply;
  const Status s = ExecuteNow(connection, &reply);
  Answer(connection, s, std::move(reply));
}

Status Server::ExecuteNow(ServerConnection* connection, control::Reply* reply) {
  const control::Request& request = connection->request;
  const uint64_t client = connection->client_id;
  switch (request.body_case()) {
    case control::Request::kPing:
      return Status::OK();
    case control::Request::kDescribe:
      FillDescription(reply->mutable_description());
      return Status::OK();
    case control::Request::kGetStats:
      EncodeStats(stats(), reply->mutable_stats());
      return Status::OK();
    case control::Request::kLeaseSlabs:
      return LeaseSlabs(*connection, request.lease_slabs(), reply->mutable_slabs());
    case control::Request::kReturnSlabs: {
      const control::ReturnSlabs& slabs = request.return_slabs();
      NACRE_RETURN_IF_ERROR(databases_->CheckOwner(client, slabs.database_id()));
      NACRE_POINT("node.slabs-return");
      return region_->Return(slabs.database_id(), {slabs.offsets().begin(), slabs.offsets().end()},
                             {slabs.write_keys().begin(), slabs.write_keys().end()});
    }
    case control::Request::kReadRoot:
      LookAtOwner(request.read_root().name(), client);
      databases_->Read(request.read_root().name(), reply->mutable_database());
      reply->mutable_database()->set_destroyed(
          databases_->Destroyed(request.read_root().database_id()));
      return Status::OK();
    case control::Request::kClaimDatabase: {
      LookAtOwner(request.claim_database().name(), client);
      control::DatabaseState* state = reply->mutable_database();
      NACRE_RETURN_IF_ERROR(
          databases_->Claim(client, request.claim_database(), clock_->NowNanos(), state));
      FillSlabs(region_->SlabsOf(state->database_id()), state->mutable_slabs());
      return Status::OK();
    }
    case control::Request::kConfirmOwner:
      return databases_->Confirm(client, request.confirm_owner().database_id(), clock_->NowNanos());
    case control::Request::kWriteRoot:
      return databases_->Write(client, request.write_root());
    case control::Request::kReleaseDatabase:
      return databases_->Release(client, request.release_database());
    case control::Request::kDestroyDatabase:
      return databases_->Destroy(client, request.destroy_database());
    case control::Request::kBeginJob:
      return BeginJob(*connection, request.begin_job(), reply->mutable_job_keys());
    case control::Request::kEndJobs:
      return EndJobs(*connection, request.end_jobs());
    case control::Request::kEndConnections:
      EndConnections(client, request.end_connections());
      return Status::OK();
    case control::Request::kApplyImageUpdate:
      return ApplyImageUpdate(*connection, request.apply_image_update());
    case control::Request::kReportDatabase:
      return databases_->Report(client, request.report_database(), clock_->NowNanos(),
                                reply->mutable_directions());
    case control::Request::kSetDirections:
      return databases_->Direct(request.set_directions(), reply->mutable_directions());
    case control::Request::kListDatabases:
      databases_->List(clock_->NowNanos(), reply->mutable_databases());
      return Status::OK();
    default:
      return Status::NotSupported(
          fmt::format("request of kind {}", static_cast<int>(request.body_case())));
  }
}

void Server::Answer(ServerConnection* connection, const Status& status, control::Reply reply) {
  if (silent_.load(std::memory_order_acquire)) return;
  SetStatus(status, &reply);
  request_counters_.open.fetch_sub(1, std::memory_order_relaxed);
  if (JobHeaderOf(connection->request) == nullptr) {
    request_counters_.nanos.fetch_add(clock_->NowNanos() - connection->taken_nanos,
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
  if (!PostReply(connection, frame).ok()) Close(connection->id);
}

Status Server::PostReply(ServerConnection* connection, const std::string& frame) {
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

void Server::Answered(ServerConnection* connection) {
  connection->large_reply.reset();
  connection->phase = ServerConnection::Phase::kIdle;
  if (connection->next_request == nullptr) return;
  connection->request.Swap(connection->next_request.get());
  connection->next_request.reset();
  Accepted(connection);
}

void Server::FillDescription(control::Description* description) const {
  description->set_instance_id(instance_id_);
  description->set_region_bytes(region_->size());
  description->set_slab_bytes(region_->slab_bytes());
  description->set_domain(options_.domain);
  description->set_start_id(start_id_);
  description->set_slab_area(region_->slab_area());
  const rdma::MemoryRegion& memory = *region_->memory();
  const uint64_t piece_bytes = std::min(
      memory.piece_bytes(), options_.piece_bytes != 0 ? options_.piece_bytes : region_->size());
  const uint32_t shift = static_cast<uint32_t>(std::bit_width(piece_bytes - 1));
  description->set_piece_shift(shift);
  for (uint64_t start = 0; start < region_->size(); start += uint64_t{1} << shift) {
    control::RemoteMemory* piece = description->add_pieces();
    const rdma::RemoteKey key = memory.piece_key(start / memory.piece_bytes());
    piece->set_address(key.address + start % memory.piece_bytes());
    piece->set_key(key.key);
    piece->set_length(std::min(uint64_t{1} << shift, region_->size() - start));
  }
}

Status Server::LeaseSlabs(const ServerConnection& connection, const control::LeaseSlabs& request,
                          control::Slabs* reply) {
  NACRE_RETURN_IF_ERROR(databases_->CheckOwner(connection.client_id, request.database_id()));
  std::vector<uint64_t> offsets;
  NACRE_RETURN_IF_ERROR(region_->Lease(request.database_id(), request.count(), request.contiguous(),
                                       request.extend_at(), request.extend_count(), &offsets));
  NACRE_POINT("node.slabs-leased");
  FillSlabs(offsets, reply);
  return Status::OK();
}

void Server::FillSlabs(const std::vector<uint64_t>& offsets, control::Slabs* slabs) const {
  for (const uint64_t offset : offsets) {
    slabs->add_offsets(offset);
    slabs->add_write_keys(region_->WriteKey(offset));
  }
}

Status Server::ApplyImageUpdate(const ServerConnection& connection,
                                const control::ApplyImageUpdate& request) {
  NACRE_RETURN_IF_ERROR(databases_->CheckOwner(connection.client_id, request.database_id()));
  ExtentAddr copy;
  NACRE_RETURN_IF_ERROR(DecodeExtent(request.copy(), &copy));
  NACRE_RETURN_IF_ERROR(CheckLeased(request.database_id(), copy));
  RecordRedo record;
  if (file_ != nullptr) {
    record = [&](std::string redo) {
      return databases_->KeepRedo(request.database_id(), copy, std::move(redo));
    };
  }
  NACRE_RETURN_IF_ERROR(pool::ApplyImageUpdate({.identity = {.database_id = request.database_id(),
                                                             .epoch = request.epoch(),
                                                             .generation = request.generation()},
                                                .base_version = request.base_version(),
                                                .version = request.version(),
                                                .slots_used = request.slots_used(),
                                                .raw_bytes = request.raw_bytes(),
                                                .crc = request.crc(),
                                                .compressed = request.compressed()},
                                               region_->data() + copy.start.offset, copy.length,
                                               record));
  // This precedes any other use of the memory.
  return file_ == nullptr ? Status::OK() : databases_->RedoDone();
}

}  // namespace nacre::pool
