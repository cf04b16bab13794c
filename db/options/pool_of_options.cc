#include "db/options/pool_of_options.h"

#include "util/clock.h"

namespace nacre {

Status OpenPoolOf(const DBOptions& options, std::shared_ptr<pool::PoolImpl>* pool) {
  if (options.pool != nullptr) {
    *pool = std::dynamic_pointer_cast<pool::PoolImpl>(options.pool);
    if (*pool == nullptr) {
      return Status::InvalidArgument("Options::pool was not made by Pool::Open");
    }
    (*pool)->client()->JoinAddedNodes();
    return Status::OK();
  }
  pool::PoolOpenOptions pool_options;
  pool_options.operation_timeout = options.operation_timeout;
  pool_options.slab_bytes = options.slab_size;
  pool_options.pool.info_log = options.info_log;
  pool_options.pool.max_queue_pairs_per_node = options.max_queue_pairs_per_node;
  pool_options.pool.slow_node_patience_min = options.slow_node_patience_min;
  pool_options.pool.slow_node_patience_max = options.slow_node_patience_max;
  pool_options.pool.hedged_reads_percent = options.hedged_reads_percent;
  NACRE_RETURN_IF_ERROR(pool::OpenPool(options.pool_uri, pool_options, Clock::System(), pool));
  (*pool)->client()->JoinAddedNodes();
  return Status::OK();
}

Status OpenPoolToRead(const DBOptions& options, std::shared_ptr<pool::PoolImpl>* pool) {
  DBOptions reading = options;
  // An embedded pool is made with it.
  if (!options.pool_uri.starts_with("embedded:")) reading.slab_size = 0;
  return OpenPoolOf(reading, pool);
}

}  // namespace nacre
