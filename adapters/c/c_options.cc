#include <chrono>
#include <memory>
#include <string>
#include <type_traits>

#include "adapters/c/c_types.h"

using nacre::Destroy;
using nacre::Status;

namespace {

template <typename Field>
constexpr bool kIsDuration = false;
template <typename Rep, typename Period>
constexpr bool kIsDuration<std::chrono::duration<Rep, Period>> = true;

/// Gives `*field` the value that C has as a number.
template <typename Field, typename Value>
void Assign(Field* field, Value value) {
  if constexpr (std::is_same_v<Field, bool>) {
    *field = value != 0;
  } else if constexpr (kIsDuration<Field>) {
    *field = Field(static_cast<typename Field::rep>(value));
  } else {
    *field = static_cast<Field>(value);
  }
}

template <typename Value, typename Field>
Value ValueOf(const Field& field) {
  if constexpr (kIsDuration<Field>) {
    return static_cast<Value>(field.count());
  } else {
    return static_cast<Value>(field);
  }
}

/// A choice among `last` + 1; another number is kept as a failure of the options.
template <typename Part, typename Choice>
void Choose(nacre_options_t* options, const char* name, Choice Part::*field, int value, int last) {
  if (value >= 0 && value <= last) {
    options->rep.*field = static_cast<Choice>(value);
  } else if (options->invalid.ok()) {
    options->invalid = Status::InvalidArgument("nacre_options_set_" + std::string(name) + ": " +
                                               std::to_string(value) + " is none of its choices");
  }
}

}  // namespace

nacre_options_t* nacre_options_create(void) {
  return std::make_unique<nacre_options_t>().release();
}

nacre_options_t* nacre_options_create_copy(const nacre_options_t* options) {
  return std::make_unique<nacre_options_t>(*options).release();
}

void nacre_options_destroy(nacre_options_t* options) { Destroy(options); }

void nacre_options_set_pool_uri(nacre_options_t* options, const char* uri) {
  options->rep.pool_uri = uri;
}

void nacre_options_set_pool(nacre_options_t* options, nacre_pool_t* pool) {
  options->rep.pool = pool->rep;
}

void nacre_options_set_redundancy(nacre_options_t* options, const char* redundancy) {
  options->rep.redundancy = redundancy;
}

void nacre_options_set_db_log_dir(nacre_options_t* options, const char* dir) {
  options->rep.db_log_dir = dir;
}

void nacre_options_set_encryption_key_file(nacre_options_t* options, const char* path) {
  options->rep.encryption_key_file = path;
}

void nacre_options_set_metrics_address(nacre_options_t* options, const char* address) {
  options->rep.metrics_address = address;
}

void nacre_options_set_info_log_level(nacre_options_t* options, int value) {
  Choose(options, "info_log_level", &nacre::Options::info_log_level, value, nacre_log_error);
}

int nacre_options_get_info_log_level(const nacre_options_t* options) {
  return ValueOf<int>(options->rep.info_log_level);
}

void nacre_options_set_comparator(nacre_options_t* options, const nacre_comparator_t* comparator) {
  options->rep.comparator = comparator->rep;
}

void nacre_options_set_info_log(nacre_options_t* options, const nacre_logger_t* logger) {
  options->rep.info_log = logger->rep;
}

void nacre_options_set_compaction_filter(nacre_options_t* options,
                                         const nacre_compactionfilter_t* filter) {
  options->rep.compaction_filter = filter == nullptr ? nullptr : filter->rep.get();
}

void nacre_options_set_compaction_filter_factory(nacre_options_t* options,
                                                 const nacre_compactionfilterfactory_t* factory) {
  options->rep.compaction_filter_factory = factory->rep;
}

void nacre_options_set_merge_operator(nacre_options_t* options,
                                      const nacre_mergeoperator_t* merge_operator) {
  options->rep.merge_operator = merge_operator == nullptr ? nullptr : merge_operator->rep;
}

void nacre_options_set_prefix_extractor(nacre_options_t* options,
                                        const nacre_slicetransform_t* transform) {
  options->rep.prefix_extractor = transform->rep;
}

void nacre_options_set_statistics(nacre_options_t* options, const nacre_statistics_t* statistics) {
  options->rep.statistics = statistics->rep;
}

nacre_write_buffer_manager_t* nacre_write_buffer_manager_create(size_t buffer_size,
                                                                unsigned char allow_stall) {
  return new nacre_write_buffer_manager_t{
      std::make_shared<nacre::WriteBufferManager>(buffer_size, allow_stall != 0)};
}

void nacre_write_buffer_manager_destroy(nacre_write_buffer_manager_t* manager) { Destroy(manager); }

unsigned char nacre_write_buffer_manager_enabled(const nacre_write_buffer_manager_t* manager) {
  return manager->rep->enabled();
}

size_t nacre_write_buffer_manager_memory_usage(const nacre_write_buffer_manager_t* manager) {
  return manager->rep->memory_usage();
}

