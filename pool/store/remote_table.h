#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "nacre/status.h"
#include "pool/store/chunk_sums.h"
#include "pool/store/damaged_chunks.h"
#include "pool/store/table_store_rep.h"
#include "table/format/extent.h"
#include "table/format/placement.h"
#include "util/codes/reed_solomon.h"

namespace nacre::pool {

/// The place of an open table, and what is known of it. Its extent shares it with the reads that it
/// started.
struct RemoteTable {
  TableStore::Rep* store = nullptr;
  uint64_t id = 0;
  Placement placement;
  uint64_t size = 0;
  Status malformed;  ///< Why the placement cannot be used, if it cannot.
  DamagedChunks damage;
  mutable ChunkSums sums;

  /// Adds to `damage`. See TableStore::damage_reports.
  template <typename... Row>
  void ReportDamage(FragmentSet fragments, Row... row) {
    damage.Add(fragments, row...);
    store->damage_reports.fetch_add(1, std::memory_order_release);  // Pairs with damage_reports.
  }
  /// Fragments on nodes that are known to be lost.
  FragmentSet Lost() const { return NotOn(&PoolClient::alive); }
  /// Those, and fragments on nodes that are slow.
  FragmentSet LostOrSlow() const { return NotOn(&PoolClient::prompt); }

 private:
  /// Fragments that are neither here nor on nodes that serve.
  FragmentSet NotOn(bool (PoolClient::*serves)(NodeId) const) const;
};

/// See TableStore::OpenExtent.
std::shared_ptr<Extent> NewTableExtent(std::shared_ptr<RemoteTable> table);

}  // namespace nacre::pool
