#include "sharding/batches/shared_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sharding/local_shard.h"
#include "util/named_point.h"
#include "util/planted_bug.h"

namespace nacre {
namespace {

/// Index of the first part that has updates; 0 if none has.
size_t FirstToChange(const std::vector<BatchPart>& parts) {
  const auto first =
      std::ranges::find_if(parts, [](const BatchPart& part) { return part.updates.Count() > 0; });
  return first == parts.end() ? 0 : static_cast<size_t>(first - parts.begin());
}

}  // namespace

SharedBatch::SharedBatch(const ShardedView& view, std::vector<BatchPart>* parts,
                         const std::string& number)
    : view_(view),
      parts_(parts),
      decider_(FirstToChange(*parts)),
      name_(fmt::format("{}:{}", number, view.shards[(*parts)[decider_].shard]->id())) {}

bool SharedBatch::DeciderOf(const std::string& name, uint32_t* shard) {
  const size_t colon = name.rfind(':');
  if (colon == std::string::npos) return false;
  const char* const end = name.data() + name.size();
  const auto [last, error] = std::from_chars(name.data() + colon + 1, end, *shard);
  return error == std::errc() && last == end;
}

Status SharedBatch::Commit(const WriteOptions& options, Deadline deadline) {
  if (Status s = Prepare(options, deadline); !s.ok()) {
    Abort();
    return s;
  }
  NACRE_POINT("batch.prepared");
  bool refused = true;
  Status s = BeginCommit(deadline);
  if (s.ok()) s = Decider()->Decide(name_, &refused);
  if (!s.ok()) {
    if (!refused) return Fail(s, "being decided");
    Abort();
    return s;
  }
  NACRE_POINT("batch.decided");
  if (NACRE_PLANTED_BUG("batch.decision-deleted-too-early")) Decider()->Forget(name_);
  bool all_committed = true;
  for (const BatchPart& part : *parts_) {
    if (IsDecider(part)) continue;
    s = ShardOf(part)->Commit(name_);
    // The shard has moved, or will. Its owner holds the keys, and asks the one that decided.
    if (s.IsFenced()) {
      ShardOf(part)->LeaveToOwner(name_);
      all_committed = false;
    } else if (!s.ok()) {
      return Fail(s, "being committed");
    }
    NACRE_POINT("batch.part-committed");
  }
  if (!options.disable_wal && all_committed) Decider()->Forget(name_);
  return Status::OK();
}

Status SharedBatch::Check(Deadline deadline) {
  const Status status = Prepare({}, deadline);
  Abort();
  return status;
}

Status SharedBatch::Prepare(const WriteOptions& options, Deadline deadline) {
  // Always in the order of the shards, so that batches do not wait for one another in a circle.
  for (const BatchPart& part : *parts_) {
    // If it fails, it may have been done elsewhere all the same.
    ++prepared_;
    NACRE_RETURN_IF_ERROR(ShardOf(part)->Prepare(name_, options, part, IsDecider(part), deadline));
  }
  return Status::OK();
}

Status SharedBatch::BeginCommit(Deadline deadline) {
  // In the order of the owners: see SnapshotGate.
  std::vector<Shard*> shards;
  for (const BatchPart& part : *parts_) shards.push_back(view_.shards[part.shard].get());
  std::ranges::stable_sort(shards, {}, [](const Shard* shard) { return shard->owner()->id(); });
  for (Shard* const shard : shards) {
    NACRE_RETURN_IF_ERROR(shard->participant()->BeginCommit(name_, deadline));
  }
  return Status::OK();
}

void SharedBatch::Abort() {
  for (size_t i = 0; i < prepared_; ++i) ShardOf((*parts_)[i])->Abort(name_);
}

Status SharedBatch::Fail(const Status& why, const char* step) {
  const Status failure = why.WithContext(fmt::format(
      "a batch over several shards failed while {}; it is settled later, at the latest when "
      "the keyspace is opened again, whether it takes place",
      step));
  for (const BatchPart& part : *parts_) ShardOf(part)->Fail(name_, failure);
  return failure;
}

// ---- After a crash ------------------------------------------------------------------------------

Status SettleBatchesOf(const ShardedView& view, Shard* shard) {
  for (const std::string& batch : shard->local()->batches()->Unsettled()) {
    bool takes_place = false;
    uint32_t decider = 0;
    Shard* const deciding =
        SharedBatch::DeciderOf(batch, &decider) ? view.FindDecider(decider) : nullptr;
    if (deciding != nullptr) {
      NACRE_RETURN_IF_ERROR(deciding->participant()->Settle(batch, &takes_place));
    }
    takes_place = takes_place || NACRE_PLANTED_BUG("batch.undecided-is-committed");
    if (takes_place && !NACRE_PLANTED_BUG("batch.decided-is-dropped")) {
      NACRE_RETURN_IF_ERROR(
          shard->participant()->Commit(batch).WithContext("ending batch " + batch));
    } else {
      shard->participant()->Abort(batch);
    }
    NACRE_POINT("batch.entry-settled");
  }
  return Status::OK();
}

Status SettleBatches(const ShardedView& view) {
  for (const auto& shard : view.shards) NACRE_RETURN_IF_ERROR(SettleBatchesOf(view, shard.get()));
  // Only now: an opening that ends before this needs them again.
  for (const auto& shard : view.shards) {
    NACRE_RETURN_IF_ERROR(shard->local()->batches()->DeleteDecisions());
  }
  return Status::OK();
}

}  // namespace nacre
