#include "db/options_check.h"

#include <bit>

#include "util/uri.h"

namespace nacre {

namespace {

Status OutOfRange(const std::string& option, uint64_t value, uint64_t min, uint64_t max) {
  return Status::InvalidArgument("Options::" + option + " is " + std::to_string(value) +
                                 ", must be in [" + std::to_string(min) + ", " +
                                 std::to_string(max) + "]");
}

}  // namespace

Status CheckOptions(const Options& options, const std::string& name, Redundancy* redundancy) {
  constexpr size_t kMaxNameBytes = 255;
  if (name.empty() || name.size() > kMaxNameBytes) {
    return Status::InvalidArgument("database name must have 1 to 255 bytes, has " +
                                   std::to_string(name.size()));
  }
  if (options.comparator == nullptr) {
    return Status::InvalidArgument("Options::comparator is null");
  }
  struct Bound {
    const char* option;
    int64_t value;
    int64_t min;
    int64_t max;
  };
  constexpr int64_t kMiB = 1 << 20;
  constexpr int64_t kTiB = int64_t{1} << 40;
  const auto number = [](auto value) { return static_cast<int64_t>(value); };
  const Bound bounds[] = {
      {"write_buffer_size", number(options.write_buffer_size), 64 << 10, 64 * 1024 * kMiB},
      {"max_write_buffer_number", options.max_write_buffer_number, 2, 32},
      {"num_levels", options.num_levels, 2, 16},
      {"level0_file_num_compaction_trigger", options.level0_file_num_compaction_trigger, 1,
       1 << 20},
      {"level0_slowdown_writes_trigger", options.level0_slowdown_writes_trigger,
       options.level0_file_num_compaction_trigger, 1 << 20},
      {"level0_stop_writes_trigger", options.level0_stop_writes_trigger,
       options.level0_slowdown_writes_trigger, 1 << 20},
      {"target_file_size_base", number(options.target_file_size_base), 64 << 10, kTiB},
      {"target_file_size_multiplier", options.target_file_size_multiplier, 1, 100},
      {"max_bytes_for_level_base", number(options.max_bytes_for_level_base), 64 << 10, 1024 * kTiB},
      {"max_background_jobs", options.max_background_jobs, 1, 256},
      {"max_subcompactions", options.max_subcompactions, 1, 256},
      {"slab_size", number(options.slab_size), kMiB, 64 * 1024 * kMiB},
      {"chunk_size", number(options.chunk_size), 4 << 10, 16 * kMiB},
      {"operation_timeout (ms)", options.operation_timeout.count(), 1, 3'600'000},
  };
  for (const Bound& bound : bounds) {
    if (bound.value < bound.min || bound.value > bound.max) {
      return OutOfRange(bound.option, static_cast<uint64_t>(bound.value),
                        static_cast<uint64_t>(bound.min), static_cast<uint64_t>(bound.max));
    }
  }
  if (!(options.max_bytes_for_level_multiplier >= 1 &&
        options.max_bytes_for_level_multiplier <= 1000)) {
    return Status::InvalidArgument("Options::max_bytes_for_level_multiplier must be in [1, 1000]");
  }
  if (!std::has_single_bit(options.chunk_size) || options.slab_size % options.chunk_size != 0) {
    return Status::InvalidArgument("Options::chunk_size is " + std::to_string(options.chunk_size) +
                                   ", must be a power of two that divides slab_size");
  }
  return ParseRedundancy(options.redundancy, redundancy);
}

}  // namespace nacre
