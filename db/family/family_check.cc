#include "db/family/family_check.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "db/family/hidden_family.h"
#include "db/options/info_log.h"
#include "db/options/options_check.h"
#include "table/format/write_batch_format.h"

namespace nacre {
namespace {

/// Levels of each family down to its deepest table; of one that is being restored all that it had.
std::map<uint32_t, uint32_t> LevelsInUse(const ManifestState& state) {
  std::map<uint32_t, uint32_t> levels;
  if (state.restoring != 0) {
    levels[kDefaultFamily] = state.LevelsOf(kDefaultFamily);
    for (const auto& [id, record] : state.families) levels[id] = record.num_levels;
  }
  for (const auto& [id, table] : state.tables) {
    uint32_t& of_family = levels[table.second.family];
    of_family = std::max(of_family, table.first + 1);
  }
  return levels;
}

Status CheckFamily(const ColumnFamilyDescriptor& family, const std::string& comparator,
                   uint32_t num_levels) {
  const std::string what = family.name == kDefaultColumnFamilyName
                               ? std::string("it")
                               : "its column family " + family.name;
  if (comparator != family.options.comparator->Name()) {
    return Status::InvalidArgument(what + " was made with comparator " + comparator +
                                   ", opened with " + family.options.comparator->Name());
  }
  if (num_levels > static_cast<uint32_t>(family.options.num_levels)) {
    return Status::InvalidArgument(what + " has tables in " + std::to_string(num_levels) +
                                   " levels, Options::num_levels is " +
                                   std::to_string(family.options.num_levels));
  }
  return Status::OK();
}

}  // namespace

Status CheckOpening(const DBOptions& given, const std::string& name,
                    const std::vector<ColumnFamilyDescriptor>& families, CheckedOptions* checked) {
  const ColumnFamilyOptions* default_options = nullptr;
  std::vector<std::string> notes;
  DBOptions options = SanitizeDBOptions(given, &notes);
  checked->families = SanitizeFamilies(families, &notes);
  NACRE_RETURN_IF_ERROR(CheckFamilies(checked->families, &default_options));
  NACRE_RETURN_IF_ERROR(
      CheckOptions(Options(options, *default_options), name, &checked->redundancy));
  NACRE_RETURN_IF_ERROR(ReadTableKeys(options.encryption_key_file, &checked->keys));
  NACRE_RETURN_IF_ERROR(OpenLogOf(name, &options));
  LogNotes(options.info_log.get(), name, notes);
  checked->options = Options(options, *default_options);
  return Status::OK();
}

Status CheckFamilies(const std::vector<ColumnFamilyDescriptor>& families,
                     const ColumnFamilyOptions** default_options) {
  *default_options = nullptr;
  std::set<std::string> names;
  for (const ColumnFamilyDescriptor& family : families) {
    if (!names.insert(family.name).second) {
      return Status::InvalidArgument("column family " + family.name + " is named twice");
    }
    NACRE_RETURN_IF_ERROR(CheckFamilyOptions(family.options, family.name));
    if (family.name == kDefaultColumnFamilyName) *default_options = &family.options;
  }
  if (*default_options != nullptr) return Status::OK();
  return Status::InvalidArgument("Default column family not specified");
}

const ColumnFamilyDescriptor* FindDescriptor(const std::vector<ColumnFamilyDescriptor>& families,
                                             const std::string& name) {
  const auto it =
      std::find_if(families.begin(), families.end(),
                   [&](const ColumnFamilyDescriptor& family) { return family.name == name; });
  return it != families.end() ? &*it : nullptr;
}

Status CheckFamiliesOf(const ManifestState& state,
                       const std::vector<ColumnFamilyDescriptor>& families, bool may_miss) {
  std::string missing;
  for (const auto& [id, record] : state.families) {
    if (record.name == kPreparedFamilyName) continue;
    if (FindDescriptor(families, record.name) != nullptr) continue;
    missing += (missing.empty() ? "" : ", ") + record.name;
  }
  if (!missing.empty()) {
    return Status::InvalidArgument("Column families not opened: " + missing);
  }
  return CheckNamedFamiliesOf(state, families, may_miss);
}

Status CheckNamedFamiliesOf(const ManifestState& state,
                            const std::vector<ColumnFamilyDescriptor>& families, bool may_miss) {
  std::map<uint32_t, uint32_t> levels = LevelsInUse(state);
  for (const ColumnFamilyDescriptor& family : families) {
    if (family.name == kDefaultColumnFamilyName) {
      NACRE_RETURN_IF_ERROR(CheckFamily(family, state.comparator, levels[kDefaultFamily]));
      continue;
    }
    const auto it = std::find_if(state.families.begin(), state.families.end(),
                                 [&](const auto& e) { return e.second.name == family.name; });
    if (it != state.families.end()) {
      NACRE_RETURN_IF_ERROR(CheckFamily(family, it->second.comparator, levels[it->first]));
    } else if (!may_miss) {
      return Status::InvalidArgument("Column family not found: " + family.name);
    }
  }
  return Status::OK();
}

void SetLevels(const std::vector<ColumnFamilyDescriptor>& families,
               const ColumnFamilyOptions& default_options, ManifestState* state) {
  state->num_levels = static_cast<uint32_t>(default_options.num_levels);
  for (auto& [id, record] : state->families) {
    const ColumnFamilyDescriptor* named = FindDescriptor(families, record.name);
    const ColumnFamilyOptions& options =
        named != nullptr ? named->options : HiddenFamilyOptions(default_options, record.num_levels);
    record.num_levels = static_cast<uint32_t>(options.num_levels);
  }
}

}  // namespace nacre
