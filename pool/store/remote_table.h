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
#include "util/mutex.h"

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
  Mutex moving;
  std::shared_ptr<Extent> moved GUARDED_BY(moving);  ///< Null: nothing has taken its place.
  FragmentSet kept GUARDED_BY(moving) = 0;           ///< The fragments that `moved` has as well.

  /// Adds to `damage`, and to that of the table that has taken this one's place. See
  /// TableStore::damage_reports.
  template <typename... Row>
  void ReportDamage(FragmentSet fragments, Row... row) {
    damage.Add(fragments, row...);
    store->damage_reports.fetch_add(1, std::memory_order_release);  // Pairs with damage_reports.
    // After Add: PassDamageTo, which comes either before this or after it, misses nothing.
    std::shared_ptr<Extent> next;
    {
      MutexLock lock(&moving);
      fragments &= kept;
      if (fragments != 0) next = moved;
    }
    if (next != nullptr) next->ReportDamage(fragments, row...);
  }
  /// As Extent::PassDamageTo.
  void PassDamageTo(std::shared_ptr<Extent> to, FragmentSet kept_by_it) EXCLUDES(moving);
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
