#include "db/options_check.h"

#include <bit>
#include <span>
#include <type_traits>

#include "nacre/column_family.h"
#include "util/uri.h"

namespace nacre {

namespace {

struct Bound {
  const char* option;
  int64_t value;
  int64_t min;
  int64_t max;
  bool is_unsigned;  ///< Of the option's own type: how its value reads.
};

template <typename T>
Bound BoundOf(const char* option, T value, int64_t min, int64_t max) {
  return {option, static_cast<int64_t>(value), min, max, std::is_unsigned_v<T>};
}

Status OutOfRange(const Bound& bound) {
  const std::string value = bound.is_unsigned ? std::to_string(static_cast<uint64_t>(bound.value))
                                              : std::to_string(bound.value);
  return Status::InvalidArgument("Options::" + std::string(bound.option) + " is " + value +
                                 ", must be in [" + std::to_string(bound.min) + ", " +
                                 std::to_string(bound.max) + "]");
}

constexpr size_t kMaxNameBytes = 255;
constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kTiB = int64_t{1} << 40;

Status CheckBounds(std::span<const Bound> bounds) {
  for (const Bound& bound : bounds) {
    if (bound.value < bound.min || bound.value > bound.max) return OutOfRange(bound);
  }
  return Status::OK();
}

Status CheckFamilyBounds(const ColumnFamilyOptions& options) {
  if (options.comparator == nullptr) {
    return Status::InvalidArgument("Options::comparator is null");
  }
  const Bound bounds[] = {
      BoundOf("write_buffer_size", options.write_buffer_size, 64 << 10, 64 * 1024 * kMiB),
      BoundOf("max_write_buffer_number", options.max_write_buffer_number, 2, 32),
      BoundOf("num_levels", options.num_levels, 2, 16),
      BoundOf("level0_file_num_compaction_trigger", options.level0_file_num_compaction_trigger, 1,
              1 << 20),
      BoundOf("level0_slowdown_writes_trigger", options.level0_slowdown_writes_trigger,
              options.level0_file_num_compaction_trigger, 1 << 20),
      BoundOf("level0_stop_writes_trigger", options.level0_stop_writes_trigger,
              options.level0_slowdown_writes_trigger, 1 << 20),
      BoundOf("target_file_size_base", options.target_file_size_base, 64 << 10, kTiB),
      BoundOf("target_file_size_multiplier", options.target_file_size_multiplier, 1, 100),
      BoundOf("max_bytes_for_level_base", options.max_bytes_for_level_base, 64 << 10, 1024 * kTiB),
  };
  NACRE_RETURN_IF_ERROR(CheckBounds(bounds));
  if (!(options.max_bytes_for_level_multiplier >= 1 &&
        options.max_bytes_for_level_multiplier <= 1000)) {
    return Status::InvalidArgument("Options::max_bytes_for_level_multiplier must be in [1, 1000]");
  }
  return Status::OK();
}

}  // namespace

Status CheckFamilyOptions(const ColumnFamilyOptions& options, const std::string& name) {
  if (name.empty() || name.size() > kMaxNameBytes) {
    return Status::InvalidArgument("column family name must have 1 to 255 bytes, has " +
                                   std::to_string(name.size()));
  }
  if (name == kDefaultColumnFamilyName) return CheckFamilyBounds(options);
  return CheckFamilyBounds(options).WithContext("column family " + name);
}

Status CheckOptions(const Options& options, const std::string& name, RedundancyPolicy* redundancy) {
  if (name.empty() || name.size() > kMaxNameBytes) {
    return Status::InvalidArgument("database name must have 1 to 255 bytes, has " +
                                   std::to_string(name.size()));
  }
  NACRE_RETURN_IF_ERROR(CheckFamilyBounds(options));
  const Bound bounds[] = {
      BoundOf("max_background_jobs", options.max_background_jobs, 1, 256),
      BoundOf("max_subcompactions", options.max_subcompactions, 1, kMaxSubcompactions),
      BoundOf("slab_size", options.slab_size, kMiB, 64 * 1024 * kMiB),
      BoundOf("chunk_size", options.chunk_size, 4 << 10, 16 * kMiB),
      BoundOf("operation_timeout (ms)", options.operation_timeout.count(), 1, 3'600'000),
      BoundOf("follow_interval (ms)", options.follow_interval.count(), 0, 3'600'000),
  };
  NACRE_RETURN_IF_ERROR(CheckBounds(bounds));
  if (!std::has_single_bit(options.chunk_size) || options.slab_size % options.chunk_size != 0) {
    return Status::InvalidArgument("Options::chunk_size is " + std::to_string(options.chunk_size) +
                                   ", must be a power of two that divides slab_size");
  }
  if (options.record_cache_size > 0) return Status::NotSupported("Options::record_cache_size");
  return RedundancyPolicy::Parse(options.redundancy, redundancy);
}

}  // namespace nacre
