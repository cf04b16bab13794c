#pragma once

#include <rocksdb/slice.h>

#include "nacre/slice.h"

namespace nacre::bench {

/// The same bytes, as RocksDB takes them.
inline rocksdb::Slice RocksdbSlice(const Slice& slice) { return {slice.data(), slice.size()}; }

}  // namespace nacre::bench
