#include "table/format/placement.h"

#include <algorithm>

namespace nacre {

uint64_t Striping::ChunkBytes(uint64_t row, int column, uint64_t table_bytes) const {
  const uint64_t begin = (row * data_ + static_cast<uint64_t>(column)) * chunk_size_;
  return table_bytes <= begin ? 0 : std::min(chunk_size_, table_bytes - begin);
}

uint64_t Striping::FragmentBytes(int fragment, uint64_t table_bytes) const {
  const uint64_t full_rows = table_bytes / (data_ * chunk_size_);
  // Parity is as long as the first chunk of its row.
  const int column = static_cast<uint64_t>(fragment) < data_ ? fragment : 0;
  return full_rows * chunk_size_ + ChunkBytes(full_rows, column, table_bytes);
}

uint64_t FragmentBytes(const Placement& placement, int fragment, uint64_t table_bytes) {
  if (!placement.redundancy.striped()) return table_bytes;
  return Striping(placement).FragmentBytes(fragment, table_bytes);
}

}  // namespace nacre
