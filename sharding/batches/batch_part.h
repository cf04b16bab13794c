#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "nacre/utilities/transaction.h"
#include "nacre/write_batch.h"

namespace nacre {

/// A key that a transaction has read, or writes. Nothing may have written it since a snapshot of
/// its shard.
struct KeyCheck {
  uint32_t family = 0;
  std::string key;
  /// It is the shard's database that has it (Shard::db), and it outlives this.
  const Snapshot* since = nullptr;
};

/// A key that a transaction has locked.
struct KeyLock {
  uint32_t family = 0;
  std::string key;
};

/// What of a batch belongs to one shard. Its families have their ids in the keyspace.
struct BatchPart {
  size_t shard = 0;
  WriteBatch updates{};
  std::vector<KeyCheck> checks{};
  /// Those that its transaction needs to have still when it commits.
  std::vector<KeyLock> locks{};
  /// That transaction, as LocalLocks calls it; of a shard elsewhere, as this process does.
  TransactionID lock_owner = 0;
};

}  // namespace nacre
