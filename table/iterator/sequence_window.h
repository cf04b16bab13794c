#pragma once

#include <memory>

#include "table/format/internal_key.h"
#include "table/iterator/internal_iterator.h"
#include "table/ranges/range_tombstones.h"

namespace nacre {

/// The sequences in (after, up_to].
struct SequenceWindow {
  SequenceNumber after = 0;
  SequenceNumber up_to = kMaxSequenceNumber;

  /// Sequence 0, which compactions give to old entries, is in each window that begins with 0.
  bool Has(SequenceNumber sequence) const {
    return sequence <= up_to && (sequence > after || after == 0);
  }
  bool everything() const { return after == 0 && up_to == kMaxSequenceNumber; }
};

/// Those entries of `base` that the window has.
std::unique_ptr<InternalIterator> NewWindowIterator(std::unique_ptr<InternalIterator> base,
                                                    const SequenceWindow& window);

/// Those of `tombstones` that the window has.
RangeTombstones TombstonesIn(const Comparator* comparator, const RangeTombstones& tombstones,
                             const SequenceWindow& window);

}  // namespace nacre
