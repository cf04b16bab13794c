#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <concepts>
#include <cstdlib>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "nacre/convenience.h"
#include "nacre/merge_operator.h"
#include "nacre/slice_transform.h"

namespace nacre {

namespace {

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// ---- Values: of each type its text, and back. None: it is no value of the type. -----------------

struct EnumName {
  std::string_view name;
  int value;
};
std::span<const EnumName> NamesOf(CompactionSite) {
  static constexpr EnumName kNames[] = {{"kAuto", static_cast<int>(CompactionSite::kAuto)},
                                        {"kCompute", static_cast<int>(CompactionSite::kCompute)}};
  return kNames;
}
std::span<const EnumName> NamesOf(NearDataFlush) {
  static constexpr EnumName kNames[] = {{"kAuto", static_cast<int>(NearDataFlush::kAuto)},
                                        {"kOn", static_cast<int>(NearDataFlush::kOn)},
                                        {"kOff", static_cast<int>(NearDataFlush::kOff)}};
  return kNames;
}
std::span<const EnumName> NamesOf(WALRecoveryMode) {
  static constexpr EnumName kNames[] = {
      {"kTolerateCorruptedTailRecords",
       static_cast<int>(WALRecoveryMode::kTolerateCorruptedTailRecords)},
      {"kAbsoluteConsistency", static_cast<int>(WALRecoveryMode::kAbsoluteConsistency)},
      {"kPointInTimeRecovery", static_cast<int>(WALRecoveryMode::kPointInTimeRecovery)},
      {"kSkipAnyCorruptedRecords", static_cast<int>(WALRecoveryMode::kSkipAnyCorruptedRecords)}};
  return kNames;
}

std::span<const EnumName> NamesOf(LogLevel) {
  static constexpr EnumName kNames[] = {{"kDebug", static_cast<int>(LogLevel::kDebug)},
                                        {"kInfo", static_cast<int>(LogLevel::kInfo)},
                                        {"kWarn", static_cast<int>(LogLevel::kWarn)},
                                        {"kError", static_cast<int>(LogLevel::kError)}};
  return kNames;
}

template <typename T>
requires std::is_enum_v<T>
bool Parse(std::string_view text, T* value) {
  for (const EnumName& name : NamesOf(T())) {
    if (name.name != text) continue;
    *value = static_cast<T>(name.value);
    return true;
  }
  return false;
}
template <typename T>
requires std::is_enum_v<T> std::optional<std::string> TextOf(T value) {
  for (const EnumName& name : NamesOf(T())) {
    if (name.value == static_cast<int>(value)) return std::string(name.name);
  }
  return std::nullopt;
}

bool Parse(std::string_view text, bool* value) {
  if (text != "true" && text != "1" && text != "false" && text != "0") return false;
  *value = text == "true" || text == "1";
  return true;
}
std::optional<std::string> TextOf(bool value) { return value ? "true" : "false"; }

template <std::integral T>
requires(!std::same_as<T, bool>) bool Parse(std::string_view text, T* value) {
  int shift = 0;
  if (!text.empty()) {
    constexpr std::string_view kSuffixes = "kmgt";
    const size_t suffix = kSuffixes.find(static_cast<char>(text.back() | 0x20));
    if (suffix != std::string_view::npos) {
      shift = 10 * (static_cast<int>(suffix) + 1);
      text.remove_suffix(1);
    }
  }
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text.empty() || (negative && std::unsigned_integral<T>)) return false;
  unsigned __int128 number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    number = number * 10 + static_cast<unsigned>(c - '0');
    if (number > UINT64_MAX) return false;
  }
  number <<= shift;
  if (number > static_cast<unsigned __int128>(std::numeric_limits<T>::max())) return false;
  *value = negative ? static_cast<T>(-static_cast<__int128>(number)) : static_cast<T>(number);
  return true;
}
template <std::integral T>
requires(!std::same_as<T, bool>) std::optional<std::string> TextOf(T value) {
  return std::to_string(value);
}

bool Parse(std::string_view text, double* value) {
  const std::string copy(text);
  char* end = nullptr;
  const double number = std::strtod(copy.c_str(), &end);
  if (copy.empty() || end != copy.c_str() + copy.size() || !std::isfinite(number)) return false;
  *value = number;
  return true;
}
std::optional<std::string> TextOf(double value) { return fmt::format("{}", value); }

bool Parse(std::string_view text, std::string* value) {
  *value = text;
  return true;
}
std::optional<std::string> TextOf(const std::string& value) {
  return value.find_first_of(";={}") == std::string::npos ? value : "{" + value + "}";
}

