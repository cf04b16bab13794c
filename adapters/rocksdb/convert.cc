#include "adapters/rocksdb/convert.h"

#include <rocksdb/comparator.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
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

rocksdb::Status ToNacre(const rocksdb::WriteOptions& options, nacre::WriteOptions* result) {
  using Status = rocksdb::Status;
  if (options.sync && options.disableWAL) {
    return Status::InvalidArgument("Sync writes has to enable WAL.");
  }
  if (options.rate_limiter_priority != rocksdb::Env::IO_TOTAL &&
      (options.rate_limiter_priority != rocksdb::Env::IO_USER || options.disableWAL)) {
    return Status::InvalidArgument("WriteOptions::rate_limiter_priority");
  }
  if (options.protection_bytes_per_key != 0 && options.protection_bytes_per_key != 8) {
    return Status::InvalidArgument("WriteOptions::protection_bytes_per_key must be zero or eight");
  }
  result->sync = options.sync;
  result->disable_wal = options.disableWAL;
  result->no_slowdown = options.no_slowdown;
  return Status::OK();
}

namespace {

/// Null if there is none that this kind of read cannot have.
const char* MissingReadOption(const rocksdb::ReadOptions& options, ReadKind kind) {
  if (options.timestamp != nullptr || options.iter_start_ts != nullptr) return "timestamp";
  if (options.ignore_range_deletions) return "ignore_range_deletions";
  if (options.io_timeout.count() != 0) return "io_timeout";
  if (options.read_tier == rocksdb::kMemtableTier) return "read_tier";
  if (kind == ReadKind::kPoint) return nullptr;
  if (options.read_tier == rocksdb::kPersistedTier) return "read_tier";
  if (options.managed) return "managed";
  if (options.table_filter) return "table_filter";
  if (options.max_skippable_internal_keys != 0) return "max_skippable_internal_keys";
  return nullptr;
}

}  // namespace

rocksdb::Status ToNacre(const rocksdb::ReadOptions& options, ReadKind kind,
                        nacre::ReadOptions* result) {
  if (const char* missing = MissingReadOption(options, kind); missing != nullptr) {
    return rocksdb::Status::NotSupported("ReadOptions", missing);
  }
  result->verify_checksums = options.verify_checksums;
  result->readahead_size = options.readahead_size;
  result->prefix_same_as_start = options.prefix_same_as_start;
  result->total_order_seek = options.total_order_seek;
  result->auto_prefix_mode = options.auto_prefix_mode;
  return rocksdb::Status::OK();
}

rocksdb::Status ToNacre(const rocksdb::DBOptions& options, nacre::DBOptions* result) {
  if (!options.listeners.empty()) return rocksdb::Status::NotSupported("Options::listeners");
  if (options.wal_filter != nullptr) return rocksdb::Status::NotSupported("Options::wal_filter");
  if (options.compaction_service != nullptr) {
    return rocksdb::Status::NotSupported("Options::compaction_service");
  }
  if (options.best_efforts_recovery) {
    return rocksdb::Status::NotSupported("Options::best_efforts_recovery");
  }
  if (options.allow_ingest_behind) {
    return rocksdb::Status::NotSupported("Options::allow_ingest_behind");
  }
  if (result->info_log == nullptr && result->db_log_dir.empty() && options.info_log != nullptr) {
    result->info_log = AdaptLogger(options.info_log);
  }
  result->create_if_missing = options.create_if_missing;
  result->create_missing_column_families = options.create_missing_column_families;
  result->error_if_exists = options.error_if_exists;
  result->manual_wal_flush = options.manual_wal_flush;
  result->db_write_buffer_size = options.db_write_buffer_size;
  result->delayed_write_rate = options.delayed_write_rate;
  result->max_background_jobs = options.max_background_jobs;
  result->max_subcompactions = std::max(options.max_subcompactions, 1U);  // As RocksDB takes 0.
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
  if (options.inplace_callback != nullptr) {
    return rocksdb::Status::NotSupported("Options::inplace_callback");
  }
  if (options.prefix_extractor != nullptr) {
    result->prefix_extractor = AdaptPrefixExtractor(options.prefix_extractor);
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
  result->soft_pending_compaction_bytes_limit = options.soft_pending_compaction_bytes_limit;
  result->hard_pending_compaction_bytes_limit = options.hard_pending_compaction_bytes_limit;
  result->disable_auto_compactions = options.disable_auto_compactions;
  return rocksdb::Status::OK();
}

void CopyInForce(const nacre::ColumnFamilyOptions& ours, rocksdb::ColumnFamilyOptions* result) {
  result->num_levels = ours.num_levels;
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

namespace {

/// The options of a database that Nacre can change.
constexpr std::string_view kChangeable[] = {
    "max_background_jobs", "delayed_write_rate", "max_subcompactions",    "repair_bytes_per_second",
    "near_data_flush",     "compaction",         "allow_degraded_writes",
};
/// Those that only RocksDB can change.
constexpr std::string_view kChangeableByRocksdb[] = {
    "allow_os_buffer",
    "avoid_flush_during_shutdown",
    "base_background_compactions",
    "bytes_per_sync",
    "compaction_readahead_size",
    "delete_obsolete_files_period_micros",
    "max_background_compactions",
    "max_background_flushes",
    "max_open_files",
    "max_total_wal_size",
    "stats_dump_period_sec",
    "stats_history_buffer_size",
    "stats_persist_period_sec",
    "strict_bytes_per_sync",
    "wal_bytes_per_sync",
    "writable_file_max_buffer_size",
};

bool Contains(std::span<const std::string_view> names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

rocksdb::Status CheckChangeable(const std::unordered_map<std::string, std::string>& changes) {
  for (const auto& [name, value] : changes) {
    if (Contains(kChangeable, name)) continue;
    if (Contains(kChangeableByRocksdb, name)) return rocksdb::Status::NotSupported(name);
    return rocksdb::Status::NotFound("Unrecognized option", name);
  }
  return rocksdb::Status::OK();
}

void CopyInForce(const nacre::DBOptions& ours, rocksdb::DBOptions* result) {
  result->delayed_write_rate = ours.delayed_write_rate;
  result->max_background_jobs = ours.max_background_jobs;
  result->max_subcompactions = ours.max_subcompactions;
}

}  // namespace nacre::rocksdb_api
