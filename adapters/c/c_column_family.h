#pragma once

#include <vector>

#include "adapters/c/c_types.h"

namespace nacre {

/// The families as C names them; what a setter of options could not take is a failure.
Status DescribeFamilies(int count, const char* const* names, const nacre_options_t* const* options,
                        std::vector<ColumnFamilyDescriptor>* families);

/// Hands `family` of `db` to the caller.
nacre_column_family_handle_t* NewHandle(DB* db, ColumnFamilyHandle* family);

}  // namespace nacre
