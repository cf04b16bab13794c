#include <optional>
#include <utility>

#include "sharding/sharded_db_impl.h"
#include "sharding/shared_batch.h"
#include "util/exceptions.h"

namespace nacre {

template <typename Work>
Status ShardedDBImpl::WriteKey(ColumnFamilyHandle* handle, const Slice& key, const Work& work) {
  const ShardedFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(Find(handle, &family));
  const size_t index = map_.Find(key);
  Shard* const shard = shards_[index].get();
  const auto keys = [&] { return KeySets{{.family = IdOf(family), .begin = key.ToString()}}; };
  return In(shard, keys, [&] { return work(shard->db(), Of(family, index)); });
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

Status ShardedDBImpl::DeleteRange(const WriteOptions& options, ColumnFamilyHandle* family,
                                  const Slice& begin, const Slice& end) {
  if (map_.comparator()->Compare(end, begin) < 0) {
    return Status::InvalidArgument("DeleteRange: the end is before the begin");
  }
  const ShardedFamily* found = nullptr;
  NACRE_RETURN_IF_ERROR(Find(family, &found));
  WriteBatch batch;
  NACRE_RETURN_IF_ERROR(batch.DeleteRange(family, begin, end));
  return Write(options, &batch);
}

Status ShardedDBImpl::Write(const WriteOptions& options, WriteBatch* updates) {
  if (updates == nullptr) return Status::InvalidArgument("Write: there is no batch");
  return CatchAll([&]() -> Status {
    std::optional<size_t> only;
    NACRE_RETURN_IF_ERROR(FindOnlyShard(map_, *updates, &only));
    if (!only.has_value() || !same_ids_.load(std::memory_order_relaxed)) {
      return WriteDivided(options, *updates);
    }
    Shard* const shard = shards_[*only].get();
    return In(
        shard, [&] { return KeysOf(*updates); },
        [&] { return shard->db()->Write(options, updates); });
  });
}

Status ShardedDBImpl::WriteDivided(const WriteOptions& options, const WriteBatch& updates) {
  std::vector<BatchPart> parts;
  NACRE_RETURN_IF_ERROR(DivideBatch(map_, updates, FindById(), &parts));
  if (parts.empty()) return Status::OK();
  if (parts.size() == 1) {
    BatchPart& part = parts.front();
    Shard* const shard = shards_[part.shard].get();
    return In(
        shard, [&] { return part.keys; },
        [&] { return shard->db()->Write(options, &part.updates); });
  }
  SharedBatch batch(shards_, &gate_, &parts, opening_,
                    next_batch_.fetch_add(1, std::memory_order_relaxed));
  return batch.Commit(options, OperationDeadline());
}

Status ShardedDBImpl::FlushWAL(bool sync) {
  for (const auto& shard : shards_) NACRE_RETURN_IF_ERROR(shard->db()->FlushWAL(sync));
  return Status::OK();
}

}  // namespace nacre
