#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nacre/slice.h"

namespace nacre {

/// Cache-line-blocked Bloom filter over `Hash64` values: one cache miss a query. The bytes are
/// part of the table format (docs/formats.md): 64-byte lines of bits, then a 8-byte trailer
/// (fixed32 lines, byte probes, 3 bytes zero).
class BloomBuilder {
 public:
  explicit BloomBuilder(int bits_per_key = 10) : bits_per_key_(bits_per_key) {}
  void Add(uint64_t hash) { hashes_.push_back(hash); }
  size_t count() const { return hashes_.size(); }
  /// Bytes `Finish` would append for `keys` keys.
  static size_t Bytes(size_t keys, int bits_per_key = 10);
  void Finish(std::string* dst) const;

 private:
  int bits_per_key_;
  std::vector<uint64_t> hashes_;
};

/// Views filter bytes. Malformed ones (checked once, here) match every key.
class BloomFilter {
 public:
  explicit BloomFilter(const Slice& bytes);
  bool MayContain(uint64_t hash) const;
  void Prefetch(uint64_t hash) const;

 private:
  const char* lines_ = nullptr;
  uint32_t line_count_ = 0;
  int probes_ = 0;
};

}  // namespace nacre