size_t nacre_write_buffer_manager_mutable_memtable_memory_usage(
    const nacre_write_buffer_manager_t* manager) {
  return manager->rep->mutable_memtable_memory_usage();
}

size_t nacre_write_buffer_manager_buffer_size(const nacre_write_buffer_manager_t* manager) {
  return manager->rep->buffer_size();
}

void nacre_write_buffer_manager_set_buffer_size(nacre_write_buffer_manager_t* manager,
                                                size_t new_size) {
  manager->rep->SetBufferSize(new_size);
}

void nacre_write_buffer_manager_set_allow_stall(nacre_write_buffer_manager_t* manager,
                                                unsigned char allow_stall) {
  manager->rep->SetAllowStall(allow_stall != 0);
}

void nacre_options_set_write_buffer_manager(nacre_options_t* options,
                                            const nacre_write_buffer_manager_t* manager) {
  options->rep.write_buffer_manager = manager == nullptr ? nullptr : manager->rep;
}

void nacre_options_set_compaction(nacre_options_t* options, int value) {
  Choose(options, "compaction", &nacre::Options::compaction, value, nacre_compaction_compute);
}

int nacre_options_get_compaction(const nacre_options_t* options) {
  return ValueOf<int>(options->rep.compaction);
}

void nacre_options_set_near_data_flush(nacre_options_t* options, int value) {
  Choose(options, "near_data_flush", &nacre::Options::near_data_flush, value,
         nacre_near_data_flush_off);
}

int nacre_options_get_near_data_flush(const nacre_options_t* options) {
  return ValueOf<int>(options->rep.near_data_flush);
}

void nacre_options_set_wal_recovery_mode(nacre_options_t* options, int value) {
  Choose(options, "wal_recovery_mode", &nacre::Options::wal_recovery_mode, value,
         nacre_skip_any_corrupted_records_recovery);
}

int nacre_options_get_wal_recovery_mode(const nacre_options_t* options) {
  return ValueOf<int>(options->rep.wal_recovery_mode);
}

// The pair of functions for an option that is a number or a boolean; NAME is the one in C, FIELD
// that of nacre::Options.
#define NACRE_C_OPTION(TYPE, NAME, FIELD)                               \
  void nacre_options_set_##NAME(nacre_options_t* options, TYPE value) { \
    Assign(&options->rep.FIELD, value);                                 \
  }                                                                     \
  TYPE nacre_options_get_##NAME(const nacre_options_t* options) {       \
    return ValueOf<TYPE>(options->rep.FIELD);                           \
  }

using Boolean = unsigned char;

NACRE_C_OPTION(Boolean, allow_degraded_writes, allow_degraded_writes)
NACRE_C_OPTION(Boolean, allow_narrow_writes, allow_narrow_writes)
NACRE_C_OPTION(uint64_t, scrub_bytes_per_second, scrub_bytes_per_second)
NACRE_C_OPTION(Boolean, create_if_missing, create_if_missing)
NACRE_C_OPTION(Boolean, create_missing_column_families, create_missing_column_families)
NACRE_C_OPTION(Boolean, error_if_exists, error_if_exists)
NACRE_C_OPTION(Boolean, take_over, take_over)
NACRE_C_OPTION(uint64_t, follow_interval_ms, follow_interval)
NACRE_C_OPTION(size_t, write_buffer_size, write_buffer_size)
NACRE_C_OPTION(int, max_write_buffer_number, max_write_buffer_number)
NACRE_C_OPTION(Boolean, manual_wal_flush, manual_wal_flush)
NACRE_C_OPTION(uint64_t, manifest_image_interval_ms, manifest_image_interval)
NACRE_C_OPTION(uint32_t, manifest_image_edits, manifest_image_edits)
NACRE_C_OPTION(int, num_levels, num_levels)
NACRE_C_OPTION(int, level0_file_num_compaction_trigger, level0_file_num_compaction_trigger)
NACRE_C_OPTION(int, level0_slowdown_writes_trigger, level0_slowdown_writes_trigger)
NACRE_C_OPTION(int, level0_stop_writes_trigger, level0_stop_writes_trigger)
NACRE_C_OPTION(uint64_t, target_file_size_base, target_file_size_base)
NACRE_C_OPTION(int, target_file_size_multiplier, target_file_size_multiplier)
NACRE_C_OPTION(uint64_t, max_bytes_for_level_base, max_bytes_for_level_base)
NACRE_C_OPTION(double, max_bytes_for_level_multiplier, max_bytes_for_level_multiplier)
NACRE_C_OPTION(uint64_t, soft_pending_compaction_bytes_limit, soft_pending_compaction_bytes_limit)
NACRE_C_OPTION(uint64_t, hard_pending_compaction_bytes_limit, hard_pending_compaction_bytes_limit)
NACRE_C_OPTION(uint64_t, delayed_write_rate, delayed_write_rate)
NACRE_C_OPTION(Boolean, disable_auto_compactions, disable_auto_compactions)
NACRE_C_OPTION(int, max_background_jobs, max_background_jobs)
NACRE_C_OPTION(uint32_t, max_subcompactions, max_subcompactions)
NACRE_C_OPTION(Boolean, home_nodes, home_nodes)
NACRE_C_OPTION(size_t, db_write_buffer_size, db_write_buffer_size)
NACRE_C_OPTION(size_t, slab_size, slab_size)
NACRE_C_OPTION(size_t, chunk_size, chunk_size)
NACRE_C_OPTION(int, max_queue_pairs_per_node, max_queue_pairs_per_node)
NACRE_C_OPTION(uint64_t, repair_bytes_per_second, repair_bytes_per_second)
NACRE_C_OPTION(uint64_t, operation_timeout_ms, operation_timeout)
NACRE_C_OPTION(uint64_t, slow_node_patience_min_ms, slow_node_patience_min)
NACRE_C_OPTION(uint64_t, slow_node_patience_max_ms, slow_node_patience_max)
NACRE_C_OPTION(uint32_t, hedged_reads_percent, hedged_reads_percent)
NACRE_C_OPTION(uint64_t, slow_operation_threshold_us, slow_operation_threshold)
NACRE_C_OPTION(uint64_t, max_archive_lag_MB, max_archive_lag_MB)
NACRE_C_OPTION(size_t, max_log_file_size, max_log_file_size)
NACRE_C_OPTION(size_t, log_file_time_to_roll, log_file_time_to_roll)
NACRE_C_OPTION(size_t, keep_log_file_num, keep_log_file_num)
NACRE_C_OPTION(size_t, index_memory_budget, index_memory_budget)

