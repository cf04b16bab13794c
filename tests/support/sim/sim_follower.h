#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nacre/db.h"
#include "nacre/options.h"
#include "tests/support/sim/sim_cluster.h"
#include "tests/support/sim/sim_follower_model.h"
#include "tests/support/sim/sim_model.h"
#include "util/random.h"

namespace nacre::sim {

struct FollowerOptions {
  uint32_t number = 1;
  uint64_t seed = 1;
  int readers = 2;
  uint64_t scan_one_in = 50;  ///< One in so many reads is an iterator over everything.
  Options database{};
};

/// A simulated process that follows the database: opens it as a secondary, and reads and catches up
/// by several threads until it is told to end. What it shows is judged by a FollowerModel.
///
/// Thread safety: as Simulation. Lives until the simulation's process ends.
class Follower {
 public:
  Follower(Cluster* cluster, Model* model, const FollowerOptions& options);

  ProcessId process() const { return process_; }
  uint32_t number() const { return options_.number; }
  bool opened() const { return opened_; }
  bool ended() const { return ended_; }
  const Status& last_failure() const { return last_failure_; }
  const FollowerModel& model() const { return follower_model_; }
  /// It closes the database.
  void Finish() { finishing_ = true; }
  /// From now on the database may be gone, which ends the reading.
  void ExpectDestruction() { destruction_ = true; }
  /// It has been told that the database is gone.
  bool knows_of_destruction() const { return knows_of_destruction_; }

  /// Catches up and looks at everything, which has to be all that was acknowledged. False: not now.
  /// By a thread of its process.
  bool ShowsAll();

 private:
  void Run();
  bool Open();
  Status TryOpen();
  void Read(int reader);
  Status ReadSome(Random* random);
  Status CatchUp();
  Status ReadGroup(Random* random);
  Status Scan(Random* random);
  Status ReadBySnapshot(Random* random);
  void Judge(const Status& status);
  void Pause(Random* random, uint64_t micros_max);

  Cluster* const cluster_;
  Model* const model_;
  const FollowerOptions options_;
  const ProcessId process_;
  FollowerModel follower_model_;
  std::unique_ptr<DB> db_;
  OpenDatabase database_;
  bool opened_ = false;
  bool ended_ = false;
  bool finishing_ = false;
  bool destruction_ = false;
  bool knows_of_destruction_ = false;
  Status last_failure_;
};

}  // namespace nacre::sim
