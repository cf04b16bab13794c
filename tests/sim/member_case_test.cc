// Goal: the members of a keyspace know one another and have one leader, whatever happens to them;
// the map is changed by the one that leads, and by no other, and no change of it is lost.
// Method: some processes over a simulated coordinator, that die, stop for a while, are cut off from
// the coordinator, leave and join, while each that believes to lead counts the map up.
// For several seeds each.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sharding/members/membership.h"
#include "tests/support/sim/sim_case.h"
#include "tests/support/sim/sim_coordinator.h"
#include "tests/support/sim/sim_run.h"
#include "util/clock.h"

namespace nacre::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kLease{2000};
constexpr char kPrefix[] = "/nacre/v1/default/keys/";

Deadline In(std::chrono::nanoseconds time) { return Deadline::After(Clock::System(), time); }

/// A process that has joined. What it has lives until the simulation ends.
struct Process {
  ProcessId id = 0;
  std::unique_ptr<Membership> membership;
  int64_t last_revision = 0;
  bool leads = false;  ///< By its own clock, a moment ago.
  bool dead = false;
};

class Members {
 public:
  Members(Scheduler* scheduler, Case* c) : scheduler_(scheduler), case_(c), store_(scheduler) {
    store_.Observe([this](const std::vector<Coordinator::Change>& changes) {
      for (const Coordinator::Change& change : changes) {
        if (change.key != kPrefix + std::string("map") || change.only_check) continue;
        case_->Expect(store_.HolderOf(kPrefix + std::string("leader")) == scheduler_->process(),
                      "a member changes the map that does not lead");
      }
    });
  }

  Process* Join() {
    auto* const process = processes_.emplace_back(std::make_unique<Process>().release());
    process->id = case_->NewProcess("m" + std::to_string(processes_.size()));
    case_->In(process->id, [&] {
      const auto changed = [this, process](const std::shared_ptr<const KeyspaceState>& state) {
        case_->Expect(state->revision >= process->last_revision, "a state goes back");
        process->last_revision = state->revision;
      };
      case_->Expect(Membership::Join(
          store_.Connect(), Clock::System(),
          {.keyspace = "keys", .address = scheduler_->NameOf(process->id), .lease = kLease},
          changed, In(seconds(5)), &process->membership));
    });
    case_->cluster().Run(process->id, "count", [this, process] { Count(process); });
    return process;
  }

  void Kill(Process* process) {
    process->dead = true;
    case_->cluster().KillProcess(process->id, scheduler_->OneIn(2));
  }
  void Leave(Process* process) {
    case_->In(process->id, [&] { process->membership->Leave(); });
    process->dead = true;
  }
  void StopFor(Process* process, milliseconds time) {
    scheduler_->Stop(process->id);
    Sleep(time);
    scheduler_->Continue(process->id);
  }
  /// Stops the leader when it is about to change the map, which no other one changes meanwhile.
  void StopBeforeAChange(milliseconds time) {
    only_ = Leader();
    if (only_ == nullptr) return;
    bool stopped = false;
    SetPointVisitor([this, &stopped](const char* name) {
      if (stopped || scheduler_->process() != only_->id) return;
      if (name != std::string_view("keyspace.map-change-begun")) return;
      stopped = true;
      scheduler_->Stop(only_->id);
    });
    case_->Await("a change", [&] { return stopped || !only_->leads; });
    SetPointVisitor(nullptr);
    Sleep(time);
    scheduler_->Continue(only_->id);
    Sleep(milliseconds(20));
    only_ = nullptr;
  }
  void Sleep(milliseconds time) {
    const uint64_t end =
        scheduler_->TrueNanos() + static_cast<uint64_t>(std::chrono::nanoseconds(time).count());
    while (scheduler_->TrueNanos() < end) scheduler_->SleepFor(milliseconds(1));
  }
  /// All that live see one another, one leader, and what the map was changed to.
  void AwaitAgreement() {
    store_.Heal();
    case_->Await("agreement", [this] { return Agree(); });
  }
  SimStore& store() { return store_; }
  const std::vector<Process*>& processes() const { return processes_; }
  Process* Leader() const {
    for (Process* const process : processes_) {
      if (!process->dead && process->leads) return process;
    }
    return nullptr;
  }
  size_t living() const {
    return static_cast<size_t>(std::ranges::count(processes_, false, &Process::dead));
  }
  uint64_t counted() const { return counted_; }

 private:
  bool Agree() const {
    const Process* const leader = Leader();
    if (leader == nullptr) return false;
    for (const Process* const process : processes_) {
      if (process->dead) continue;
      const std::shared_ptr<const KeyspaceState> state = process->membership->state();
      if (process->membership->id() == 0 || state->members.size() != living() ||
          state->Find(process->membership->id()) == nullptr ||
          state->leader != leader->membership->id() || NumberOf(*state) < counted_) {
        return false;
      }
    }
    return true;
  }

