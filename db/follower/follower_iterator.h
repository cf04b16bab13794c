#pragma once

#include <memory>

#include "db/follower/follower_view.h"
#include "nacre/iterator.h"
#include "nacre/options.h"
#include "table/format/internal_key.h"

namespace nacre {

class FollowerDB;

/// Shows what `view` shows of `family` at `snapshot`. When tables of the view are gone it goes on
/// in a later view, at the same snapshot if that has all its versions. If it has not, the iterator
/// ends with `TryAgain`, or begins at a later snapshot if it has not shown anything and `options`
/// allow that: they name none, and do not ask for a moment within the call. `db` outlives it.
std::unique_ptr<Iterator> NewFollowerIterator(FollowerDB* db, const ReadOptions& options,
                                              uint32_t family,
                                              std::shared_ptr<const FollowerView> view,
                                              SequenceNumber snapshot);

}  // namespace nacre
