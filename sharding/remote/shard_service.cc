#include "sharding/remote/shard_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sharding/batches/batch_parts.h"
#include "sharding/remote/member_codec.h"
#include "util/exceptions.h"
#include "util/named_point.h"
#include "util/planted_bug.h"

namespace nacre {
namespace {

using sharding::BatchRequest;
using sharding::GateRequest;
using sharding::MemberReply;
using sharding::MemberRequest;

Status Elsewhere(uint32_t shard) {
  return Status::Fenced(fmt::format("shard {} is not served here", shard));
}

/// What is asked is about a family with an id of `next_family` or more.
bool NamesLaterFamily(const MemberRequest& request, uint32_t next_family) {
  const auto is_in = [next_family](const std::string& updates) {
    const KeySets keys = KeysOf(WriteBatch(updates));
    return std::ranges::any_of(
        keys, [next_family](const KeySet& set) { return set.family >= next_family; });
  };
  switch (request.body_case()) {
    case MemberRequest::kWrite:
      return is_in(request.write().updates());
    case MemberRequest::kRead:
      return request.read().family() >= next_family;
    case MemberRequest::kScan:
      return request.scan().family() >= next_family;
    case MemberRequest::kDatabase:
      return request.database().family() >= next_family;
    case MemberRequest::kBatch:
      return is_in(request.batch().updates()) ||
             std::ranges::any_of(request.batch().checks(), [next_family](const auto& check) {
               return check.family() >= next_family;
             });
    case MemberRequest::kLock:
      return std::ranges::any_of(request.lock().keys(), [next_family](const auto& key) {
        return key.family() >= next_family;
      });
    default:
      return false;
  }
}

}  // namespace

void ShardService::Execute(Client client, const MemberRequest& request, MemberReply* reply,
                           bool* would_wait) {
  Status status;
  if (request.member() != served_->member()) {
    status = Status::Fenced(fmt::format("this is not member {}", request.member()));
  } else {
    status = CatchAll([&] { return Run(client, request, reply, would_wait); });
  }
  if (status.IsFenced()) {
    reply->Clear();
    reply->set_moved(true);
  }
  SetStatus(status, reply);
}

Status ShardService::Run(Client client, const MemberRequest& request, MemberReply* reply,
                         bool* would_wait) {
  const auto body = request.body_case();
  const bool may_take_long = body != MemberRequest::kWrite && body != MemberRequest::kRead &&
                             body != MemberRequest::kReleaseSnapshots &&
                             body != MemberRequest::kLock;
  if (may_take_long && would_wait != nullptr) {
    *would_wait = true;
    return Status::OK();
  }
  switch (body) {
    case MemberRequest::kControl:
      return served_->Control(request.control(), reply->mutable_control());
    case MemberRequest::kOfProgram:
      return served_->Answer(request.of_program(), reply->mutable_of_program());
    case MemberRequest::kGate:
      return RunGate(client, request.gate(), reply);
    case MemberRequest::kReleaseSnapshots:
      for (const uint64_t id : request.release_snapshots().snapshots()) {
        clients_->Release(client, id);
      }
      return Status::OK();
    default:
      break;
  }
  const std::shared_ptr<LocalShard> shard = served_->Find(request.shard());
  if (shard == nullptr) return Elsewhere(request.shard());
  Status status = RunOnShard(client, shard, request, reply, would_wait);
  // It is opened anew in a moment, with families that the client knows of already.
  if (status.IsInvalidArgument() && !NACRE_PLANTED_BUG("family.not-there-yet-is-none") &&
      NamesLaterFamily(request, shard->family_set().next_id)) {
    return Elsewhere(request.shard());
  }
  return status;
}

Status ShardService::RunOnShard(Client client, const std::shared_ptr<LocalShard>& shard,
                                const MemberRequest& request, MemberReply* reply,
                                bool* would_wait) {
  switch (request.body_case()) {
    case MemberRequest::kWrite:
      return Write(shard.get(), request.write(), would_wait);
    case MemberRequest::kRead:
      return Read(client, shard.get(), request.read(), reply->mutable_read(), would_wait);
    case MemberRequest::kScan:
      return Scan(client, shard.get(), request.scan(), reply->mutable_scan());
    case MemberRequest::kGetSnapshot:
      return TakeSnapshot(client, shard, reply->mutable_get_snapshot());
    case MemberRequest::kDatabase:
      return RunDatabase(shard.get(), request.database(), reply->mutable_database());
    case MemberRequest::kLock:
      return RunLock(client, shard, request.lock(), would_wait);
    case MemberRequest::kBatch:
      return RunBatch(client, shard.get(), request.batch(), reply->mutable_batch());
    default:
      return Status::NotSupported("this member does not know the request");
  }
}

// ---- Snapshots over several shards --------------------------------------------------------------

Status ShardService::RunGate(Client client, const GateRequest& request, MemberReply* reply) {
  LocalOwner* const owner = served_->owner().get();
  switch (request.step()) {
    case GateRequest::CLOSE: {
      LocalOwner::Token token = 0;
      NACRE_RETURN_IF_ERROR(owner->CloseGate(After(request.patience_micros()), &token));
      clients_->AddToken(client, token);
      // The client may have died, or be cut off.
      const uint64_t latest =
          clock_->NowNanos() +
          static_cast<uint64_t>(std::chrono::nanoseconds(ShardOwner::kClosedAtMost).count());
      threads_->CallAt(latest, [kept = served_->owner(), token] { kept->OpenGate(token); });
      reply->mutable_gate()->set_token(token);
      return Status::OK();
    }
    case GateRequest::STOP:
      return owner->StopOperations(request.token());
    case GateRequest::TAKE: {
      std::vector<std::shared_ptr<LocalShard>> held;
      std::vector<Shard*> shards;
      for (const uint32_t id : request.shards()) {
        held.push_back(served_->Find(id));
        if (held.back() == nullptr) return Elsewhere(id);
        shards.push_back(held.back().get());
      }
      std::vector<const Snapshot*> snapshots;
      clients_->RemoveToken(client, request.token());
      NACRE_RETURN_IF_ERROR(owner->TakeSnapshots(request.token(), shards, &snapshots));
      for (size_t i = 0; i < snapshots.size(); ++i) {
        sharding::SnapshotReply* const taken = reply->mutable_gate()->add_snapshots();
        taken->set_sequence(snapshots[i]->GetSequenceNumber());
        taken->set_snapshot(clients_->Keep(
            client, std::make_shared<ServedSnapshot>(std::move(held[i]), snapshots[i])));
      }
      return Status::OK();
    }
    case GateRequest::OPEN:
      clients_->RemoveToken(client, request.token());
      owner->OpenGate(request.token());
      return Status::OK();
    default:
      return Status::NotSupported("this member does not know the step");
  }
}

// ---- Batches over several shards ----------------------------------------------------------------

Status ShardService::RunPart(Client client, LocalShard* shard, const BatchRequest& request) {
  const std::string& batch = request.batch();
  const WriteOptions options = DecodeOptions(request.flags());
  const Deadline deadline = After(request.patience_micros());
  BatchPart part{.updates = WriteBatch(request.updates())};
  std::vector<std::shared_ptr<ServedSnapshot>> held;
  for (const sharding::KeyCheck& check : request.checks()) {
    NACRE_RETURN_IF_ERROR(SnapshotOf(client, *shard, check.snapshot(), &held.emplace_back()));
    part.checks.push_back(
        {.family = check.family(), .key = check.key(), .since = held.back()->get()});
  }
  AddLocks(client, *shard, request, &part);
  // If the client ends meanwhile, it is settled.
  clients_->AddBatch(client, shard->id(), batch);
  const bool alone = request.step() == BatchRequest::WRITE_ALONE;
  const Status status =
      alone ? shard->batches()->WriteAlone(batch, options, part, deadline)
            : shard->batches()->Prepare(batch, options, part, request.decides(), deadline);
  if (alone || !status.ok()) clients_->RemoveBatch(client, shard->id(), batch);
  NACRE_POINT("batch.prepared-elsewhere");
  return status;
}

Status ShardService::RunBatch(Client client, LocalShard* shard, const BatchRequest& request,
                              sharding::BatchReply* reply) {
  LocalParticipant* const batches = shard->batches();
  const std::string& batch = request.batch();
  const Deadline deadline = After(request.patience_micros());
  switch (request.step()) {
    case BatchRequest::PREPARE:
    case BatchRequest::WRITE_ALONE:
      return RunPart(client, shard, request);
    case BatchRequest::BEGIN_COMMIT:
      return batches->BeginCommit(batch, deadline);
    case BatchRequest::DECIDE: {
      bool refused = true;
      const Status status = batches->Decide(batch, &refused);
      if (status.ok()) clients_->RemoveBatch(client, shard->id(), batch);
      reply->set_refused(refused);
      // It says whether anything was written, which "moved" would not.
      if (status.IsFenced() && !refused) return Status::TimedOut(status.ToString());
      return status;
    }
    case BatchRequest::COMMIT: {
      const Status status = batches->Commit(batch);
      if (status.ok()) clients_->RemoveBatch(client, shard->id(), batch);
      return status;
    }
    case BatchRequest::ABORT:
      batches->Abort(batch);
      clients_->RemoveBatch(client, shard->id(), batch);
      return Status::OK();
    case BatchRequest::SETTLE: {
      bool decided = false;
      NACRE_RETURN_IF_ERROR(batches->Settle(batch, &decided));
      reply->set_decided(decided);
      return Status::OK();
    }
    case BatchRequest::FORGET:
      batches->Forget(batch);
      return Status::OK();
    case BatchRequest::LEAVE:
      batches->LeaveToOwner(batch);
      return Status::OK();
    case BatchRequest::FAIL:
      batches->Fail(batch, Status::FromCode(static_cast<int>(request.code()), request.message()));
      return Status::OK();
    default:
      return Status::NotSupported("this member does not know the step");
  }
}

}  // namespace nacre
