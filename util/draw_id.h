#pragma once

#include <cstdint>

#include "nacre/status.h"

namespace nacre {

/// A number that nobody else draws, in this process or another, and that is not 0: names clients,
/// databases and jobs. From the system's random numbers (in a simulation from its seed); `IOError`
/// if it gives none.
Status DrawId(uint64_t* id);

}  // namespace nacre
