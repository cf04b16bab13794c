#include "sharding/batches/batch_parts.h"

#include <map>
#include <string>
#include <utility>

#include "db/write/update_limits.h"
#include "table/format/write_batch_format.h"

namespace nacre {
namespace {

/// A family that is known by its id only.
class FamilyOfId final : public ColumnFamilyHandle {
 public:
  explicit FamilyOfId(uint32_t id) : id_(id) {}

  const std::string& GetName() const override { return name_; }
  uint32_t GetID() const override { return id_; }
  Status GetDescriptor(ColumnFamilyDescriptor* /*descriptor*/) override {
    return Status::NotSupported("a family of which only the id is known");
  }

 private:
  const uint32_t id_;
  const std::string name_;
};

Status AddItem(const BatchItem& item, ColumnFamilyHandle* family, WriteBatch* batch) {
  switch (item.type) {
    case ValueType::kValue:
      return batch->Put(family, item.key, item.value);
    case ValueType::kDeletion:
      return batch->Delete(family, item.key);
    case ValueType::kSingleDeletion:
      return batch->SingleDelete(family, item.key);
    case ValueType::kMerge:
      return batch->Merge(family, item.key, item.value);
    case ValueType::kRangeDeletion:
      return batch->DeleteRange(family, item.key, item.value);
  }
  return Status::Corruption("write batch: an update of an unknown type");
}

class Divider {
 public:
  explicit Divider(const ShardMap& map) : map_(map) {}

  Status Divide(const WriteBatch& batch, std::vector<BatchPart>* parts) {
    if (batch.Data().size() < kWriteBatchHeader) {
      return Status::Corruption("write batch: shorter than its header");
    }
    Slice input(batch.Data());
    input.remove_prefix(kWriteBatchHeader);
    uint64_t found = 0;
    std::vector<Slice> log_data;
    while (!input.empty()) {
      BatchItem item;
      NACRE_RETURN_IF_ERROR(ParseBatchItem(&input, &item));
      if (item.log_data) {
        log_data.push_back(item.value);
        continue;
      }
      ++found;
      NACRE_RETURN_IF_ERROR(CheckUpdate(item.key, item.value));
      NACRE_RETURN_IF_ERROR(Add(item));
    }
    NACRE_RETURN_IF_ERROR(CheckBatchCount(found, batch.Count()));
    parts->clear();
    for (auto& [shard, part] : parts_) parts->push_back(std::move(part));
    for (const Slice& blob : log_data) {
      if (!parts->empty()) NACRE_RETURN_IF_ERROR(parts->front().updates.PutLogData(blob));
    }
    return Status::OK();
  }

 private:
  Status Add(const BatchItem& item) {
    if (item.family != kDefaultFamily && !map_.HasFamily(item.family)) {
      return Status::InvalidArgument("write batch: no column family " +
                                     std::to_string(item.family) + " in the keyspace");
    }
    FamilyOfId of_id(item.family);
    ColumnFamilyHandle* const family = item.family == kDefaultFamily ? nullptr : &of_id;
    size_t shard = map_.Find(item.key);
    if (item.type != ValueType::kRangeDeletion) return AddTo(shard, item, family);
    const Comparator& comparator = *map_.comparator();
    if (comparator.Compare(item.value, item.key) < 0) {
      return Status::InvalidArgument("DeleteRange: the end is before the begin");
    }
    BatchItem piece = item;
    while (comparator.Compare(piece.key, item.value) < 0) {
      const bool ends_here = map_.IsBeforeEnd(shard, item.value) || shard + 1 == map_.size();
      piece.value = ends_here ? item.value : Slice(map_.shards()[shard + 1].begin);
      NACRE_RETURN_IF_ERROR(AddTo(shard, piece, family));
      piece.key = piece.value;
      ++shard;
    }
    return Status::OK();
  }

  Status AddTo(size_t shard, const BatchItem& item, ColumnFamilyHandle* family) {
    BatchPart& part = parts_[shard];
    part.shard = shard;
    return AddItem(item, family, &part.updates);
  }

