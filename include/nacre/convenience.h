#pragma once

#include <string>
#include <unordered_map>

#include "nacre/options.h"
#include "nacre/status.h"

namespace nacre {

// Options as text, as in RocksDB: "name=value;name={nested;text};...", with spaces where one likes.
// Numbers may end in k, m, g or t (powers of 1024); booleans are true, false, 1 or 0; times are
// milliseconds; enumerators have their names ("kPointInTimeRecovery"). Objects that an application
// makes (info_log, pool, statistics, custom comparators, merge operators and filters) have no text,
// except those that Nacre brings along, by name: `comparator`, `merge_operator`,
// `prefix_extractor` ("fixed:8", "capped:8").
//
// All of them answer `InvalidArgument` naming the option that is unknown or the value that is no
// value for it, unless `ConfigOptions` says otherwise; the result is then `base`.

struct ConfigOptions {
  bool ignore_unknown_options = false;
  /// Between the options of GetStringFromDBOptions and GetStringFromColumnFamilyOptions.
  std::string delimiter = ";";
};

Status GetOptionsFromString(const ConfigOptions& config, const Options& base,
                            const std::string& text, Options* options);
Status GetOptionsFromString(const Options& base, const std::string& text, Options* options);
Status GetDBOptionsFromString(const ConfigOptions& config, const DBOptions& base,
                              const std::string& text, DBOptions* options);
Status GetColumnFamilyOptionsFromString(const ConfigOptions& config,
                                        const ColumnFamilyOptions& base, const std::string& text,
                                        ColumnFamilyOptions* options);

Status GetDBOptionsFromMap(const ConfigOptions& config, const DBOptions& base,
                           const std::unordered_map<std::string, std::string>& map,
                           DBOptions* options);
Status GetColumnFamilyOptionsFromMap(const ConfigOptions& config, const ColumnFamilyOptions& base,
                                     const std::unordered_map<std::string, std::string>& map,
                                     ColumnFamilyOptions* options);

/// All options that have a text: given back to Get...FromString they are as they were.
/// `InvalidArgument` names a string that no text gives back, as with a brace of which the other is
/// missing, or spaces around it.
Status GetStringFromDBOptions(const ConfigOptions& config, const DBOptions& options,
                              std::string* text);
Status GetStringFromColumnFamilyOptions(const ConfigOptions& config,
                                        const ColumnFamilyOptions& options, std::string* text);

/// "name=value;..." into its parts; `InvalidArgument` saying where it is malformed.
Status StringToMap(const std::string& text, std::unordered_map<std::string, std::string>* map);

}  // namespace nacre
