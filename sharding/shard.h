#pragma once

#include <cstdint>
#include <string>

#include "nacre/column_family.h"
#include "nacre/db.h"
#include "nacre/status.h"
#include "sharding/batches/batch_participant.h"
#include "sharding/shard_owner.h"

namespace nacre {

class LocalShard;
class LockParticipant;

/// Whether a database answers so because another process has taken it over, or because it was
/// closed here while the operation ran.
inline bool IsOfClosedDatabase(const Status& status) {
  return status.IsFenced() || status.IsShutdownInProgress();
}

/// One shard of a keyspace, as this process reaches it. Either its database is open here
/// (LocalShard), or another process serves it.
///
/// Whatever is asked of a shard may be answered `Fenced`: it is served elsewhere by now, and
/// nothing was done. The caller goes on with a newer view (ShardedViews).
///
/// Thread safety: all methods may be called from many threads at once.
class Shard {
 public:
  virtual ~Shard() = default;
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  /// Never used twice by a keyspace.
  uint32_t id() const { return id_; }
  /// Null if another process serves it.
  LocalShard* local() const { return local_; }

  /// What does all that a database does. With a LocalShard, reads of the latest state and writes
  /// have to go through LocalShard::Read and LocalShard::Write.
  virtual DB* db() const = 0;
  /// The handle in `db()` of a family, by its id in the keyspace; null for the default one, and if
  /// there is none. It stays while the operation does that LocalShard::Read or Write calls.
  virtual ColumnFamilyHandle* Handle(uint32_t family) const = 0;
  virtual BatchParticipant* participant() = 0;
  virtual LockParticipant* lock_participant() = 0;
  virtual ShardOwner* owner() const = 0;

 protected:
  Shard(uint32_t id, LocalShard* local) : id_(id), local_(local) {}

 private:
  const uint32_t id_;
  LocalShard* const local_;
};

}  // namespace nacre
