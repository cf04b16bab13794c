#pragma once

#include <memory>

#include "nacre/status.h"
#include "table/format/extent.h"
#include "table/format/table_meta.h"

namespace nacre {

/// The plain bytes of a table whose stored ones `stored` has: these themselves, unless the table is
/// sealed. `meta` has its key then (OpenSeal).
std::shared_ptr<Extent> PlainExtent(const TableMeta& meta, std::shared_ptr<Extent> stored);

/// Takes the plain bytes of a table and gives `stored` what is to be stored: the same, unless
/// `identity` is that of a sealed table.
std::unique_ptr<ExtentWriter> PlainWriter(const TableMeta& identity,
                                          std::unique_ptr<ExtentWriter> stored);

}  // namespace nacre
