#pragma once

#include "nacre/status.h"
#include "pool/wire/messages.h"
#include "table/format/placement.h"

namespace nacre::pool {

// Extents and placements as parts of control messages. The decoders are safe on any message.

void EncodeExtent(const ExtentAddr& extent, control::Extent* message);
/// `InvalidArgument` if it does not fit an ExtentAddr.
Status DecodeExtent(const control::Extent& message, ExtentAddr* extent);

/// More than any table's.
inline constexpr uint64_t kMaxChunkBytes = uint64_t{1} << 30;

void EncodePlacement(const Placement& placement, control::Placement* message);
/// `InvalidArgument` for what makes no sense.
Status DecodePlacement(const control::Placement& message, Placement* placement);

}  // namespace nacre::pool
