#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "db/read/db_iterator.h"
#include "sharding/sharded_db_impl.h"
#include "sharding/sharded_iterator.h"
#include "util/exceptions.h"
#include "util/named_point.h"
#include "util/planted_bug.h"

namespace nacre {

// A read with a snapshot waits for no batch: that was taken while none was being committed. What a
// batch that failed has written must not be seen in part, though.

template <typename Work>
Status ShardedDBImpl::ReadKey(const ReadOptions& options, ColumnFamilyHandle* handle,
                              const Slice& key, const Work& work) {
  const ShardedFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(Find(handle, &family));
  const size_t index = map_.Find(key);
  Shard* const shard = shards_[index].get();
  const auto keys = [&] { return KeySets{{.family = IdOf(family), .begin = key.ToString()}}; };
  ColumnFamilyHandle* const there = Of(family, index);
  if (options.snapshot == nullptr) {
    return In(shard, keys, [&] { return work(options, shard->db(), there); });
  }
  if (shard->holds()->any()) NACRE_RETURN_IF_ERROR(shard->holds()->CheckFailed(keys()));
  ReadOptions in_shard = options;
  in_shard.snapshot = static_cast<const ShardedSnapshot*>(options.snapshot)->of_shard(index);
  return work(in_shard, shard->db(), there);
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
  const ShardedFamily* family = nullptr;
  Status status = Find(handle, &family);
  status = status.ok() ? CatchAll([&]() -> Status {
    if (num_keys == 0) return Status::OK();
    std::vector<size_t> shard_of(num_keys);
    for (size_t i = 0; i < num_keys; ++i) shard_of[i] = map_.Find(keys[i]);
    const auto keys_of = [&](size_t shard) {
      KeySets sets;
      for (size_t i = 0; i < num_keys; ++i) {
        if (shard_of[i] != shard) continue;
        sets.push_back({.family = IdOf(family), .begin = keys[i].ToString()});
      }
      return sets;
    };
    const size_t first = shard_of.front();
    const bool one =
        std::all_of(shard_of.begin(), shard_of.end(), [=](size_t shard) { return shard == first; });
    if (one && options.snapshot == nullptr) {
      return In(
          shards_[first].get(), [&] { return keys_of(first); },
          [&] {
            shards_[first]->db()->MultiGet(options, Of(family, first), num_keys, keys, values,
                                           statuses);
            return Status::OK();
          });
    }
    const std::shared_ptr<const ShardedSnapshot> snapshot = SnapshotOf(options);
    std::vector<size_t> places;
    std::vector<Slice> keys_there;
    for (size_t shard = 0; shard < shards_.size(); ++shard) {
      places.clear();
      keys_there.clear();
      for (size_t i = 0; i < num_keys; ++i) {
        if (shard_of[i] != shard) continue;
        places.push_back(i);
        keys_there.push_back(keys[i]);
      }
      if (places.empty()) continue;
      if (shards_[shard]->holds()->any()) {
        NACRE_RETURN_IF_ERROR(shards_[shard]->holds()->CheckFailed(keys_of(shard)));
      }
      ReadOptions in_shard = options;
      in_shard.snapshot = snapshot->of_shard(shard);
      std::vector<PinnableSlice> values_there(places.size());
      std::vector<Status> statuses_there(places.size());
      shards_[shard]->db()->MultiGet(in_shard, Of(family, shard), places.size(), keys_there.data(),
                                     values_there.data(), statuses_there.data());
      for (size_t i = 0; i < places.size(); ++i) {
        values[places[i]] = std::move(values_there[i]);
        statuses[places[i]] = std::move(statuses_there[i]);
      }
    }
    return Status::OK();
  })
                       : status;
  if (!status.ok()) std::fill_n(statuses, num_keys, status);
}

std::vector<Status> ShardedDBImpl::MultiGet(const ReadOptions& options,
                                            const std::vector<ColumnFamilyHandle*>& families,
                                            const std::vector<Slice>& keys,
                                            std::vector<std::string>* values) {
  ReadOptions in_all = options;
  const std::shared_ptr<const ShardedSnapshot> snapshot = SnapshotOf(options);
  in_all.snapshot = snapshot.get();
  return DB::MultiGet(in_all, families, keys, values);
}

std::shared_ptr<const ShardedSnapshot> ShardedDBImpl::SnapshotOf(const ReadOptions& options) {
  if (options.snapshot == nullptr) return TakeSnapshot();
  return static_cast<const ShardedSnapshot*>(options.snapshot)->shared_from_this();
}

std::unique_ptr<Iterator> ShardedDBImpl::NewShardIterator(const ReadOptions& options,
                                                          const ShardedFamily* family,
                                                          size_t index) {
  Shard* const shard = shards_[index].get();
  if (shard->holds()->any()) {
    const Status status =
        shard->holds()->CheckFailed({{.family = IdOf(family), .kind = KeySet::Kind::kFamily}});
    if (!status.ok()) return NewErrorIterator(status);
  }
  return shard->db()->NewIterator(options, Of(family, index));
}

std::unique_ptr<Iterator> ShardedDBImpl::NewIterator(const ReadOptions& options,
                                                     ColumnFamilyHandle* handle) {
  const ShardedFamily* family = nullptr;
  if (Status status = Find(handle, &family); !status.ok()) return NewErrorIterator(status);
  // It may outlive the handle.
  std::shared_ptr<const ShardedFamily> held;
  std::shared_ptr<const SliceTransform> extractor = prefix_extractor_;
  if (family != nullptr) {
    held = static_cast<ShardedFamilyHandle*>(handle)->hold();
    ColumnFamilyDescriptor descriptor;
    if (handle->GetDescriptor(&descriptor).ok()) extractor = descriptor.options.prefix_extractor;
  }
  return NewShardedIterator(&map_, options, SnapshotOf(options), std::move(extractor),
                            [this, held](const ReadOptions& there, size_t index) {
                              return NewShardIterator(there, held.get(), index);
                            });
}

Status ShardedDBImpl::NewIterators(const ReadOptions& options,
                                   const std::vector<ColumnFamilyHandle*>& families,
                                   std::vector<std::unique_ptr<Iterator>>* iterators) {
  iterators->clear();
  for (ColumnFamilyHandle* const handle : families) {
    const ShardedFamily* family = nullptr;
    NACRE_RETURN_IF_ERROR(Find(handle, &family));
  }
  const std::shared_ptr<const ShardedSnapshot> snapshot = SnapshotOf(options);
  for (ColumnFamilyHandle* const handle : families) {
    const ShardedFamily* family = nullptr;
    NACRE_RETURN_IF_ERROR(Find(handle, &family));
    std::shared_ptr<const ShardedFamily> held;
    if (family != nullptr) held = static_cast<ShardedFamilyHandle*>(handle)->hold();
    ColumnFamilyDescriptor descriptor;
    NACRE_RETURN_IF_ERROR(
        (family == nullptr ? default_handle_.get() : handle)->GetDescriptor(&descriptor));
    iterators->push_back(NewShardedIterator(&map_, options, snapshot,
                                            descriptor.options.prefix_extractor,
                                            [this, held](const ReadOptions& there, size_t index) {
                                              return NewShardIterator(there, held.get(), index);
                                            }));
  }
  return Status::OK();
}

std::shared_ptr<ShardedSnapshot> ShardedDBImpl::TakeSnapshot() {
  const std::shared_ptr<ShardedSnapshot> snapshot(
      std::make_unique<ShardedSnapshot>(shards_.size()).release(),
      [this](const ShardedSnapshot* last) {
        const std::unique_ptr<const ShardedSnapshot> owned(last);
        for (const auto& shard : shards_) {
          shard->db()->ReleaseSnapshot(owned->of_shard(shard->index()));
        }
      });
  std::optional<SnapshotGate::Closed> closed;
  std::optional<SnapshotGate::Taking> taking;
  if (!NACRE_PLANTED_BUG("snapshot.of-several-moments")) closed.emplace(&gate_);
  if (!NACRE_PLANTED_BUG("snapshot.taken-while-operations-begin")) taking.emplace(&gate_);
  for (const auto& shard : shards_) {
    snapshot->Set(shard->index(), shard->db()->GetSnapshot());
    NACRE_POINT("keyspace.shard-in-snapshot");
  }
  return snapshot;
}

const Snapshot* ShardedDBImpl::GetSnapshot() {
  snapshots_.fetch_add(1, std::memory_order_relaxed);
  return ShardedSnapshot::Keep(TakeSnapshot());
}

void ShardedDBImpl::ReleaseSnapshot(const Snapshot* snapshot) {
  if (snapshot == nullptr) return;
  snapshots_.fetch_sub(1, std::memory_order_relaxed);
  static_cast<const ShardedSnapshot*>(snapshot)->Release();
}

}  // namespace nacre
