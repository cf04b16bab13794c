#include "sharding/batches/key_holds.h"

#include <algorithm>
#include <utility>

#include "util/planted_bug.h"

namespace nacre {

template <typename Visit>
void KeyHolds::ForEachHolder(const KeySet& keys, Visit visit) const {
  const bool all = keys.kind == KeySet::Kind::kFamily;
  // Whether what begins at `begin` begins before `keys` end.
  const auto begins = [&](const std::string& begin) {
    if (all) return true;
    if (keys.kind == KeySet::Kind::kRange) return comparator_->Compare(begin, keys.end) < 0;
    return comparator_->Compare(begin, keys.begin) <= 0;
  };
  // No key is the first one in every order.
  for (auto point = all ? points_.begin() : points_.lower_bound(keys); point != points_.end();
       ++point) {
    const KeySet& held = point->first;
    if (held.family == keys.family && begins(held.begin)) {
      visit(point->second);
    } else if (!all) {
      break;
    }
  }
  for (const Range& range : ranges_) {
    if (range.keys.family != keys.family || !begins(range.keys.begin)) continue;
    if (all || comparator_->Compare(keys.begin, range.keys.end) < 0) visit(range.batch);
  }
}

std::vector<KeyHolds::BatchId> KeyHolds::HoldersOf(const KeySets& keys,
                                                   const BatchId& except) const {
  std::vector<BatchId> holders;
  for (const KeySet& each : keys) {
    ForEachHolder(each, [&](const BatchId& batch) {
      if (batch != except) holders.push_back(batch);
    });
  }
  return holders;
}

Status KeyHolds::FailureOf(const std::vector<BatchId>& batches) const {
  if (failed_.empty()) return Status::OK();
  for (const BatchId& batch : batches) {
    if (const auto found = failed_.find(batch); found != failed_.end()) return found->second;
  }
  return Status::OK();
}

Status KeyHolds::Acquire(const BatchId& batch, KeySets keys, Deadline deadline) {
  MutexLock lock(&mutex_);
  for (;;) {
    const std::vector<BatchId> holders = HoldersOf(keys, batch);
    if (holders.empty()) break;
    NACRE_RETURN_IF_ERROR(FailureOf(holders));
    if (deadline.Expired()) {
      return Status::TimedOut("a batch over several shards holds keys of this one");
    }
    changed_.WaitFor(deadline.Remaining());
  }
  for (const KeySet& each : keys) {
    if (each.kind == KeySet::Kind::kRange) {
      ranges_.push_back({.keys = each, .batch = batch});
    } else {
      points_.emplace(each, batch);
    }
  }
  batches_[batch] = std::move(keys);
  // Before it looks for operations that are under way.
  count_.fetch_add(1, std::memory_order_seq_cst);
  return Status::OK();
}

void KeyHolds::Release(const BatchId& batch) {
  MutexLock lock(&mutex_);
  const auto found = batches_.find(batch);
  if (found == batches_.end()) return;
  for (const KeySet& each : found->second) {
    if (each.kind == KeySet::Kind::kKey) points_.erase(each);
  }
  std::erase_if(ranges_, [&](const Range& range) { return range.batch == batch; });
  failed_.erase(batch);
  batches_.erase(found);
  count_.fetch_sub(1, std::memory_order_seq_cst);
  changed_.SignalAll();
}

void KeyHolds::Fail(const BatchId& batch, const Status& why) {
  MutexLock lock(&mutex_);
  if (batches_.contains(batch)) failed_[batch] = why;
  changed_.SignalAll();
}

bool KeyHolds::Overlaps(const KeySets& keys) const {
  if (NACRE_PLANTED_BUG("batch.held-keys-are-used")) return false;
  MutexLock lock(&mutex_);
  return !HoldersOf(keys, /*except=*/{}).empty();
}

Status KeyHolds::Await(const KeySets& keys, Deadline deadline) const {
  MutexLock lock(&mutex_);
  const std::vector<BatchId> holders = HoldersOf(keys, /*except=*/{});
  for (;;) {
    NACRE_RETURN_IF_ERROR(FailureOf(holders));
    if (std::none_of(holders.begin(), holders.end(),
                     [this](const BatchId& batch) { return batches_.contains(batch); })) {
      return Status::OK();
    }
    if (deadline.Expired()) {
      return Status::TimedOut("a batch over several shards holds keys of this operation");
    }
    changed_.WaitFor(deadline.Remaining());
  }
}

Status KeyHolds::CheckFailed(const KeySets& keys) const {
  MutexLock lock(&mutex_);
  if (failed_.empty()) return Status::OK();
  return FailureOf(HoldersOf(keys, /*except=*/{}));
}

}  // namespace nacre
