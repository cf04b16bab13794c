#pragma once

#include <string>

#include "nacre/options.h"
#include "nacre/status.h"
#include "table/placement.h"

namespace nacre {

/// `InvalidArgument` naming the first option that is out of range, and its value.
Status CheckOptions(const Options& options, const std::string& name, Redundancy* redundancy);

}  // namespace nacre
