#pragma once

#include <atomic>
#include <cstdint>

#include "nacre/db.h"
#include "sqlite/family_set.h"

namespace nacre::sqlite {

/// Bounds what the MemTables of all tables of a database take together. Each column family has
/// MemTables of its own, which are flushed together once one of them is full; without more, a
/// hundred families would take a hundred times as much.
///
/// Thread safety: all methods may be called from many threads at once; the numbers stand for
/// themselves (relaxed).
class MemoryBound {
 public:
  explicit MemoryBound(uint64_t bytes) : bytes_max_(bytes) {}

  /// Must be called after a batch was written. It checks from time to time what the MemTables have,
  /// and has them flushed, without waiting for it, if that is too much. `families` are all.
  Status Wrote(DB* db, const FamilySet& families, uint64_t entries, uint64_t bytes);

 private:
  const uint64_t bytes_max_;
  std::atomic<uint64_t> entries_{0};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> looked_at_{0};  ///< The value of `bytes_` at the last check.
};

}  // namespace nacre::sqlite
