#include "pool/store/degraded_read.h"

#include <algorithm>
#include <cassert>

namespace nacre::pool {

bool DegradedRead::Plan(const TableStore& store, const Placement& placement, uint64_t table_bytes,
                        uint64_t offset, uint32_t n) {
  assert(placement.redundancy.striped());
  if (store.memory() == TableStore::Memory::kUnheld) return false;
  const auto data = static_cast<size_t>(placement.redundancy.data);
  const uint64_t chunk_size = placement.chunk_size;
  const Striping striping(placement);
  const size_t wanted = striping.Locate(offset).fragment;
  const uint64_t row = offset / chunk_size / data;
  const uint64_t begin = offset % chunk_size;
  if (begin + n > chunk_size) return false;

  read_count_ = source_count_ = 0;
  FragmentSet sources = 0;
  // Data first: a column that is not there costs nothing, and of parity each byte counts.
  for (size_t i = 0; i < placement.fragments.size() && source_count_ < data; ++i) {
    if (i == wanted) continue;
    const int column = i < data ? static_cast<int>(i) : 0;
    const uint64_t there = striping.ChunkBytes(row, column, table_bytes);
    if (there > begin && there < begin + n) return false;
    if (there <= begin) {
      read_of_[source_count_++] = kZeros;
    } else {
      RemoteAddr from = placement.fragments[i].start;
      if (!store.client()->prompt(from.node)) continue;
      from.offset = from.offset + kFragmentHeadBytes + row * chunk_size + begin;
      read_of_[source_count_++] = static_cast<uint8_t>(read_count_);
      reads_[read_count_++] = {
          .from = from, .length = n, .patience = 1, .data = nullptr, .status = Status::OK()};
    }
    sources |= FragmentSet{1} << i;
  }
  if (source_count_ < data) return false;
  decoder_ = &ReedSolomon::Get(placement.redundancy.data, placement.redundancy.parity)
                  .Decoder(sources, FragmentSet{1} << wanted);
  bytes_.resize(n);
  return true;
}

const char* DegradedRead::Complete(std::span<const PointRead> reads) {
  assert(reads.size() == read_count_);
  std::array<const char*, ReedSolomon::kMaxData> sources{};
  for (size_t i = 0; i < source_count_; ++i) {
    if (read_of_[i] == kZeros) continue;
    const PointRead& read = reads[read_of_[i]];
    if (!read.status.ok()) return nullptr;
    sources[i] = read.data;
  }
  char* const result = bytes_.data();
  decoder_->Combine(bytes_.size(), sources.data(), &result);
  return result;
}

}  // namespace nacre::pool
