#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "nacre/options.h"
#include "nacre/status.h"

namespace nacre {

/// The family that every database has, with id 0. What takes a handle takes null for it.
/// Never destroyed, so that threads may use it while the process ends.
inline const std::string& kDefaultColumnFamilyName =
    *std::make_unique<const std::string>("default").release();

/// A column family to open or to make.
struct ColumnFamilyDescriptor {
  ColumnFamilyDescriptor() : name(kDefaultColumnFamilyName) {}
  ColumnFamilyDescriptor(std::string family_name, const ColumnFamilyOptions& family_options)
      : name(std::move(family_name)), options(family_options) {}

  std::string name;
  ColumnFamilyOptions options;
};

/// Names a column family of an open database, one that was dropped too. Made by `DB::Open` and
/// `DB::CreateColumnFamily`, given back to `DB::DestroyColumnFamilyHandle` before the database is
/// closed. Implementations are thread-safe.
class ColumnFamilyHandle {
 public:
  virtual ~ColumnFamilyHandle() = default;
  virtual const std::string& GetName() const = 0;
  /// Never used twice by one database; 0 is the default family.
  virtual uint32_t GetID() const = 0;
  /// Name and options. `NotSupported` by handles that stand for no open family.
  virtual Status GetDescriptor(ColumnFamilyDescriptor* /*descriptor*/) {
    return Status::NotSupported("ColumnFamilyHandle::GetDescriptor");
  }
};

}  // namespace nacre
