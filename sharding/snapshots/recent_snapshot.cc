#include "sharding/snapshots/recent_snapshot.h"

#include "sharding/local_shard.h"
#include "util/planted_bug.h"

namespace nacre {

bool RecentSnapshot::IsCurrent(const ShardedSnapshot& snapshot, const ShardedView& latest) {
  if (&snapshot.view() != &latest) return false;
  for (size_t i = 0; i < latest.shards.size(); ++i) {
    const LocalShard* const shard = latest.shards[i]->local();
    if (shard->left()) return false;
    const uint64_t sequence = shard->db()->GetLatestSequenceNumber();
    if (sequence != snapshot.of_shard(i)->GetSequenceNumber() &&
        !NACRE_PLANTED_BUG("snapshot.recent-one-is-for-ever")) {
      return false;
    }
  }
  return true;
}

}  // namespace nacre
