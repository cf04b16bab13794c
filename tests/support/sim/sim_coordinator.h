#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sharding/members/coordinator.h"
#include "tests/support/sim/sim_scheduler.h"

namespace nacre::sim {

/// What stands for etcd in a simulation: one linearizable store, whose leases go by true time. It
/// does not end; processes can be cut off from it. Each call takes some time before it takes place
/// and some after, in which its process may end.
///
/// Thread safety: as Simulation. Nothing is a scheduling point but the calls of Connection.
class SimStore {
 public:
  explicit SimStore(Scheduler* scheduler) : scheduler_(scheduler) {}

  /// As the process of the calling thread reaches it.
  std::shared_ptr<Coordinator> Connect();

  /// Called with each commit that takes place, before it does.
  void Observe(std::function<void(const std::vector<Coordinator::Change>& changes)> observer) {
    observer_ = std::move(observer);
  }
  /// The process that was granted the lease of the entry; 0 if there is no such entry.
  ProcessId HolderOf(const std::string& key) const;

  /// Calls of the process take place no more, nor are they answered, until Heal.
  void CutOff(ProcessId process) { cut_off_.insert(process); }
  void Heal() { cut_off_.clear(); }

 private:
  class Connection;

  bool reaches(ProcessId process) const { return !cut_off_.contains(process); }
  void EndLeases();
  void EndLease(Coordinator::Lease lease);
  bool Alive(Coordinator::Lease lease);
  bool ChangedSince(const std::string& prefix, int64_t revision) const;

  struct LeaseTime {
    ProcessId holder = 0;
    uint64_t nanos = 0;
    uint64_t end = 0;  ///< By TrueNanos.
  };

  Scheduler* const scheduler_;
  std::map<std::string, Coordinator::Entry> entries_;
  std::map<std::string, int64_t> changes_;  ///< By key; deleted ones, too.
  std::map<Coordinator::Lease, LeaseTime> leases_;
  int64_t revision_ = 1;
  Coordinator::Lease last_lease_ = 0;
  std::set<ProcessId> cut_off_;
  std::function<void(const std::vector<Coordinator::Change>& changes)> observer_;
};

}  // namespace nacre::sim
