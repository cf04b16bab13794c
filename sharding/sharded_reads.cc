#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "db/read/db_iterator.h"
#include "sharding/remote/shard_followers.h"
#include "sharding/sharded_db_impl.h"
#include "sharding/sharded_iterator.h"
#include "sharding/sharded_multi_get.h"
#include "sharding/some_keys.h"
#include "util/exceptions.h"

namespace nacre {
namespace {

/// Calls `work(db, handle)` for keys of `family` in `shard`, which reads at a snapshot.
template <typename Keys, typename Work>
Status ReadAt(const Shard& shard, const ShardedFamily& family, const Keys& keys, const Work& work) {
  const auto call = [&]() -> Status {
    ColumnFamilyHandle* handle = nullptr;
    NACRE_RETURN_IF_ERROR(family.HandleIn(shard, &handle));
    return work(shard.db(), handle);
  };
  return shard.local() == nullptr ? call() : shard.local()->ReadAt(keys, call);
}

/// A MultiGet whose values may be of several moments.
void MultiGetByShard(DB* db, const ShardMap& map, const ReadOptions& options,
                     ColumnFamilyHandle* handle, std::span<const Slice> keys, PinnableSlice* values,
                     Status* statuses) {
  std::vector<size_t> shards;
  for (const Slice& key : keys) shards.push_back(map.Find(key));
  for (const size_t shard : std::set<size_t>(shards.begin(), shards.end())) {
    SomeKeys there(keys, [&](size_t key) { return shards[key] == shard; });
    if (there.size() < keys.size()) {
      db->MultiGet(options, handle, there.size(), there.keys().data(), there.values(),
                   there.statuses());
    } else {
      // They were of several shards a moment ago.
      for (size_t i = 0; i < keys.size(); ++i) {
        there.statuses()[i] = db->Get(options, handle, keys[i], &there.values()[i]);
      }
    }
    there.GiveBack(values, statuses);
  }
}

}  // namespace

template <typename Work>
Status ShardedDBImpl::ReadKey(const ReadOptions& options, ColumnFamilyHandle* handle,
                              const Slice& key, const Work& work) {
  const ShardedFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(families_.Find(handle, &family));
  const auto keys = [&] { return KeySets{{.family = family->id(), .begin = key.ToString()}}; };
  if (options.snapshot == nullptr) {
    return WithView([&](const ShardedView& view) {
      return ReadIn(view.shards[view.map.Find(key)].get(), *family, keys,
                    [&](DB* db, ColumnFamilyHandle* there) { return work(options, db, there); });
    });
  }
  const auto& snapshot = static_cast<const ShardedSnapshot&>(*options.snapshot);
  const size_t index = snapshot.view().map.Find(key);
  ReadOptions in_shard = options;
  in_shard.snapshot = snapshot.of_shard(index);
  return ReadAt(*snapshot.view().shards[index], *family, keys,
                [&](DB* db, ColumnFamilyHandle* there) { return work(in_shard, db, there); });
}

Status ShardedDBImpl::Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                          PinnableSlice* value) {
  value->Reset();
  return ReadKey(options, family, key,
                 [&](const ReadOptions& there, DB* shard, ColumnFamilyHandle* handle) {
                   return shard->Get(there, handle, key, value);
                 });
}

Status ShardedDBImpl::GetMergeOperands(const ReadOptions& options, ColumnFamilyHandle* family,
                                       const Slice& key, PinnableSlice* merge_operands,
                                       GetMergeOperandsOptions* get_merge_operands_options,
                                       int* number_of_operands) {
  return ReadKey(options, family, key,
                 [&](const ReadOptions& there, DB* shard, ColumnFamilyHandle* handle) {
                   return shard->GetMergeOperands(there, handle, key, merge_operands,
                                                  get_merge_operands_options, number_of_operands);
                 });
}

