#include "sharding/remote/remote_owner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sharding/remote/member_codec.h"
#include "sharding/remote/member_request.pb.h"
#include "sharding/remote/remote_snapshot.h"
#include "sharding/shard.h"

namespace nacre {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// For what the member would do by itself after a while.
constexpr milliseconds kTidyTimeout(1000);

/// What a call came to whose transport answered `transport`.
Status OutcomeOf(int64_t member, const Status& transport, bool sent,
                 RemoteOwner::Unanswered unanswered, const sharding::MemberReply& reply,
                 bool* answered) {
  *answered = transport.ok() && !reply.moved();
  if (transport.ok()) return GetStatus(reply);
  // Too large a request stays so.
  if (!sent && transport.IsInvalidArgument()) return transport;
  if (sent && unanswered == RemoteOwner::Unanswered::kOpen) {
    return Status::TimedOut(fmt::format(
        "the answer of member {} did not come, so it is unknown whether the operation took effect: "
        "{}",
        member, transport.message()));
  }
  return Status::Fenced(fmt::format("member {} does not answer: {}", member, transport.message()));
}

}  // namespace

RemoteOwner::RemoteOwner(int64_t id, std::shared_ptr<MemberLinks> links, Clock* clock,
                         milliseconds operation_timeout)
    : id_(id), links_(std::move(links)), clock_(clock), operation_timeout_(operation_timeout) {}

// ---- Calls --------------------------------------------------------------------------------------

uint64_t RemoteOwner::PatienceMicros(Deadline deadline) {
  const nanoseconds left = deadline.Remaining();
  const nanoseconds margin = std::min<nanoseconds>(left / 4, milliseconds(100));
  const auto patience = std::chrono::duration_cast<std::chrono::microseconds>(left - margin);
  return static_cast<uint64_t>(patience.count());
}

Status RemoteOwner::Call(sharding::MemberRequest* request, Deadline deadline, Unanswered unanswered,
                         sharding::MemberReply* reply, bool* answered) {
  bool sent = false;
  const Status transport = links_->Call(id_, request, deadline, reply, &sent);
  bool by_member = false;
  return OutcomeOf(id_, transport, sent, unanswered, *reply,
                   answered == nullptr ? &by_member : answered);
}

Status RemoteOwner::CallAndSleep(sharding::MemberRequest* request, Unanswered unanswered,
                                 sharding::MemberReply* reply) {
  bool sent = false;
  const Status transport = links_->CallAndSleep(id_, request, reply, &sent);
  bool answered = false;
  return OutcomeOf(id_, transport, sent, unanswered, *reply, &answered);
}

// ---- Snapshots ----------------------------------------------------------------------------------

void RemoteOwner::ReleaseSnapshot(uint32_t shard, uint64_t snapshot) {
  sharding::MemberRequest request;
  request.set_shard(shard);
  request.mutable_release_snapshots()->add_snapshots(snapshot);
  sharding::MemberReply reply;
  Call(&request, Deadline::After(clock_, kTidyTimeout), Unanswered::kRetry, &reply).IgnoreError();
}

Status RemoteOwner::CloseGate(Deadline deadline, Token* token) {
  sharding::MemberRequest request;
  sharding::GateRequest* const gate = request.mutable_gate();
  gate->set_step(sharding::GateRequest::CLOSE);
  gate->set_patience_micros(PatienceMicros(deadline));
  sharding::MemberReply reply;
  // A gate whose token does not come is opened by the member after a while.
  NACRE_RETURN_IF_ERROR(Call(&request, deadline, Unanswered::kRetry, &reply));
  *token = reply.gate().token();
  return Status::OK();
}

Status RemoteOwner::StopOperations(Token token) {
  sharding::MemberRequest request;
  request.mutable_gate()->set_step(sharding::GateRequest::STOP);
  request.mutable_gate()->set_token(token);
  sharding::MemberReply reply;
  // Later its gate has opened by itself, and operations wait here meanwhile.
  return Call(&request, Deadline::After(clock_, kClosedAtMost), Unanswered::kRetry, &reply);
}

Status RemoteOwner::TakeSnapshots(Token token, const std::vector<Shard*>& shards,
                                  std::vector<const Snapshot*>* snapshots) {
  snapshots->clear();
  sharding::MemberRequest request;
  sharding::GateRequest* const gate = request.mutable_gate();
  gate->set_step(sharding::GateRequest::TAKE);
  gate->set_token(token);
  for (const Shard* const shard : shards) gate->add_shards(shard->id());
  sharding::MemberReply reply;
  NACRE_RETURN_IF_ERROR(
      Call(&request, Deadline::After(clock_, kClosedAtMost), Unanswered::kRetry, &reply));
  const auto& taken = reply.gate().snapshots();
  const auto none = [](const sharding::SnapshotReply& each) { return each.snapshot() == 0; };
  const size_t count = static_cast<size_t>(taken.size());
  if (count != shards.size() || std::ranges::any_of(taken, none)) {
    for (size_t i = 0; i < std::min(count, shards.size()); ++i) {
      ReleaseSnapshot(shards[i]->id(), taken.Get(static_cast<int>(i)).snapshot());
    }
    return Status::Corruption(
        fmt::format("member {} answers {} snapshots of {} shards", id_, count, shards.size()));
  }
  for (const sharding::SnapshotReply& each : taken) {
    snapshots->push_back(
        std::make_unique<RemoteSnapshot>(each.snapshot(), each.sequence()).release());
  }
  return Status::OK();
}

void RemoteOwner::OpenGate(Token token) {
  if (token == 0) return;
  sharding::MemberRequest request;
  request.mutable_gate()->set_step(sharding::GateRequest::OPEN);
  request.mutable_gate()->set_token(token);
  sharding::MemberReply reply;
  Call(&request, Deadline::After(clock_, kTidyTimeout), Unanswered::kRetry, &reply).IgnoreError();
}

}  // namespace nacre
