#include "util/codes/bloom.h"

#include <algorithm>

#include "util/coding.h"

namespace nacre {
namespace {

constexpr size_t kLineBytes = 64;
constexpr size_t kLineBits = 8 * kLineBytes;
constexpr size_t kTrailerBytes = 8;
constexpr int kProbesMax = 14;
constexpr int kDefaultProbes = 6;  ///< The best number at 10 bits a key.

/// Bits set in one line for each key. A little fewer than ln 2 times the bits per key, because
/// lines are filled unevenly.
int ProbesFor(int bits_per_key) { return std::clamp(bits_per_key * 6 / 10, 1, kProbesMax); }

size_t LinesFor(size_t keys, int bits_per_key) {
  const size_t bits = keys * static_cast<size_t>(bits_per_key);
  return std::clamp<size_t>((bits + kLineBits - 1) / kLineBits, 1, UINT32_MAX);
}

/// The upper half of the product is uniform over [0, lines).
size_t LineOf(uint64_t hash, size_t lines) {
  return static_cast<size_t>((static_cast<unsigned __int128>(hash) * lines) >> 64);
}

/// Calls `probe(word, shift)` for each bit of a key: word `word` of its line, bit `shift`.
///
/// Bit numbers are nine bits each from the upper part of a product, which depends on all bits of
/// the hash; a product has seven of them.
template <typename Probe>
void ForEachProbe(uint64_t hash, int probes, Probe&& probe) {
  constexpr int kPerProduct = 7;
  for (uint64_t round = 0; probes > 0; ++round, probes -= kPerProduct) {
    const uint64_t product = (hash + round) * 0x9e3779b97f4a7c15;
    for (int i = 0; i < std::min(probes, kPerProduct); ++i) {
      probe(product >> (61 - 9 * i) & 7, product >> (55 - 9 * i) & 63);
    }
  }
}

}  // namespace

size_t BloomBuilder::Bytes(size_t keys, int bits_per_key) {
  return LinesFor(keys, bits_per_key) * kLineBytes + kTrailerBytes;
}

void BloomBuilder::Finish(std::string* dst) const {
  const size_t lines = LinesFor(hashes_.size(), bits_per_key_);
  const int probes = ProbesFor(bits_per_key_);
  const size_t start = dst->size();
  dst->resize(start + lines * kLineBytes + kTrailerBytes);
  char* bits = dst->data() + start;
  // Keys hit random lines: fetching them some keys ahead hides most of the misses.
  constexpr size_t kAhead = 16;
  for (size_t i = 0; i < hashes_.size(); ++i) {
    if (i + kAhead < hashes_.size()) {
      __builtin_prefetch(bits + LineOf(hashes_[i + kAhead], lines) * kLineBytes, 1);
    }
    char* line = bits + LineOf(hashes_[i], lines) * kLineBytes;
    ForEachProbe(hashes_[i], probes, [line](uint64_t word, uint64_t shift) {
      EncodeFixed64(line + 8 * word, DecodeFixed64(line + 8 * word) | uint64_t{1} << shift);
    });
  }
  char* trailer = bits + lines * kLineBytes;
  EncodeFixed32(trailer, static_cast<uint32_t>(lines));
  trailer[4] = static_cast<char>(probes);
}

BloomFilter::BloomFilter(const Slice& bytes) {
  if (bytes.size() < kTrailerBytes) return;
  const char* trailer = bytes.end() - kTrailerBytes;
  const uint32_t lines = DecodeFixed32(trailer);
  const int probes = static_cast<uint8_t>(trailer[4]);
  if (lines == 0 || bytes.size() != lines * kLineBytes + kTrailerBytes) return;
  if (probes < 1 || probes > kProbesMax) return;
  if (trailer[5] != 0 || trailer[6] != 0 || trailer[7] != 0) return;
  lines_ = bytes.data();
  line_count_ = lines;
  probes_ = probes;
}

bool BloomFilter::MayContain(uint64_t hash) const {
  if (lines_ == nullptr) [[unlikely]]
    return true;
  const char* line = lines_ + LineOf(hash, line_count_) * kLineBytes;
  // All bits without a branch on any of them: where an absent key fails cannot be predicted.
  uint64_t all = 1;
  const auto test = [line, &all](uint64_t word, uint64_t shift) {
    all &= DecodeFixed64(line + 8 * word) >> shift;
  };
  if (probes_ == kDefaultProbes) [[likely]] {
    ForEachProbe(hash, kDefaultProbes, test);
  } else {
    ForEachProbe(hash, probes_, test);
  }
  return all != 0;
}

void BloomFilter::Prefetch(uint64_t hash) const {
  if (lines_ != nullptr) __builtin_prefetch(lines_ + LineOf(hash, line_count_) * kLineBytes);
}

}  // namespace nacre
