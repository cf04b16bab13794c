#pragma once

#include <cassert>
#include <cstddef>

namespace nacre {

/// Lookups whose bytes are on their way into the processor's cache, first in, first out: about as
/// many as it fetches beside one another, and no more than it keeps until they are taken.
///
/// Thread safety: none.
template <typename Lookup>
class LoadsUnderWay {
 public:
  bool empty() const { return begin_ == end_; }
  bool full() const { return end_ - begin_ == kMost; }
  void Push(Lookup lookup) {
    assert(!full());
    lookups_[end_++ % kMost] = lookup;
  }
  Lookup Pop() {
    assert(!empty());
    return lookups_[begin_++ % kMost];
  }

 private:
  static constexpr size_t kMost = 8;
  size_t begin_ = 0;  ///< How many were taken so far.
  size_t end_ = 0;    ///< How many were put in.
  Lookup lookups_[kMost];
};

}  // namespace nacre
