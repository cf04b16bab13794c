#pragma once

#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include <memory>
#include <string>

#include "nacre/options.h"

namespace nacre::rocksdb_api {

/// Opens a Nacre database as a rocksdb::DB, for C++ code that works with one. `nacre_options` say
/// what RocksDB has no word for: the pool, the redundancy. `options` say the rest: whether to
/// create, sizes of MemTables and tables, triggers, background jobs; what there is about speed
/// beyond that has no counterpart, and no effect.
///
/// There are Put, Delete, SingleDelete (as Delete), Write, Get, MultiGet, iterators with bounds,
/// snapshots, Flush, CompactRange, the log, properties (those of Nacre also under "rocksdb."
/// names), approximate sizes of tables, VerifyChecksum. The default column family is the only one.
/// The rest answers `NotSupported`: merging, ranges of deletions, wide columns, timestamps,
/// ingestion, live files, WAL files. So do options that would change what is read: a merge
/// operator, a compaction filter, a comparator that is not one of RocksDB's two bytewise ones.
///
/// Failures are those of nacre::DB with RocksDB's codes: `Unavailable` of nodes is `IOError`, so is
/// `Fenced`.
///
/// Thread safety: as rocksdb::DB.
rocksdb::Status Open(const rocksdb::Options& options, const nacre::Options& nacre_options,
                     const std::string& name, std::unique_ptr<rocksdb::DB>* db);

/// rocksdb::DestroyDB of such a database.
rocksdb::Status Destroy(const nacre::Options& nacre_options, const std::string& name);

}  // namespace nacre::rocksdb_api
