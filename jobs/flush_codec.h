#pragma once

#include "jobs/flush_job.h"
#include "nacre/status.h"
#include "pool/wire/messages.h"

namespace nacre::pool {

// The job of a near-data flush as a message. Decoding is safe on any message.

/// Without the header.
void EncodeFlushJob(const FlushJob& job, control::Flush* message);
/// `InvalidArgument` saying what is wrong.
Status DecodeFlushJob(const control::Flush& message, FlushJob* job);

}  // namespace nacre::pool
