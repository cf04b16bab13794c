#pragma once

#include "nacre/slice.h"
#include "nacre/status.h"

namespace nacre {

/// A cursor over a sorted sequence, as of one snapshot. A new one is not valid until a Seek.
/// Reads ahead over the network in growing pieces in the direction of travel.
///
/// Thread safety: const methods may be called together; any other call needs the caller to
/// exclude all others. Must be destroyed before the database is closed.
class Iterator {
 public:
  Iterator() = default;
  virtual ~Iterator() = default;
  Iterator(const Iterator&) = delete;
  Iterator& operator=(const Iterator&) = delete;

  /// False past either end, outside the bounds, or after an error; see `status()`.
  virtual bool Valid() const = 0;
  virtual void SeekToFirst() = 0;
  virtual void SeekToLast() = 0;
  /// Moves to the first key >= target.
  virtual void Seek(const Slice& target) = 0;
  /// Moves to the last key <= target.
  virtual void SeekForPrev(const Slice& target) = 0;
  /// Requires Valid().
  virtual void Next() = 0;
  /// Requires Valid().
  virtual void Prev() = 0;
  /// Requires Valid(). The bytes stay until the iterator moves.
  virtual Slice key() const = 0;
  /// Requires Valid(). The bytes stay until the iterator moves.
  virtual Slice value() const = 0;
  /// OK, or why the iterator is not valid: `Unavailable`, `Corruption`, `TimedOut`.
  virtual Status status() const = 0;
};

}  // namespace nacre
