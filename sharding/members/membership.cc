#include "sharding/members/membership.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "sharding/members/member.pb.h"
#include "util/log.h"
#include "util/named_point.h"
#include "util/planted_bug.h"

namespace nacre {
namespace {

using std::chrono::milliseconds;

/// How long a change is waited for at a time: Leave waits as long if the coordinator is silent.
constexpr milliseconds kWait{1000};
constexpr milliseconds kBackOffMin{20};
constexpr milliseconds kBackOffMax{500};

bool ParseId(std::string_view text, Coordinator::Lease* id) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *id);
  return error == std::errc() && end == text.data() + text.size() && *id != 0;
}

}  // namespace

const MemberInfo* KeyspaceState::Find(Coordinator::Lease id) const {
  const auto found = std::ranges::find(members, id, &MemberInfo::id);
  return found == members.end() ? nullptr : &*found;
}

std::map<Coordinator::Lease, std::string> KeyspaceState::Servers() const {
  std::map<Coordinator::Lease, std::string> servers;
  for (const MemberInfo& member : members) {
    if (member.serves()) servers[member.id] = member.address;
  }
  return servers;
}

std::string KeyspacePrefix(const std::string& pool, const std::string& keyspace) {
  return fmt::format("/nacre/v1/{}/{}/", pool, keyspace);
}

Status ReadKeyspace(Coordinator* coordinator, const std::string& prefix, Deadline deadline,
                    KeyspaceState* state, int64_t* leader_changed) {
  std::vector<Coordinator::Entry> entries;
  *state = {};
  *leader_changed = 0;
  NACRE_RETURN_IF_ERROR(coordinator->Read(prefix, deadline, &entries, &state->revision));
  for (Coordinator::Entry& entry : entries) {
    const std::string_view name = std::string_view(entry.key).substr(prefix.size());
    if (name == "map") {
      state->map = std::move(entry.value);
      state->map_changed = entry.changed;
    } else if (name == "leader") {
      if (!ParseId(entry.value, &state->leader)) {
        return Status::Corruption(entry.key + ": '" + entry.value + "' is no member");
      }
      *leader_changed = entry.changed;
    } else if (name.starts_with("members/")) {
      MemberInfo info;
      sharding::Member member;
      if (!ParseId(name.substr(name.find('/') + 1), &info.id) ||
          !member.ParseFromString(entry.value)) {
        return Status::Corruption(entry.key + ": is no member");
      }
      info.address = member.address();
      info.client_address = member.client_address();
      state->members.push_back(std::move(info));
    }
  }
  std::ranges::sort(state->members, {}, &MemberInfo::id);
  return Status::OK();
}

Membership::Membership(std::shared_ptr<Coordinator> coordinator, Clock* clock,
                       MembershipOptions options, Changed changed)
    : coordinator_(std::move(coordinator)),
      clock_(clock),
      options_(std::move(options)),
      changed_(std::move(changed)),
      prefix_(KeyspacePrefix(options_.pool, options_.keyspace)),
      state_(std::make_shared<const KeyspaceState>()) {}

Membership::~Membership() { Leave(); }

Status Membership::Join(std::shared_ptr<Coordinator> coordinator, Clock* clock,
                        MembershipOptions options, Changed changed, Deadline deadline,
                        std::unique_ptr<Membership>* membership) {
  std::unique_ptr<Membership> made(
      new Membership(std::move(coordinator), clock, std::move(options), std::move(changed)));
  NACRE_RETURN_IF_ERROR(made->Enter(deadline));
  Membership* const member = made.get();
  member->keeper_ = Thread("nacre-member", [member] { member->Keep(); });
  member->follower_ = Thread("nacre-members", [member] { member->Follow(); });
  *membership = std::move(made);
  return Status::OK();
}

