#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ctl/database_view.h"
#include "ctl/finding.h"
#include "pool/pool_client.h"
#include "tests/support/sim/sim_cluster.h"
#include "tests/support/sim/sim_filter.h"
#include "tests/support/sim/sim_follower.h"
#include "tests/support/sim/sim_model.h"
#include "tests/support/sim/sim_owner.h"
#include "tests/support/sim/sim_scheduler.h"
#include "util/random.h"

namespace nacre::sim {

/// More of something than chance would have it.
struct StoryOptions {
  bool many_flips = false;
  bool many_scans = false;
  /// There is an even number of nodes, and owners lose sight of half of them, or of one more.
  bool many_splits = false;
  /// The manifest's ring is as small as it can be, goes around, and owners are killed.
  bool small_rings = false;
  /// There are three, and something happens to them.
  bool many_followers = false;
  /// Column families come and go, and owners with them.
  bool many_families = false;
  /// All is in the default one, so its tables are larger; as in half of the stories.
  bool one_family = false;
  /// Compactions filter; as in a quarter of the stories.
  bool filters = false;
  /// Repair has a low limit, as in a quarter of the stories, and nodes are killed.
  bool slow_repair = false;
  /// Nodes are stopped for longer than anybody waits.
  bool many_stops = false;
  /// Nodes pause, are slow for a while, and have packets that take long, all the time and several
  /// at once.
  bool heavy_tails = false;
  /// None is; such stories are told in a fraction of the time.
  bool no_long_stops = false;
};

/// A database through good and bad days: owners follow one another, killed, stopped and replaced,
/// or closed; nodes are killed and come back empty, join, are drained, filled by others, or lose
/// bits; networks are cut and slow, clocks leap; others follow the database and may be the next
/// owner. The seed decides what happens when. No more nodes
/// lose their memory, or parts of it, than the redundancy takes before all is whole again, so
/// nothing may be lost; and when the faults end, everything has to work again within a bound of
/// virtual time.
class Story {
 public:
  Story(Scheduler* scheduler, uint64_t seed, const StoryOptions& options);

  /// From the first opening to the last check. Returns a summary.
  std::string Run();

 private:
  /// So often it is looked whether something has come true.
  static constexpr std::chrono::milliseconds kLook{100};

  struct Redundancy {
    const char* name;
    size_t fragments;
    size_t spare;
  };
  static const Redundancy kRedundancies[];

  void Act();

  // Owners.
  /// `promoted`: the follower whose process it is to be; null: a new one.
  void StartOwner(bool take_over, Follower* promoted = nullptr);
  Owner& owner() { return *owners_.back(); }
  void AwaitOwner();
  void KillOwner();
  void StopOwner();
  void ReplaceOwner();
  void CloseOwner();

  // Followers (sim_story_followers.cc).
  void StartFollower();
  /// One is killed, stopped, slow or cut off; or there is one more.
  void DisturbFollower();
  /// Any one, which is the caller's from now on; null: there is none.
  Follower* TakeFollower();
  /// That they see all there is.
  void CheckFollowers();
  /// They have been told that the database is gone.
  void AwaitFollowersEnd();
  void AwaitFollower(const char* what, const Follower& follower, const std::function<bool()>& done);

  // Nodes (sim_story_faults.cc, as what follows).
  void KillNode();
  void StopNode();
  void StopFor(ProcessId process, uint64_t millis);
  void Continue(ProcessId process);
  void StartNodes();
  void SlowNode();
  void TailNode();
  void AddNode();
  void DrainNode();
  /// Another database takes all the room that there is, or nearly so.
  void FillNodes();
  /// Flips bits in what a node has of tables and manifest, and of the log unless it is followed.
  void FlipBits();
  /// Where the node has something of the database.
  std::vector<ExtentAddr> ExtentsOn(const pool::PoolClient& client, const ctl::DatabaseView& view,
                                    size_t node) const;

  // The network.
  void CutOff();
  void CutOffOwner();
  /// Lets the owner see some of the nodes, and its would-be successor the others.
  void SplitNetwork();
  /// The owner goes on with half of the nodes, or one less, and then there is a successor that sees
  /// the others only.
  void HalveNetwork();
  void Cut(ProcessId a, ProcessId b, uint64_t ways, uint64_t millis);

  // Clocks.
  void LeapClock();

  /// Calls `kill` soon: now, while some request of the process is on its way, or at some named
  /// point that it reaches. Returns when it is dead.
  void KillSomewhere(ProcessId process, const std::function<void()>& kill);
  /// Whether one more node may lose what it has; it counts as lost then.
  bool SpareNode();
  /// How long a fault may last that would cost `nodes` if it took longer than connections outlive;
  /// 0: not at all.
  uint64_t Bounded(uint64_t millis, size_t nodes);
  /// From here on until all is whole something stands between owners and nodes.
  void Disturb();

  // The end (sim_story_end.cc).
  /// All faults end.
  void Heal();
  /// Until nothing is missing, and any nodes may be lost that the redundancy takes.
  void AwaitWhole();
  /// Until no bit is wrong.
  void AwaitSound();
  ctl::FsckReport Check(bool full);
  Status WithPool(const std::function<Status(pool::PoolClient*)>& body);
  void VerifyInOwner();
  /// Has a thread of the owner's process do it, and waits for its end.
  void InOwner(const std::function<void()>& body);
  void CheckAll();
  /// That all space is accounted for, while nothing is going on.
  void AwaitNoUnlinkedSpace();
  /// Nothing stays of a database that is destroyed, though the process that does it may be killed
  /// meanwhile.
  void Destroy();
  /// The owner closes the database.
  void FinishOwner();

  /// Fails unless it comes true in time.
  void Await(const char* what, std::chrono::seconds patience, const std::function<bool()>& done);
  void Sleep(std::chrono::nanoseconds time) { scheduler_->SleepFor(time); }
  void Tell(const std::string& what) { scheduler_->Log("*** " + what); }

  const StoryOptions options_;
  Scheduler* const scheduler_;
  Random random_;
  bool one_family_ = false;
  const SimFilter filter_;
  const Redundancy& redundancy_;
  Cluster* const cluster_;
  Model* const model_;
  Options database_;
  std::vector<std::unique_ptr<Owner>> owners_;
  std::vector<Follower*> followers_;  ///< That follow still. They live for ever.
  size_t followers_made_ = 0;
  uint64_t lost_by_followers_ = 0;
  std::vector<ProcessId> stopped_;
  std::vector<ProcessId> others_;  ///< Databases that fill the nodes.
  /// What is known of a process that is to be killed there: how many points it has still to reach,
  /// and how.
  struct Ambush {
    uint64_t left = 0;
    std::function<void()> kill{};
  };
  std::map<ProcessId, Ambush> ambushes_;
  /// Nodes that lost their memory since all was whole, or that an owner did without.
  size_t lost_ = 0;
  bool disturbed_ = false;
  bool flipped_ = false;
  bool drained_ = false;
  uint64_t manifest_version_ = 0;  ///< That all is known to have come to.
  uint64_t faults_ = 0;
  std::string found_;  ///< What the last check said.
};

/// A Scenario: the whole story of a seed.
std::string TellStory(Scheduler* scheduler, uint64_t seed);
std::string TellStoryWith(const StoryOptions& options, Scheduler* scheduler, uint64_t seed);

}  // namespace nacre::sim
