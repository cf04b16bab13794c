#pragma once

#include <string>

#include "nacre/slice.h"

namespace nacre {

/// A total order over user keys. Keys that compare equal must be the same bytes.
/// Thread safety: all methods are const and called from many threads at once.
class Comparator {
 public:
  virtual ~Comparator() = default;

  /// < 0, 0, > 0 as `a` is before, equal to, after `b`.
  virtual int Compare(const Slice& a, const Slice& b) const = 0;

  /// Name of the order. A database remembers it and refuses to open under another one. Memory
  /// nodes look the comparator up by this name; one that they do not know keeps compactions on
  /// the compute node.
  virtual const char* Name() const = 0;

  /// May shorten `*start` to a key in [*start, limit). Leaving it as it is, is correct.
  virtual void FindShortestSeparator(std::string* start, const Slice& limit) const = 0;

  /// May shorten `*key` to a key >= *key. Leaving it as it is, is correct.
  virtual void FindShortSuccessor(std::string* key) const = 0;
};

/// Order of unsigned bytes. The result lives for ever.
const Comparator* BytewiseComparator();

/// The opposite order. The result lives for ever.
const Comparator* ReverseBytewiseComparator();

}  // namespace nacre