  const ShardMap& map_;
  std::map<size_t, BatchPart> parts_;
};

}  // namespace

Status FindOnlyShard(const ShardMap& map, const WriteBatch& batch, std::optional<size_t>* shard) {
  *shard = std::nullopt;
  bool several = false;
  size_t only = map.size();
  NACRE_RETURN_IF_ERROR(ForEachUpdate(
      batch.Data(), [&](ValueType type, uint32_t, const Slice& key, const Slice& value) {
        if (several) return;
        if (only == map.size()) {
          only = map.Find(key);
        } else if (!map.Has(only, key)) {
          several = true;
        }
        // A range that ends where the next shard begins is this one's.
        if (type == ValueType::kRangeDeletion && only + 1 < map.size() &&
            map.comparator()->Compare(value, map.shards()[only + 1].begin) > 0) {
          several = true;
        }
      }));
  if (!several) *shard = only == map.size() ? 0 : only;
  return Status::OK();
}

Status DivideBatch(const ShardMap& map, const WriteBatch& batch, std::vector<BatchPart>* parts) {
  return Divider(map).Divide(batch, parts);
}

Status RenameFamilies(const std::function<std::shared_ptr<ColumnFamilyHandle>(uint32_t id)>& find,
                      WriteBatch* batch) {
  WriteBatch renamed;
  Slice input(batch->Data());
  input.remove_prefix(kWriteBatchHeader);
  while (!input.empty()) {
    BatchItem item;
    NACRE_RETURN_IF_ERROR(ParseBatchItem(&input, &item));
    if (item.log_data) {
      NACRE_RETURN_IF_ERROR(renamed.PutLogData(item.value));
      continue;
    }
    std::shared_ptr<ColumnFamilyHandle> family;
    if (item.family != kDefaultFamily) {
      family = find(item.family);
      if (family == nullptr) {
        return Status::InvalidArgument("write batch: no column family " +
                                       std::to_string(item.family) + " in the shard");
      }
    }
    NACRE_RETURN_IF_ERROR(AddItem(item, family.get(), &renamed));
  }
  *batch = std::move(renamed);
  return Status::OK();
}

Status AppendUpdates(const WriteBatch& from, const std::function<uint32_t(uint32_t id)>& id_of,
                     WriteBatch* to) {
  Slice input(from.Data());
  input.remove_prefix(kWriteBatchHeader);
  while (!input.empty()) {
    BatchItem item;
    NACRE_RETURN_IF_ERROR(ParseBatchItem(&input, &item));
    if (item.log_data) continue;
    FamilyOfId family(item.family == kDefaultFamily ? kDefaultFamily : id_of(item.family));
    NACRE_RETURN_IF_ERROR(AddItem(item, item.family == kDefaultFamily ? nullptr : &family, to));
  }
  return Status::OK();
}

Status KeepFamilies(const std::function<bool(uint32_t id)>& has, WriteBatch* batch) {
  bool all = true;
  NACRE_RETURN_IF_ERROR(ForEachUpdate(
      batch->Data(),
      [&](ValueType, uint32_t family, const Slice&, const Slice&) { all = all && has(family); }));
  if (all) return Status::OK();
  WriteBatch kept;
  Slice input(batch->Data());
  input.remove_prefix(kWriteBatchHeader);
  while (!input.empty()) {
    BatchItem item;
    NACRE_RETURN_IF_ERROR(ParseBatchItem(&input, &item));
    if (item.log_data || !has(item.family)) continue;
    FamilyOfId family(item.family);
    NACRE_RETURN_IF_ERROR(AddItem(item, &family, &kept));
  }
  *batch = std::move(kept);
  return Status::OK();
}

KeySets KeysOf(const WriteBatch& batch) {
  KeySets keys;
  ForEachUpdate(batch.Data(), [&](ValueType type, uint32_t family, const Slice& key,
                                  const Slice& value) {
    const bool range = type == ValueType::kRangeDeletion;
    keys.push_back({.family = family,
                    .kind = range ? KeySet::Kind::kRange : KeySet::Kind::kKey,
                    .begin = key.ToString(),
                    .end = range ? value.ToString() : std::string()});
  }).IgnoreError();
  return keys;
}

KeySets KeysOf(const BatchPart& part) {
  KeySets keys = KeysOf(part.updates);
  for (const KeyCheck& check : part.checks) {
    keys.push_back({.family = check.family, .begin = check.key});
  }
  for (const KeyLock& lock : part.locks) {
    keys.push_back({.family = lock.family, .begin = lock.key});
  }
  return keys;
}

}  // namespace nacre
