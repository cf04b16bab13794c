#include "sharding/local_owner.h"

#include "sharding/local_shard.h"
#include "util/named_point.h"
#include "util/planted_bug.h"

namespace nacre {
namespace {

Status TakenTooLong() { return Status::Aborted("a snapshot over several shards took too long"); }

}  // namespace

Status LocalOwner::CloseGate(Deadline deadline, Token* token) {
  if (NACRE_PLANTED_BUG("snapshot.of-several-moments")) return Status::OK();
  return gate_.Close(deadline, token);
}

Status LocalOwner::StopOperations(Token token) {
  if (NACRE_PLANTED_BUG("snapshot.taken-while-operations-begin")) return Status::OK();
  return gate_.Stop(token) ? Status::OK() : TakenTooLong();
}

Status LocalOwner::TakeSnapshots(Token token, const std::vector<Shard*>& shards,
                                 std::vector<const Snapshot*>* snapshots) {
  snapshots->clear();
  for (Shard* const shard : shards) {
    snapshots->push_back(shard->db()->GetSnapshot());
    NACRE_POINT("keyspace.shard-in-snapshot");
  }
  const bool stopped = gate_.IsStopped(token) || NACRE_PLANTED_BUG("snapshot.of-several-moments") ||
                       NACRE_PLANTED_BUG("snapshot.taken-while-operations-begin");
  gate_.Open(token);
  // A shard that has moved may lack what was written elsewhere since.
  Status here;
  for (Shard* const shard : shards) {
    if (here.ok()) here = shard->local()->CheckOwned();
  }
  if (stopped && here.ok()) return Status::OK();
  for (size_t i = 0; i < shards.size(); ++i) shards[i]->db()->ReleaseSnapshot((*snapshots)[i]);
  snapshots->clear();
  return here.ok() ? TakenTooLong() : here;
}

}  // namespace nacre
