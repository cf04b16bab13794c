#pragma once

#include <rocksdb/metadata.h>

#include <string>
#include <vector>

#include "nacre/metadata.h"

namespace nacre::rocksdb_api {

// What RocksDB has of files, for tables: of their numbers come the names, which name no file.
// `database` is in the place of the folder. What files have and tables have not (checksums,
// times, temperatures, blobs) is as of an unknown one.

rocksdb::ColumnFamilyMetaData ToRocksdb(const nacre::ColumnFamilyMetaData& ours,
                                        const std::string& database);
std::vector<rocksdb::LiveFileMetaData> ToRocksdb(const std::vector<nacre::LiveTableMetaData>& ours,
                                                 const std::string& database);

}  // namespace nacre::rocksdb_api
