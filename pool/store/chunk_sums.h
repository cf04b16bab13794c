#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "nacre/status.h"
#include "table/format/fragment_checksums.h"
#include "util/mutex.h"

namespace nacre::pool {

struct RemoteTable;

/// Tells a table's chunks from what has replaced them since, for readers of a table whose memory
/// may be used again at any time (TableStore::Memory).
///
/// The checksums of records do not suffice where bytes are decoded: a CRC is linear, and a chunk of
/// one table combined with two that fit together of another gives records with matching checksums
/// that were never written. So each chunk that something is decoded from is compared by itself with
/// the fragment's tail, which names the table. Tails are read once and kept: a table's chunks never
/// change, so it does not matter when the tail was read.
///
/// Thread safety: all methods may be called from many threads at once.
class ChunkSums {
 public:
  /// OK if `bytes` are chunk number `row` of the table's fragment. `Corruption` if they, or the
  /// tail, are damaged or another table's; `Unavailable` if the node does not give the tail.
  Status Check(const RemoteTable& table, size_t fragment, uint64_t row, const char* bytes)
      EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  /// Keyed by fragment; entries are only added.
  std::map<size_t, FragmentChecksums> sums_ GUARDED_BY(mutex_);
};

}  // namespace nacre::pool
