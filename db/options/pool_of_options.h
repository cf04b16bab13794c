#pragma once

#include <memory>

#include "nacre/options.h"
#include "nacre/status.h"
#include "pool/pool_impl.h"

namespace nacre {

/// The pool that `options` have, or name, which is then opened. It includes the nodes that were
/// added to it. Failures as those of Pool::Open.
Status OpenPoolOf(const DBOptions& options, std::shared_ptr<pool::PoolImpl>* pool);
/// The same for what leases no memory: `DBOptions::slab_size` need not be that of the nodes.
Status OpenPoolToRead(const DBOptions& options, std::shared_ptr<pool::PoolImpl>* pool);

}  // namespace nacre
