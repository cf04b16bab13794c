#include "db_bench/engine/rocksdb_versions.h"

/// rocksdb::SyncPoint::GetInstance. The reference is weak: the linker takes it from no archive for
/// its own sake, and it is null where the library does not have it.
extern "C" [[gnu::weak]] void* RocksdbSyncPoint() __asm__("_ZN7rocksdb9SyncPoint11GetInstanceEv");

namespace nacre::bench {

bool RocksdbHasAssertions() { return RocksdbSyncPoint != nullptr; }

}  // namespace nacre::bench
