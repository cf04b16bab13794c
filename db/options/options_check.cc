#include "db/options/options_check.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <span>
#include <type_traits>

#include "db/cache/record_cache.h"
#include "nacre/column_family.h"
#include "util/log.h"
#include "util/uri.h"

namespace nacre {

namespace {

struct Bound {
  const char* option;
  int64_t value;
  int64_t min;
  int64_t max;
  bool is_unsigned;  ///< Whether the option's own type is, for showing the value.
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
// Ends of ranges that values are moved into.
constexpr size_t kWriteBufferMin = 64 << 10;
constexpr size_t kWriteBufferMax = size_t{64} << 30;
constexpr int kWriteBuffersMax = 32;
constexpr int kLevelsMin = 2;
constexpr int kLevelsMax = 16;
constexpr uint64_t kTableBytesMin = 64 << 10;
constexpr uint64_t kTableBytesMax = kTiB;
constexpr uint64_t kLevelBytesMax = 1024 * kTiB;
constexpr int kBackgroundJobsMax = 256;

/// Moves options into what can be had, and says so.
class Sanitizer {
 public:
  /// `whose`: for the notes.
  Sanitizer(std::string whose, std::vector<std::string>* notes)
      : whose_(std::move(whose)), notes_(notes) {}

  template <typename T>
  void Set(const char* name, T* option, T value) {
    if (*option == value) return;
    notes_->push_back("Options::" + std::string(name) + whose_ + " is " + std::to_string(*option) +
                      ", taken for " + std::to_string(value));
    *option = value;
  }
  template <typename T>
  void Clamp(const char* name, T* option, T min, T max) {
    // NaN fails the comparison, so it becomes `min`.
    Set(name, option, *option >= min ? std::min(*option, max) : min);
  }

