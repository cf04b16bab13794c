#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nacre/column_family.h"
#include "nacre/db.h"

namespace nacre {

/// A column family of a keyspace: one of each shard, by the same name.
class ShardedFamily {
 public:
  ShardedFamily(uint32_t id, std::string name) : id_(id), name_(std::move(name)) {}

  uint32_t id() const { return id_; }
  const std::string& name() const { return name_; }
  /// For each shard once, in their order.
  void Add(std::unique_ptr<ColumnFamilyHandle> handle) { of_shards_.push_back(std::move(handle)); }
  ColumnFamilyHandle* of_shard(size_t index) const { return of_shards_[index].get(); }

 private:
  const uint32_t id_;
  const std::string name_;
  std::vector<std::unique_ptr<ColumnFamilyHandle>> of_shards_;
};

/// Null is the default family.
inline uint32_t IdOf(const ShardedFamily* family) { return family == nullptr ? 0 : family->id(); }

class ShardedFamilyHandle final : public ColumnFamilyHandle {
 public:
  /// `owner` tells the handles of one keyspace from another's.
  ShardedFamilyHandle(std::shared_ptr<const ShardedFamily> family, const void* owner)
      : family_(std::move(family)), owner_(owner) {}

  const std::string& GetName() const override { return family_->name(); }
  uint32_t GetID() const override { return family_->id(); }
  Status GetDescriptor(ColumnFamilyDescriptor* descriptor) override {
    return family_->of_shard(0)->GetDescriptor(descriptor);
  }

  const ShardedFamily& family() const { return *family_; }
  std::shared_ptr<const ShardedFamily> hold() const { return family_; }
  const void* owner() const { return owner_; }

 private:
  const std::shared_ptr<const ShardedFamily> family_;
  const void* const owner_;
};

/// The default family of a keyspace, which stands for those of all shards.
class ShardedDefaultFamily final : public ColumnFamilyHandle {
 public:
  explicit ShardedDefaultFamily(DB* first_shard) : first_shard_(first_shard) {}

  const std::string& GetName() const override { return kDefaultColumnFamilyName; }
  uint32_t GetID() const override { return 0; }
  Status GetDescriptor(ColumnFamilyDescriptor* descriptor) override {
    return first_shard_->DefaultColumnFamily()->GetDescriptor(descriptor);
  }
  /// Tells the handles of one keyspace from another's.
  const DB* first_shard() const { return first_shard_; }

 private:
  DB* const first_shard_;
};

}  // namespace nacre
