#pragma once

#include <cstddef>
#include <memory>

#include "nacre/slice.h"

namespace nacre {

/// What of a key is its prefix. Keys with one prefix lie side by side: if keys a < b < c are in the
/// domain and a and c have the same prefix, so has b. The interface is RocksDB's.
///
/// Thread safety: all methods are const and called from many threads at once.
class SliceTransform {
 public:
  virtual ~SliceTransform() = default;

  virtual const char* Name() const = 0;
  /// A part of `key`, which is in the domain.
  virtual Slice Transform(const Slice& key) const = 0;
  /// Whether `key` has a prefix at all.
  virtual bool InDomain(const Slice& key) const = 0;
};

/// The first `prefix_length` bytes; shorter keys have no prefix.
std::shared_ptr<const SliceTransform> NewFixedPrefixTransform(size_t prefix_length);
/// The first `cap_length` bytes, or all of shorter keys.
std::shared_ptr<const SliceTransform> NewCappedPrefixTransform(size_t cap_length);
/// The whole key.
std::shared_ptr<const SliceTransform> NewNoopTransform();

}  // namespace nacre
