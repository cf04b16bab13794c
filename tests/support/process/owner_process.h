#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/temp_folder.h"

namespace nacre {

/// What an owner process does with its database. Every thread has keys of its own, and its n-th
/// operation follows from the seed alone, so the number of operations that a thread has had
/// acknowledged tells what the database must hold.
struct OwnerPlan {
  std::string pool_uri;
  std::string database = "db";
  std::string redundancy = "none";
  std::string prefix = "";  ///< Prefix of its keys.
  uint64_t seed = 1;
  uint32_t threads = 4;
  uint64_t keys_per_thread = 500;
  uint64_t write_buffer_size = 512 << 10;
  bool allow_degraded_writes = false;
  bool take_over = false;
  std::string log_path = "";  ///< File for what the database says; empty: none.
};

/// What happened to a thread of an owner. In memory that owner and test share, so that it outlives
/// the owner.
struct OwnerProgress {
  uint64_t acknowledged = 0;  ///< Operations.
  char message[240] = {};     ///< The status that ended it; written before `failure`.
  int64_t failure = 0;        ///< Its code; 0: none did.
};

/// A process that owns a database and writes to it until it is killed or a write fails.
///
/// The process is the test's own binary, run anew with the filter OwnerProcessChild.Run, so a
/// binary that uses this includes OWNER_PROCESS_CHILD() once.
class OwnerProcess {
 public:
  /// `binary`: of the test ("db_tests"). Failures to start fail the test.
  OwnerProcess(const std::string& binary, const OwnerPlan& plan);
  ~OwnerProcess();
  OwnerProcess(const OwnerProcess&) = delete;
  OwnerProcess& operator=(const OwnerProcess&) = delete;

  const OwnerPlan& plan() const { return plan_; }
  /// Whether each thread had `operations` more acknowledged before a time far beyond what it takes.
  bool AwaitProgress(uint64_t operations);
  /// The code with which the writes of each thread ended, once they have; -1 if one goes on for a
  /// time far beyond what it takes.
  std::vector<int64_t> AwaitFailures();
  /// Whether it has died, though not by this object.
  bool died() const;
  void Kill() { process_->Kill(); }
  void Stop();
  void Continue();

  /// Fails the test unless `db` holds what was acknowledged, and of each thread's next operation
  /// all or nothing. For an owner that is gone, or fenced.
  void Check(DB* db) const;

 private:
  const OwnerPlan plan_;
  const TempFolder folder_;
  volatile OwnerProgress* progress_ = nullptr;
  std::unique_ptr<ChildProcess> process_;
};

/// The owner's side: returns when a write fails, or the database cannot be opened.
void RunOwner();

/// Whether this process is an owner.
bool IsOwnerProcess();

}  // namespace nacre

/// The test that is the owner process.
#define OWNER_PROCESS_CHILD()                                          \
  TEST(OwnerProcessChild, Run) {                                       \
    if (!nacre::IsOwnerProcess()) GTEST_SKIP() << "started by others"; \
    nacre::RunOwner();                                                 \
  }
