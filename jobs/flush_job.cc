#include "jobs/flush_job.h"

#include <memory>
#include <utility>

#include "jobs/log_updates.h"
#include "util/clock.h"
#include "util/exceptions.h"

namespace nacre::pool {

Status RunFlush(const FlushJob& job, const JobPlugins& plugins, TableStore* store,
                const std::atomic<bool>* cancelled, std::shared_ptr<ArenaBlockSource> blocks,
                CompactionResult* result) try {
  const uint64_t cpu_start = ThreadCpuNanos();
  LogUpdates updates(job, plugins.comparator, std::move(blocks));
  NACRE_RETURN_IF_ERROR(updates.Load(store, cancelled));
  const std::unique_ptr<InternalIterator> input = updates.NewIterator();
  NACRE_RETURN_IF_ERROR(
      RunMerge(job.merge, input.get(), nullptr, plugins, store, cancelled, result));
  result->cpu_nanos = ThreadCpuNanos() - cpu_start;
  return Status::OK();
} catch (...) {
  return StatusOfException();
}

}  // namespace nacre::pool
