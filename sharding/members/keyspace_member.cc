#include "sharding/members/keyspace_member.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "sharding/members/batch_settler.h"
#include "sharding/members/coordinator.h"
#include "sharding/members/keyspace_leader.h"
#include "sharding/members/owned_shards.h"
#include "sharding/remote/member_codec.h"
#include "sharding/remote/member_request.pb.h"
#include "sharding/remote/remote_shard.h"
#include "sharding/remote/shard_server.h"
#include "util/exceptions.h"
#include "util/log.h"
#include "util/named_point.h"

namespace nacre {
namespace {

using std::chrono::milliseconds;

/// How often it is looked what has changed, other than what the coordinator tells at once.
constexpr milliseconds kTick{20};
constexpr milliseconds kWatchPatience{300};
constexpr milliseconds kMemberAskAgain{20};

// What Once does, beside looking after members, whose ids are positive.
constexpr int64_t kLead = -1;
constexpr int64_t kSettle = -2;
constexpr int64_t kAskNodes = -3;
constexpr int64_t kSuspend = -4;

/// A member that hears nothing from the nodes for so long leaves.
constexpr milliseconds kNodesPatience{1000};
constexpr int kNodesRounds = 10;

}  // namespace

KeyspaceMember::KeyspaceMember(Context context)
    : context_(std::move(context)),
      links_(std::make_shared<MemberLinks>(context_.security, context_.clock)),
      others_{.followers = {context_.opener, context_.clock}},
      executor_(context_.threads->NewExecutor(TaskThreads::kUnbounded, "nacre-keyspace")) {}

KeyspaceMember::~KeyspaceMember() { Close().IgnoreError(); }

// ---- Opening and closing ------------------------------------------------------------------------

Status KeyspaceMember::Open(Context context, std::unique_ptr<KeyspaceMember>* member) {
  std::unique_ptr<KeyspaceMember> made(new KeyspaceMember(std::move(context)));
  Status status = made->Start();
  if (status.ok()) status = made->AwaitOpen();
  if (!status.ok()) {
    made->Close().IgnoreError();
    return status.WithContext("keyspace " + made->context_.opener->name());
  }
  *member = std::move(made);
  return Status::OK();
}

Status KeyspaceMember::Start() {
  std::shared_ptr<Coordinator> coordinator;
  NACRE_RETURN_IF_ERROR(OpenCoordinator(options().coordinator, &coordinator));
  std::string address;
  if (!options().member_address.empty()) {
    // Before others know of it. Until it is a member, all that it is asked has moved.
    server_ =
        std::make_unique<ShardServer>(ShardServer::Context{.served = this,
                                                           .threads = context_.threads,
                                                           .clock = context_.clock,
                                                           .keyspace = context_.opener->name(),
                                                           .security = context_.security,
                                                           .log = options().info_log});
    NACRE_RETURN_IF_ERROR(server_->Start(options().member_address));
    address = server_->address();
  }
  NACRE_RETURN_IF_ERROR(Membership::Join(
      std::move(coordinator), context_.clock,
      {.keyspace = context_.opener->name(),
       .address = address,
       .client_address = options().client_address,
       .lease = options().member_lease,
       .log = options().info_log},
      [this](const std::shared_ptr<const KeyspaceState>&) { Wake(); },
      Deadline::After(context_.clock, options().operation_timeout), &membership_));
  owned_ =
      std::make_unique<OwnedShards>(OwnedShards::Context{.opener = context_.opener,
                                                         .membership = membership_.get(),
                                                         .links = links_.get(),
                                                         .threads = context_.threads,
                                                         .clock = context_.clock,
                                                         .log = options().info_log,
                                                         .changed =
                                                             [this] {
                                                               {
                                                                 MutexLock lock(&mutex_);
                                                                 served_changed_ = true;
                                                               }
                                                               Wake();
                                                             },
                                                         .leaving =
                                                             [this](uint32_t shard) {
                                                               if (server_ != nullptr)
                                                                 server_->DropBelongingsOf(shard);
                                                             }});
  leader_ = std::make_unique<KeyspaceLeader>(KeyspaceLeader::Context{
      .membership = membership_.get(),
      .links = links_.get(),
      .owned = owned_.get(),
      .threads = context_.threads,
      .opener = context_.opener,
      .clock = context_.clock,
      .log = options().info_log,
      .make = context_.make,
      .ask_self = [this](const sharding::ControlRequest& request,
                         sharding::ControlReply* reply) { return Control(request, reply); },
  });
  settler_ = std::make_unique<BatchSettler>(context_.views.get(), owned_.get(), context_.clock,
                                            options().info_log);
  thread_ = Thread("nacre-keyspace", [this] { Follow(); });
  return Status::OK();
}

Status KeyspaceMember::AwaitOpen() {
  const Deadline deadline = Deadline::After(context_.clock, options().operation_timeout);
  Status status;
  for (;;) {
    {
      MutexLock lock(&mutex_);
      if (!map_status_.ok()) return map_status_;
      status = leader_status_;
    }
    const bool known = context_.views->latest() != nullptr;
    if (known) status = owned_->OpenStatus();
    if (known && status.ok()) return Status::OK();
    // Only the leader can make it.
    if (!known && status.IsInvalidArgument() && membership_->leads()) return status;
    if (deadline.Expired()) {
      if (!status.ok()) return status;
      return Status::TimedOut("no member has made it, or leads");
    }
    MutexLock lock(&mutex_);
    progress_.WaitFor(std::min<std::chrono::nanoseconds>(kTick, deadline.Remaining()));
  }
}

Status KeyspaceMember::Close() {
  if (std::exchange(closed_, true)) return Status::OK();
  Status status;
  {
    MutexLock lock(&mutex_);
    leaving_ = true;
    wake_.SignalAll();
  }
  if (thread_.joinable()) thread_.Join();
  executor_.reset();
  if (owned_ != nullptr) status = owned_->CloseAll();
  if (leader_ != nullptr) leader_->Stop();
  // The others learn of it now, when nothing is open here any more.
  if (membership_ != nullptr) membership_->Leave();
  if (server_ != nullptr) server_->Stop();
  leader_.reset();
  others_.followers.Follow(ShardMap(), /*self=*/0).clear();
  return status;
}

// ---- Following ----------------------------------------------------------------------------------

void KeyspaceMember::Wake() {
  MutexLock lock(&mutex_);
  woken_ = true;
  wake_.SignalAll();
}

void KeyspaceMember::Follow() {
  for (;;) {
    {
      MutexLock lock(&mutex_);
      if (!woken_ && !leaving_) wake_.WaitFor(kTick);
      woken_ = false;
      if (leaving_) return;
    }
    Round();
    MutexLock lock(&mutex_);
    progress_.SignalAll();
  }
}

void KeyspaceMember::Round() {
  const std::shared_ptr<const KeyspaceState> state = membership_->state();
  if (const int64_t id = membership_->id(); id != 0) context_.owner->SetId(id);
  bool changed = false;
  {
    MutexLock lock(&mutex_);
    changed = std::exchange(served_changed_, false);
  }
  if (state->revision != revision_) {
    TakeState(*state);
    changed = true;
  }
  if (map_.has_value()) {
    owned_->Follow(*map_, membership_->id());
    if (changed) Publish();
  }
  LookAtNodes();
  LookAfterMembers(*state);
  if (membership_->leads() || leader_->has_led()) {
    Once(kLead, [this] {
      const Status status = CatchAll([&] { return leader_->Round(); });
      MutexLock lock(&mutex_);
      leader_status_ = status;
    });
  }
  if (settler_->Needed()) Once(kSettle, [this] { settler_->Settle(); });
}

void KeyspaceMember::TakeState(const KeyspaceState& state) {
  revision_ = state.revision;
  std::map<int64_t, std::string> others = state.Servers();
  others.erase(membership_->id());
  links_->SetMembers(others);
  if (state.map_changed == map_changed_ || state.map_changed == 0) return;
  ShardMap map;
  Status status = ShardMap::Parse(state.map, options().comparator, &map);
  // Those that come later are none that this process should have named.
  if (status.ok() && !map_.has_value()) status = context_.opener->CheckFamilies(map);
  {
    MutexLock lock(&mutex_);
    map_status_ = status;
  }
  if (!status.ok()) {
    Log(options().info_log, LogLevel::kError, "keyspace {}: its map is not followed: {}",
        context_.opener->name(), status.ToString());
    return;
  }
  map_changed_ = state.map_changed;
  map_ = std::move(map);
}

// ---- Views --------------------------------------------------------------------------------------

void KeyspaceMember::Publish() {
  auto view = std::make_shared<ShardedView>();
  view->map = *map_;
  for (size_t i = 0; i < map_->size(); ++i) view->shards.push_back(ShardOf(i));
  context_.views->Publish(std::move(view));
  auto unneeded = others_.followers.Follow(*map_, context_.owner->id());
  // They close in a thread that may wait.
  if (!unneeded.empty()) executor_->Schedule([closed = std::move(unneeded)] {});
}

std::shared_ptr<Shard> KeyspaceMember::ShardOf(size_t index) {
  const ShardMap::Shard& record = map_->shards()[index];
  if (std::shared_ptr<LocalShard> local = owned_->Find(record.id); local != nullptr) return local;
  // If it is to be this member's and is not open yet, it cannot be reached for a while.
  std::shared_ptr<RemoteOwner>& owner = others_.owners[record.owner];
  if (owner == nullptr) {
    owner = std::make_shared<RemoteOwner>(record.owner, links_, context_.clock,
                                          options().operation_timeout);
  }
  return std::make_shared<RemoteShard>(
      record.id, ShardMap::DatabaseOf(context_.opener->name(), record.id), map_->families(),
      options().comparator, owner, &others_.followers);
}

// ---- The others ---------------------------------------------------------------------------------

void KeyspaceMember::Once(int64_t what, std::function<void()> work) {
  {
    MutexLock lock(&mutex_);
    if (!busy_.insert(what).second) return;
  }
  executor_->Schedule([this, what, done = std::move(work)] {
    done();
    MutexLock lock(&mutex_);
    busy_.erase(what);
  });
}

void KeyspaceMember::LookAtNodes() {
  const uint64_t now = context_.clock->NowNanos();
  bool silent = false;
  {
    MutexLock lock(&mutex_);
    if (nodes_asked_.since_nanos == 0) nodes_asked_ = {.since_nanos = now, .rounds = 0};
    silent = ++nodes_asked_.rounds > kNodesRounds &&
             now - nodes_asked_.since_nanos > Nanos(kNodesPatience);
  }
  Once(kAskNodes, [this] {
    owned_->LookAtNodes();
    MutexLock lock(&mutex_);
    nodes_asked_.since_nanos = 0;
  });
  if (silent == membership_->suspended()) return;
  Once(kSuspend, [this, silent] {
    Log(options().info_log, silent ? LogLevel::kWarn : LogLevel::kInfo, "keyspace {}: {}",
        context_.opener->name(),
        silent ? "leaves, as the memory nodes cannot be reached from here"
               : "comes back, as the memory nodes answer again");
    membership_->Suspend(silent).IgnoreError();
  });
}

void KeyspaceMember::LookAfterMembers(const KeyspaceState& state) {
  for (const MemberInfo& member : state.members) {
    if (member.id == membership_->id() || !member.serves()) continue;
    if (links_->Stands(member.id)) continue;
    Once(member.id, [this, id = member.id] { LookAfter(id); });
  }
}

void KeyspaceMember::LookAfter(int64_t member) {
  const Status status = links_->Watch(member, Deadline::After(context_.clock, kWatchPatience));
  if (status.ok() || !links_->HasHungUp(member)) return;
  {
    MutexLock lock(&mutex_);
    if (!ended_members_.insert(member).second) return;
  }
  // Its process has ended, so its lease is not waited for.
  const Status ended =
      membership_->EndMember(member, Deadline::After(context_.clock, Membership::kPatience));
  Log(options().info_log, LogLevel::kInfo, "keyspace {}: member {} has ended: {}",
      context_.opener->name(), member, ended.ToString());
  if (ended.ok()) return;
  MutexLock lock(&mutex_);
  ended_members_.erase(member);
}

Status KeyspaceMember::GetMembers(std::vector<ShardMember>* members) const {
  const std::shared_ptr<const KeyspaceState> state = membership_->state();
  const std::shared_ptr<const ShardedView> view = context_.views->latest();
  members->clear();
  for (const MemberInfo& info : state->members) {
    members->push_back({.id = info.id,
                        .address = info.address,
                        .client_address = info.client_address,
                        .leads = info.id == state->leader,
                        .draining = view != nullptr && view->map.IsDraining(info.id),
                        .self = info.id == membership_->id(),
                        .shards = view == nullptr ? 0 : view->map.CountOf(info.id)});
  }
  return membership_->coordinator_status();
}

// ---- What is asked of members -------------------------------------------------------------------

Status KeyspaceMember::Control(const sharding::ControlRequest& request,
                               sharding::ControlReply* reply) {
  switch (request.kind()) {
    case sharding::ControlRequest::PREPARE_TO_MOVE:
      return owned_->PrepareToMove(request.shard());
    case sharding::ControlRequest::RELEASE:
      return owned_->Release(request.shard(),
                             Deadline::After(context_.clock, OwnedShards::kReleasePatience));
    case sharding::ControlRequest::LOADS:
      owned_->AddLoads(reply);
      return Status::OK();
    case sharding::ControlRequest::RESHAPE: {
      ShardMap map;
      NACRE_RETURN_IF_ERROR(ShardMap::Parse(request.map(), options().comparator, &map));
      const ShardMap::Reshaping* const reshaping = map.ReshapingOf(request.shard());
      if (reshaping == nullptr) return Status::InvalidArgument("the map has not begun it");
      return owned_->PrepareReshaping(map, *reshaping);
    }
    case sharding::ControlRequest::FIND_SPLIT_KEY:
      return owned_->FindSplitKey(request.shard(), reply->mutable_key());
    default:
      return Lead(request);
  }
}

Status KeyspaceMember::Answer(const std::string& request, std::string* answer) {
  const std::shared_ptr<ShardObserver>& observer = options().shard_observer;
  if (observer == nullptr) return Status::NotSupported("this member answers no requests");
  return observer->OnRequest(request, answer);
}

Status KeyspaceMember::Lead(const sharding::ControlRequest& request) {
  switch (request.kind()) {
    case sharding::ControlRequest::MOVE:
      return leader_->Move(request.shard(), request.member(), "that was asked for");
    case sharding::ControlRequest::DRAIN:
      return leader_->Drain(request.member(), request.flag());
    case sharding::ControlRequest::SET_BALANCE:
      return leader_->SetBalance({request.options().begin(), request.options().end()});
    case sharding::ControlRequest::MAKE_FAMILIES:
      return leader_->MakeFamilies({request.options().begin(), request.options().end()});
    case sharding::ControlRequest::DROP_FAMILIES:
      return leader_->DropFamilies({request.options().begin(), request.options().end()});
    case sharding::ControlRequest::SPLIT:
      return leader_->Split(request.shard(), request.key(), "that was asked for");
    case sharding::ControlRequest::MERGE:
      return leader_->MergeShards(request.shard(), request.other(), "that was asked for");
    default:
      return Status::NotSupported("this member does not know the request");
  }
}

std::shared_ptr<LocalShard> KeyspaceMember::Find(uint32_t shard) const {
  return owned_->Find(shard);
}

Status KeyspaceMember::AskLeader(const sharding::ControlRequest& request) {
  const Deadline deadline = Deadline::After(context_.clock, options().operation_timeout);
  for (;;) {
    const int64_t leader = membership_->state()->leader;
    Status status;
    if (leader != 0 && leader == membership_->id()) {
      status = Lead(request);
    } else {
      sharding::MemberRequest asked;
      *asked.mutable_control() = request;
      RemoteOwner owner(leader, links_, context_.clock, options().operation_timeout);
      sharding::MemberReply reply;
      status = owner.CallAndSleep(&asked, RemoteOwner::Unanswered::kOpen, &reply);
    }
    if (!status.IsTryAgain() && !status.IsFenced()) return status;
    if (deadline.Expired()) return Status::TimedOut(status.ToString());
    context_.clock->SleepFor(kMemberAskAgain);
  }
}

Status KeyspaceMember::Ask(int64_t member, const Slice& request, std::chrono::milliseconds timeout,
                           std::string* answer) {
  sharding::MemberRequest asked;
  asked.set_of_program(request.data(), request.size());
  sharding::MemberReply reply;
  bool sent = false;
  const Status status =
      links_->CallAndSleep(member, &asked, &reply, &sent, Deadline::After(context_.clock, timeout));
  if (!status.ok()) {
    return sent ? Status::TimedOut(status.ToString()) : Status::Unavailable(status.ToString());
  }
  // It is another member by now.
  if (reply.moved()) return Status::Unavailable(reply.message());
  *answer = std::move(*reply.mutable_of_program());
  return GetStatus(reply);
}

void KeyspaceMember::Orphaned(uint32_t shard, const std::string& batch) {
  if (const std::shared_ptr<LocalShard> local = owned_->Find(shard); local != nullptr) {
    local->batches()->LeaveToOwner(batch);
  }
}

}  // namespace nacre
