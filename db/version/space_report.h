#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "db/version/version.h"
#include "pool/space/space_allocator.h"

namespace nacre {

/// What the memory that a database has leased from its nodes holds, in bytes. Always
///
///     leased + lost = user + headers + index + parity + padding + log + unlinked + free
struct SpaceReport {
  // Bytes of the live tables, each counted once; their sum is the "data".
  uint64_t user_bytes = 0;    ///< Keys and values, of all versions; keys of tombstones.
  uint64_t header_bytes = 0;  ///< Heads of records, and what is empty between records.
  uint64_t index_bytes = 0;   ///< Point indexes, range indexes, Bloom filters, footers.
  /// Redundancy of live tables: parity, or the copies beyond the first.
  uint64_t parity_bytes = 0;
  /// Bytes of live tables' extents that hold no byte of a table: heads of fragments, and what lies
  /// behind their bytes up to a whole page.
  uint64_t padding_bytes = 0;
  uint64_t log_bytes = 0;  ///< Log and manifest, in all their copies.
  /// Extents of tables that are not live: of tables that are being written, and of dropped ones
  /// that still have readers.
  uint64_t unlinked_bytes = 0;
  uint64_t free_bytes = 0;  ///< Free bytes in leased slabs.
  /// Bytes of the live tables on nodes that are lost. The figures above include them.
  uint64_t lost_bytes = 0;
  uint64_t leased_bytes = 0;  ///< Slabs on the nodes that are alive.

  /// The part of `user_bytes` that is known to be of no use but to snapshots: tombstones, and
  /// versions with a newer one in the same table; reckoned with the tables' average record.
  uint64_t garbage_bytes = 0;
  /// The part of `user_bytes` in tables that lie over others with keys of the same range. At most
  /// so much below them is garbage, too; how much of it is, only a compaction finds out.
  uint64_t shadowing_bytes = 0;

  uint64_t data_bytes() const { return user_bytes + header_bytes + index_bytes; }
  /// Extents of the live tables.
  uint64_t stored_bytes() const { return data_bytes() + parity_bytes + padding_bytes; }

  /// A table for people: a line for each figure, with its part of the whole and the bytes that it
  /// takes for each user byte.
  std::string ToString() const;
};

/// A figure of a report, by its name in properties, JSON and control messages ("user-bytes").
struct SpaceField {
  std::string_view name;
  std::string_view help;
  uint64_t (*value)(const SpaceReport& report);
};
/// All of them, in the order in which they are shown.
std::span<const SpaceField> SpaceFields();

/// Reports on the tables of `versions`, which the caller keeps alive meanwhile. It does no I/O.
/// Sums of an earlier version are added up again only where its tables have changed; which tables
/// lie over others takes a walk over the bounds of all. `log_bytes` is by node.
SpaceReport MakeSpaceReport(const VersionList& versions, const pool::SpaceAllocator& space,
                            const std::map<NodeId, uint64_t>& log_bytes, int node_count);

}  // namespace nacre
