#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nacre/slice.h"

namespace nacre::sqlite {

/// Rows, and entries of unique indexes, that a connection has read lately, as one state of the
/// database has them: a statement that reads such a row again, as an UPDATE does after a SELECT,
/// does not search the database for it. It is what SQLite's page cache is to its own tables, and
/// stays below 8 MiB: each key has one place, which the last one that was read takes.
///
/// It never has what the state has not. The transaction that goes on in another state says so with
/// `Use`, or, if it knows all that has changed, with `Write`, `Delete` and `MoveTo`.
///
/// Thread safety: none.
class RowCache {
 public:
  /// Longer ones, with their keys, are not kept.
  static constexpr size_t kBytesMax = 200;
  static constexpr size_t kPlacesMax = 16384;

  /// The state that all it has is of.
  uint64_t state() const { return state_; }
  /// Forgets everything unless it is of this state already.
  void Use(uint64_t state);
  /// All that is different in this state has been told.
  void MoveTo(uint64_t state) { state_ = state; }

  /// False if it has not got `key`. `*value` is valid until the next call of another method.
  bool Find(const Slice& key, Slice* value) const;
  void Add(const Slice& key, const Slice& value);
  /// The value has changed. It is kept if the one before was.
  void Write(const Slice& key, const Slice& value);
  void Delete(const Slice& key);

 private:
  struct Place {
    uint64_t hash = 0;
    uint64_t generation = 0;  ///< It is empty unless that is the current one.
    size_t key_bytes = 0;
    std::string bytes{};  ///< The key and its value.

    Slice key() const { return {bytes.data(), key_bytes}; }
  };

  Place& PlaceOf(uint64_t hash) { return places_[hash & (places_.size() - 1)]; }
  bool Has(const Place& place, uint64_t hash, const Slice& key) const {
    return place.generation == generation_ && place.hash == hash && place.key() == key;
  }
  void Fill(Place* place, uint64_t hash, const Slice& key, const Slice& value) const;
  void Grow();

  uint64_t state_ = 0;
  uint64_t generation_ = 1;
  size_t added_ = 0;  ///< So many were added since it was empty, or has grown with so many.
  std::vector<Place> places_;  ///< A power of two.
};

}  // namespace nacre::sqlite