  static uint64_t NumberOf(const KeyspaceState& state) {
    return state.map.empty() ? 0 : std::stoull(state.map);
  }
  /// Whether it leads, which the store has to confirm as long as it is so.
  bool Leads(Process* process) const {
    if (!process->membership->leads()) return false;
    const ProcessId holder = store_.HolderOf(kPrefix + std::string("leader"));
    if (!process->membership->leads()) return false;
    case_->Expect(holder == process->id, "a member leads after its lease");
    return true;
  }

  /// Counts the map up while it leads. A change that was made from an old state is not made.
  void Count(Process* process) {
    for (;;) {
      Membership* const membership = process->membership.get();
      const std::shared_ptr<const KeyspaceState> state = membership->state();
      process->leads = Leads(process);
      if (process->leads && (only_ == nullptr || only_ == process)) {
        const uint64_t number = NumberOf(*state) + 1;
        bool done = false;
        // Now and then it comes late.
        if (scheduler_->OneIn(8)) Clock::System()->SleepFor(kLease + milliseconds(500));
        const Status s = membership->ChangeMap(state->map_changed, std::to_string(number),
                                               In(milliseconds(500)), &done);
        case_->Expect(s.ok() || s.IsTimedOut() || s.IsUnavailable(), s.ToString());
        if (s.ok() && done) {
          case_->Expect(number > counted_, "a change of the map was overwritten");
          counted_ = number;
        }
      }
      Clock::System()->SleepFor(milliseconds(1 + scheduler_->Uniform(20)));
    }
  }

  Scheduler* const scheduler_;
  Case* const case_;
  SimStore store_;
  std::vector<Process*> processes_;
  uint64_t counted_ = 0;
  const Process* only_ = nullptr;  ///< No other one changes the map.
};

std::string TellOfMembers(Scheduler* scheduler, Case* c) {
  auto* const members = std::make_unique<Members>(scheduler, c).release();
  for (int i = 0; i < 3; ++i) members->Join();
  members->AwaitAgreement();
  for (int round = 0; round < 6; ++round) {
    Process* const leader = members->Leader();
    Process* const process =
        scheduler->OneIn(2) && leader != nullptr
            ? leader
            : members->processes()[members->processes().size() - 1 - scheduler->Uniform(2)];
    if (process->dead) continue;
    const uint64_t ended = static_cast<uint64_t>(process->membership->id());
    switch (scheduler->Uniform(5)) {
      case 0: {
        members->Kill(process);
        members->Join();
        // Another one sees that it has ended.
        Process* const other = members->processes().back();
        c->In(other->id, [&] {
          c->Expect(
              other->membership->EndMember(static_cast<Coordinator::Lease>(ended), In(seconds(1))));
        });
        break;
      }
      case 1:
        members->Leave(process);
        members->Join();
        break;
      case 2:
        members->StopFor(process, milliseconds(500 + scheduler->Uniform(4000)));
        break;
      case 3:
        members->StopBeforeAChange(milliseconds(500 + scheduler->Uniform(4000)));
        break;
      default:
        members->store().CutOff(process->id);
        members->Sleep(milliseconds(500 + scheduler->Uniform(4000)));
    }
    members->AwaitAgreement();
  }
  c->Expect(members->counted() > 0, "nothing was counted");
  return std::to_string(members->counted());
}

TEST(MemberCaseTest, OneLeadsAndNoChangeOfTheMapIsLost) {
  Tell(TellOfMembers, {.nodes = 1, .region_bytes = 16 << 20}, 20);
}

TEST(MemberCaseTest, AMemberIsTakenForDeadBeforeItsLeaseEndsIfItWasSeenToEnd) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        auto* const members = std::make_unique<Members>(scheduler, c).release();
        for (int i = 0; i < 3; ++i) members->Join();
        members->AwaitAgreement();
        Process* const leader = members->Leader();
        const Coordinator::Lease ended = leader->membership->id();
        members->Kill(leader);
        const uint64_t begun = scheduler->TrueNanos();
        Process* const other = members->processes()[members->processes()[0] == leader ? 1 : 0];
        c->In(other->id, [&] { c->Expect(other->membership->EndMember(ended, In(seconds(1)))); });
        members->AwaitAgreement();
        const uint64_t took = (scheduler->TrueNanos() - begun) / 1'000'000;
        c->Expect(took < 500, "another one led after " + std::to_string(took) + " ms");
        return std::string("led");
      },
      {.nodes = 1, .region_bytes = 16 << 20}, 20);
}

}  // namespace
}  // namespace nacre::sim
