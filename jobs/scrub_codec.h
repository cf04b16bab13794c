#pragma once

#include "jobs/scrub_job.h"
#include "nacre/status.h"
#include "pool/wire/messages.h"

namespace nacre::pool {

// As jobs/compaction_codec.h, for jobs that check fragments.

/// Without the header.
void EncodeScrubJob(const ScrubJob& job, control::Scrub* message);
/// `InvalidArgument` if not all fragments lie on the node that is to check them.
Status DecodeScrubJob(const control::Scrub& message, ScrubJob* job);

void EncodeScrubResult(const ScrubResult& result, control::ScrubOutcome* message);
/// `Corruption` if it speaks of others than the `fragments` of the job.
Status DecodeScrubResult(const control::ScrubOutcome& message, size_t fragments,
                         ScrubResult* result);

}  // namespace nacre::pool
