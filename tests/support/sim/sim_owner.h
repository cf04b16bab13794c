#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "nacre/db.h"
#include "nacre/options.h"
#include "tests/support/sim/sim_cluster.h"
#include "tests/support/sim/sim_follower.h"
#include "tests/support/sim/sim_model.h"
#include "util/random.h"

namespace nacre::sim {

struct OwnerOptions {
  uint32_t number = 1;  ///< Owners are numbered in the order in which they are to follow.
  bool first = false;   ///< There is no database yet.
  bool take_over = false;
  Follower* promoted = nullptr;  ///< Ends first; the owner is of its process. Null: of a new one.
  int writers = 2;
  uint64_t seed = 1;
  uint64_t scan_one_in = 50;    ///< One in so many reads is an iterator over everything.
  uint64_t family_one_in = 60;  ///< Instead of one in so many writes, a family comes or goes.
  Options database{};
};

/// A simulated process that owns the database: opens it, writes and reads by several threads as the
/// model has it, and closes it when it is told to, or stops when it is fenced.
///
/// Thread safety: as Simulation. Lives until the simulation's process ends.
class Owner {
 public:
  Owner(Cluster* cluster, Model* model, const OwnerOptions& options);

  ProcessId process() const { return process_; }
  uint32_t number() const { return options_.number; }
  bool opened() const { return opened_; }
  /// It has closed the database, or has stopped as it was fenced.
  bool ended() const { return ended_; }
  bool fenced() const { return fenced_; }
  /// Writes that were acknowledged to it.
  uint64_t writes() const { return writes_; }
  const Status& last_failure() const { return last_failure_; }
  /// It stops writing, and closes the database.
  void Finish() { finishing_ = true; }
  /// It stops writing, and goes on owning it.
  void Rest() { resting_ = true; }
  /// The present database; callers copy it, as families come and go.
  OpenDatabase database() const { return database_; }

 private:
  void Run();
  bool Open();
  Status TryOpen();
  void Write(int writer);
  /// Writes to one of these groups, or deletes some.
  Status WriteSome(size_t first, size_t count, Random* random);
  Status ChangeFamilies(Random* random);
  Status CreateFamily();
  Status DropFamily();
  void Read();
  void ReadBySnapshot(Random* random);
  /// False if the thread is to end.
  bool Judge(const Status& status);
  void Pause(Random* random, uint64_t micros_max);

  Cluster* const cluster_;
  Model* const model_;
  const OwnerOptions options_;
  const ProcessId process_;
  std::unique_ptr<DB> db_;
  OpenDatabase database_;
  /// Which is to be dropped, until that is acknowledged.
  std::pair<uint32_t, FamilyHandle> dropping_;
  bool opened_ = false;
  bool ended_ = false;
  bool fenced_ = false;
  bool finishing_ = false;
  bool resting_ = false;
  uint64_t writes_ = 0;
  Status last_failure_;
};

}  // namespace nacre::sim