#undef NACRE_C_OPTION

nacre_readoptions_t* nacre_readoptions_create(void) {
  return std::make_unique<nacre_readoptions_t>().release();
}

void nacre_readoptions_destroy(nacre_readoptions_t* options) { Destroy(options); }

void nacre_readoptions_set_snapshot(nacre_readoptions_t* options,
                                    const nacre_snapshot_t* snapshot) {
  options->rep.snapshot = snapshot == nullptr ? nullptr : snapshot->rep;
}

void nacre_readoptions_set_linearizable(nacre_readoptions_t* options, unsigned char value) {
  options->rep.linearizable = value != 0;
}

void nacre_readoptions_set_verify_checksums(nacre_readoptions_t* options, unsigned char value) {
  options->rep.verify_checksums = value != 0;
}

void nacre_readoptions_set_iterate_lower_bound(nacre_readoptions_t* options, const char* key,
                                               size_t key_size) {
  options->lower = key == nullptr ? nullptr : std::make_unique<std::string>(key, key_size);
}

void nacre_readoptions_set_iterate_upper_bound(nacre_readoptions_t* options, const char* key,
                                               size_t key_size) {
  options->upper = key == nullptr ? nullptr : std::make_unique<std::string>(key, key_size);
}

void nacre_readoptions_set_prefix_same_as_start(nacre_readoptions_t* options, unsigned char value) {
  options->rep.prefix_same_as_start = value != 0;
}

void nacre_readoptions_set_total_order_seek(nacre_readoptions_t* options, unsigned char value) {
  options->rep.total_order_seek = value != 0;
}

void nacre_readoptions_set_readahead_size(nacre_readoptions_t* options, size_t value) {
  options->rep.readahead_size = value;
}

nacre_writeoptions_t* nacre_writeoptions_create(void) {
  return std::make_unique<nacre_writeoptions_t>().release();
}

void nacre_writeoptions_destroy(nacre_writeoptions_t* options) { Destroy(options); }

void nacre_writeoptions_set_sync(nacre_writeoptions_t* options, unsigned char value) {
  options->rep.sync = value != 0;
}

void nacre_writeoptions_disable_wal(nacre_writeoptions_t* options, unsigned char value) {
  options->rep.disable_wal = value != 0;
}

void nacre_writeoptions_set_no_slowdown(nacre_writeoptions_t* options, unsigned char value) {
  options->rep.no_slowdown = value != 0;
}

nacre_flushoptions_t* nacre_flushoptions_create(void) {
  return std::make_unique<nacre_flushoptions_t>().release();
}

void nacre_flushoptions_destroy(nacre_flushoptions_t* options) { Destroy(options); }

void nacre_flushoptions_set_wait(nacre_flushoptions_t* options, unsigned char value) {
  options->rep.wait = value != 0;
}

nacre_compactoptions_t* nacre_compactoptions_create(void) {
  return std::make_unique<nacre_compactoptions_t>().release();
}

void nacre_compactoptions_destroy(nacre_compactoptions_t* options) { Destroy(options); }

void nacre_compactoptions_set_change_level(nacre_compactoptions_t* options, unsigned char value) {
  options->rep.change_level = value != 0;
}

void nacre_compactoptions_set_target_level(nacre_compactoptions_t* options, int value) {
  options->rep.target_level = value;
}

void nacre_compactoptions_set_max_subcompactions(nacre_compactoptions_t* options, uint32_t value) {
  options->rep.max_subcompactions = value;
}
