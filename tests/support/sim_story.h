#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ctl/finding.h"
#include "tests/support/sim_cluster.h"
#include "tests/support/sim_model.h"
#include "tests/support/sim_owner.h"
#include "tests/support/sim_scheduler.h"
#include "util/random.h"

namespace nacre::sim {

/// A database through good and bad days: owners follow one another, killed, stopped and replaced,
/// or closed; nodes are killed and come back empty; networks are cut and slow. The seed decides
/// what happens when. No more nodes lose their memory than the redundancy takes before all is whole
/// again, so nothing may be lost; and when the faults end, everything has to work again within a
/// bound of virtual time.
class Story {
 public:
  Story(Scheduler* scheduler, uint64_t seed);

  /// From the first opening to the last check. Returns a summary.
  std::string Run();

 private:
  struct Redundancy {
    const char* name;
    size_t fragments;
    size_t spare;
  };
  static const Redundancy kRedundancies[];

  void Act();

  // Owners.
  void StartOwner(bool take_over);
  Owner& owner() { return *owners_.back(); }
  void AwaitOwner();
  void KillOwner();
  void StopOwner();
  void ReplaceOwner();
  void CloseOwner();

  // Nodes.
  void KillNode();
  void StartNodes();
  void SlowNode();

  // The network.
  void CutOff();
  void CutOffOwner();

  /// All faults end.
  void Heal();
  /// Until nothing is missing, and any nodes may be lost that the redundancy takes.
  void AwaitWhole();
  ctl::FsckReport Check(bool full);
  /// Has a thread of the owner's process do it, and waits for its end.
  void InOwner(const std::function<void()>& body);
  void CheckAll();

  /// Fails unless it comes true in time.
  void Await(const char* what, std::chrono::seconds patience, const std::function<bool()>& done);
  void Sleep(std::chrono::nanoseconds time) { scheduler_->SleepFor(time); }
  void Tell(const std::string& what) { scheduler_->Log("*** " + what); }

  Scheduler* const scheduler_;
  Random random_;
  const Redundancy& redundancy_;
  Cluster* const cluster_;
  Model* const model_;
  std::vector<std::unique_ptr<Owner>> owners_;
  std::vector<ProcessId> stopped_;
  /// Nodes that lost their memory since all was whole, or that an owner did without.
  size_t lost_ = 0;
  uint64_t node_kills_ = 0;
  uint64_t cuts_ = 0;
  std::string found_;  ///< What the last check said.
};

/// A Scenario: the whole story of a seed.
std::string TellStory(Scheduler* scheduler, uint64_t seed);

}  // namespace nacre::sim