bool ShardedDBImpl::KeyMayExist(const ReadOptions& options, ColumnFamilyHandle* family,
                                const Slice& key, std::string* value, bool* value_found) {
  if (value_found != nullptr) *value_found = false;
  bool may = true;
  const Status status = ReadKey(
      options, family, key, [&](const ReadOptions& there, DB* shard, ColumnFamilyHandle* handle) {
        may = shard->KeyMayExist(there, handle, key, value, value_found);
        return Status::OK();
      });
  return !status.ok() || may;
}

void ShardedDBImpl::MultiGet(const ReadOptions& options, ColumnFamilyHandle* handle,
                             size_t num_keys, const Slice* keys, PinnableSlice* values,
                             Status* statuses) {
  for (size_t i = 0; i < num_keys; ++i) values[i].Reset();
  if (num_keys == 0) return;
  const Status status = CatchAll([&]() -> Status {
    const ShardedFamily* family = nullptr;
    NACRE_RETURN_IF_ERROR(families_.Find(handle, &family));
    bool several = options.snapshot != nullptr;
    if (!several) {
      NACRE_RETURN_IF_ERROR(WithView([&](const ShardedView& view) -> Status {
        const size_t first = view.map.Find(keys[0]);
        several = !std::all_of(keys + 1, keys + num_keys,
                               [&](const Slice& key) { return view.map.Has(first, key); });
        if (several) return Status::OK();
        const auto sets = [&] {
          KeySets all;
          for (size_t i = 0; i < num_keys; ++i) {
            all.push_back({.family = family->id(), .begin = keys[i].ToString()});
          }
          return all;
        };
        return ReadIn(view.shards[first].get(), *family, sets,
                      [&](DB* db, ColumnFamilyHandle* there) {
                        db->MultiGet(options, there, num_keys, keys, values, statuses);
                        return MovedOf({statuses, num_keys});
                      });
      }));
    }
    if (!several) return Status::OK();
    if (ShardFollowers::MayAnswer(options)) {
      MultiGetByShard(this, views_->latest()->map, options, handle, {keys, num_keys}, values,
                      statuses);
      return Status::OK();
    }
    const Deadline deadline = OperationDeadline();
    for (;;) {
      std::shared_ptr<const ShardedSnapshot> snapshot;
      NACRE_RETURN_IF_ERROR(SnapshotOf(options, &snapshot));
      Status read =
          ShardedMultiGet(options, *snapshot, *family, {keys, num_keys}, values, statuses).Run();
      // A shard has moved: there will be another snapshot.
      const bool again = read.IsAborted() && options.snapshot == nullptr && member_ != nullptr;
      if (!again || deadline.Expired()) return read;
    }
  });
  if (!status.ok()) std::fill_n(statuses, num_keys, status);
}

std::vector<Status> ShardedDBImpl::MultiGet(const ReadOptions& options,
                                            const std::vector<ColumnFamilyHandle*>& families,
                                            const std::vector<Slice>& keys,
                                            std::vector<std::string>* values) {
  ReadOptions in_all = options;
  std::shared_ptr<const ShardedSnapshot> snapshot;
  if (Status s = SnapshotOf(options, &snapshot); !s.ok()) {
    values->assign(keys.size(), {});
    return std::vector<Status>(keys.size(), s);
  }
  in_all.snapshot = snapshot.get();
  return DB::MultiGet(in_all, families, keys, values);
}

// ---- Iterators and snapshots --------------------------------------------------------------------

std::unique_ptr<Iterator> ShardedDBImpl::NewIteratorAt(
    const ReadOptions& options, std::shared_ptr<const ShardedSnapshot> snapshot,
    std::shared_ptr<const ShardedFamily> family) {
  const ShardedView* const view = &snapshot->view();
  auto extractor = family->prefix_extractor();
  return NewShardedIterator(
      options, std::move(snapshot), std::move(extractor),
      [view, family](const ReadOptions& there, size_t index) -> std::unique_ptr<Iterator> {
        std::unique_ptr<Iterator> iterator;
        const auto keys = [&] {
          return KeySets{{.family = family->id(), .kind = KeySet::Kind::kFamily}};
        };
        const Status status =
            ReadAt(*view->shards[index], *family, keys, [&](DB* db, ColumnFamilyHandle* in_family) {
              iterator = db->NewIterator(there, in_family);
              return Status::OK();
            });
        return status.ok() ? std::move(iterator) : NewErrorIterator(status);
      });
}

