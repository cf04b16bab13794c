#include "tests/support/sim/sim_keyspace.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "nacre/merge_operator.h"
#include "sharding/members/coordinator.h"
#include "tests/support/sim/sim_group.h"
#include "util/clock.h"

namespace nacre::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// Microseconds between two operations of a thread: seconds pass in these stories.
constexpr uint64_t kPauseMax = 5000;

/// A write that ended so may have taken place, and may yet.
bool MayHaveBeenDone(const Status& status) {
  return status.IsTimedOut() || status.IsUnavailable() || status.IsAborted();
}

}  // namespace

SharedKeyspace::SharedKeyspace(Scheduler* scheduler, Case* c, size_t shards, size_t groups,
                               Transactions transactions)
    : scheduler_(scheduler),
      case_(c),
      shards_(shards),
      transactions_(transactions),
      store_(scheduler),
      groups_(groups),
      plain_(groups),
      counted_(groups),
      appended_(groups) {
  RegisterCoordinator("sim", [this](const std::string&, std::shared_ptr<Coordinator>* coordinator) {
    *coordinator = store_.Connect();
    return Status::OK();
  });
}

SharedKeyspace::Member* SharedKeyspace::Join(bool serves) {
  Member* const member = members_.emplace_back(std::make_unique<Member>()).get();
  member->name = fmt::format("m{}", members_.size());
  member->process = case_->NewProcess(member->name);
  case_->In(member->process, [&] {
    ShardedOptions options(case_->DatabaseOptions());
    options.merge_operator = MergeOperators::CreateStringAppendOperator(',');
    options.coordinator = "sim:store";
    // Longer than it takes until a member that says nothing is none any more.
    options.operation_timeout = std::chrono::seconds(10);
    if (serves) options.member_address = "sim:" + member->name;
    for (size_t shard = 1; shard < shards_; ++shard)
      options.boundaries.emplace_back(1, static_cast<char>('a' + shard));
    case_->Await("opening", [&] {
      const Status status = OpenOn(member, options);
      case_->Expect(status.ok() || status.IsTimedOut() || status.IsUnavailable() ||
                        status.IsBusy() || status.IsFenced(),
                    "opening: " + status.ToString());
      return status.ok();
    });
    DB* const base = transactions_ == Transactions::kLocked ? member->locked->GetBaseDB()
                                                            : member->optimistic->GetBaseDB();
    member->db = static_cast<ShardedDB*>(base);
  });
  member->serves = serves;
  member->open = true;
  return member;
}

Status SharedKeyspace::OpenOn(Member* member, const ShardedOptions& options) const {
  return transactions_ == Transactions::kLocked
             ? TransactionDB::Open(options, {}, "keys", &member->locked)
             : OptimisticTransactionDB::Open(options, "keys", &member->optimistic);
}

std::unique_ptr<Transaction> SharedKeyspace::NewTransaction(Member* member) const {
  return transactions_ == Transactions::kLocked ? member->locked->BeginTransaction({})
                                                : member->optimistic->BeginTransaction({});
}

std::vector<SharedKeyspace::Member*> SharedKeyspace::Open() const {
  std::vector<Member*> open;
  for (const auto& member : members_) {
    if (member->open) open.push_back(member.get());
  }
  return open;
}

int64_t SharedKeyspace::IdOf(Member* member) {
  std::vector<ShardMember> members;
  case_->In(member->process, [&] { member->db->GetMembers(&members).IgnoreError(); });
  for (const ShardMember& each : members) {
    if (each.self) return each.id;
  }
  return 0;
}

void SharedKeyspace::Sleep(milliseconds time) {
  const uint64_t end =
      scheduler_->TrueNanos() + static_cast<uint64_t>(std::chrono::nanoseconds(time).count());
  while (scheduler_->TrueNanos() < end) scheduler_->SleepFor(milliseconds(1));
}

void SharedKeyspace::Spread() {
  std::vector<int64_t> ids;
  for (Member* const member : Open()) {
    if (member->serves) ids.push_back(IdOf(member));
  }
  Member* const asks = Open().front();
  case_->In(asks->process, [&] {
    const std::vector<ShardInfo> shards = asks->db->GetShards();
    for (size_t i = 0; i < shards.size(); ++i) {
      const int64_t to = ids[i % ids.size()];
      case_->Await("a move", [&] { return asks->db->MoveShard(shards[i].id, to).ok(); });
    }
  });
}

// ---- What happens to members --------------------------------------------------------------------

void SharedKeyspace::Kill(Member* member, bool told) {
  member->open = false;
  member->running = 0;
  case_->cluster().KillProcess(member->process, told);
  // What it was writing is open for good.
  for (std::vector<Known>* const all : {&groups_, &plain_}) {
    for (Known& known : *all) {
      if (known.writer == member) known.writer = nullptr;
    }
  }
}

void SharedKeyspace::Close(Member* member) {
  member->open = false;
  case_->Await("the threads", [member] { return member->running == 0; });
  case_->In(member->process, [&] {
    case_->Expect(member->db->Close());
    member->optimistic.reset();
    member->locked.reset();
  });
}

