#include "db/database_parts.h"

#include <utility>

namespace nacre {

DatabaseParts::DatabaseParts(DB* db, const CheckedOptions& checked, const std::string& name,
                             std::shared_ptr<pool::PoolImpl> pool, const pool::DatabaseLease& lease,
                             const ManifestState& recovered, uint64_t first_table_id)
    : context(db, checked.options, name, checked.redundancy, std::move(pool), lease,
              recovered.slab_bytes, first_table_id, checked.keys,
              [this] { return state.Versions(); }),
      state(&context, checked.options, recovered),
      generations(&state, &write_controller,
                  std::make_shared<MemTableBlocks>(
                      context.client->threads(),
                      checked.options.write_buffer_size *
                          static_cast<size_t>(checked.options.max_write_buffer_number - 1),
                      checked.options.write_buffer_size *
                          static_cast<size_t>(checked.options.max_write_buffer_number)),
                  recovered.last_sequence),
      indexes({.name = context.name,
               .log = context.options.info_log.get(),
               .tier = context.point_tiers.first(),
               .threads = static_cast<size_t>(context.options.max_background_jobs),
               .closing = &state.closing,
               .tables = [this] { return state.Versions(); }}),
      open_timeline(context.clock) {
  state.schedule = [this]() REQUIRES(state.mutex) {
    flushes.Schedule();
    compactions.Schedule();
  };
}

}  // namespace nacre
