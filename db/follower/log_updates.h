#pragma once

#include <memory>
#include <string>

#include "nacre/status.h"
#include "nacre/transaction_log.h"
#include "pool/pool_impl.h"
#include "table/format/internal_key.h"

namespace nacre {

/// See DB::GetUpdatesSince.
Status NewLogUpdates(std::shared_ptr<pool::PoolImpl> pool, const std::string& name,
                     SequenceNumber since, std::unique_ptr<TransactionLogIterator>* updates);

}  // namespace nacre
