#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "db/manifest/manifest_state.h"
#include "db/salvage/log_search.h"
#include "db/salvage/memory_scan.h"
#include "db/salvage/table_choice.h"
#include "nacre/status.h"
#include "pool/pool_client.h"
#include "table/seal/table_keys.h"

namespace nacre {

/// What nothing that was found may tell: of a database without tables.
struct SalvageDefaults {
  std::string comparator;   ///< Its name.
  uint32_t num_levels = 0;  ///< 0: unknown.
  /// For tables that are encrypted; null: there are none.
  std::shared_ptr<const TableKeys> keys{};
};

/// What a database consists of, as far as its memory tells.
struct SalvagePlan {
  ManifestState state;  ///< The state for a new manifest; nodes have the client's numbers.
  int parity = 0;       ///< The most nodes that any table that was found could lose.
  uint64_t chunk_size = 0;
  /// Extents of all fragments that were found whole. Those of dead tables must not be overwritten
  /// before the plan is carried out, so that another scan finds the same.
  std::vector<ExtentAddr> found;

  // These are for reports.
  uint64_t records = 0;      ///< Records of the tables of `state`.
  uint64_t table_bytes = 0;  ///< Their bytes, without redundancy.
  uint64_t dead_tables = 0;  ///< Whole, but replaced, or never part of the database.
  uint64_t log_records = 0;  ///< Beyond what is in tables.
  uint64_t log_bytes = 0;    ///< Bytes of these records.
  uint64_t bytes_scanned = 0;
  std::vector<uint64_t> lost;             ///< Ids of tables that were part of it and are not there.
  std::vector<std::string> incomplete{};  ///< What was found in part, and is not used.
  std::vector<std::string> notes{};
};

/// Scans the memory and finds out what is alive. Reads only. `InvalidArgument` if no table tells
/// the comparator and the number of levels, and `defaults` do not either, or a key is missing;
/// `NotSupported` for what
/// another version has written; `Corruption` for contradictions.
Status MakeSalvagePlan(pool::PoolClient* client, uint64_t database_id, const SlabsByNode& slabs,
                       const SalvageDefaults& defaults, SalvagePlan* plan);

}  // namespace nacre
