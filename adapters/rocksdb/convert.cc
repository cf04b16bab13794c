#include "adapters/rocksdb/convert.h"

#include <rocksdb/comparator.h>

#include <cstring>
#include <string>

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

namespace {

rocksdb::Status Supported(const rocksdb::Options& options) {
  if (options.merge_operator != nullptr) {
    return rocksdb::Status::NotSupported("Options::merge_operator");
  }
  if (options.compaction_filter != nullptr || options.compaction_filter_factory != nullptr) {
    return rocksdb::Status::NotSupported("Options::compaction_filter");
  }
  if (options.compaction_style != rocksdb::kCompactionStyleLevel) {
    return rocksdb::Status::NotSupported("Options::compaction_style");
  }
  if (!options.listeners.empty()) return rocksdb::Status::NotSupported("Options::listeners");
  return rocksdb::Status::OK();
}

}  // namespace

rocksdb::Status ToNacre(const rocksdb::Options& options, nacre::Options* result) {
  if (rocksdb::Status s = Supported(options); !s.ok()) return s;
  if (options.comparator == rocksdb::BytewiseComparator()) {
    result->comparator = nacre::BytewiseComparator();
  } else if (options.comparator == rocksdb::ReverseBytewiseComparator()) {
    result->comparator = nacre::ReverseBytewiseComparator();
  } else {
    return rocksdb::Status::NotSupported("Options::comparator", options.comparator->Name());
  }
  result->create_if_missing = options.create_if_missing;
  result->error_if_exists = options.error_if_exists;
  result->write_buffer_size = options.write_buffer_size;
  result->max_write_buffer_number = options.max_write_buffer_number;
  result->manual_wal_flush = options.manual_wal_flush;
  result->num_levels = options.num_levels;
  result->level0_file_num_compaction_trigger = options.level0_file_num_compaction_trigger;
  result->level0_slowdown_writes_trigger = options.level0_slowdown_writes_trigger;
  result->level0_stop_writes_trigger = options.level0_stop_writes_trigger;
  result->target_file_size_base = options.target_file_size_base;
  result->target_file_size_multiplier = options.target_file_size_multiplier;
  result->max_bytes_for_level_base = options.max_bytes_for_level_base;
  result->max_bytes_for_level_multiplier = options.max_bytes_for_level_multiplier;
  result->delayed_write_rate = options.delayed_write_rate;
  result->disable_auto_compactions = options.disable_auto_compactions;
  result->max_background_jobs = options.max_background_jobs;
  result->max_subcompactions = options.max_subcompactions;
  return rocksdb::Status::OK();
}

}  // namespace nacre::rocksdb_api