void SharedKeyspace::Freeze(Member* member, milliseconds time) {
  member->faulty = true;
  scheduler_->Stop(member->process);
  Sleep(time);
  scheduler_->Continue(member->process);
}

// ---- Writing ------------------------------------------------------------------------------------

void SharedKeyspace::Begin() {
  rests_ = false;
  for (Member* const member : Open()) {
    for (int i = 0; i < 2; ++i) {
      case_->cluster().Run(member->process, "write", [this, member] { Write(member); });
    }
    case_->cluster().Run(member->process, "read", [this, member] { Read(member); });
  }
}

void SharedKeyspace::Rest() {
  rests_ = true;
  case_->Await("the threads", [this] {
    return std::ranges::all_of(
        members_, [](const auto& member) { return !member->open || member->running == 0; });
  });
}

void SharedKeyspace::UseFor(milliseconds time) {
  Begin();
  Sleep(time);
  Rest();
}

void SharedKeyspace::Write(Member* member) {
  ++member->running;
  while (!rests_ && member->open) {
    const bool plain = scheduler_->OneIn(2);
    const size_t index = scheduler_->Uniform(groups_.size());
    if (scheduler_->OneIn(4)) {
      scheduler_->OneIn(2) ? Append(member, index) : Count(member, index);
      continue;
    }
    Known* const known = &(plain ? plain_ : groups_)[index];
    if (known->writer == nullptr) {
      known->writer = member;
      plain ? WritePlain(member, known, index) : WriteGroup(member, known, index);
      known->writer = nullptr;
    }
    Clock::System()->SleepFor(microseconds(1 + scheduler_->Uniform(kPauseMax)));
  }
  --member->running;
}

void SharedKeyspace::WriteGroup(Member* member, Known* known, size_t group) {
  const uint64_t number = ++known->begun;
  WriteBatch batch;
  for (size_t shard = 0; shard < shards_; ++shard) {
    case_->Expect(batch.Put(KeyOfGroup(group, shard), std::to_string(number)));
  }
  const Status status = member->db->Write({}, &batch);
  case_->Expect(status.ok() || MayHaveBeenDone(status), "a batch: " + status.ToString());
  if (status.ok()) known->acknowledged = number;
}

void SharedKeyspace::WritePlain(Member* member, Known* known, size_t key) {
  const uint64_t number = ++known->begun;
  known->open.insert(number);
  const Status status = member->db->Put({}, PlainKey(key), std::to_string(number));
  case_->Expect(status.ok() || MayHaveBeenDone(status), "a Put: " + status.ToString());
  if (!status.ok()) return;
  known->acknowledged = number;
  known->open.erase(number);
}

void SharedKeyspace::Append(Member* member, size_t list) {
  const uint64_t number = ++last_appended_;
  const Status status = member->db->Merge({}, ListKey(list), std::to_string(number));
  case_->Expect(status.ok() || MayHaveBeenDone(status), "a Merge: " + status.ToString());
  if (status.ok()) appended_[list].insert(number);
}

void SharedKeyspace::Count(Member* member, size_t counter) {
  const std::unique_ptr<Transaction> transaction = NewTransaction(member);
  uint64_t seen[2] = {};
  for (size_t part = 0; part < 2; ++part) {
    std::string value;
    const Status status = transaction->GetForUpdate({}, CounterKey(counter, part), &value);
    // The lock is kept for long by a process that is frozen, or has died unnoticed.
    const bool locked = transactions_ == Transactions::kLocked && status.IsTimedOut();
    if (!locked) CheckRead(member, status, /*at_snapshot=*/false);
    if (!status.ok() && !status.IsNotFound()) return;
    seen[part] = NumberOf(value);
  }
  for (size_t part = 0; part < 2; ++part) {
    const Status status =
        transaction->Put(CounterKey(counter, part), std::to_string(seen[part] + 1));
    CheckRead(member, status, /*at_snapshot=*/false);
    if (!status.ok()) return;
  }
  Counted* const counted = &counted_[counter];
  ++counted->open;
  const Status status = transaction->Commit();
  case_->Expect(status.ok() || status.IsBusy() || MayHaveBeenDone(status),
                "a transaction: " + status.ToString());
  if (!status.ok() && !status.IsBusy()) return;
  --counted->open;
  conflicts_ += status.ok() ? 0 : 1;
  if (!status.ok()) return;
  ++counted->acknowledged;
  case_->Expect(seen[0] == seen[1],
                fmt::format("a transaction took place that has read {} and {}", seen[0], seen[1]));
}

// ---- Reading ------------------------------------------------------------------------------------

void SharedKeyspace::CheckRead(Member* member, const Status& status, bool at_snapshot) {
  // One that is frozen may have what another one asks for.
  const bool faulty = std::ranges::any_of(members_, [](const auto& each) { return each->faulty; });
  const bool expected = status.ok() || status.IsNotFound() || (at_snapshot && status.IsAborted()) ||
                        (faulty && MayHaveBeenDone(status));
  case_->Expect(expected, "a read of " + member->name + ": " + status.ToString());
}

