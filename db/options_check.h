#pragma once

#include <cstdint>
#include <string>

#include "nacre/options.h"
#include "nacre/status.h"
#include "table/redundancy.h"

namespace nacre {

inline constexpr uint32_t kMaxSubcompactions = 256;

/// `NotSupported` or `InvalidArgument` naming the first option that cannot be had, and its value.
Status CheckOptions(const Options& options, const std::string& name, RedundancyPolicy* redundancy);
/// The same of a column family `name`.
Status CheckFamilyOptions(const ColumnFamilyOptions& options, const std::string& name);

}  // namespace nacre
