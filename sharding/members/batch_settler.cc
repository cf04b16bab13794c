#include "sharding/members/batch_settler.h"

#include <string>

#include "sharding/batches/local_participant.h"
#include "sharding/batches/shared_batch.h"
#include "util/log.h"
#include "util/named_point.h"
#include "util/planted_bug.h"

namespace nacre {

bool BatchSettler::Needed() const {
  for (const auto& shard : owned_->All()) {
    if (!shard->batches()->Unsettled().empty()) return true;
  }
  return false;
}

void BatchSettler::Settle() {
  for (const auto& shard : owned_->All()) {
    for (const std::string& batch : shard->batches()->Unsettled()) {
      const std::shared_ptr<const ShardedView> view = views_->latest();
      if (view == nullptr) return;
      const Status status = SettleOne(*view, shard.get(), batch);
      NACRE_POINT("batch.entry-settled");
      // It is tried again.
      if (!status.ok()) {
        Log(log_, LogLevel::kDebug, "shard {}: batch {} is not settled yet: {}", shard->id(), batch,
            status.ToString());
      }
    }
  }
}

Status BatchSettler::SettleOne(const ShardedView& view, LocalShard* shard,
                               const std::string& batch) {
  uint32_t decider = 0;
  if (!SharedBatch::DeciderOf(batch, &decider)) {
    return Status::Corruption("batch " + batch + " does not name the shard that decides it");
  }
  Shard* const deciding = view.FindDecider(decider);
  if (deciding == nullptr) return Status::TryAgain("the map has no shard that decides it");
  bool decided = false;
  const Status answer = deciding->participant()->Settle(batch, &decided);
  if (answer.IsTryAgain() && deciding->local() == shard) {
    // A write that failed leaves open whether it is there. The log tells at the next opening.
    owned_->Reopen(shard->id());
  }
  NACRE_RETURN_IF_ERROR(answer);
  decided = decided || NACRE_PLANTED_BUG("batch.in-doubt-is-committed");
  if (decided && !NACRE_PLANTED_BUG("batch.left-alone-is-aborted"))
    return shard->participant()->Commit(batch);
  shard->participant()->Abort(batch);
  return Status::OK();
}

}  // namespace nacre
