#include <fmt/format.h>

#include "jobs/job_codec.h"
#include "pool/wire/control.pb.h"
#include "pool/wire/extent_codec.h"

namespace nacre::pool {

void EncodeJob(const ScrubJob& job, control::Scrub* message) {
  message->set_bytes_per_second(job.bytes_per_second);
  for (const ScrubFragment& fragment : job.fragments) {
    control::ScrubFragment* const encoded = message->add_fragments();
    encoded->set_table_id(fragment.table_id);
    encoded->set_fragment(fragment.fragment);
    EncodeExtent(fragment.extent, encoded->mutable_extent());
    encoded->set_bytes(fragment.bytes);
  }
}

Status DecodeJob(const control::Scrub& message, ScrubJob* job) {
  job->database_id = message.header().database_id();
  job->bytes_per_second = message.bytes_per_second();
  for (const control::ScrubFragment& fragment : message.fragments()) {
    ScrubFragment& decoded = job->fragments.emplace_back();
    decoded.table_id = fragment.table_id();
    decoded.fragment = fragment.fragment();
    decoded.bytes = fragment.bytes();
    NACRE_RETURN_IF_ERROR(DecodeExtent(fragment.extent(), &decoded.extent));
    if (decoded.extent.start.node != message.header().executor()) {
      return Status::InvalidArgument(fmt::format("scrub: a fragment on node {}, by node {}",
                                                 static_cast<unsigned>(decoded.extent.start.node),
                                                 message.header().executor()));
    }
  }
  return Status::OK();
}

void EncodeResult(const ScrubResult& result, control::ScrubOutcome* message) {
  message->set_bytes(result.bytes);
  for (const FragmentDamage& damage : result.damaged) {
    control::FragmentDamage* const encoded = message->add_damaged();
    encoded->set_index(damage.index);
    encoded->set_head(damage.head);
    encoded->set_tail(damage.tail);
    for (const uint64_t chunk : damage.chunks) encoded->add_chunks(chunk);
  }
}

Status DecodeResult(const control::ScrubOutcome& message, const ScrubJob& job,
                    ScrubResult* result) {
  result->bytes = message.bytes();
  for (const control::FragmentDamage& damage : message.damaged()) {
    if (damage.index() >= job.fragments.size()) {
      return Status::Corruption(
          fmt::format("scrub: fragment {} of {}", damage.index(), job.fragments.size()));
    }
    result->damaged.push_back({.index = damage.index(),
                               .head = damage.head(),
                               .tail = damage.tail(),
                               .chunks = {damage.chunks().begin(), damage.chunks().end()}});
  }
  return Status::OK();
}

}  // namespace nacre::pool
