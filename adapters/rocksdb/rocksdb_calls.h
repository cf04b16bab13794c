#pragma once

namespace nacre::rocksdb_api {

/// Has the linker take rocksdb_calls.cc: functions of RocksDB's that know of Nacre's databases.
/// Does nothing.
void TakeRocksdbCalls();

}  // namespace nacre::rocksdb_api