 private:
  const std::string whose_;
  std::vector<std::string>* const notes_;
};

Status CheckBounds(std::span<const Bound> bounds) {
  for (const Bound& bound : bounds) {
    if (bound.value < bound.min || bound.value > bound.max) return OutOfRange(bound);
  }
  return Status::OK();
}

Status CheckFamily(const ColumnFamilyOptions& options) {
  if (options.comparator == nullptr) {
    return Status::InvalidArgument("Options::comparator is null");
  }
  return Status::OK();
}

}  // namespace

DBOptions SanitizeDBOptions(const DBOptions& options, std::vector<std::string>* notes) {
  DBOptions result = options;
  Sanitizer sanitizer("", notes);
  sanitizer.Clamp("max_background_jobs", &result.max_background_jobs, 1, kBackgroundJobsMax);
  sanitizer.Clamp("max_subcompactions", &result.max_subcompactions, 0U, kMaxSubcompactions);
  sanitizer.Clamp("keep_log_file_num", &result.keep_log_file_num, size_t{1}, SIZE_MAX);
  sanitizer.Clamp("manifest_image_edits", &result.manifest_image_edits, 1U, UINT32_MAX);
  return result;
}

ColumnFamilyOptions SanitizeFamilyOptions(const ColumnFamilyOptions& options,
                                          const std::string& name,
                                          std::vector<std::string>* notes) {
  ColumnFamilyOptions result = options;
  Sanitizer sanitizer(name == kDefaultColumnFamilyName ? "" : " of column family " + name, notes);
  sanitizer.Clamp("write_buffer_size", &result.write_buffer_size, kWriteBufferMin, kWriteBufferMax);
  sanitizer.Clamp("max_write_buffer_number", &result.max_write_buffer_number, 2, kWriteBuffersMax);
  sanitizer.Clamp("num_levels", &result.num_levels, kLevelsMin, kLevelsMax);
  // 0 <= trigger <= slowdown <= stop, as each is reached after the one before.
  sanitizer.Clamp("level0_file_num_compaction_trigger", &result.level0_file_num_compaction_trigger,
                  1, INT_MAX);
  sanitizer.Clamp("level0_slowdown_writes_trigger", &result.level0_slowdown_writes_trigger,
                  result.level0_file_num_compaction_trigger, INT_MAX);
  sanitizer.Clamp("level0_stop_writes_trigger", &result.level0_stop_writes_trigger,
                  result.level0_slowdown_writes_trigger, INT_MAX);
  sanitizer.Clamp("target_file_size_base", &result.target_file_size_base, kTableBytesMin,
                  kTableBytesMax);
  sanitizer.Clamp("target_file_size_multiplier", &result.target_file_size_multiplier, 1, 100);
  sanitizer.Clamp("max_bytes_for_level_base", &result.max_bytes_for_level_base, kTableBytesMin,
                  kLevelBytesMax);
  sanitizer.Clamp("max_bytes_for_level_multiplier", &result.max_bytes_for_level_multiplier, 1.0,
                  1000.0);
  // 0 is no limit, and a soft limit beyond the hard one is none.
  const uint64_t hard = result.hard_pending_compaction_bytes_limit;
  uint64_t* const soft = &result.soft_pending_compaction_bytes_limit;
  if (hard > 0 && (*soft == 0 || *soft > hard)) {
    sanitizer.Set("soft_pending_compaction_bytes_limit", soft, hard);
  }
  return result;
}

std::vector<ColumnFamilyDescriptor> SanitizeFamilies(
    const std::vector<ColumnFamilyDescriptor>& families, std::vector<std::string>* notes) {
  std::vector<ColumnFamilyDescriptor> result = families;
  for (ColumnFamilyDescriptor& family : result) {
    family.options = SanitizeFamilyOptions(family.options, family.name, notes);
  }
  return result;
}

void LogNotes(Logger* log, const std::string& name, const std::vector<std::string>& notes) {
  for (const std::string& note : notes) Log(log, LogLevel::kWarn, "{}: {}", name, note);
}

Status CheckFamilyOptions(const ColumnFamilyOptions& options, const std::string& name) {
  if (name.empty() || name.size() > kMaxNameBytes) {
    return Status::InvalidArgument("column family name must have 1 to 255 bytes, has " +
                                   std::to_string(name.size()));
  }
  if (name == kDefaultColumnFamilyName) return CheckFamily(options);
  return CheckFamily(options).WithContext("column family " + name);
}

Status CheckOptions(const Options& options, const std::string& name, RedundancyPolicy* redundancy) {
  if (name.empty() || name.size() > kMaxNameBytes) {
    return Status::InvalidArgument("database name must have 1 to 255 bytes, has " +
                                   std::to_string(name.size()));
  }
  NACRE_RETURN_IF_ERROR(CheckFamily(options));
  const Bound bounds[] = {
      BoundOf("slab_size", options.slab_size, kMiB / 4, 64 * 1024 * kMiB),
      BoundOf("chunk_size", options.chunk_size, 4 << 10, 16 * kMiB),
      BoundOf("operation_timeout (ms)", options.operation_timeout.count(), 1, 3'600'000),
      BoundOf("follow_interval (ms)", options.follow_interval.count(), 0, 3'600'000),
      BoundOf("slow_operation_threshold (us)", options.slow_operation_threshold.count(), 0,
              3'600'000'000),
  };
  NACRE_RETURN_IF_ERROR(CheckBounds(bounds));
  if (!std::has_single_bit(options.chunk_size) || options.slab_size % options.chunk_size != 0) {
    return Status::InvalidArgument("Options::chunk_size is " + std::to_string(options.chunk_size) +
                                   ", must be a power of two that divides slab_size");
  }
  if (options.record_cache_size > 0) {
    const Bound bound = BoundOf("record_cache_size, unless 0,", options.record_cache_size,
                                RecordCache::kMinBytes, 1024 * kTiB);
    NACRE_RETURN_IF_ERROR(CheckBounds({&bound, 1}));
  }
  return RedundancyPolicy::Parse(options.redundancy, redundancy);
}

}  // namespace nacre
