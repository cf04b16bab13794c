#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "nacre/slice.h"

namespace nacre::bench {

/// Keys as RocksDB's db_bench makes them from numbers: the number in the first bytes (at most 8),
/// most significant byte first, then '0's. Keys are allocated once and rewritten.
///
/// Thread safety: none; one per thread.
class KeyGenerator {
 public:
  /// `count` keys of `key_size` bytes. `missing` keys have one more byte, so that none of them
  /// exists and all lie between keys that do.
  explicit KeyGenerator(size_t key_size, size_t count = 1, bool missing = false)
      : number_bytes_(std::min<size_t>(key_size, 8)),
        stride_(key_size + (missing ? 1 : 0)),
        bytes_(stride_ * count, '0') {
    keys_.reserve(count);
    for (size_t i = 0; i < count; ++i) keys_.emplace_back(bytes_.data() + i * stride_, stride_);
  }

  /// How many different keys of `key_size` bytes there are.
  static uint64_t Capacity(size_t key_size) {
    return key_size >= 8 ? UINT64_MAX : uint64_t{1} << (8 * key_size);
  }

  /// Writes `number` into key `index`.
  const Slice& Set(uint64_t number, size_t index = 0) {
    const uint64_t big_endian = __builtin_bswap64(number << (64 - 8 * number_bytes_));
    std::memcpy(bytes_.data() + index * stride_, &big_endian, number_bytes_);
    return keys_[index];
  }
  const Slice* keys() const { return keys_.data(); }

 private:
  size_t number_bytes_;
  size_t stride_;
  std::vector<char> bytes_;
  std::vector<Slice> keys_;
};

}  // namespace nacre::bench
