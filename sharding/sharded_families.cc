#include <algorithm>
#include <set>
#include <utility>

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

Status ShardedDBImpl::FindOther(ColumnFamilyHandle* handle, const ShardedFamily** found) const {
  const auto* const ours = dynamic_cast<const ShardedFamilyHandle*>(handle);
  if (ours == nullptr || ours->owner() != this) {
    // The default family has handles of applications, too.
    const auto* const of_default = dynamic_cast<const ShardedDefaultFamily*>(handle);
    if (of_default != nullptr && of_default->first_shard() == shards_.front()->db()) {
      return Status::OK();
    }
    return Status::InvalidArgument("the handle of column family " + handle->GetName() +
                                   " is of another database than " + name_);
  }
  *found = &ours->family();
  return Status::OK();
}

FindShardedFamily ShardedDBImpl::FindById() const {
  return [this](uint32_t id, std::shared_ptr<const ShardedFamily>* found) {
    MutexLock lock(&families_mutex_);
    const auto it = families_.find(id);
    if (it == families_.end()) {
      return Status::InvalidArgument("no column family " + std::to_string(id) + " in " + name_);
    }
    *found = it->second;
    return Status::OK();
  };
}

bool ShardedDBImpl::HasFamily(const std::string& name) const {
  const auto& families = map_.families();
  return name == kDefaultColumnFamilyName ||
         std::any_of(families.begin(), families.end(),
                     [&](const ShardMap::Family& family) { return family.name == name; });
}

Status ShardedDBImpl::CheckNamed(const std::vector<ColumnFamilyDescriptor>& families,
                                 bool may_miss) const {
  std::set<std::string> named;
  for (const ColumnFamilyDescriptor& family : families) {
    if (!named.insert(family.name).second) {
      return Status::InvalidArgument("column family " + family.name + " is named twice");
    }
    if (!may_miss && !HasFamily(family.name)) {
      return Status::InvalidArgument("Column family not found: " + family.name);
    }
  }
  std::string missing;
  for (const ShardMap::Family& family : map_.families()) {
    if (!named.contains(family.name)) missing += (missing.empty() ? "" : ", ") + family.name;
  }
  return missing.empty() ? Status::OK()
                         : Status::InvalidArgument("Column families not opened: " + missing);
}

void ShardedDBImpl::Install(std::shared_ptr<const ShardedFamily> family) {
  for (size_t i = 0; i < shards_.size(); ++i) {
    if (family->of_shard(i)->GetID() == family->id()) continue;
    same_ids_.store(false, std::memory_order_relaxed);
  }
  MutexLock lock(&families_mutex_);
  const uint32_t id = family->id();
  families_[id] = std::move(family);
}

ColumnFamilyHandle* ShardedDBImpl::MakeHandle(const std::string& name) {
  if (name == kDefaultColumnFamilyName) {
    return std::make_unique<ShardedDefaultFamily>(shards_.front()->db()).release();
  }
  MutexLock lock(&families_mutex_);
  for (const auto& [id, family] : families_) {
    if (family->name() != name) continue;
    return std::make_unique<ShardedFamilyHandle>(family, this).release();
  }
  return nullptr;
}

Status ShardedDBImpl::CreateColumnFamilies(const std::vector<ColumnFamilyDescriptor>& families,
                                           std::vector<ColumnFamilyHandle*>* handles) {
  handles->clear();
  if (families.empty()) return Status::OK();
  for (const ColumnFamilyDescriptor& family : families) {
    if (family.options.comparator != map_.comparator()) {
      return Status::InvalidArgument("column family " + family.name +
                                     ": all families of a keyspace have the same comparator");
    }
  }
  return CatchAll([&]() -> Status {
    MutexLock lock(&change_mutex_);
    std::vector<std::vector<std::unique_ptr<ColumnFamilyHandle>>> made(shards_.size());
    Status status;
    for (size_t i = 0; i < shards_.size() && status.ok(); ++i) {
      std::vector<ColumnFamilyHandle*> of_shard;
      status = shards_[i]->db()->CreateColumnFamilies(families, &of_shard);
      for (ColumnFamilyHandle* handle : of_shard) made[i].emplace_back(handle);
      NACRE_POINT("keyspace.families-made-in-a-shard");
    }
    ShardMap changed = map_;
    std::vector<std::shared_ptr<ShardedFamily>> all;
    for (size_t f = 0; f < families.size() && status.ok(); ++f) {
      all.push_back(
          std::make_shared<ShardedFamily>(changed.AddFamily(families[f].name), families[f].name));
    }
    if (status.ok()) status = SaveMap(changed);
    if (!status.ok()) {
      // What cannot be dropped now goes when the keyspace is opened again.
      for (size_t i = 0; i < shards_.size(); ++i) {
        for (const auto& handle : made[i]) {
          shards_[i]->db()->DropColumnFamily(handle.get()).IgnoreError();
        }
      }
      return status;
    }
    map_.SetFamiliesOf(changed);
    for (size_t f = 0; f < families.size(); ++f) {
      for (auto& of_shard : made) all[f]->Add(std::move(of_shard[f]));
      Install(all[f]);
      handles->push_back(MakeHandle(families[f].name));
    }
    return Status::OK();
  });
}

Status ShardedDBImpl::DropColumnFamilies(const std::vector<ColumnFamilyHandle*>& handles) {
  return CatchAll([&]() -> Status {
    MutexLock lock(&change_mutex_);
    ShardMap changed = map_;
    std::vector<const ShardedFamily*> dropped;
    for (ColumnFamilyHandle* const handle : handles) {
      const ShardedFamily* family = nullptr;
      NACRE_RETURN_IF_ERROR(Find(handle, &family));
      if (family == nullptr) {
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
    // A batch that has been decided is committed in all shards while they have its families.
    const SnapshotGate::Closed closed(&gate_);
    NACRE_RETURN_IF_ERROR(SaveMap(changed));
    NACRE_POINT("keyspace.families-dropped-from-the-map");
    map_.SetFamiliesOf(changed);
    // From here on they are dropped; what a shard has left of them goes at the next opening.
    Status status;
    for (const auto& shard : shards_) {
      std::vector<ColumnFamilyHandle*> of_shard;
      for (const ShardedFamily* family : dropped) {
        of_shard.push_back(family->of_shard(shard->index()));
      }
      if (Status s = shard->db()->DropColumnFamilies(of_shard); status.ok()) status = s;
    }
    MutexLock families_lock(&families_mutex_);
    for (const ShardedFamily* family : dropped) families_.erase(family->id());
    return status;
  });
}

Status ShardedDBImpl::DestroyColumnFamilyHandle(ColumnFamilyHandle* family) {
  if (family != default_handle_.get()) delete family;
  return Status::OK();
}

}  // namespace nacre
