#include "db_bench/engine/keyspace.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "db_bench/key_generator.h"

namespace nacre::bench {
namespace {

/// For all that other processes are waited for: far beyond what it takes.
constexpr std::chrono::seconds kPatience{60};
constexpr std::chrono::milliseconds kLookAgain{20};

Deadline Patience(Clock* clock) { return Deadline::After(clock, kPatience); }

/// Again and again while it fails as it does when members come and go.
Status Insist(Clock* clock, const std::function<Status()>& work) {
  const Deadline deadline = Patience(clock);
  for (;;) {
    Status status = work();
    const bool may_pass = status.IsBusy() || status.IsTryAgain() || status.IsFenced() ||
                          status.IsUnavailable() || status.IsTimedOut();
    if (!may_pass || deadline.Expired()) return status;
    clock->SleepFor(kLookAgain);
  }
}

}  // namespace

ShardedOptions KeyspaceOptions(const BenchConfig& config, const Options& options) {
  ShardedOptions sharded(options);
  KeyGenerator keys(config.key_size);
  const auto shards = static_cast<uint64_t>(config.sharded);
  for (uint64_t shard = 1; shard < shards; ++shard) {
    sharded.boundaries.push_back(keys.Set(config.num / shards * shard).ToString());
  }
  sharded.coordinator = config.coordinator;
  sharded.member_address = config.serve_member ? config.child_address : config.member_address;
  return sharded;
}

Status DestroyKeyspace(const BenchConfig& config, const std::string& name, const Options& options) {
  if (config.coordinator.empty()) return DestroyShardedDB(name, options);
  ShardedOptions sharded(options);
  sharded.coordinator = config.coordinator;
  const Deadline deadline = Patience(Clock::System());
  for (;;) {
    Status status = DestroyShardedDB(name, sharded);
    if (!status.IsBusy() || deadline.Expired()) return status;
    Clock::System()->SleepFor(kLookAgain);
  }
}

std::string DescribeMembers(const BenchConfig& config) {
  std::string text =
      fmt::format("{} members (", config.child_members + (config.member_address.empty() ? 0 : 1));
  text += config.member_address.empty() ? "not this process" : config.member_address;
  if (config.child_members > 0) text += ", " + config.child_address;
  return text + ")";
}

Status ServeMember(const BenchConfig& config) {
  Options options = config.options;
  options.pool_uri = config.pool;
  options.create_if_missing = !config.use_existing_db;
  const std::string name = config.db.empty() ? "db_bench" : config.db;
  std::unique_ptr<ShardedDB> db;
  NACRE_RETURN_IF_ERROR(ShardedDB::Open(KeyspaceOptions(config, options), name, &db));
  std::vector<ShardMember> members;
  NACRE_RETURN_IF_ERROR(db->GetMembers(&members));
  const auto self = std::ranges::find(members, true, &ShardMember::self);
  if (self == members.end()) return Status::Aborted("this process is no member any more");
  NACRE_RETURN_IF_ERROR(ServeUntilItShallEnd(self->id));
  return db->Close();
}

KeyspaceMembers::KeyspaceMembers(const BenchConfig& config)
    : config_(config), clock_(Clock::System()) {}

Status KeyspaceMembers::Open(const BenchConfig& config, const std::string& name,
                             const Options& options, NacreDatabase* database,
                             std::unique_ptr<KeyspaceMembers>* members) {
  std::unique_ptr<KeyspaceMembers> made(new KeyspaceMembers(config));
  // One that owns no shards waits for those that do. Else it is the first, and so leads.
  const bool owns = !config.member_address.empty();
  if (!owns) NACRE_RETURN_IF_ERROR(made->StartProcesses());
  NACRE_RETURN_IF_ERROR(
      OpenNacreKeyspace(config, KeyspaceOptions(config, options), name, database));
  made->db_ = database->keyspace;
  if (owns) NACRE_RETURN_IF_ERROR(made->StartProcesses());
  NACRE_RETURN_IF_ERROR(made->AwaitMembers());
  NACRE_RETURN_IF_ERROR(made->Spread());
  *members = std::move(made);
  return Status::OK();
}

Status KeyspaceMembers::StartProcesses() {
  std::vector<MemberProcess*> started;
  while (processes_.size() < static_cast<size_t>(config_.child_members)) {
    NACRE_RETURN_IF_ERROR(MemberProcess::Start(clock_, &processes_.emplace_back()));
    started.push_back(processes_.back().get());
  }
  const Deadline deadline = Patience(clock_);
  for (MemberProcess* process : started) NACRE_RETURN_IF_ERROR(process->AwaitMember(deadline));
  return Status::OK();
}

Status KeyspaceMembers::Servers(std::vector<ShardMember>* servers) const {
  NACRE_RETURN_IF_ERROR(db_->GetMembers(servers));
  std::erase_if(*servers, [](const ShardMember& member) { return member.address.empty(); });
  return Status::OK();
}

Status KeyspaceMembers::AwaitMembers() const {
  const size_t expected = processes_.size() + (config_.member_address.empty() ? 0 : 1);
  return Insist(clock_, [&]() -> Status {
    std::vector<ShardMember> servers;
    NACRE_RETURN_IF_ERROR(Servers(&servers));
    if (servers.size() != expected || !std::ranges::all_of(processes_, [&](const auto& process) {
          return std::ranges::count(servers, process->member(), &ShardMember::id) == 1;
        })) {
      return Status::TryAgain(
          fmt::format("the keyspace has {} members, and not {}", servers.size(), expected));
    }
    return Status::OK();
  });
}

Status KeyspaceMembers::Spread() {
  NACRE_RETURN_IF_ERROR(Insist(clock_, [&] { return db_->SetBalance({{"paused", "true"}}); }));
  std::vector<ShardMember> servers;
  NACRE_RETURN_IF_ERROR(Servers(&servers));
  size_t next = 0;
  for (const ShardInfo& shard : db_->GetShards()) {
    const int64_t member = servers[next++ % servers.size()].id;
    NACRE_RETURN_IF_ERROR(Insist(clock_, [&] {
      Status status = db_->MoveShard(shard.id, member);
      // The leader may hear of a new member later than this process.
      return status.IsInvalidArgument() ? Status::TryAgain(status.message()) : status;
    }));
  }
  return Status::OK();
}

Status KeyspaceMembers::KillOne(ShardMember* killed, std::vector<ShardInfo>* shards) {
  std::vector<ShardMember> servers;
  NACRE_RETURN_IF_ERROR(Servers(&servers));
  std::ranges::stable_partition(servers, [](const ShardMember& member) { return !member.leads; });
  for (const ShardMember& member : servers) {
    const auto process = std::ranges::find_if(
        processes_, [&](const auto& each) { return each->member() == member.id; });
    if (process == processes_.end()) continue;
    *shards = db_->GetShards();
    std::erase_if(*shards, [&](const ShardInfo& shard) { return shard.owner != member.id; });
    *killed = member;
    (*process)->Kill();
    processes_.erase(process);
    return Status::OK();
  }
  return Status::NotFound("no process that db_bench has started is a member");
}

Status KeyspaceMembers::Replace() {
  NACRE_RETURN_IF_ERROR(StartProcesses());
  NACRE_RETURN_IF_ERROR(AwaitMembers());
  return Spread();
}

void KeyspaceMembers::BeginEnd() {
  for (const auto& process : processes_) process->BeginEnd();
}

Status KeyspaceMembers::AwaitEnd() {
  BeginEnd();
  Status first;
  const Deadline deadline = Patience(clock_);
  for (const auto& process : processes_) {
    Status status = process->AwaitEnd(deadline);
    if (first.ok()) first = std::move(status);
  }
  processes_.clear();
  return first;
}

}  // namespace nacre::bench
