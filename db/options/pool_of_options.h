#pragma once

#include <memory>

#include "nacre/options.h"
#include "nacre/status.h"
#include "pool/pool_impl.h"

namespace nacre {

/// The pool that `options` have, or name: then it is opened. With the nodes that were added to it.
/// Failures as those of Pool::Open.
Status OpenPoolOf(const DBOptions& options, std::shared_ptr<pool::PoolImpl>* pool);

}  // namespace nacre
