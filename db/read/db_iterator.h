#pragma once

#include <memory>

#include "db/family/read_rules.h"
#include "db/family/read_view.h"
#include "nacre/iterator.h"
#include "nacre/options.h"
#include "table/format/internal_key.h"
#include "table/iterator/internal_iterator.h"
#include "table/ranges/range_cover.h"

namespace nacre {

/// Turns internal entries into what a user sees at `snapshot`: the newest visible version of each
/// key, without tombstones and what `cover` covers, operands applied by `rules`, within the bounds
/// of `options`. `pinned` keeps alive what `internal` looks through.
std::unique_ptr<Iterator> NewDBIterator(const InternalKeyComparator& comparator,
                                        const ReadRules& rules,
                                        std::unique_ptr<InternalIterator> internal,
                                        RangeCover cover, SequenceNumber snapshot,
                                        const ReadOptions& options,
                                        std::shared_ptr<const ReadView> pinned);

/// An iterator that is never valid and reports `status`.
std::unique_ptr<Iterator> NewErrorIterator(Status status);

}  // namespace nacre
