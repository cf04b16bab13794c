#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/column_family.h"
#include "nacre/options.h"
#include "nacre/status.h"
#include "table/format/redundancy.h"

namespace nacre {

inline constexpr uint32_t kMaxSubcompactions = 256;

// What RocksDB opens with other values than it was given is opened so here, too (docs/api.md has
// the table): each change adds a line to `*notes`, for the LOG. Other nonsense is refused.

/// As the database is opened.
DBOptions SanitizeDBOptions(const DBOptions& options, std::vector<std::string>* notes);
ColumnFamilyOptions SanitizeFamilyOptions(const ColumnFamilyOptions& options,
                                          const std::string& name, std::vector<std::string>* notes);
std::vector<ColumnFamilyDescriptor> SanitizeFamilies(
    const std::vector<ColumnFamilyDescriptor>& families, std::vector<std::string>* notes);
/// Writes them to the LOG of database `name`.
void LogNotes(Logger* log, const std::string& name, const std::vector<std::string>& notes);

/// Checks sanitized options: `NotSupported` or `InvalidArgument` naming the first unsupported
/// option and its value.
Status CheckOptions(const Options& options, const std::string& name, RedundancyPolicy* redundancy);
/// The same of a column family `name`.
Status CheckFamilyOptions(const ColumnFamilyOptions& options, const std::string& name);

}  // namespace nacre
