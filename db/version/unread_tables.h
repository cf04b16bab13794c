#pragma once

#include <memory>

#include "db/version/version.h"
#include "nacre/options.h"
#include "table/iterator/internal_iterator.h"

namespace nacre {

/// Stands for the entries of all tables in an iterator that must not read any: it knows where
/// tables have entries, and not which. Never valid; `Incomplete` where a table has entries in the
/// direction of a seek, within the bounds of `options`, which may change from seek to seek. Thread
/// safety: that of an iterator.
std::unique_ptr<InternalIterator> NewUnreadTables(std::shared_ptr<const Version> version,
                                                  const ReadOptions& options);

}  // namespace nacre
