#pragma once

#include <cstdint>
#include <string>

#include "nacre/status.h"
#include "util/clock.h"

namespace nacre::bench {

/// Writes `bytes` in pieces of a mebibyte into a file in `folder`, from its beginning to its end by
/// one thread, waits until they are on the disk, and removes the file: what a checkpoint there
/// compares with. `*mb_per_second` is 0 if there are no bytes.
Status MeasurePlainWriting(const std::string& folder, uint64_t bytes, Clock* clock,
                           double* mb_per_second);

}  // namespace nacre::bench
