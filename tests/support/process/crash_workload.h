#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "nacre/db.h"
#include "tests/support/process/crash_points.h"

namespace nacre {

/// What the owner of a database does before it dies. All of it follows from the seed, and its
/// writes go one after the other, so the number of acknowledged ones tells what the database holds.
struct CrashPlan {
  /// What is to be gone through.
  enum class Course : uint8_t {
    kLife,      ///< Make the database, write, flush, compact, close, destroy it.
    kDrain,     ///< Take over a database while nodes come and others are to be left; write; close.
    kTakeOver,  ///< Take over, flush what was replayed, write.
    /// Open, write the first half, make a checkpoint; the second half, and another; remove the
    /// first; close, and restore the second.
    kCheckpoint,
  };
  Course course = Course::kLife;
  std::string pool_uri;
  std::string redundancy;
  uint64_t seed = 1;
  uint64_t first = 1;      ///< Number of its first write: those before were another process's.
  uint64_t writes = 45;    ///< So many.
  std::string dir = "";    ///< kCheckpoint: of the checkpoints.
  std::string added = "";  ///< kDrain: address of the node that comes.
  uint64_t directions_version = 0;  ///< kDrain: of those that say so.
  /// kLife: dies at its end, with what was written last only in the log.
  bool die_at_end = false;
};

/// The name of the database.
inline constexpr char kCrashDatabase[] = "crash";
/// And of what is restored from its checkpoint.
inline constexpr char kCrashCopy[] = "crash-copy";

/// Options under which each kind of point is met within a megabyte of writes.
Options CrashOptions(const std::string& pool_uri, const std::string& redundancy);

/// The plan's course. `points` is told of each write.
Status RunCrashPlan(const CrashPlan& plan, CrashPoints* points);

using CrashModel = std::map<std::string, std::string>;

/// What the database holds after `writes` of the seed.
CrashModel ModelOf(uint64_t seed, uint64_t writes);

/// Does write `number` of the seed.
Status WriteOne(DB* db, uint64_t seed, uint64_t number);

/// What `db` holds, by an iterator; a failure, or a Get that answers otherwise, fails the test.
CrashModel Contents(DB* db);

/// As Open, while the nodes may be about to notice that the last owner is gone. A failure fails the
/// test.
std::unique_ptr<DB> OpenAfterCrash(const Options& options);

/// The process that is to die, for the test that starts it: returns false in any other. What goes
/// wrong in it is told through the points.
bool RunCrashProcess();

/// Runs the plan in a process of its own, and returns how it ended: -1 if by a signal, else its
/// exit code, and what it printed.
int RunInCrashProcess(const std::string& binary, const CrashPlan& plan, const CrashPoints& points,
                      std::string* output);

}  // namespace nacre

/// The test that is the process to die.
#define CRASH_PROCESS_CHILD()                                           \
  TEST(CrashProcessChild, Run) {                                        \
    if (!nacre::RunCrashProcess()) GTEST_SKIP() << "started by others"; \
  }
