#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "nacre/db.h"

namespace nacre::sqlite {

/// A column family of an open database, whose rows stay readable while this object lives, also
/// after it was dropped. It must be gone before the database is.
class Family {
 public:
  /// Takes `handle` over. Null: the default family, which has the catalogue.
  Family(DB* db, uint32_t space, ColumnFamilyHandle* handle)
      : db_(db), space_(space), handle_(handle) {}
  ~Family() { db_->DestroyColumnFamilyHandle(handle_).IgnoreError(); }  // It is a valid one.
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  /// Never used twice by a database.
  uint32_t space() const { return space_; }
  ColumnFamilyHandle* handle() const { return handle_; }

 private:
  DB* const db_;
  const uint32_t space_;
  ColumnFamilyHandle* const handle_;
};

/// The families of a database at one moment, by the number of their space.
using FamilySet = std::map<uint32_t, std::shared_ptr<const Family>>;

/// Null if there is none.
inline const Family* FindFamily(const FamilySet& families, uint32_t space) {
  const auto found = families.find(space);
  return found == families.end() ? nullptr : found->second.get();
}

}  // namespace nacre::sqlite