void Membership::Leave() {
  {
    MutexLock lock(&mutex_);
    leaving_.store(true, std::memory_order_release);
    wake_.SignalAll();
  }
  // Its end is a change that the thread which follows waits for.
  if (const Coordinator::Lease lease = id(); lease != 0) {
    coordinator_->EndLease(lease, AttemptDeadline()).IgnoreError();
  }
  if (keeper_.joinable()) keeper_.Join();
  if (follower_.joinable()) follower_.Join();
  // It may have got another one meanwhile.
  if (const Coordinator::Lease lease = id_.exchange(0); lease != 0) {
    coordinator_->EndLease(lease, AttemptDeadline()).IgnoreError();
  }
}

Status Membership::Suspend(bool suspended) {
  suspended_.store(suspended);
  if (!suspended) return Status::OK();
  const Coordinator::Lease lease = id();
  return lease == 0 ? Status::OK() : coordinator_->EndLease(lease, AttemptDeadline());
}

uint64_t Membership::Lasts() const {
  // Clocks differ.
  return static_cast<uint64_t>(std::chrono::nanoseconds(options_.lease).count()) / 10 * 9;
}

Deadline Membership::AttemptDeadline() const { return Deadline::After(clock_, options_.lease / 2); }

std::shared_ptr<const KeyspaceState> Membership::state() const {
  MutexLock lock(&mutex_);
  return state_;
}

bool Membership::leads() const {
  MutexLock lock(&mutex_);
  return !leaving() && id() != 0 && state_->leader == id() &&
         (clock_->NowNanos() < kept_until_nanos_ || NACRE_PLANTED_BUG("members.leads-for-ever"));
}

Status Membership::coordinator_status() const {
  MutexLock lock(&mutex_);
  return status_;
}

void Membership::SetStatus(const Status& status) {
  MutexLock lock(&mutex_);
  if (status_.ok() != status.ok()) {
    Log(options_.log, status.ok() ? LogLevel::kInfo : LogLevel::kWarn, "keyspace {}: {}: {}",
        options_.keyspace, coordinator_->name(),
        status.ok() ? "can be reached again" : status.ToString());
  }
  status_ = status;
}

// ---- The map ------------------------------------------------------------------------------------

Status Membership::ChangeMap(int64_t expected, const std::string& map, Deadline deadline,
                             bool* done) {
  *done = false;
  Coordinator::Change leading{.key = prefix_ + "leader", .only_check = true};
  {
    MutexLock lock(&mutex_);
    if (id() == 0 || state_->leader != id()) return Status::OK();
    leading.expected = leader_changed_;
  }
  std::vector<Coordinator::Change> changes = {
      {.key = prefix_ + "map", .expected = expected, .value = map}};
  if (!NACRE_PLANTED_BUG("members.map-changed-without-leading")) {
    changes.push_back(std::move(leading));
  }
  NACRE_POINT("keyspace.map-change-begun");
  return coordinator_->Commit(changes, deadline, done);
}

Status Membership::ReadMap(Deadline deadline, std::string* map, int64_t* changed) {
  std::vector<Coordinator::Entry> entries;
  int64_t revision = 0;
  NACRE_RETURN_IF_ERROR(coordinator_->Read(prefix_ + "map", deadline, &entries, &revision));
  *changed = 0;
  for (Coordinator::Entry& entry : entries) {
    if (entry.key != prefix_ + "map") continue;
    *map = std::move(entry.value);
    *changed = entry.changed;
  }
  return Status::OK();
}

Status Membership::EndMember(Coordinator::Lease id, Deadline deadline) {
  return coordinator_->EndLease(id, deadline);
}

// ---- Following ----------------------------------------------------------------------------------

