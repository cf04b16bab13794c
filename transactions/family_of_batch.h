#pragma once

#include <cstdint>
#include <string>

#include "nacre/column_family.h"

namespace nacre {

/// Stands for a family of which a batch knows the id only.
class FamilyOfBatch final : public ColumnFamilyHandle {
 public:
  explicit FamilyOfBatch(uint32_t id) : id_(id), name_(std::to_string(id)) {}
  const std::string& GetName() const override { return name_; }
  uint32_t GetID() const override { return id_; }

 private:
  uint32_t id_;
  std::string name_;
};

}  // namespace nacre
