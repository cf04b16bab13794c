#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "nacre/db.h"
#include "nacre/slice.h"
#include "sqlite/row/key_encoding.h"

namespace nacre::sqlite {

/// A column family of an open database, whose rows stay readable while this object lives, also
/// after it was dropped. It must be gone before the database is.
class Family {
 public:
  /// Whose keys it has.
  enum class Spaces : uint8_t {
    kOne,  ///< Those of its space, which they are without.
    kAll,  ///< Those of all spaces, as they are.
  };

  /// Takes `handle` over. Null: the default family, which has the catalogue.
  Family(DB* db, uint32_t space, ColumnFamilyHandle* handle, Spaces spaces = Spaces::kOne)
      : db_(db), space_(space), handle_(handle), spaces_(spaces) {}
  ~Family() { db_->DestroyColumnFamilyHandle(handle_).IgnoreError(); }  // It is a valid one.
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  /// Never used twice by a database.
  uint32_t space() const { return space_; }
  ColumnFamilyHandle* handle() const { return handle_; }
  bool has_all_spaces() const { return spaces_ == Spaces::kAll; }
  /// `key`, which has its space, as the family has it. Its bytes must stay.
  Slice KeyIn(const Slice& key) const { return has_all_spaces() ? key : WithoutSpace(key); }
  /// A key that the family has, without its space.
  Slice KeyOfSpace(const Slice& stored) const {
    return has_all_spaces() ? WithoutSpace(stored) : stored;
  }

 private:
  DB* const db_;
  const uint32_t space_;
  ColumnFamilyHandle* const handle_;
  const Spaces spaces_;
};

/// The families of a database at one moment, by the number of their space. One that has all spaces
/// is the only one.
using FamilySet = std::map<uint32_t, std::shared_ptr<const Family>>;

/// Null if there is none.
inline const Family* FindFamily(const FamilySet& families, uint32_t space) {
  if (!families.empty() && families.begin()->second->has_all_spaces()) {
    return families.begin()->second.get();
  }
  const auto found = families.find(space);
  return found == families.end() ? nullptr : found->second.get();
}

}  // namespace nacre::sqlite
