#pragma once

#include "nacre/slice.h"
#include "nacre/status.h"

namespace nacre {

/// A cursor over internal entries, in InternalKeyComparator order. Same thread rules as
/// nacre::Iterator. Key and value bytes stay until the iterator moves.
class InternalIterator {
 public:
  InternalIterator() = default;
  virtual ~InternalIterator() = default;
  InternalIterator(const InternalIterator&) = delete;
  InternalIterator& operator=(const InternalIterator&) = delete;

  virtual bool Valid() const = 0;
  virtual void SeekToFirst() = 0;
  virtual void SeekToLast() = 0;
  /// Starts to fetch what `Seek` of the same key will need and does not wait for it, so that
  /// several iterators wait together; unless that fails, the `Seek` is the next call. The scan from
  /// there needs nothing at or behind the user key `upper_bound`, which may be null. Whether it is
  /// called changes nothing but the time that all takes.
  virtual void PrepareSeek(const Slice& /*internal_key*/, const Slice* /*upper_bound*/) {}
  /// Moves to the first entry >= `internal_key`.
  virtual void Seek(const Slice& internal_key) = 0;
  /// Moves to the last entry <= `internal_key`.
  virtual void SeekForPrev(const Slice& internal_key) = 0;
  virtual void Next() = 0;
  virtual void Prev() = 0;

  virtual Slice user_key() const = 0;
  virtual uint64_t tag() const = 0;
  virtual Slice value() const = 0;
  /// OK, or why the iterator is not valid.
  virtual Status status() const = 0;
};

}  // namespace nacre
