#include "sharding/sharded_family.h"

#include <algorithm>

#include "sharding/local_shard.h"
#include "sharding/shard_opener.h"

namespace nacre {

ShardedFamily::~ShardedFamily() {
  const auto view = dropped_from_ == nullptr ? nullptr : dropped_from_->latest();
  if (view == nullptr) return;
  for (const auto& shard : view->shards) {
    if (shard->local() != nullptr) shard->local()->RemoveFamily(id_);
  }
}

Status ShardedFamilyHandle::GetDescriptor(ColumnFamilyDescriptor* descriptor) {
  *descriptor = ColumnFamilyDescriptor(GetName(), owner_->GetOptions(this));
  return Status::OK();
}

Status CheckComparator(const Comparator* comparator, const ColumnFamilyDescriptor& family) {
  if (family.options.comparator == comparator) return Status::OK();
  return Status::InvalidArgument("column family " + family.name +
                                 ": all families of a keyspace have the same comparator");
}

Status CheckNewFamily(const Comparator* comparator, const ColumnFamilyDescriptor& family) {
  NACRE_RETURN_IF_ERROR(CheckComparator(comparator, family));
  if (!family.name.starts_with('@')) return Status::OK();
  return Status::InvalidArgument("column family " + family.name +
                                 ": in a keyspace no name begins with '@'");
}

ShardedFamilies::ShardedFamilies(DB* owner, std::shared_ptr<const SliceTransform> default_extractor)
    : owner_(owner),
      default_handle_(std::make_unique<ShardedFamilyHandle>(
          std::make_shared<ShardedFamily>(0, kDefaultColumnFamilyName,
                                          std::move(default_extractor)),
          owner)) {}

Status ShardedFamilies::FindOther(ColumnFamilyHandle* handle, const ShardedFamily** found) const {
  const auto* const ours = dynamic_cast<const ShardedFamilyHandle*>(handle);
  if (ours == nullptr || ours->owner() != owner_) {
    return Status::InvalidArgument("the handle of column family " + handle->GetName() +
                                   " is of another database than " + owner_->GetName());
  }
  *found = ours->family().get();
  return Status::OK();
}

std::shared_ptr<const ShardedFamily> ShardedFamilies::Hold(ColumnFamilyHandle* handle) const {
  if (handle == nullptr) return default_handle_->family();
  return static_cast<const ShardedFamilyHandle*>(handle)->family();
}

bool ShardedFamilies::Has(const std::string& name) const {
  MutexLock lock(&mutex_);
  return name == kDefaultColumnFamilyName || std::ranges::any_of(families_, [&](const auto& entry) {
           return entry.second->name() == name;
         });
}

void ShardedFamilies::Add(uint32_t id, const std::string& name,
                          std::shared_ptr<const SliceTransform> extractor) {
  MutexLock lock(&mutex_);
  families_[id] = std::make_shared<ShardedFamily>(id, name, std::move(extractor));
}

void ShardedFamilies::Drop(uint32_t id, std::shared_ptr<ShardedViews> views) {
  std::shared_ptr<ShardedFamily> dropped;  // Destroyed without the lock.
  MutexLock lock(&mutex_);
  const auto found = families_.find(id);
  if (found == families_.end()) return;
  found->second->SetDropped(std::move(views));
  dropped = std::move(found->second);
  families_.erase(found);
}

void ShardedFamilies::Follow(const ShardMap& map, const ShardOpener& opener,
                             const std::shared_ptr<ShardedViews>& views) {
  std::vector<uint32_t> gone;
  std::vector<ShardMap::Family> made = map.families();
  {
    MutexLock lock(&mutex_);
    for (const auto& [id, family] : families_) {
      if (!map.HasFamily(id)) gone.push_back(id);
    }
    std::erase_if(made, [this](const ShardMap::Family& family)
                            REQUIRES(mutex_) { return families_.contains(family.id); });
  }
  for (const uint32_t id : gone) Drop(id, views);
  for (const ShardMap::Family& family : made) {
    const ColumnFamilyDescriptor* const named = opener.Find(family.name);
    std::shared_ptr<const SliceTransform> extractor;
    if (named != nullptr) {
      extractor = named->options.prefix_extractor;
    } else if (family.name != ShardMap::kPreparedFamily) {
      extractor = opener.options().prefix_extractor;
    }
    Add(family.id, family.name, std::move(extractor));
  }
}

std::unique_ptr<ColumnFamilyHandle> ShardedFamilies::NewHandle(const std::string& name) {
  if (name == kDefaultColumnFamilyName) {
    return std::make_unique<ShardedFamilyHandle>(default_handle_->family(), owner_);
  }
  MutexLock lock(&mutex_);
  for (const auto& [id, family] : families_) {
    if (family->name() == name) return std::make_unique<ShardedFamilyHandle>(family, owner_);
  }
  return nullptr;
}

std::unique_ptr<ColumnFamilyHandle> ShardedFamilies::NewHandle(uint32_t id) {
  if (id == 0) return NewHandle(kDefaultColumnFamilyName);
  MutexLock lock(&mutex_);
  const auto found = families_.find(id);
  return found == families_.end() ? nullptr
                                  : std::make_unique<ShardedFamilyHandle>(found->second, owner_);
}

}  // namespace nacre
