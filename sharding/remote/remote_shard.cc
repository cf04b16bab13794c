#include "sharding/remote/remote_shard.h"

#include <utility>

#include "sharding/remote/member_codec.h"
#include "sharding/remote/remote_db.h"
#include "sharding/remote/remote_snapshot.h"

namespace nacre {
namespace {

using Unanswered = RemoteOwner::Unanswered;

sharding::MemberRequest RequestOf(uint32_t shard, const std::string& batch,
                                  sharding::BatchRequest::Step step) {
  sharding::MemberRequest request;
  request.set_shard(shard);
  request.mutable_batch()->set_step(step);
  request.mutable_batch()->set_batch(batch);
  return request;
}

void AddPart(const WriteOptions& options, const BatchPart& part, Deadline deadline,
             sharding::BatchRequest* request) {
  request->set_updates(part.updates.Data());
  for (const KeyCheck& check : part.checks) {
    sharding::KeyCheck* const added = request->add_checks();
    added->set_family(check.family);
    added->set_key(check.key);
    added->set_snapshot(static_cast<const RemoteSnapshot*>(check.since)->id());
  }
  for (const KeyLock& lock : part.locks) EncodeKey(lock.family, lock.key, request->add_locks());
  request->set_lock_owner(part.lock_owner);
  EncodeOptions(options, request->mutable_flags());
  request->set_patience_micros(RemoteOwner::PatienceMicros(deadline));
}

/// Without an answer the shard's owner finds out by itself.
void Tell(RemoteOwner* owner, sharding::MemberRequest* request) {
  sharding::MemberReply reply;
  owner->Call(request, owner->OperationDeadline(), Unanswered::kRetry, &reply).IgnoreError();
}

}  // namespace

RemoteShard::RemoteShard(uint32_t id, std::string database,
                         const std::vector<ShardMap::Family>& families,
                         const Comparator* comparator, std::shared_ptr<RemoteOwner> owner,
                         ShardFollowers* followers)
    : Shard(id, nullptr),
      owner_(std::move(owner)),
      db_(std::make_unique<RemoteDB>(id, std::move(database), families, comparator, owner_,
                                     followers)) {}

RemoteShard::~RemoteShard() = default;

DB* RemoteShard::db() const { return db_.get(); }

ColumnFamilyHandle* RemoteShard::Handle(uint32_t family) const { return db_->Handle(family); }

Status RemoteShard::Prepare(const std::string& batch, const WriteOptions& options,
                            const BatchPart& part, bool decides, Deadline deadline) {
  auto request = RequestOf(id(), batch, sharding::BatchRequest::PREPARE);
  AddPart(options, part, deadline, request.mutable_batch());
  request.mutable_batch()->set_decides(decides);
  sharding::MemberReply reply;
  // If no answer comes, it may be prepared there all the same: the caller aborts it in any case.
  return owner_->Call(&request, deadline, Unanswered::kRetry, &reply);
}

Status RemoteShard::WriteAlone(const std::string& batch, const WriteOptions& options,
                               const BatchPart& part, Deadline deadline) {
  auto request = RequestOf(id(), batch, sharding::BatchRequest::WRITE_ALONE);
  AddPart(options, part, deadline, request.mutable_batch());
  sharding::MemberReply reply;
  return owner_->Call(&request, deadline, Unanswered::kOpen, &reply);
}

Status RemoteShard::BeginCommit(const std::string& batch, Deadline deadline) {
  auto request = RequestOf(id(), batch, sharding::BatchRequest::BEGIN_COMMIT);
  request.mutable_batch()->set_patience_micros(RemoteOwner::PatienceMicros(deadline));
  sharding::MemberReply reply;
  return owner_->Call(&request, deadline, Unanswered::kRetry, &reply);
}

Status RemoteShard::Decide(const std::string& batch, bool* refused) {
  auto request = RequestOf(id(), batch, sharding::BatchRequest::DECIDE);
  sharding::MemberReply reply;
  bool answered = false;
  Status status =
      owner_->Call(&request, owner_->OperationDeadline(), Unanswered::kOpen, &reply, &answered);
  *refused = answered ? reply.batch().refused() : status.IsFenced();
  // `Fenced` would have it tried again.
  if (status.IsFenced() && !*refused) return Status::TimedOut(status.message());
  return status;
}

Status RemoteShard::Commit(const std::string& batch) {
  auto request = RequestOf(id(), batch, sharding::BatchRequest::COMMIT);
  sharding::MemberReply reply;
  return owner_->Call(&request, owner_->OperationDeadline(), Unanswered::kRetry, &reply);
}

void RemoteShard::Abort(const std::string& batch) {
  auto request = RequestOf(id(), batch, sharding::BatchRequest::ABORT);
  Tell(owner_.get(), &request);
}

Status RemoteShard::Settle(const std::string& batch, bool* decided) {
  auto request = RequestOf(id(), batch, sharding::BatchRequest::SETTLE);
  sharding::MemberReply reply;
  NACRE_RETURN_IF_ERROR(
      owner_->Call(&request, owner_->OperationDeadline(), Unanswered::kRetry, &reply));
  *decided = reply.batch().decided();
  return Status::OK();
}

void RemoteShard::Forget(const std::string& batch) {
  auto request = RequestOf(id(), batch, sharding::BatchRequest::FORGET);
  Tell(owner_.get(), &request);
}

void RemoteShard::LeaveToOwner(const std::string& batch) {
  auto request = RequestOf(id(), batch, sharding::BatchRequest::LEAVE);
  Tell(owner_.get(), &request);
}

void RemoteShard::Fail(const std::string& batch, const Status& why) {
  auto request = RequestOf(id(), batch, sharding::BatchRequest::FAIL);
  request.mutable_batch()->set_code(static_cast<uint32_t>(why.code()));
  request.mutable_batch()->set_message(std::string(why.message()));
  Tell(owner_.get(), &request);
}

}  // namespace nacre
