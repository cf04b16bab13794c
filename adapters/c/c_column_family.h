#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "adapters/c/c_error.h"
#include "adapters/c/c_types.h"

namespace nacre {

/// The families as C names them; what a setter of options could not take is a failure.
Status DescribeFamilies(int count, const char* const* names, const nacre_options_t* const* options,
                        std::vector<ColumnFamilyDescriptor>* families);

/// Hands `family` of `db` to the caller.
nacre_column_family_handle_t* NewHandle(DB* db, ColumnFamilyHandle* family);

/// `open` fills in the database and the handles of its families. Null on failure.
template <typename Open>
nacre_t* OpenDatabaseFamilies(const nacre_options_t* options, int count, const char* const* names,
                              const nacre_options_t* const* family_options,
                              nacre_column_family_handle_t** handles, char** errptr,
                              const Open& open) {
  std::vector<ColumnFamilyDescriptor> families;
  std::vector<ColumnFamilyHandle*> opened;
  std::unique_ptr<DB> db;
  if (!Succeeded(options->invalid, errptr) ||
      !Succeeded(DescribeFamilies(count, names, family_options, &families), errptr) ||
      !Succeeded(open(families, &opened, &db), errptr)) {
    return nullptr;
  }
  for (size_t i = 0; i < opened.size(); ++i) handles[i] = NewHandle(db.get(), opened[i]);
  return std::make_unique<nacre_t>(nacre_t{std::move(db)}).release();
}

}  // namespace nacre