template <typename Period>
bool Parse(std::string_view text, std::chrono::duration<int64_t, Period>* value) {
  int64_t count = 0;
  if (!Parse(text, &count) || count < 0) return false;
  *value = std::chrono::duration<int64_t, Period>(count);
  return true;
}
template <typename Period>
std::optional<std::string> TextOf(std::chrono::duration<int64_t, Period> value) {
  return std::to_string(value.count());
}

bool Parse(std::string_view text, const Comparator** value) {
  // RocksDB's names for the same orders.
  if (text == "leveldb.BytewiseComparator") text = BytewiseComparator()->Name();
  if (text == "rocksdb.ReverseBytewiseComparator") text = ReverseBytewiseComparator()->Name();
  for (const Comparator* known : {BytewiseComparator(), ReverseBytewiseComparator()}) {
    if (text != known->Name()) continue;
    *value = known;
    return true;
  }
  return false;
}
std::optional<std::string> TextOf(const Comparator* value) {
  const Comparator* same = nullptr;
  if (value == nullptr || !Parse(value->Name(), &same) || same != value) return std::nullopt;
  return value->Name();
}

bool Parse(std::string_view text, std::shared_ptr<MergeOperator>* value) {
  return MergeOperator::CreateFromString(std::string(text), value).ok();
}
std::optional<std::string> TextOf(const std::shared_ptr<MergeOperator>& value) {
  std::shared_ptr<MergeOperator> same;
  if (value == nullptr || !Parse(value->Name(), &same)) return std::nullopt;
  return value->Name();
}

/// As RocksDB: "fixed:8", "capped:8"; names of the objects are read, too.
bool Parse(std::string_view text, std::shared_ptr<const SliceTransform>* value) {
  using Make = std::shared_ptr<const SliceTransform> (*)(size_t length);
  const std::pair<std::string_view, Make> makes[] = {
      {"fixed:", NewFixedPrefixTransform},
      {"FixedPrefix.", NewFixedPrefixTransform},
      {"capped:", NewCappedPrefixTransform},
      {"CappedPrefix.", NewCappedPrefixTransform},
  };
  constexpr std::string_view kRocksDb = "rocksdb.";
  if (text.starts_with(kRocksDb)) text.remove_prefix(kRocksDb.size());
  for (const auto& [name, make] : makes) {
    size_t length = 0;
    if (!text.starts_with(name) || !Parse(text.substr(name.size()), &length)) continue;
    *value = make(length);
    return true;
  }
  return false;
}
std::optional<std::string> TextOf(const std::shared_ptr<const SliceTransform>& value) {
  std::shared_ptr<const SliceTransform> same;
  if (value == nullptr || !Parse(value->Name(), &same)) return std::nullopt;
  return value->Name();
}

// ---- Options ------------------------------------------------------------------------------------

template <typename Struct>
struct Field {
  std::string_view name;
  bool (*parse)(std::string_view text, Struct* options);
  std::optional<std::string> (*text)(const Struct& options);
};

template <auto kMember, typename Struct>
constexpr Field<Struct> FieldOf(std::string_view name) {
  return {name,
          [](std::string_view text, Struct* options) { return Parse(text, &(options->*kMember)); },
          [](const Struct& options) { return TextOf(options.*kMember); }};
}

#define NACRE_DB_OPTION(name) FieldOf<&DBOptions::name, DBOptions>(#name)
#define NACRE_FAMILY_OPTION(name) FieldOf<&ColumnFamilyOptions::name, ColumnFamilyOptions>(#name)

