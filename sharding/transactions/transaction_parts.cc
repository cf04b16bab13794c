#include "sharding/transactions/transaction_parts.h"

#include <utility>
#include <vector>

#include "sharding/batches/batch_parts.h"
#include "sharding/batches/shared_batch.h"

namespace nacre {

Status TransactionParts::AddUpdates(const WriteBatch& updates) {
  std::vector<BatchPart> parts;
  NACRE_RETURN_IF_ERROR(DivideBatch(view_->map, updates, &parts));
  for (BatchPart& part : parts) parts_.emplace(part.shard, std::move(part));
  has_updates_ = updates.Count() > 0;
  return Status::OK();
}

BatchPart* TransactionParts::PartOf(size_t shard) {
  BatchPart* const part = &parts_[shard];
  part->shard = shard;
  return part;
}

Status TransactionParts::Write(const WriteOptions& options, const std::string& batch,
                               Deadline deadline) {
  if (parts_.empty()) return Status::OK();
  if (parts_.size() == 1) {
    const BatchPart& only = parts_.begin()->second;
    return view_->shards[only.shard]->participant()->WriteAlone(batch, options, only, deadline);
  }
  std::vector<BatchPart> parts;
  for (auto& [index, part] : parts_) parts.push_back(std::move(part));
  SharedBatch shared(*view_, &parts, batch);
  return has_updates_ ? shared.Commit(options, deadline) : shared.Check(deadline);
}

}  // namespace nacre
