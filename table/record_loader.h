#pragma once

#include <cstddef>
#include <memory>

#include "nacre/slice.h"
#include "table/format/record.h"
#include "util/memory/loadable_memory.h"

namespace nacre {

/// Takes records out of memory that others may change: copies one, checks the copy, and asks
/// whether the memory counts. A record is in the processor's cache when it is checked, so what is
/// copied is read from memory once.
///
/// Thread safety: none.
class RecordLoader {
 public:
  /// As ParseRecord of `bytes`, which are part of `memory`. `*record` views a copy that stays until
  /// the next call. kCorrupt as well if the memory does not count any more.
  RecordParse Load(const LoadableMemory& memory, const Slice& bytes, RecordSeed seed,
                   bool verify_checksum, Record* record);
  /// Bytes of the record, which is not checked.
  static RecordParse LoadLength(const Slice& bytes, RecordSeed seed, size_t* encoded_bytes);

 private:
  /// A scan has so much on its way into the cache: what several records take to be checked.
  static constexpr size_t kAheadBytes = 2 << 10;
  static constexpr size_t kPrefetchBytesMax = 4 << 10;

  std::unique_ptr<char[]> copy_;
  size_t capacity_ = 0;
};

}  // namespace nacre