bool SharedKeyspace::ReadKey(Member* member, const ReadOptions& options, const std::string& key,
                             uint64_t* number) {
  std::string value;
  const Status status = member->db->Get(options, key, &value);
  CheckRead(member, status, options.snapshot != nullptr);
  *number = NumberOf(value);
  return status.ok() || status.IsNotFound();
}

bool SharedKeyspace::ReadWhole(Member* member, size_t group, uint64_t* number) {
  std::vector<uint64_t> seen;
  const Status status = ReadGroup(scheduler_, member->db, group, shards_, &seen);
  CheckRead(member, status, /*at_snapshot=*/true);
  if (!status.ok()) return false;
  const std::string difference = DifferenceIn(group, seen);
  case_->Expect(difference.empty(), difference);
  *number = seen[0];
  return true;
}

void SharedKeyspace::Read(Member* member) {
  ++member->running;
  while (!rests_ && member->open) {
    const size_t group = scheduler_->Uniform(groups_.size());
    const Known& known = groups_[group];
    uint64_t last = known.acknowledged;
    uint64_t number = 0;
    if (ReadWhole(member, group, &number)) {
      case_->Expect(number >= last, "a read misses what was acknowledged before");
      last = number;
    }
    // One after the other, each sees no earlier state than the one before.
    for (int i = 0; i < 3 && !rests_; ++i) {
      if (!ReadKey(member, {}, KeyOfGroup(group, scheduler_->Uniform(shards_)), &number)) continue;
      case_->Expect(number >= last, "a read goes back from " + std::to_string(last) + " to " +
                                        std::to_string(number));
      case_->Expect(number <= known.begun, "a number that was never written");
      last = number;
    }
    if (scheduler_->OneIn(4)) CheckList(member, group);
    const size_t key = scheduler_->Uniform(plain_.size());
    const Known& plain = plain_[key];
    const uint64_t acknowledged = plain.acknowledged;
    if (ReadKey(member, {}, PlainKey(key), &number)) {
      case_->Expect(number >= acknowledged || plain.open.contains(number),
                    "a plain key is at " + std::to_string(number) + ", though " +
                        std::to_string(acknowledged) + " was acknowledged");
    }
    Clock::System()->SleepFor(microseconds(1 + scheduler_->Uniform(kPauseMax)));
  }
  --member->running;
}

void SharedKeyspace::CheckList(Member* member, size_t list) {
  const std::set<uint64_t> acknowledged = appended_[list];
  std::string value;
  const Status status = member->db->Get({}, ListKey(list), &value);
  CheckRead(member, status, /*at_snapshot=*/false);
  if (!status.ok() && !status.IsNotFound()) return;
  std::set<uint64_t> seen;
  std::istringstream numbers(value);
  for (std::string number; std::getline(numbers, number, ',');) {
    case_->Expect(seen.insert(NumberOf(number)).second, "appended twice: " + number);
  }
  for (const uint64_t number : acknowledged) {
    case_->Expect(seen.contains(number),
                  std::to_string(number) + " was appended, and is not there");
  }
}

void SharedKeyspace::CheckCounter(Member* member, size_t counter) {
  uint64_t numbers[2] = {};
  for (size_t part = 0; part < 2; ++part) {
    case_->Await("a read of a counter",
                 [&] { return ReadKey(member, {}, CounterKey(counter, part), &numbers[part]); });
  }
  const Counted& known = counted_[counter];
  case_->Expect(numbers[0] == numbers[1] && numbers[0] >= known.acknowledged &&
                    numbers[0] <= known.acknowledged + known.open,
                fmt::format("counter {} is at {} and {}, though it was counted {} times, and {} "
                            "more may have been",
                            counter, numbers[0], numbers[1], known.acknowledged, known.open));
}

void SharedKeyspace::Check() {
  for (Member* const member : Open()) {
    case_->In(member->process, [&] {
      for (size_t group = 0; group < groups_.size(); ++group) {
        CheckList(member, group);
        CheckCounter(member, group);
        uint64_t number = 0;
        case_->Await("a whole read", [&] { return ReadWhole(member, group, &number); });
        const Known& known = groups_[group];
        case_->Expect(number >= known.acknowledged && number <= known.begun,
                      "group " + std::to_string(group) + " is at " + std::to_string(number) +
                          ", though " + std::to_string(known.acknowledged) + " was acknowledged");
        const Known& plain = plain_[group];
        case_->Await("a plain read", [&] { return ReadKey(member, {}, PlainKey(group), &number); });
        case_->Expect(number >= plain.acknowledged || plain.open.contains(number),
                      "plain key " + std::to_string(group) + " is at " + std::to_string(number) +
                          ", though " + std::to_string(plain.acknowledged) + " was acknowledged");
      }
    });
  }
}

uint64_t SharedKeyspace::counted() const {
  uint64_t sum = 0;
  for (const Counted& each : counted_) sum += each.acknowledged;
  return sum;
}

uint64_t SharedKeyspace::written() const {
  uint64_t sum = 0;
  for (const Known& known : groups_) sum += known.acknowledged;
  for (const Known& known : plain_) sum += known.acknowledged;
  return sum;
}

}  // namespace nacre::sim
