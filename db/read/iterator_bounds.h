#pragma once

#include <optional>
#include <string>

#include "nacre/options.h"
#include "nacre/slice.h"

namespace nacre {

/// Where an iterator's bounds are: its user may change what its ReadOptions point to and seek
/// again, as in RocksDB. From one seek to the next an iterator keeps to its own copy.
/// Thread safety: that of the iterator.
class IteratorBounds {
 public:
  /// What the bounds of `options` point to outlives this.
  explicit IteratorBounds(const ReadOptions& options)
      : lower_(options.iterate_lower_bound), upper_(options.iterate_upper_bound) {}

  /// For the beginning of each seek. What is not bounded stays as it is.
  void CopyTo(std::optional<std::string>* lower, std::optional<std::string>* upper) const {
    Copy(lower_, lower);
    Copy(upper_, upper);
  }

 private:
  static void Copy(const Slice* bound, std::optional<std::string>* copy) {
    if (bound == nullptr) return;
    if (!copy->has_value()) copy->emplace();
    (*copy)->assign(bound->data(), bound->size());
  }

  const Slice* const lower_;
  const Slice* const upper_;
};

}  // namespace nacre
