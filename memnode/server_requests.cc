#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "memnode/request_rights.h"
#include "memnode/server.h"
#include "pool/wire/control.pb.h"
#include "pool/wire/database_report.h"
#include "pool/wire/extent_codec.h"
#include "pool/wire/manifest_image.h"
#include "pool/wire/node_stats.h"
#include "util/named_point.h"
#include "util/uri.h"

namespace nacre::pool {

void Server::Execute(ServerConnection* connection) {
  if (const Status s = CheckRights(*connection); !s.ok()) {
    requests_->Answer(connection, s, {});
    return;
  }
  if (JobHeaderOf(connection->request) != nullptr) {
    const Status s = StartJob(connection);
    if (!s.ok()) requests_->Answer(connection, s, {});
    return;
  }
  control::Reply reply;
  const Status s = ExecuteNow(connection, &reply);
  requests_->Answer(connection, s, std::move(reply));
}

Status Server::CheckRights(const ServerConnection& connection) {
  const NeededRight needed = RightNeededFor(connection.request);
  Status status = CheckRight(needed, connection.rights, connection.credential->name(),
                             databases_->NameOf(needed.database_id));
  if (!status.ok()) denials_.Refused(address_, status.message());
  return status;
}

bool Server::CountsTime(const control::Request& request) const {
  return JobHeaderOf(request) == nullptr;
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
      requests_->CloseDataConnections(client, {request.end_connections().connections().begin(),
                                               request.end_connections().connections().end()});
      return Status::OK();
    case control::Request::kApplyImageUpdate:
      return ApplyImageUpdate(*connection, request.apply_image_update());
    case control::Request::kReportDatabase:
      NACRE_RETURN_IF_ERROR(databases_->Report(client, request.report_database(),
                                               clock_->NowNanos(), reply->mutable_directions()));
      databases_->ListLogReaders(request.report_database().database_id(), clock_->NowNanos(),
                                 reply->mutable_log_readers());
      return Status::OK();
    case control::Request::kAcknowledgeLog:
      NACRE_RETURN_IF_ERROR(
          databases_->AcknowledgeLog(request.acknowledge_log(), clock_->NowNanos()));
      databases_->ListLogReaders(request.acknowledge_log().database_id(), clock_->NowNanos(),
                                 reply->mutable_log_readers());
      return Status::OK();
    case control::Request::kSetDirections:
      return databases_->Direct(request.set_directions(), clock_->NowNanos(),
                                reply->mutable_directions());
    case control::Request::kListDatabases:
      databases_->List(request.list_databases(), clock_->NowNanos(), reply->mutable_databases());
      if (!request.list_databases().directions_only()) ListClients(reply->mutable_databases());
      return Status::OK();
    default:
      return Status::NotSupported(
          fmt::format("request of kind {}", static_cast<int>(request.body_case())));
  }
}

void Server::ListClients(control::DatabaseList* list) const {
  std::vector<ConnectedClient> clients;
  requests_->ListClients(&clients);
  for (ConnectedClient& client : clients) {
    client.owned = databases_->OwnedBy(client.client_id);
    EncodeConnectedClient(client, list->add_clients());
  }
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
  NACRE_RETURN_IF_ERROR(CheckQuotas(request.database_id(), request.count()));
  const bool extends = CheckQuotas(request.database_id(), request.extend_count()).ok();
  std::vector<uint64_t> offsets;
  NACRE_RETURN_IF_ERROR(region_->Lease(request.database_id(), request.count(), request.contiguous(),
                                       request.extend_at(), extends ? request.extend_count() : 0,
                                       &offsets));
  NACRE_POINT("node.slabs-leased");
  FillSlabs(offsets, reply);
  return Status::OK();
}

Status Server::CheckQuotas(uint64_t database_id, uint64_t count) {
  const std::string* const database = databases_->NameOf(database_id);
  if (database == nullptr) return Status::OK();
  std::vector<SecretFile::Quota> quotas;
  {
    MutexLock lock(&mutex_);
    for (const SecretFile::Quota& quota : quotas_) {
      if (MatchesDatabase(quota.databases, *database)) quotas.push_back(quota);
    }
  }
  for (const SecretFile::Quota& quota : quotas) {
    const uint64_t leased = region_->LeasedTo(databases_->IdsLike(quota.databases));
    if (leased + count <= quota.bytes / region_->slab_bytes()) continue;
    return Status::NoSpace(fmt::format("quota of {} at this node for databases '{}': {} are leased",
                                       FormatBytes(quota.bytes), quota.databases,
                                       FormatBytes(leased * region_->slab_bytes())));
  }
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
