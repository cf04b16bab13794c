#include "db/context/database_context.h"

#include <memory>
#include <utility>

#include "util/log.h"
#include "util/planted_bug.h"

namespace nacre {

DatabaseContext::DatabaseContext(DB* db, const Options& given_options,
                                 const std::string& given_name, RedundancyPolicy given_redundancy,
                                 std::shared_ptr<pool::PoolImpl> given_pool,
                                 const pool::DatabaseLease& claim, uint64_t given_slab_bytes,
                                 uint64_t first_table_id,
                                 std::shared_ptr<const TableKeys> given_keys,
                                 std::function<VersionList()> tables)
    : options(given_options),
      live(options),
      name(given_name),
      redundancy(std::move(given_redundancy)),
      pool(std::move(given_pool)),
      client(pool->client()),
      clock(pool->clock()),
      database_id(claim.database_id),
      epoch(claim.epoch),
      slab_bytes(given_slab_bytes),
      keys(std::move(given_keys)),
      chunk_bytes(keys == nullptr ? options.chunk_size : StoredBytes(options.chunk_size)),
      space(client, database_id, slab_bytes, chunk_bytes),
      store(client, pool::LocalMemory()),
      record_cache(RecordCache::Make(options.record_cache_size, options.statistics.get())),
      point_tiers({.name = name,
                   .log = options.info_log.get(),
                   .budget = options.index_memory_budget,
                   .tables = std::move(tables)}),
      tables_begun(client, first_table_id),
      log_readers(clock),
      slow_operations(name, clock, options.info_log.get(), &live.slow_operation_threshold,
                      [this](NodeId node) { return client->node_address(node); }),
      events(client->threads(), db, name, options.listeners) {}

Status DatabaseContext::ReserveTable(const Redundancy& wanted, uint64_t bytes, NodeId preferred,
                                     Placement* placement) {
  return Reserve(wanted, keys == nullptr ? bytes : StoredBytes(bytes), preferred, placement);
}

Status DatabaseContext::NewTable(TableMeta* identity, std::unique_ptr<ExtentWriter>* writer) {
  return pool::NewTable(&store, keys.get(), identity, chunk_bytes, /*write_keys=*/nullptr, writer);
}

Status DatabaseContext::ExplainFailure(Status failure) {
  if (failure.IsFenced()) events.Fenced(failure);
  if (failure.ok() || failure.IsFenced() || lease == nullptr) return failure;
  Status owner = lease->Renew();
  if (!owner.IsFenced()) return failure;
  events.Fenced(owner);
  return owner;
}

void DatabaseContext::EndReads() {
  closed.store(true, std::memory_order_release);  // Pairs with CheckLease.
  if (lease != nullptr) lease->End();
  store.Close();
  space.End();
}

Redundancy DatabaseContext::Allowed(const Redundancy& wanted) const {
  const bool may_narrow = options.allow_narrow_writes && wanted.striped();
  if (!may_narrow && !live.allow_degraded_writes) return wanted;
  const int alive = client->domain_count();
  const int prompt = may_narrow ? client->prompt_domain_count() : alive;
  if (prompt >= wanted.fragments()) return wanted;
  // Slow nodes serve where the others are too few for as many losses.
  const int nodes = prompt > wanted.parity ? prompt : alive;
  if (may_narrow && nodes < wanted.fragments() && nodes > wanted.parity) {
    Redundancy narrow = wanted.OnNodes(nodes);
    if (NACRE_PLANTED_BUG("table.narrow-code-tolerates-less")) --narrow.parity;
    Log(options.info_log, LogLevel::kInfo, "{}: of {} nodes {} are slow, writes {} not {}", name,
        alive, alive - prompt, narrow.ToString(), wanted.ToString());
    return narrow;
  }
  if (!live.allow_degraded_writes || alive >= wanted.fragments()) return wanted;
  const Redundancy allowed = wanted.OnNodes(alive);
  Log(options.info_log, LogLevel::kWarn, "{}: nodes in {} domains are alive, writes {} not {}",
      name, alive, allowed.ToString(), wanted.ToString());
  return allowed;
}

Status DatabaseContext::Reserve(const Redundancy& wanted, uint64_t bytes, NodeId preferred,
                                Placement* placement, uint64_t chunk_size) {
  for (;;) {
    const int alive = client->domain_count();
    Status status = space.Reserve(Allowed(wanted), bytes, preferred, placement, chunk_size);
    // A node that is lost in between leaves less to be allowed.
    if (!status.IsUnavailable() || client->domain_count() == alive) return status;
  }
}

}  // namespace nacre
