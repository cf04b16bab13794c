#pragma once

#include <memory>

#include "util/threads/executor.h"
#include "util/threads/task_threads.h"

namespace nacre::pool {

/// What the databases that share a pool do in the background runs here, whichever of them it is of.
///
/// Each kind of work that databases do by themselves has an executor that bounds how many do it at
/// a time, so that many databases do not ask the nodes all at once. None of it waits for other
/// work that waits for its turn: what is waited for (segments of the log, leases of slabs) runs at
/// once (TaskThreads::ticks).
struct Background {
  TaskThreads threads;
  /// Renewals of leases, which reads depend on.
  const std::unique_ptr<Executor> leases = threads.NewExecutor(4, "nacre-owner");
  /// Looks at the nodes, and reports to them.
  const std::unique_ptr<Executor> looks = threads.NewExecutor(4, "nacre-members");
  const std::unique_ptr<Executor> manifests = threads.NewExecutor(4, "nacre-manifest");
  const std::unique_ptr<Executor> repairs = threads.NewExecutor(8, "nacre-repair");
  /// Passes over all that a database has are slow on purpose: databases take turns.
  const std::unique_ptr<Executor> table_scrubs = threads.NewExecutor(2, "nacre-scrub");
  const std::unique_ptr<Executor> metadata_scrubs = threads.NewExecutor(2, "nacre-scrub-log");
};

}  // namespace nacre::pool
