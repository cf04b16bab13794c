#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nacre/db.h"
#include "nacre/iterator.h"
#include "nacre/metadata.h"

namespace nacre::rocksdb_api {

// What RocksDB's calls answer and Nacre's public ones do not. `db` is one that was opened to be
// written to.

/// Unique among the databases of its pool, and the same each time that it is opened.
uint64_t DatabaseIdOf(const nacre::DB& db);

/// The metadata of each family, in the order in which they were made.
std::vector<nacre::ColumnFamilyMetaData> MetaDataOfFamilies(nacre::DB* db);

/// Iterates over what this process has in memory; `Incomplete` where tables would have to be read.
/// What the options and `db` point to must outlive it.
std::unique_ptr<nacre::Iterator> NewMemoryIterator(const nacre::DB& db,
                                                   const nacre::ReadOptions& options,
                                                   uint32_t family);

/// Whether a column family with this id still exists.
bool HasFamily(const nacre::DB& db, uint32_t id);

}  // namespace nacre::rocksdb_api
