#pragma once

#include <cstdint>

#include "nacre/status.h"

namespace nacre {

/// Draws a number that is not 0 and is unique across processes, to name clients, databases and
/// jobs. It comes from the system's random numbers (in a simulation from its seed); `IOError` if
/// there are none.
Status DrawId(uint64_t* id);

}  // namespace nacre
