#pragma once

#include "jobs/compaction_job.h"
#include "jobs/flush_job.h"
#include "jobs/rebuild_job.h"
#include "jobs/scrub_job.h"
#include "nacre/status.h"
#include "pool/wire/messages.h"

namespace nacre::pool {

// Jobs and their results as control messages, without the header of a job. The decoders are safe on
// any message and answer `InvalidArgument` or `Corruption` for what makes no sense; a result, also
// if it speaks of something that is not in the job.

void EncodeJob(const CompactionJob& job, control::Compact* message);
void EncodeJob(const FlushJob& job, control::Flush* message);
void EncodeJob(const RebuildJob& job, control::Rebuild* message);
void EncodeJob(const ScrubJob& job, control::Scrub* message);

Status DecodeJob(const control::Compact& message, CompactionJob* job);
Status DecodeJob(const control::Flush& message, FlushJob* job);
Status DecodeJob(const control::Rebuild& message, RebuildJob* job);
Status DecodeJob(const control::Scrub& message, ScrubJob* job);
/// As DecodeJob, also without input: a part of other jobs.
Status DecodeMerge(const control::Compact& message, CompactionJob* job);

void EncodeResult(const CompactionResult& result, control::CompactionOutcome* message);
void EncodeResult(const RebuildResult& result, control::RebuildOutcome* message);
void EncodeResult(const ScrubResult& result, control::ScrubOutcome* message);

Status DecodeResult(const control::CompactionOutcome& message, CompactionResult* result);
Status DecodeResult(const control::RebuildOutcome& message, const RebuildJob& job,
                    RebuildResult* result);
Status DecodeResult(const control::ScrubOutcome& message, const ScrubJob& job, ScrubResult* result);

}  // namespace nacre::pool
