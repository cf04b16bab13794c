#pragma once

#include <atomic>

#include "jobs/compaction_job.h"
#include "jobs/flush_job.h"
#include "jobs/rebuild_job.h"
#include "jobs/scrub_job.h"
#include "nacre/status.h"
#include "pool/pool_client.h"
#include "pool/space/pending_writes.h"

namespace nacre::pool {

/// Runs the job (a CompactionJob, FlushJob, RebuildJob or ScrubJob) on `node`; the calling thread
/// sleeps until the node wakes it. Meanwhile the liveness of the node is watched: `Unavailable` or
/// `TimedOut` soon after its death or silence. `*cancelled` (may be null) set: the job is aborted,
/// with `Aborted`. `Busy`: the node has too many jobs already. `NotSupported`: it does not know a
/// plug-in that the job needs. `Corruption`: the log of a flush is not as the job says. However it
/// ends, `*end` (null: the space is not used again) says where the job may still write.
///
/// Thread safety: any thread may call, with one `client` many at once.
template <typename Job>
Status RunOnNode(PoolClient* client, NodeId node, const Job& job,
                 const std::atomic<bool>* cancelled, typename Job::Result* result,
                 JobEnd* end = nullptr);

}  // namespace nacre::pool
