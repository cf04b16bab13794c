#pragma once

#include <memory>
#include <vector>

#include "table/format/internal_key.h"
#include "table/iterator/internal_iterator.h"

namespace nacre {

/// The union of `children` in order, both directions. A failed child fails the whole. One child
/// comes back as it is; none gives an empty iterator.
std::unique_ptr<InternalIterator> NewMergingIterator(
    const InternalKeyComparator& comparator,
    std::vector<std::unique_ptr<InternalIterator>> children);

}  // namespace nacre
