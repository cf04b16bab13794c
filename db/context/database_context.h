#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "db/cache/record_cache.h"
#include "db/context/copy_bytes.h"
#include "db/context/db_counters.h"
#include "db/context/executors.h"
#include "db/context/log_readers.h"
#include "db/context/node_refusals.h"
#include "db/context/owner_events.h"
#include "db/context/owner_lease.h"
#include "db/context/slow_operations.h"
#include "db/options/live_options.h"
#include "db/version/point_tiers.h"
#include "db/version/table_handle.h"
#include "db/version/tables_begun.h"
#include "nacre/options.h"
#include "pool/databases.h"
#include "pool/pool_client.h"
#include "pool/pool_impl.h"
#include "pool/space/space_allocator.h"
#include "pool/store/table_store.h"
#include "table/format/extent.h"
#include "table/format/placement.h"
#include "table/format/table_meta.h"
#include "table/seal/table_keys.h"
#include "util/clock.h"
#include "util/codes/bloom.h"
#include "util/threads/epoch.h"

namespace nacre {

/// What all parts of an open database use, and none of them owns: what was given when it was
/// opened, the connection to the pool, the space and the tables there, and what is counted and told
/// of the database. It outlives them all.
///
/// Thread safety: the constants do not change; the other members lock for themselves.
struct DatabaseContext {
  /// `db`: what listeners are told that events are of. `tables`: those that there are.
  DatabaseContext(DB* db, const Options& given_options, const std::string& given_name,
                  RedundancyPolicy given_redundancy, std::shared_ptr<pool::PoolImpl> given_pool,
                  const pool::DatabaseLease& claim, uint64_t given_slab_bytes,
                  uint64_t first_table_id, std::shared_ptr<const TableKeys> given_keys,
                  std::function<VersionList()> tables);

  /// `wanted`; or with `allow_narrow_writes` a code with less data and as much parity, where nodes
  /// that are slow or not alive can be left out by that; or with `allow_degraded_writes` as much of
  /// it as the nodes that are alive allow.
  Redundancy Allowed(const Redundancy& wanted) const;
  /// Reserves space for `bytes` with as much of `wanted` as is allowed, `preferred` first. Fails as
  /// SpaceAllocator::Reserve does.
  Status Reserve(const Redundancy& wanted, uint64_t bytes, NodeId preferred, Placement* placement,
                 uint64_t chunk_size = 0);

  TableSurroundings Surroundings() {
    return {&store, &space, &epochs, point_tiers.memory(), point_tiers.uses(), keys.get()};
  }
  /// Opens a new table, whose keys `comparator` orders, and reads its indexes.
  Status OpenTable(const Comparator* comparator, const TableMeta& meta,
                   std::shared_ptr<TableHandle>* handle) {
    return TableHandle::Open(meta, comparator, Surroundings(), point_tiers.first(), handle);
  }
  /// For tables that are to be written now: reserves space for `bytes` before they are encrypted,
  /// and opens a writer for them, `identity` being what they are.
  Status ReserveTable(const Redundancy& wanted, uint64_t bytes, NodeId preferred,
                      Placement* placement);
  Status NewTable(TableMeta* identity, std::unique_ptr<ExtentWriter>* writer);
  /// What the filters of new tables take. They stand in for point indexes that have no room here:
  /// while there is room for all, none is written.
  int BloomBitsPerKey() const { return point_tiers.memory() == nullptr ? 0 : kBloomBitsPerKey; }

  /// OK as long as this process owns the database, which it always does where the pool is its own,
  /// until it closes it: then `ShutdownInProgress`.
  Status CheckLease() {
    if (lease != nullptr) [[likely]]
      return lease->Check();
    return closed.load(std::memory_order_acquire)  // Pairs with EndReads.
               ? Status::ShutdownInProgress("the database is closed")
               : Status::OK();
  }
  /// Must be called before the database is left, by one thread: no read of it begins from here on,
  /// and no bytes of tables that arrive later count, since another owner may have reused the space.
  /// What iterators have at hand stays. What is freed from here on is for the next owner to find.
  void EndReads();
  /// `failure`, or `Fenced` if the nodes say that this is behind it.
  Status ExplainFailure(Status failure);

  const DBOptions options;
  LiveOptions live;  ///< Those of `options` that may have changed since.
  const std::string name;
  const RedundancyPolicy redundancy;
  const std::shared_ptr<pool::PoolImpl> pool;
  pool::PoolClient* const client;
  Clock* const clock;
  const uint64_t database_id;
  const uint64_t epoch;  ///< This owner's; no earlier one had it.
  const uint64_t slab_bytes;
  const std::shared_ptr<const TableKeys> keys;  ///< Null: new tables are not encrypted.
  const uint64_t chunk_bytes;                   ///< What a chunk of a new table takes.

  pool::SpaceAllocator space;
  pool::TableStore store;
  const std::unique_ptr<RecordCache> record_cache;  ///< Null: there is none.
  PointTiers point_tiers;
  EpochDomain epochs;  ///< After what retired views free their tables through.

  TablesBegun tables_begun;
  CopyBytes copy_bytes;
  LogReaders log_readers;
  Executors executors;
  NodeRefusals refusals;
  DBCounters counters;
  SlowOperations slow_operations;
  OwnerEvents events;
  std::unique_ptr<OwnerLease> lease;  ///< Null: an embedded pool. Set before anybody reads.
  std::atomic<bool> closed{false};    ///< EndReads was called.
};

}  // namespace nacre
