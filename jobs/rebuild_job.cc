#include "jobs/rebuild_job.h"

#include <utility>

#include "pool/store/table_store.h"
#include "util/clock.h"

namespace nacre::pool {

Status RunRebuild(const RebuildJob& job, TableStore* store, const std::atomic<bool>* cancelled,
                  RebuildResult* result) {
  const uint64_t cpu_start = ThreadCpuNanos();
  for (const TableRebuild& table : job.tables) {
    Status status = store->Rebuild(table, cancelled, result, job.write_keys);
    if (status.IsAborted()) return status;
    result->tables.push_back(std::move(status));
  }
  result->cpu_nanos = ThreadCpuNanos() - cpu_start;
  return Status::OK();
}

}  // namespace nacre::pool
