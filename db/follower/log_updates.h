#pragma once

#include <memory>
#include <string>

#include "nacre/status.h"
#include "nacre/transaction_log.h"
#include "pool/pool_impl.h"
#include "table/format/internal_key.h"
#include "table/seal/table_keys.h"

namespace nacre {

/// See DB::GetUpdatesSince. `keys` are those of the database; null: there are none.
Status NewLogUpdates(std::shared_ptr<pool::PoolImpl> pool, std::shared_ptr<const TableKeys> keys,
                     const std::string& name, SequenceNumber since,
                     std::unique_ptr<TransactionLogIterator>* updates);

}  // namespace nacre
