#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nacre/status.h"
#include "pool/read/remote_stream.h"
#include "pool/store/damaged_chunks.h"
#include "pool/store/table_store_rep.h"
#include "table/format/placement.h"
#include "util/codes/reed_solomon.h"

namespace nacre::pool {

/// A plan for reading a range of a table's bytes: what each node gives, and what is computed from
/// it when nodes are lost. The range comes first in the buffer, then what decoding needs beyond it.
/// In a store whose memory is not held, that is whole chunks, which the caller has to check.
struct ReadPlan {
  /// Bytes of a fragment that lies in local memory.
  struct Copy {
    const char* from = nullptr;
    size_t length = 0;
    size_t at = 0;
  };
  struct Decoding {
    const GfMatrix* decoder = nullptr;
    std::vector<size_t> sources;  ///< Places in the buffer; kZeros: nothing but zeros.
    size_t length = 0;
    size_t at = 0;
  };
  /// A chunk that something is decoded from, and whose memory may have been reused.
  struct Unchecked {
    size_t fragment = 0;
    uint64_t row = 0;
    size_t at = 0;
  };
  /// Within the buffer.
  struct Move {
    size_t from = 0;
    size_t length = 0;
    size_t to = 0;
  };
  static constexpr size_t kZeros = SIZE_MAX;

  std::vector<StreamPart> parts;
  std::vector<Copy> copies;
  std::vector<std::pair<size_t, size_t>> zeros;  ///< Place and length of what is to be cleared.
  std::vector<Unchecked> unchecked;
  std::vector<Decoding> decodings;
  std::vector<Move> moves;  ///< These follow the decodings.
  size_t bytes = 0;         ///< Size of the buffer.

  /// The range in local memory, if it is all there and in one piece; then the plan is empty.
  const char* in_place = nullptr;

  /// Must follow the arrival of all parts, and the check of `unchecked`.
  void Complete(char* buffer) const;
};

/// A table of `table_bytes` as its nodes are now, less `lost`. What is damaged is avoided where the
/// rest of its row suffices; where it does not, it is read: not every byte of it may be bad.
/// `Unavailable` naming the nodes if what is left does not give the range.
Status PlanRead(const TableStore::Rep& store, const Placement& placement, uint64_t table_bytes,
                FragmentSet lost, const DamagedChunks& damage, uint64_t offset, size_t n,
                ReadPlan* plan);

}  // namespace nacre::pool