constexpr Field<DBOptions> kDBFields[] = {
    NACRE_DB_OPTION(pool_uri),
    NACRE_DB_OPTION(redundancy),
    NACRE_DB_OPTION(allow_degraded_writes),
    NACRE_DB_OPTION(allow_narrow_writes),
    NACRE_DB_OPTION(compaction),
    NACRE_DB_OPTION(near_data_flush),
    NACRE_DB_OPTION(scrub_bytes_per_second),
    NACRE_DB_OPTION(create_if_missing),
    NACRE_DB_OPTION(error_if_exists),
    NACRE_DB_OPTION(create_missing_column_families),
    NACRE_DB_OPTION(take_over),
    NACRE_DB_OPTION(follow_interval),
    NACRE_DB_OPTION(db_log_dir),
    NACRE_DB_OPTION(metrics_address),
    NACRE_DB_OPTION(encryption_key_file),
    NACRE_DB_OPTION(slow_operation_threshold),
    NACRE_DB_OPTION(info_log_level),
    NACRE_DB_OPTION(max_log_file_size),
    NACRE_DB_OPTION(log_file_time_to_roll),
    NACRE_DB_OPTION(keep_log_file_num),
    NACRE_DB_OPTION(manual_wal_flush),
    NACRE_DB_OPTION(wal_recovery_mode),
    NACRE_DB_OPTION(WAL_size_limit_MB),
    NACRE_DB_OPTION(max_archive_lag_MB),
    NACRE_DB_OPTION(manifest_image_interval),
    NACRE_DB_OPTION(manifest_image_edits),
    NACRE_DB_OPTION(delayed_write_rate),
    NACRE_DB_OPTION(max_background_jobs),
    NACRE_DB_OPTION(max_subcompactions),
    NACRE_DB_OPTION(db_write_buffer_size),
    NACRE_DB_OPTION(home_nodes),
    NACRE_DB_OPTION(slab_size),
    NACRE_DB_OPTION(chunk_size),
    NACRE_DB_OPTION(max_queue_pairs_per_node),
    NACRE_DB_OPTION(repair_bytes_per_second),
    NACRE_DB_OPTION(operation_timeout),
    NACRE_DB_OPTION(slow_node_patience_min),
    NACRE_DB_OPTION(slow_node_patience_max),
    NACRE_DB_OPTION(hedged_reads_percent),
    NACRE_DB_OPTION(index_memory_budget),
    NACRE_DB_OPTION(record_cache_size),
};

constexpr Field<ColumnFamilyOptions> kFamilyFields[] = {
    NACRE_FAMILY_OPTION(comparator),
    NACRE_FAMILY_OPTION(merge_operator),
    NACRE_FAMILY_OPTION(prefix_extractor),
    NACRE_FAMILY_OPTION(write_buffer_size),
    NACRE_FAMILY_OPTION(max_write_buffer_number),
    NACRE_FAMILY_OPTION(num_levels),
    NACRE_FAMILY_OPTION(level0_file_num_compaction_trigger),
    NACRE_FAMILY_OPTION(level0_slowdown_writes_trigger),
    NACRE_FAMILY_OPTION(level0_stop_writes_trigger),
    NACRE_FAMILY_OPTION(target_file_size_base),
    NACRE_FAMILY_OPTION(target_file_size_multiplier),
    NACRE_FAMILY_OPTION(max_bytes_for_level_base),
    NACRE_FAMILY_OPTION(max_bytes_for_level_multiplier),
    NACRE_FAMILY_OPTION(soft_pending_compaction_bytes_limit),
    NACRE_FAMILY_OPTION(hard_pending_compaction_bytes_limit),
    NACRE_FAMILY_OPTION(disable_auto_compactions),
};

#undef NACRE_DB_OPTION
#undef NACRE_FAMILY_OPTION

enum class Found : uint8_t { kNo, kYes, kBadValue };

template <typename Struct, size_t N>
Found Set(const Field<Struct> (&fields)[N], const std::string& name, const std::string& value,
          Struct* options) {
  for (const Field<Struct>& field : fields) {
    if (field.name == name) {
      return field.parse(Trim(value), options) ? Found::kYes : Found::kBadValue;
    }
  }
  return Found::kNo;
}
Found Set(const std::string& name, const std::string& value, DBOptions* options) {
  return Set(kDBFields, name, value, options);
}
Found Set(const std::string& name, const std::string& value, ColumnFamilyOptions* options) {
  return Set(kFamilyFields, name, value, options);
}
Found Set(const std::string& name, const std::string& value, Options* options) {
  const Found found = Set(name, value, static_cast<DBOptions*>(options));
  if (found != Found::kNo) return found;
  return Set(name, value, static_cast<ColumnFamilyOptions*>(options));
}

template <typename Struct>
Status FromMap(const ConfigOptions& config, const Struct& base,
               const std::unordered_map<std::string, std::string>& map, Struct* options) {
  Struct result = base;
  for (const auto& [name, value] : map) {
    const Found found = Set(name, value, &result);
    if (found == Found::kYes || (found == Found::kNo && config.ignore_unknown_options)) continue;
    *options = base;
    return found == Found::kNo
               ? Status::InvalidArgument("unrecognized option: " + name)
               : Status::InvalidArgument("option " + name + " cannot be '" + value + "'");
  }
  *options = std::move(result);
  return Status::OK();
}

