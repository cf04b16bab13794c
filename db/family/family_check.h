#pragma once

#include <memory>
#include <string>
#include <vector>

#include "db/manifest/manifest_state.h"
#include "nacre/column_family.h"
#include "nacre/options.h"
#include "nacre/status.h"
#include "table/format/redundancy.h"
#include "table/seal/table_keys.h"

namespace nacre {

// Checks whether a database and its column families can be opened as a caller asks for them.

/// What a database is opened with.
struct CheckedOptions {
  Options options;  ///< Those of the database and of its default family; with a LOG.
  std::vector<ColumnFamilyDescriptor> families;
  RedundancyPolicy redundancy;
  std::shared_ptr<const TableKeys> keys{};  ///< Null: it is not encrypted.
};

/// Sanitizes the options of database `name` and of the families, and opens its LOG, which is told
/// what was changed. Reads the keys. Fails as CheckOptions, CheckFamilies, KeyRing::Read and the
/// opening of a file do.
Status CheckOpening(const DBOptions& options, const std::string& name,
                    const std::vector<ColumnFamilyDescriptor>& families, CheckedOptions* checked);

/// `InvalidArgument` unless the default family is among `families`, none of them twice, and all
/// their options are in range. `*default_options`: those of the default one, in `families`.
Status CheckFamilies(const std::vector<ColumnFamilyDescriptor>& families,
                     const ColumnFamilyOptions** default_options);

/// `InvalidArgument` if the database has a family that is not in `families`; if it was made with
/// another comparator, or has tables in more levels; or, unless `may_miss`, if it has not got one
/// of `families`.
Status CheckFamiliesOf(const ManifestState& state,
                       const std::vector<ColumnFamilyDescriptor>& families, bool may_miss);
/// The same where `families` need not be all.
Status CheckNamedFamiliesOf(const ManifestState& state,
                            const std::vector<ColumnFamilyDescriptor>& families, bool may_miss);

/// Gives each family of `*state` as many levels as it is opened with. The above has passed.
void SetLevels(const std::vector<ColumnFamilyDescriptor>& families,
               const ColumnFamilyOptions& default_options, ManifestState* state);

/// Null if there is none of that name.
const ColumnFamilyDescriptor* FindDescriptor(const std::vector<ColumnFamilyDescriptor>& families,
                                             const std::string& name);

}  // namespace nacre
