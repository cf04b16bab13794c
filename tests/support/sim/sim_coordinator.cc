#include "tests/support/sim/sim_coordinator.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <string_view>
#include <utility>

#include "util/clock.h"

namespace nacre::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

/// How long an answer takes on its way, each way.
constexpr uint64_t kMicrosMax = 800;
/// How often a wait for changes looks for one.
constexpr microseconds kWatchLook{1500};

}  // namespace

class SimStore::Connection final : public Coordinator {
 public:
  explicit Connection(SimStore* store) : store_(store) {}

  Status Read(const std::string& prefix, Deadline deadline, std::vector<Entry>* entries,
              int64_t* revision) override {
    return Call(deadline, [&] {
      entries->clear();
      for (auto it = store_->entries_.lower_bound(prefix);
           it != store_->entries_.end() && it->first.starts_with(prefix); ++it) {
        entries->push_back(it->second);
      }
      *revision = store_->revision_;
      return Status::OK();
    });
  }

  Status Commit(const std::vector<Change>& changes, Deadline deadline, bool* done) override {
    *done = false;
    return Call(deadline, [&] {
      for (const Change& change : changes) {
        const auto it = store_->entries_.find(change.key);
        const int64_t changed = it == store_->entries_.end() ? 0 : it->second.changed;
        if (changed != change.expected) return Status::OK();
      }
      for (const Change& change : changes) {
        if (change.lease != 0 && !store_->Alive(change.lease)) {
          return Status::NotFound("the lease has ended");
        }
      }
      if (store_->observer_) store_->observer_(changes);
      ++store_->revision_;
      for (const Change& change : changes) {
        if (change.only_check) continue;
        store_->changes_[change.key] = store_->revision_;
        if (change.value.has_value()) {
          store_->entries_[change.key] = {.key = change.key,
                                          .value = *change.value,
                                          .changed = store_->revision_,
                                          .lease = change.lease};
        } else {
          store_->entries_.erase(change.key);
        }
      }
      *done = true;
      return Status::OK();
    });
  }

  Status AwaitChange(const std::string& prefix, int64_t revision, Deadline deadline) override {
    while (!deadline.Expired()) {
      if (store_->reaches(process_())) {
        store_->EndLeases();
        if (store_->ChangedSince(prefix, revision)) return Status::OK();
      }
      Clock::System()->SleepFor(std::min<nanoseconds>(kWatchLook, deadline.Remaining()));
    }
    return Status::TimedOut("nothing has changed");
  }

  Status GrantLease(std::chrono::milliseconds ttl, Deadline deadline, Lease* lease) override {
    return Call(deadline, [&] {
      const uint64_t nanos = static_cast<uint64_t>(nanoseconds(ttl).count());
      *lease = ++store_->last_lease_;
      store_->leases_[*lease] = {
          .holder = process_(), .nanos = nanos, .end = store_->scheduler_->TrueNanos() + nanos};
      return Status::OK();
    });
  }

  Status KeepLease(Lease lease, Deadline deadline) override {
    return Call(deadline, [&] {
      if (!store_->Alive(lease)) return Status::NotFound("the lease has ended");
      LeaseTime& time = store_->leases_[lease];
      time.end = store_->scheduler_->TrueNanos() + time.nanos;
      return Status::OK();
    });
  }

  Status EndLease(Lease lease, Deadline deadline) override {
    return Call(deadline, [&] {
      store_->EndLease(lease);
      return Status::OK();
    });
  }

  const std::string& name() const override { return name_; }

 private:
  ProcessId process_() const { return store_->scheduler_->process(); }

  /// The request and the answer may be lost, each.
  Status Call(Deadline deadline, const std::function<Status()>& take_place) {
    NACRE_RETURN_IF_ERROR(Travel(deadline));
    store_->EndLeases();
    Status s = take_place();
    NACRE_RETURN_IF_ERROR(Travel(deadline));
    return s;
  }
  Status Travel(Deadline deadline) {
    Clock::System()->SleepFor(microseconds(50 + store_->scheduler_->Uniform(kMicrosMax)));
    if (store_->reaches(process_())) return Status::OK();
    Clock::System()->SleepFor(deadline.Remaining());
    return Status::TimedOut("the coordinator does not answer");
  }

  SimStore* const store_;
  const std::string name_ = "sim";
};

std::shared_ptr<Coordinator> SimStore::Connect() { return std::make_shared<Connection>(this); }

ProcessId SimStore::HolderOf(const std::string& key) const {
  const auto entry = entries_.find(key);
  if (entry == entries_.end()) return 0;
  const auto lease = leases_.find(entry->second.lease);
  return lease == leases_.end() ? 0 : lease->second.holder;
}

void SimStore::EndLeases() {
  std::vector<Coordinator::Lease> ended;
  for (const auto& [lease, time] : leases_) {
    if (time.end <= scheduler_->TrueNanos()) ended.push_back(lease);
  }
  for (const Coordinator::Lease lease : ended) EndLease(lease);
}

void SimStore::EndLease(Coordinator::Lease lease) {
  if (leases_.erase(lease) == 0) return;
  ++revision_;
  std::erase_if(entries_, [&](const auto& entry) {
    if (entry.second.lease != lease) return false;
    changes_[entry.first] = revision_;
    return true;
  });
}

bool SimStore::Alive(Coordinator::Lease lease) { return leases_.contains(lease); }

bool SimStore::ChangedSince(const std::string& prefix, int64_t revision) const {
  return std::ranges::any_of(changes_, [&](const auto& change) {
    return change.second > revision && std::string_view(change.first).starts_with(prefix);
  });
}

}  // namespace nacre::sim
