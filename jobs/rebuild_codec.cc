#include <fmt/format.h>

#include <string>

#include "jobs/job_codec.h"
#include "pool/wire/control.pb.h"
#include "pool/wire/extent_codec.h"
#include "util/codes/reed_solomon.h"

namespace nacre::pool {

void EncodeJob(const RebuildJob& job, control::Rebuild* message) {
  for (const TableRebuild& table : job.tables) {
    control::TableRebuild* encoded = message->add_tables();
    encoded->set_table_id(table.table_id);
    encoded->set_table_bytes(table.table_bytes);
    EncodePlacement(table.placement, encoded->mutable_placement());
    for (const FragmentRebuild& fragment : table.fragments) {
      control::FragmentRebuild* wanted = encoded->add_fragments();
      wanted->set_fragment(static_cast<uint32_t>(fragment.fragment));
      EncodeExtent(fragment.to, wanted->mutable_to());
    }
  }
}

Status DecodeJob(const control::Rebuild& message, RebuildJob* job) {
  job->database_id = message.header().database_id();
  for (const control::TableRebuild& table : message.tables()) {
    TableRebuild& decoded = job->tables.emplace_back();
    decoded.table_id = table.table_id();
    decoded.table_bytes = table.table_bytes();
    NACRE_RETURN_IF_ERROR(DecodePlacement(table.placement(), &decoded.placement));
    FragmentSet seen = 0;
    for (const control::FragmentRebuild& wanted : table.fragments()) {
      if (wanted.fragment() >= decoded.placement.fragments.size() ||
          (seen >> wanted.fragment() & 1) != 0) {
        return Status::InvalidArgument(fmt::format("rebuild: fragment {} of {}", wanted.fragment(),
                                                   decoded.placement.fragments.size()));
      }
      seen |= FragmentSet{1} << wanted.fragment();
      FragmentRebuild& fragment = decoded.fragments.emplace_back();
      fragment.fragment = static_cast<int>(wanted.fragment());
      NACRE_RETURN_IF_ERROR(DecodeExtent(wanted.to(), &fragment.to));
    }
    if (seen == 0) return Status::InvalidArgument("rebuild: a table of which nothing is wanted");
  }
  return Status::OK();
}

void EncodeResult(const RebuildResult& result, control::RebuildOutcome* message) {
  for (const Status& status : result.tables) {
    control::RebuildOutcome::Table* encoded = message->add_tables();
    encoded->set_code(static_cast<uint32_t>(status.code()));
    encoded->set_message(std::string(status.message()));
  }
  message->set_bytes_read(result.bytes_read);
  message->set_bytes_written(result.bytes_written);
  message->set_cpu_nanos(result.cpu_nanos);
}

Status DecodeResult(const control::RebuildOutcome& message, const RebuildJob& job,
                    RebuildResult* result) {
  if (static_cast<size_t>(message.tables_size()) != job.tables.size()) {
    return Status::Corruption("answers for other tables than it was given");
  }
  for (const control::RebuildOutcome::Table& table : message.tables()) {
    result->tables.push_back(Status::FromCode(static_cast<int>(table.code()), table.message()));
  }
  result->bytes_read = message.bytes_read();
  result->bytes_written = message.bytes_written();
  result->cpu_nanos = message.cpu_nanos();
  return Status::OK();
}

}  // namespace nacre::pool
