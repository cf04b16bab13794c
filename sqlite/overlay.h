#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <memory_resource>
#include <utility>
#include <vector>

#include "nacre/slice.h"
#include "sqlite/family_set.h"

namespace nacre::sqlite {

/// The writes of a transaction, which no other sees yet: the last write of each key, in the order
/// of the keys, with what is needed to go back to an earlier point of it. Thread safety: none.
class Overlay {
 public:
  struct Entry {
    Slice value;
    bool deleted = false;
  };
  struct Less {
    bool operator()(const Slice& a, const Slice& b) const { return a.compare(b) < 0; }
  };
  using Map = std::pmr::map<Slice, Entry, Less>;

  Overlay();
  Overlay(const Overlay&) = delete;
  Overlay& operator=(const Overlay&) = delete;

  bool empty() const { return entries_.empty(); }
  const Map& entries() const { return entries_; }
  /// Changes with each change of the entries.
  uint64_t version() const { return version_; }
  /// Null if the transaction has not written the key.
  const Entry* Find(const Slice& key) const;

  /// Both copy the bytes.
  void Put(const Slice& key, const Slice& value) { Write(key, {Copy(value), false}); }
  void Delete(const Slice& key) { Write(key, {Slice(), true}); }
  void Clear();
  /// Families that the transaction has made are known to it only, until it commits.
  void AddFamily(std::shared_ptr<const Family> family) {
    const uint32_t space = family->space();
    families_[space] = std::move(family);
  }
  const FamilySet& families() const { return families_; }

  /// Marks a point that `UndoTo` can go back to until `Clear`.
  size_t Mark();
  void UndoTo(size_t mark);

 private:
  struct Undo {
    Map::iterator position;
    Entry before;
    bool was_there;
  };

  Slice Copy(const Slice& bytes);
  void Write(const Slice& key, const Entry& entry);

  /// Short transactions allocate nothing.
  std::array<char, 4096> first_bytes_;
  std::pmr::monotonic_buffer_resource memory_;
  Map entries_;
  FamilySet families_;
  bool keep_undo_ = false;
  std::vector<Undo> undo_;
  uint64_t version_ = 0;
};

}  // namespace nacre::sqlite
