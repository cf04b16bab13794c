#include <fmt/format.h>

#include <utility>

#include "jobs/job_codec.h"
#include "pool/wire/control.pb.h"
#include "pool/wire/extent_codec.h"
#include "table/format/log_format.h"

namespace nacre::pool {
namespace {

template <typename... Parts>
Status MalformedFlush(fmt::format_string<Parts...> what, Parts&&... parts) {
  return Status::InvalidArgument("flush job: " + fmt::format(what, std::forward<Parts>(parts)...));
}

Status DecodeLogPart(const control::LogPart& message, LogPart* part) {
  part->number = message.number();
  part->bytes = message.bytes();
  for (const control::Extent& copy : message.copies()) {
    NACRE_RETURN_IF_ERROR(DecodeExtent(copy, &part->copies.emplace_back()));
    if (part->copies.back().length < part->bytes) {
      return MalformedFlush("{} bytes of a log segment of {}", part->bytes,
                            part->copies.back().length);
    }
  }
  if (part->copies.empty()) return MalformedFlush("log segment {} without a copy", part->number);
  if (part->bytes < kLogHeaderBytes)
    return MalformedFlush("{} bytes of a log segment", part->bytes);
  return Status::OK();
}

}  // namespace

void EncodeJob(const FlushJob& job, control::Flush* message) {
  EncodeJob(job.merge, message->mutable_merge());
  for (const LogPart& part : job.log) {
    control::LogPart* const encoded = message->add_log();
    encoded->set_number(part.number);
    encoded->set_bytes(part.bytes);
    for (const ExtentAddr& copy : part.copies) EncodeExtent(copy, encoded->add_copies());
  }
  message->set_first_sequence(job.first);
  message->set_last_sequence(job.last);
}

Status DecodeJob(const control::Flush& message, FlushJob* job) {
  NACRE_RETURN_IF_ERROR(DecodeMerge(message.merge(), &job->merge));
  job->merge.database_id = message.header().database_id();
  if (!job->merge.runs.empty()) return MalformedFlush("tables as input");
  for (const control::LogPart& part : message.log()) {
    NACRE_RETURN_IF_ERROR(DecodeLogPart(part, &job->log.emplace_back()));
  }
  if (job->log.empty()) return MalformedFlush("no log");
  job->first = message.first_sequence();
  job->last = message.last_sequence();
  if (job->first > job->last || job->last > kMaxSequenceNumber) {
    return MalformedFlush("sequences {} to {}", job->first, job->last);
  }
  return Status::OK();
}

}  // namespace nacre::pool