template <typename Struct>
Status FromString(const ConfigOptions& config, const Struct& base, const std::string& text,
                  Struct* options) {
  std::unordered_map<std::string, std::string> map;
  Status status = StringToMap(text, &map);
  if (status.ok()) return FromMap(config, base, map, options);
  *options = base;
  return status;
}

/// Whether `text` parses to the value that it was made of: braces and spaces of strings may be in
/// the way.
template <typename Struct>
bool IsReadAgain(const Field<Struct>& field, const std::string& text) {
  std::unordered_map<std::string, std::string> map;
  if (!StringToMap(std::string(field.name) + "=" + text, &map).ok() || map.size() != 1)
    return false;
  Struct read;
  return field.parse(Trim(map.begin()->second), &read) && field.text(read) == text;
}

template <typename Struct, size_t N>
Status ToText(const ConfigOptions& config, const Field<Struct> (&fields)[N], const Struct& options,
              std::string* text) {
  std::string result;
  for (const Field<Struct>& field : fields) {
    const std::optional<std::string> value = field.text(options);
    if (!value.has_value()) continue;
    const std::string name(field.name);
    if (!IsReadAgain(field, *value)) {
      return Status::InvalidArgument("option " + name + " cannot be written as text: " + *value);
    }
    result += name + "=" + *value + config.delimiter;
  }
  *text = std::move(result);
  return Status::OK();
}

}  // namespace

Status StringToMap(const std::string& text, std::unordered_map<std::string, std::string>* map) {
  map->clear();
  std::string_view rest = Trim(text);
  while (!rest.empty()) {
    const size_t equals = rest.find('=');
    if (equals == std::string_view::npos) {
      return Status::InvalidArgument("options: no '=' in '" + std::string(rest) + "'");
    }
    const std::string name(Trim(rest.substr(0, equals)));
    if (name.empty()) {
      return Status::InvalidArgument("options: no name before '" + std::string(rest) + "'");
    }
    rest = Trim(rest.substr(equals + 1));
    size_t end = rest.find(';');
    std::string_view value;
    if (rest.starts_with('{')) {
      int depth = 0;
      size_t close = 0;
      for (; close < rest.size(); ++close) {
        depth += rest[close] == '{' ? 1 : rest[close] == '}' ? -1 : 0;
        if (depth == 0) break;
      }
      if (close == rest.size()) {
        return Status::InvalidArgument("options: a '{' of " + name + " is not closed");
      }
      value = Trim(rest.substr(1, close - 1));
      end = rest.find(';', close);
      const size_t behind = (end == std::string_view::npos ? rest.size() : end) - close - 1;
      if (!Trim(rest.substr(close + 1, behind)).empty()) {
        return Status::InvalidArgument("options: text behind the '}' of " + name);
      }
    } else {
      value = Trim(rest.substr(0, end));
    }
    (*map)[name] = value;
    rest = end == std::string_view::npos ? std::string_view() : Trim(rest.substr(end + 1));
  }
  return Status::OK();
}

Status GetOptionsFromString(const ConfigOptions& config, const Options& base,
                            const std::string& text, Options* options) {
  return FromString(config, base, text, options);
}
Status GetOptionsFromString(const Options& base, const std::string& text, Options* options) {
  return FromString({}, base, text, options);
}
Status GetDBOptionsFromString(const ConfigOptions& config, const DBOptions& base,
                              const std::string& text, DBOptions* options) {
  return FromString(config, base, text, options);
}
Status GetColumnFamilyOptionsFromString(const ConfigOptions& config,
                                        const ColumnFamilyOptions& base, const std::string& text,
                                        ColumnFamilyOptions* options) {
  return FromString(config, base, text, options);
}
Status GetDBOptionsFromMap(const ConfigOptions& config, const DBOptions& base,
                           const std::unordered_map<std::string, std::string>& map,
                           DBOptions* options) {
  return FromMap(config, base, map, options);
}
Status GetColumnFamilyOptionsFromMap(const ConfigOptions& config, const ColumnFamilyOptions& base,
                                     const std::unordered_map<std::string, std::string>& map,
                                     ColumnFamilyOptions* options) {
  return FromMap(config, base, map, options);
}
Status GetStringFromDBOptions(const ConfigOptions& config, const DBOptions& options,
                              std::string* text) {
  return ToText(config, kDBFields, options, text);
}
Status GetStringFromColumnFamilyOptions(const ConfigOptions& config,
                                        const ColumnFamilyOptions& options, std::string* text) {
  return ToText(config, kFamilyFields, options, text);
}

}  // namespace nacre
