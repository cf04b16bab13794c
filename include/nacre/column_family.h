#pragma once

#include <cstdint>
#include <string>

namespace nacre {

/// Names a column family of an open database. Implementations must be thread-safe.
class ColumnFamilyHandle {
 public:
  virtual ~ColumnFamilyHandle() = default;
  virtual const std::string& GetName() const = 0;
  /// Never used twice by one database; 0 is the default family.
  virtual uint32_t GetID() const = 0;
};

}  // namespace nacre
