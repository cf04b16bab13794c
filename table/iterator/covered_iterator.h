#pragma once

#include <memory>

#include "nacre/status.h"
#include "table/format/internal_key.h"
#include "table/iterator/internal_iterator.h"
#include "table/ranges/range_cover.h"

namespace nacre {

/// `base` without what `cover` covers, whatever the sequences: for a source all of whose entries
/// are older than the tombstones of newer sources. Covered ranges are passed over by one seek each.
std::unique_ptr<InternalIterator> NewUncoveredIterator(const InternalKeyComparator& comparator,
                                                       std::unique_ptr<InternalIterator> base,
                                                       RangeCover cover);

/// Never valid, and says why.
std::unique_ptr<InternalIterator> NewFailedInternalIterator(Status status);

}  // namespace nacre
