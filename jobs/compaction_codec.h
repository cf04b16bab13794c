#pragma once

#include "jobs/compaction_job.h"
#include "nacre/status.h"
#include "pool/wire/messages.h"
#include "table/format/placement.h"

namespace nacre::pool {

// Compaction jobs and their results as control messages. The decoders are safe on any message and
// answer `InvalidArgument` or `Corruption` for what makes no sense.

void EncodeExtent(const ExtentAddr& extent, control::Extent* message);
/// `InvalidArgument` if it does not fit an ExtentAddr.
Status DecodeExtent(const control::Extent& message, ExtentAddr* extent);

void EncodePlacement(const Placement& placement, control::Placement* message);
Status DecodePlacement(const control::Placement& message, Placement* placement);

/// Without the header.
void EncodeCompactionJob(const CompactionJob& job, control::Compact* message);
Status DecodeCompactionJob(const control::Compact& message, CompactionJob* job);
/// The same of a job that may be without input.
Status DecodeMerge(const control::Compact& message, CompactionJob* job);

void EncodeCompactionResult(const CompactionResult& result, control::CompactionOutcome* message);
Status DecodeCompactionResult(const control::CompactionOutcome& message, CompactionResult* result);

}  // namespace nacre::pool
