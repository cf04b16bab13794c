#include "adapters/rocksdb/convert.h"

#include <rocksdb/comparator.h>

#include <cstring>
#include <string>
#include <utility>

#include "adapters/rocksdb/callbacks.h"
#include "nacre/comparator.h"

namespace nacre::rocksdb_api {

rocksdb::Status ToRocksdb(const nacre::Status& status) {
  if (status.ok()) [[likely]]
    return rocksdb::Status::OK();
  const std::string message(status.message());
  switch (status.code()) {
    case nacre::Status::Code::kNotFound:
      return rocksdb::Status::NotFound(message);
    case nacre::Status::Code::kCorruption:
      return rocksdb::Status::Corruption(message);
    case nacre::Status::Code::kNotSupported:
      return rocksdb::Status::NotSupported(message);
    case nacre::Status::Code::kInvalidArgument:
      return rocksdb::Status::InvalidArgument(message);
    case nacre::Status::Code::kIncomplete:
      return rocksdb::Status::Incomplete(message);
    case nacre::Status::Code::kShutdownInProgress:
      return rocksdb::Status::ShutdownInProgress(message);
    case nacre::Status::Code::kTimedOut:
      return rocksdb::Status::TimedOut(message);
    case nacre::Status::Code::kAborted:
      return rocksdb::Status::Aborted(message);
    case nacre::Status::Code::kBusy:
      return rocksdb::Status::Busy(message);
    case nacre::Status::Code::kTryAgain:
      return rocksdb::Status::TryAgain(message);
    case nacre::Status::Code::kNoSpace:
      return rocksdb::Status::NoSpace(message);
    default:
      return rocksdb::Status::IOError(status.ToString());
  }
}

rocksdb::Status ToNacre(const rocksdb::ReadOptions& options, nacre::ReadOptions* result) {
  if (options.timestamp != nullptr || options.iter_start_ts != nullptr) {
    return rocksdb::Status::NotSupported("ReadOptions::timestamp");
  }
  if (options.read_tier != rocksdb::kReadAllTier) {
    return rocksdb::Status::NotSupported("ReadOptions::read_tier");
  }
  if (options.tailing) return rocksdb::Status::NotSupported("ReadOptions::tailing");
  if (options.prefix_same_as_start) {
    return rocksdb::Status::NotSupported("ReadOptions::prefix_same_as_start");
  }
  result->verify_checksums = options.verify_checksums;
  result->fill_cache = options.fill_cache;
  result->readahead_size = options.readahead_size;
  return rocksdb::Status::OK();
}

rocksdb::Status ToNacre(const rocksdb::DBOptions& options, nacre::DBOptions* result) {
  if (!options.listeners.empty()) return rocksdb::Status::NotSupported("Options::listeners");
  result->create_if_missing = options.create_if_missing;
  result->create_missing_column_families = options.create_missing_column_families;
  result->error_if_exists = options.error_if_exists;
  result->manual_wal_flush = options.manual_wal_flush;
  result->delayed_write_rate = options.delayed_write_rate;
  result->max_background_jobs = options.max_background_jobs;
  result->max_subcompactions = options.max_subcompactions;
  return rocksdb::Status::OK();
}

rocksdb::Status ToNacre(const rocksdb::ColumnFamilyOptions& options,
                        const std::shared_ptr<rocksdb::Logger>& logger,
                        nacre::ColumnFamilyOptions* result) {
  if (options.compaction_style != rocksdb::kCompactionStyleLevel) {
    return rocksdb::Status::NotSupported("Options::compaction_style");
  }
  if (options.comparator == rocksdb::BytewiseComparator()) {
    result->comparator = nacre::BytewiseComparator();
  } else if (options.comparator == rocksdb::ReverseBytewiseComparator()) {
    result->comparator = nacre::ReverseBytewiseComparator();
  } else {
    return rocksdb::Status::NotSupported("Options::comparator", options.comparator->Name());
  }
  if (options.merge_operator != nullptr) {
    result->merge_operator = AdaptMergeOperator(options.merge_operator, logger);
  }
  if (auto factory = AdaptCompactionFilter(options); factory != nullptr) {
    result->compaction_filter = nullptr;
    result->compaction_filter_factory = std::move(factory);
  }
  result->write_buffer_size = options.write_buffer_size;
  result->max_write_buffer_number = options.max_write_buffer_number;
  result->num_levels = options.num_levels;
  result->level0_file_num_compaction_trigger = options.level0_file_num_compaction_trigger;
  result->level0_slowdown_writes_trigger = options.level0_slowdown_writes_trigger;
  result->level0_stop_writes_trigger = options.level0_stop_writes_trigger;
  result->target_file_size_base = options.target_file_size_base;
  result->target_file_size_multiplier = options.target_file_size_multiplier;
  result->max_bytes_for_level_base = options.max_bytes_for_level_base;
  result->max_bytes_for_level_multiplier = options.max_bytes_for_level_multiplier;
  result->disable_auto_compactions = options.disable_auto_compactions;
  return rocksdb::Status::OK();
}

void CopyMutable(const nacre::ColumnFamilyOptions& ours, rocksdb::ColumnFamilyOptions* result) {
  result->write_buffer_size = ours.write_buffer_size;
  result->max_write_buffer_number = ours.max_write_buffer_number;
  result->level0_file_num_compaction_trigger = ours.level0_file_num_compaction_trigger;
  result->level0_slowdown_writes_trigger = ours.level0_slowdown_writes_trigger;
  result->level0_stop_writes_trigger = ours.level0_stop_writes_trigger;
  result->target_file_size_base = ours.target_file_size_base;
  result->target_file_size_multiplier = ours.target_file_size_multiplier;
  result->max_bytes_for_level_base = ours.max_bytes_for_level_base;
  result->max_bytes_for_level_multiplier = ours.max_bytes_for_level_multiplier;
  result->soft_pending_compaction_bytes_limit = ours.soft_pending_compaction_bytes_limit;
  result->hard_pending_compaction_bytes_limit = ours.hard_pending_compaction_bytes_limit;
  result->disable_auto_compactions = ours.disable_auto_compactions;
}

void CopyMutable(const nacre::DBOptions& ours, rocksdb::DBOptions* result) {
  result->delayed_write_rate = ours.delayed_write_rate;
  result->max_background_jobs = ours.max_background_jobs;
  result->max_subcompactions = ours.max_subcompactions;
}

}  // namespace nacre::rocksdb_api
