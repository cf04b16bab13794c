#pragma once

#include <cstdint>
#include <string>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/format/extent.h"
#include "table/format/internal_key.h"
#include "table/format/record.h"
#include "table/format/table_meta.h"
#include "table/scan_length.h"

namespace nacre {

/// What a reader and its iterators share of an open table. Immutable but for the hint.
struct TableContext {
  TableContext(const TableMeta* table_meta, const Comparator* user_comparator, Extent* bytes)
      : meta(table_meta),
        extent(bytes),
        in_place(bytes->InPlace()),
        comparator(user_comparator),
        seed(table_meta->id) {}
  TableContext(const TableContext&) = delete;
  TableContext& operator=(const TableContext&) = delete;

  /// `nodes`: those that hold the damaged bytes, if known.
  Status CorruptionAt(uint64_t offset, const char* what, const std::string& nodes = {}) const {
    return Status::Corruption("table " + std::to_string(meta->id) + " at offset " +
                              std::to_string(offset) + ": " + what +
                              (nodes.empty() ? "" : " (damaged on " + nodes + ")"));
  }

  const TableMeta* const meta;
  Extent* const extent;
  const char* const in_place;  ///< Null if the bytes have to be fetched.
  const InternalKeyComparator comparator;
  const RecordSeed seed;
  mutable ScanLength scan_length;  ///< It learns from scans that fetch and begin with a Seek.
};

}  // namespace nacre
