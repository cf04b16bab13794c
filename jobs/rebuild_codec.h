#pragma once

#include "jobs/rebuild_job.h"
#include "nacre/status.h"
#include "pool/wire/messages.h"

namespace nacre::pool {

// As jobs/compaction_codec.h, for jobs that rebuild fragments.

/// Without the header.
void EncodeRebuildJob(const RebuildJob& job, control::Rebuild* message);
Status DecodeRebuildJob(const control::Rebuild& message, RebuildJob* job);

void EncodeRebuildResult(const RebuildResult& result, control::RebuildOutcome* message);
Status DecodeRebuildResult(const control::RebuildOutcome& message, RebuildResult* result);

}  // namespace nacre::pool