std::unique_ptr<Iterator> ShardedDBImpl::NewIterator(const ReadOptions& options,
                                                     ColumnFamilyHandle* handle) {
  std::vector<std::unique_ptr<Iterator>> iterators;
  const Status status = NewIterators(options, {handle}, &iterators);
  return status.ok() ? std::move(iterators.front()) : NewErrorIterator(status);
}

Status ShardedDBImpl::NewIterators(const ReadOptions& options,
                                   const std::vector<ColumnFamilyHandle*>& handles,
                                   std::vector<std::unique_ptr<Iterator>>* iterators) {
  iterators->clear();
  // They may outlive the handles.
  std::vector<std::shared_ptr<const ShardedFamily>> families;
  for (ColumnFamilyHandle* const handle : handles) {
    const ShardedFamily* family = nullptr;
    NACRE_RETURN_IF_ERROR(families_.Find(handle, &family));
    families.push_back(families_.Hold(handle));
  }
  std::shared_ptr<const ShardedSnapshot> snapshot;
  NACRE_RETURN_IF_ERROR(SnapshotOf(options, &snapshot));
  for (auto& family : families) {
    iterators->push_back(NewIteratorAt(options, snapshot, std::move(family)));
  }
  return Status::OK();
}

Status ShardedDBImpl::SnapshotOf(const ReadOptions& options,
                                 std::shared_ptr<const ShardedSnapshot>* snapshot) {
  if (options.snapshot != nullptr) {
    *snapshot = static_cast<const ShardedSnapshot*>(options.snapshot)->shared_from_this();
    return Status::OK();
  }
  if (member_ == nullptr) {
    const ShardedViews::Pin latest(views_.get());
    if ((*snapshot = recent_.Current(*latest)) != nullptr) return Status::OK();
  }
  std::shared_ptr<ShardedSnapshot> taken;
  NACRE_RETURN_IF_ERROR(TakeSnapshot(&taken));
  if (member_ == nullptr) recent_.Keep(taken);
  *snapshot = std::move(taken);
  return Status::OK();
}

Status ShardedDBImpl::TakeSnapshot(std::shared_ptr<ShardedSnapshot>* snapshot) {
  using std::chrono::milliseconds;
  constexpr milliseconds kPause(1);
  // Batches wait while the gates are closed. One that is waited for here may need another one to
  // end, so now and then they have to be let through.
  constexpr milliseconds kAttempt(500);
  const Deadline deadline = OperationDeadline();
  for (;;) {
    const auto view = views_->latest();
    const Deadline attempt =
        Deadline::After(clock_, std::min<std::chrono::nanoseconds>(kAttempt, deadline.Remaining()));
    const Status status = TakeSharedSnapshot(view, attempt, snapshot);
    const bool moved = status.IsFenced() && views_->MayChange(*view);
    const bool gate_was_opened = status.IsAborted();
    if (!moved && !gate_was_opened && !status.IsTimedOut()) return status;
    if (deadline.Expired()) return Status::TimedOut(status.ToString());
    clock_->SleepFor(kPause);
  }
}

const Snapshot* ShardedDBImpl::GetSnapshot() {
  std::shared_ptr<ShardedSnapshot> snapshot;
  if (!TakeSnapshot(&snapshot).ok()) return nullptr;
  snapshots_.fetch_add(1, std::memory_order_relaxed);
  return ShardedSnapshot::Keep(std::move(snapshot));
}

void ShardedDBImpl::ReleaseSnapshot(const Snapshot* snapshot) {
  if (snapshot == nullptr) return;
  snapshots_.fetch_sub(1, std::memory_order_relaxed);
  static_cast<const ShardedSnapshot*>(snapshot)->Release();
}

}  // namespace nacre