Status Membership::Enter(Deadline deadline) {
  const uint64_t begun = clock_->NowNanos();
  Coordinator::Lease lease = 0;
  NACRE_RETURN_IF_ERROR(coordinator_->GrantLease(options_.lease, deadline, &lease));
  sharding::Member member;
  member.set_address(options_.address);
  member.set_client_address(options_.client_address);
  bool done = false;
  Status entered = coordinator_->Commit({{.key = fmt::format("{}members/{}", prefix_, lease),
                                          .value = member.SerializeAsString(),
                                          .lease = lease}},
                                        deadline, &done);
  if (entered.ok() && !done) entered = Status::Corruption("a new lease has an entry already");
  if (!entered.ok()) {
    coordinator_->EndLease(lease, AttemptDeadline()).IgnoreError();
    return entered.WithContext("joining keyspace " + options_.keyspace);
  }
  MutexLock lock(&mutex_);
  kept_until_nanos_ = begun + Lasts();
  id_.store(lease, std::memory_order_release);
  wake_.SignalAll();
  Log(options_.log, LogLevel::kInfo, "keyspace {}: is member {} at {}", options_.keyspace, lease,
      options_.address);
  return Status::OK();
}

Status Membership::Read(Deadline deadline) {
  auto read = std::make_shared<KeyspaceState>();
  int64_t leader_changed = 0;
  NACRE_RETURN_IF_ERROR(
      ReadKeyspace(coordinator_.get(), prefix_, deadline, read.get(), &leader_changed));
  MutexLock lock(&mutex_);
  state_ = std::move(read);
  leader_changed_ = leader_changed;
  return Status::OK();
}

Status Membership::Stand(Deadline deadline, bool* tried) {
  *tried = id() != 0 && !options_.address.empty() && state()->leader == 0;
  if (!*tried) return Status::OK();
  const std::string key = prefix_ + "leader";
  bool done = false;
  NACRE_RETURN_IF_ERROR(coordinator_->Commit(
      {{.key = key, .value = std::to_string(id()), .lease = id()}}, deadline, &done));
  if (done) Log(options_.log, LogLevel::kInfo, "keyspace {}: leads", options_.keyspace);
  return Status::OK();
}

Status Membership::FollowOnce() {
  if (id() == 0 && !suspended_.load()) NACRE_RETURN_IF_ERROR(Enter(AttemptDeadline()));
  NACRE_RETURN_IF_ERROR(Read(AttemptDeadline()));
  const std::shared_ptr<const KeyspaceState> now = state();
  if (now->Find(id()) == nullptr && !leaving()) {
    Log(options_.log, LogLevel::kWarn, "keyspace {}: member {} has lost its lease",
        options_.keyspace, id());
    id_.store(0, std::memory_order_release);
  }
  changed_(now);
  if (id() == 0 && !suspended_.load()) return Status::OK();
  bool tried = false;
  Status s = Stand(AttemptDeadline(), &tried);
  // Its lease has just ended.
  if (s.IsNotFound() || (s.ok() && tried)) return Status::OK();
  NACRE_RETURN_IF_ERROR(s);
  s = coordinator_->AwaitChange(prefix_, now->revision, Deadline::After(clock_, kWait));
  return s.IsTimedOut() ? Status::OK() : s;
}

void Membership::Follow() {
  milliseconds back_off = kBackOffMin;
  while (!leaving()) {
    const Status s = FollowOnce();
    SetStatus(s);
    if (s.ok()) {
      back_off = kBackOffMin;
      continue;
    }
    MutexLock lock(&mutex_);
    if (!leaving()) wake_.WaitFor(back_off);
    back_off = std::min(2 * back_off, kBackOffMax);
  }
}

void Membership::Keep() {
  while (!leaving()) {
    const Coordinator::Lease lease = id();
    const uint64_t begun = clock_->NowNanos();
    // Whether the lease has ended is what the thread which follows sees.
    const Status s =
        lease == 0 || suspended_.load()
            ? Status::OK()
            : coordinator_->KeepLease(lease, Deadline::After(clock_, options_.lease / 3));
    MutexLock lock(&mutex_);
    if (lease != 0 && s.ok() && lease == id()) kept_until_nanos_ = begun + Lasts();
    if (!leaving()) wake_.WaitFor(s.ok() ? options_.lease / 4 : milliseconds(options_.lease / 20));
  }
}

}  // namespace nacre
