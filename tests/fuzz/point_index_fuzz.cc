// Point index: any section either is refused or answers every hash without reading beyond itself,
// with candidates inside of the records. And an index built of any hashes has all of them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "table/index/point_index.h"
#include "util/codes/crc32c.h"
#include "util/coding.h"

namespace {

using nacre::PointIndex;
using nacre::PointIndexShape;
using nacre::RecordCandidate;
using nacre::Slice;

/// The input as buckets, with a right trailer behind them.
void SearchAnyBuckets(const uint8_t* data, size_t size) {
  const size_t buckets = size / nacre::kPointIndexBucketBytes;
  if (buckets == 0) return;
  char trailer[PointIndexShape::kTrailerBytes] = {};
  nacre::EncodeFixed64(trailer, buckets);
  nacre::EncodeFixed64(trailer + 8, buckets);
  nacre::EncodeFixed64(trailer + 16, 1 << 22);
  nacre::EncodeFixed32(trailer + 24, 1);
  nacre::EncodeFixed32(trailer + 28, 0x3158494e);
  for (uint32_t i = 0; i < 16; ++i) nacre::EncodeFixed32(trailer + 32 + 4 * i, i << (2 * i));
  nacre::EncodeFixed32(trailer + 124, nacre::Crc32c(trailer, 124));
  PointIndexShape shape;
  if (!PointIndexShape::Parse(Slice(trailer, sizeof(trailer)), &shape)) std::abort();
  const size_t bytes = buckets * nacre::kPointIndexBucketBytes;
  const auto memory = std::make_unique<char[]>(bytes);
  std::memcpy(memory.get(), data, bytes);
  const PointIndex index(shape, memory.get());
  for (uint64_t i = 0; i < 64; ++i) {
    RecordCandidate candidates[nacre::kMaxCandidates];
    const int count = index.Lookup(i * 0x9e3779b97f4a7c15, candidates);
    if (count < 0 || count > nacre::kMaxCandidates) std::abort();
    for (int c = 0; c < count; ++c) {
      if (candidates[c].offset + candidates[c].length > shape.records_end) std::abort();
    }
  }
}

/// The input as hashes. Eight bytes each, so that a fuzzer finds collisions of every kind.
void FindAllHashes(const uint8_t* data, size_t size) {
  std::vector<uint64_t> hashes(std::min<size_t>(size / sizeof(uint64_t), 2000));
  if (hashes.empty()) return;
  std::memcpy(hashes.data(), data, hashes.size() * sizeof(uint64_t));
  nacre::PointIndexBuilder builder(0);
  for (size_t i = 0; i < hashes.size(); ++i) {
    builder.Add(hashes[i], i * 10, static_cast<uint32_t>(1 + hashes[i] % 1000));
  }
  std::string section;
  builder.Finish(&section);
  if (section.size() > nacre::PointIndexBuilder::BytesBound(hashes.size())) std::abort();
  PointIndexShape shape;
  if (!PointIndexShape::Parse(section, &shape)) std::abort();
  const PointIndex index(shape, section.data());
  for (size_t i = 0; i < hashes.size(); ++i) {
    RecordCandidate candidates[nacre::kMaxCandidates];
    const int count = index.Lookup(hashes[i], candidates);
    if (count == nacre::kTooManyCandidates) continue;
    if (std::none_of(candidates, candidates + count, [&](const RecordCandidate& candidate) {
          return candidate.offset == i * 10 && candidate.length >= 1 + hashes[i] % 1000;
        })) {
      std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  PointIndexShape shape;
  (void)PointIndexShape::Parse(Slice(reinterpret_cast<const char*>(data), size), &shape);
  SearchAnyBuckets(data, size);
  FindAllHashes(data, size);
  return 0;
}
