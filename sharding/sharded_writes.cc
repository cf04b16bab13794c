#include <fmt/format.h>

#include <optional>
#include <utility>

#include "sharding/batches/shared_batch.h"
#include "sharding/sharded_db_impl.h"
#include "util/exceptions.h"

namespace nacre {
namespace {

Status WriteIn(Shard* shard, const WriteOptions& options, WriteBatch* updates) {
  return shard->local() == nullptr ? shard->db()->Write(options, updates)
                                   : shard->local()->WriteBatchHere(options, updates);
}

}  // namespace

template <typename Work>
Status ShardedDBImpl::WriteKey(ColumnFamilyHandle* handle, const Slice& key, const Work& work) {
  const ShardedFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(families_.Find(handle, &family));
  recent_.Drop();
  return WithView([&](const ShardedView& view) -> Status {
    Shard* const shard = view.shards[view.map.Find(key)].get();
    const auto call = [&]() -> Status {
      ColumnFamilyHandle* there = nullptr;
      NACRE_RETURN_IF_ERROR(family->HandleIn(*shard, &there));
      return work(shard->db(), there);
    };
    if (shard->local() == nullptr) return call();
    return shard->local()->Write(
        [&] { return KeySets{{.family = family->id(), .begin = key.ToString()}}; }, call);
  });
}

Status ShardedDBImpl::Put(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
                          const Slice& value) {
  return WriteKey(family, key, [&](DB* shard, ColumnFamilyHandle* there) {
    return shard->Put(options, there, key, value);
  });
}

Status ShardedDBImpl::Delete(const WriteOptions& options, ColumnFamilyHandle* family,
                             const Slice& key) {
  return WriteKey(family, key, [&](DB* shard, ColumnFamilyHandle* there) {
    return shard->Delete(options, there, key);
  });
}

Status ShardedDBImpl::SingleDelete(const WriteOptions& options, ColumnFamilyHandle* family,
                                   const Slice& key) {
  return WriteKey(family, key, [&](DB* shard, ColumnFamilyHandle* there) {
    return shard->SingleDelete(options, there, key);
  });
}

Status ShardedDBImpl::Merge(const WriteOptions& options, ColumnFamilyHandle* family,
                            const Slice& key, const Slice& operand) {
  return WriteKey(family, key, [&](DB* shard, ColumnFamilyHandle* there) {
    return shard->Merge(options, there, key, operand);
  });
}

Status ShardedDBImpl::DeleteRange(const WriteOptions& options, ColumnFamilyHandle* handle,
                                  const Slice& begin, const Slice& end) {
  if (views_->latest()->map.comparator()->Compare(end, begin) < 0) {
    return Status::InvalidArgument("DeleteRange: the end is before the begin");
  }
  const ShardedFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(families_.Find(handle, &family));
  WriteBatch batch;
  NACRE_RETURN_IF_ERROR(batch.DeleteRange(handle, begin, end));
  return Write(options, &batch);
}

Status ShardedDBImpl::Write(const WriteOptions& options, WriteBatch* updates) {
  if (updates == nullptr) return Status::InvalidArgument("Write: there is no batch");
  recent_.Drop();
  return CatchAll([&]() -> Status {
    return WithView([&](const ShardedView& view) -> Status {
      std::optional<size_t> only;
      NACRE_RETURN_IF_ERROR(FindOnlyShard(view.map, *updates, &only));
      if (!only.has_value()) return WriteDivided(view, options, *updates);
      return WriteIn(view.shards[*only].get(), options, updates);
    });
  });
}

Status ShardedDBImpl::WriteDivided(const ShardedView& view, const WriteOptions& options,
                                   const WriteBatch& updates) {
  std::vector<BatchPart> parts;
  NACRE_RETURN_IF_ERROR(DivideBatch(view.map, updates, &parts));
  if (parts.empty()) return Status::OK();
  if (parts.size() == 1) {
    return WriteIn(view.shards[parts.front().shard].get(), options, &parts.front().updates);
  }
  return SharedBatch(view, &parts, NextBatch()).Commit(options, OperationDeadline());
}

std::string ShardedDBImpl::NextBatch() {
  return fmt::format("{}-{}", batch_prefix_, next_batch_.fetch_add(1, std::memory_order_relaxed));
}

}  // namespace nacre
