#include <algorithm>
#include <utility>

#include "sharding/members/shared_families.h"
#include "sharding/sharded_db_impl.h"
#include "util/exceptions.h"
#include "util/named_point.h"

namespace nacre {

Status ShardedDB::ListColumnFamilies(const DBOptions& options, const std::string& name,
                                     std::vector<std::string>* families) {
  families->clear();
  return CatchAll([&]() -> Status {
    Options options_of_map{options, ColumnFamilyOptions()};
    std::unique_ptr<DB> map_db;
    NACRE_RETURN_IF_ERROR(
        DB::OpenForReadOnly(options_of_map, ShardMap::DatabaseOfMap(name), &map_db));
    std::string bytes;
    Status status = map_db->Get({}, ShardMap::kKey, &bytes);
    if (status.ok()) status = ShardMap::ParseFamilies(bytes, families);
    return status.WithContext(ShardMap::DatabaseOfMap(name));
  });
}

Status ShardedDBImpl::CreateColumnFamilies(const std::vector<ColumnFamilyDescriptor>& families,
                                           std::vector<ColumnFamilyHandle*>* handles) {
  handles->clear();
  if (families.empty()) return Status::OK();
  return CatchAll([&]() -> Status {
    MutexLock lock(&change_mutex_);
    if (member_ != nullptr) return shared_families_->Make(families, handles);
    for (const ColumnFamilyDescriptor& family : families) {
      NACRE_RETURN_IF_ERROR(CheckNewFamily(opener_->options().comparator, family));
    }
    return MakeFamilies(families, handles);
  });
}

Status ShardedDBImpl::MakeFamilies(const std::vector<ColumnFamilyDescriptor>& families,
                                   std::vector<ColumnFamilyHandle*>* handles) {
  const auto view = views_->latest();
  std::vector<std::vector<std::shared_ptr<ColumnFamilyHandle>>> made(view->shards.size());
  Status status;
  for (size_t i = 0; i < made.size() && status.ok(); ++i) {
    std::vector<ColumnFamilyHandle*> of_shard;
    status = view->shards[i]->db()->CreateColumnFamilies(families, &of_shard);
    for (ColumnFamilyHandle* handle : of_shard) made[i].emplace_back(handle);
    NACRE_POINT("keyspace.families-made-in-a-shard");
  }
  ShardMap changed = view->map;
  std::vector<uint32_t> ids;
  for (size_t f = 0; f < families.size() && status.ok(); ++f) {
    ids.push_back(changed.AddFamily(families[f].name));
  }
  if (status.ok()) status = opener_->SaveMap(changed);
  if (!status.ok()) {
    // What cannot be dropped now goes when the keyspace is opened again.
    for (size_t i = 0; i < made.size(); ++i) {
      for (const auto& handle : made[i]) {
        view->shards[i]->db()->DropColumnFamily(handle.get()).IgnoreError();
      }
    }
    return status;
  }
  for (size_t f = 0; f < families.size(); ++f) {
    for (size_t i = 0; i < made.size(); ++i) {
      view->shards[i]->local()->AddFamily(ids[f], std::move(made[i][f]));
    }
    families_.Add(ids[f], families[f].name, families[f].options.prefix_extractor);
    handles->push_back(families_.NewHandle(families[f].name).release());
  }
  views_->PublishMap(changed);
  return Status::OK();
}

Status ShardedDBImpl::DropColumnFamilies(const std::vector<ColumnFamilyHandle*>& handles) {
  return CatchAll([&]() -> Status {
    MutexLock lock(&change_mutex_);
    const auto view = views_->latest();
    ShardMap changed = view->map;
    std::vector<const ShardedFamily*> dropped;
    for (ColumnFamilyHandle* const handle : handles) {
      const ShardedFamily* family = nullptr;
      NACRE_RETURN_IF_ERROR(families_.Find(handle, &family));
      if (family->id() == 0) {
        return Status::InvalidArgument("the default column family cannot be dropped");
      }
      const size_t before = changed.families().size();
      changed.RemoveFamily(family->name());
      if (changed.families().size() == before) {
        return Status::InvalidArgument("column family " + family->name() +
                                       " was dropped, or is named twice");
      }
      dropped.push_back(family);
    }
    if (dropped.empty()) return Status::OK();
    if (member_ != nullptr) return shared_families_->Drop(dropped);
    // A batch that has been decided is committed in all shards while they have its families.
    const SnapshotGate::Closed closed(owner_->gate(), OperationDeadline());
    NACRE_RETURN_IF_ERROR(closed.status());
    NACRE_RETURN_IF_ERROR(opener_->SaveMap(changed));
    NACRE_POINT("keyspace.families-dropped-from-the-map");
    views_->PublishMap(changed);
    // From here on they are dropped; what a shard has left of them goes at the next opening.
    Status status;
    for (const auto& shard : view->shards) {
      std::vector<ColumnFamilyHandle*> of_shard;
      for (const ShardedFamily* family : dropped) of_shard.push_back(shard->Handle(family->id()));
      if (Status s = shard->db()->DropColumnFamilies(of_shard); status.ok()) status = s;
    }
    for (const ShardedFamily* family : dropped) families_.Drop(family->id(), views_);
    return status;
  });
}

Status ShardedDBImpl::OpenColumnFamily(const std::string& name, ColumnFamilyHandle** handle) {
  *handle = nullptr;
  return CatchAll([&]() -> Status {
    if (member_ != nullptr) {
      MutexLock lock(&change_mutex_);
      shared_families_->Follow();
    }
    *handle = families_.NewHandle(name).release();
    return *handle != nullptr ? Status::OK()
                              : Status::NotFound("there is no column family " + name);
  });
}

Status ShardedDBImpl::DestroyColumnFamilyHandle(ColumnFamilyHandle* family) {
  if (family != families_.default_handle()) delete family;
  return Status::OK();
}

}  // namespace nacre
