#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nacre/column_family.h"
#include "nacre/db.h"
#include "nacre/slice_transform.h"
#include "nacre/status.h"
#include "sharding/shard.h"
#include "sharding/sharded_view.h"
#include "util/mutex.h"

namespace nacre {

class ShardOpener;

/// A column family of a keyspace: one of each shard, by the same name. The default one has the id
/// 0.
class ShardedFamily {
 public:
  ShardedFamily(uint32_t id, std::string name, std::shared_ptr<const SliceTransform> extractor)
      : id_(id), name_(std::move(name)), prefix_extractor_(std::move(extractor)) {}
  /// If it was dropped, the shards of this process let go of it, too.
  ~ShardedFamily();
  ShardedFamily(const ShardedFamily&) = delete;
  ShardedFamily& operator=(const ShardedFamily&) = delete;

  uint32_t id() const { return id_; }
  const std::string& name() const { return name_; }
  /// May be null.
  const std::shared_ptr<const SliceTransform>& prefix_extractor() const {
    return prefix_extractor_;
  }
  /// Its handle in a shard, null for the default one: see Shard::Handle. `InvalidArgument` if the
  /// family was dropped.
  Status HandleIn(const Shard& shard, ColumnFamilyHandle** handle) const {
    *handle = shard.Handle(id_);
    if (*handle != nullptr || id_ == 0) [[likely]]
      return Status::OK();
    return Status::InvalidArgument("column family " + name_ + " was dropped");
  }
  /// Until it is destroyed, handles of it read what was there.
  void SetDropped(std::shared_ptr<ShardedViews> views) { dropped_from_ = std::move(views); }

 private:
  const uint32_t id_;
  const std::string name_;
  const std::shared_ptr<const SliceTransform> prefix_extractor_;
  std::shared_ptr<ShardedViews> dropped_from_;
};

class ShardedFamilyHandle final : public ColumnFamilyHandle {
 public:
  ShardedFamilyHandle(std::shared_ptr<const ShardedFamily> family, DB* owner)
      : family_(std::move(family)), owner_(owner) {}

  const std::string& GetName() const override { return family_->name(); }
  uint32_t GetID() const override { return family_->id(); }
  Status GetDescriptor(ColumnFamilyDescriptor* descriptor) override;

  const std::shared_ptr<const ShardedFamily>& family() const { return family_; }
  /// Tells the handles of one keyspace from another's.
  const DB* owner() const { return owner_; }

 private:
  const std::shared_ptr<const ShardedFamily> family_;
  DB* const owner_;
};

/// `InvalidArgument` if a keyspace with this comparator cannot have the family.
Status CheckComparator(const Comparator* comparator, const ColumnFamilyDescriptor& family);
/// The same for one that it does not have yet: names that begin with '@' are for what members make.
Status CheckNewFamily(const Comparator* comparator, const ColumnFamilyDescriptor& family);

/// The families of an open keyspace.
///
/// Thread safety: all methods may be called from many threads at once.
class ShardedFamilies {
 public:
  /// `owner`, whose families they are, outlives this.
  ShardedFamilies(DB* owner, std::shared_ptr<const SliceTransform> default_extractor);

  ColumnFamilyHandle* default_handle() const { return default_handle_.get(); }
  const ShardedFamily& of_default() const { return *default_handle_->family(); }
  /// Null is that of the default family. `InvalidArgument`: the handle is of another database.
  Status Find(ColumnFamilyHandle* handle, const ShardedFamily** found) const {
    if (handle == nullptr || handle == default_handle_.get()) [[likely]] {
      *found = default_handle_->family().get();
      return Status::OK();
    }
    return FindOther(handle, found);
  }
  /// The same, for what may outlive the handle, which Find has accepted.
  std::shared_ptr<const ShardedFamily> Hold(ColumnFamilyHandle* handle) const;
  bool Has(const std::string& name) const EXCLUDES(mutex_);

  void Add(uint32_t id, const std::string& name, std::shared_ptr<const SliceTransform> extractor)
      EXCLUDES(mutex_);
  void Drop(uint32_t id, std::shared_ptr<ShardedViews> views) EXCLUDES(mutex_);
  /// Adds what the map has, and drops what it has not.
  void Follow(const ShardMap& map, const ShardOpener& opener,
              const std::shared_ptr<ShardedViews>& views) EXCLUDES(mutex_);
  /// That of the family of this name. The caller owns it.
  std::unique_ptr<ColumnFamilyHandle> NewHandle(const std::string& name) EXCLUDES(mutex_);
  /// The same by its id. Null if there is none.
  std::unique_ptr<ColumnFamilyHandle> NewHandle(uint32_t id) EXCLUDES(mutex_);

 private:
  Status FindOther(ColumnFamilyHandle* handle, const ShardedFamily** found) const;

  DB* const owner_;
  const std::unique_ptr<ShardedFamilyHandle> default_handle_;
  mutable Mutex mutex_;
  /// Without the default one.
  std::map<uint32_t, std::shared_ptr<ShardedFamily>> families_ GUARDED_BY(mutex_);
};

}  // namespace nacre
