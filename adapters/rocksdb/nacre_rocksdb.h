#pragma once

#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include <memory>
#include <string>
#include <vector>

#include "nacre/options.h"

namespace nacre::rocksdb_api {

/// Opens a Nacre database as a rocksdb::DB, for C++ code that works with one. `nacre_options` say
/// what RocksDB has no word for: the pool, the redundancy. `options` say the rest: whether to
/// create, sizes of MemTables and tables, triggers, background jobs; what there is about speed
/// beyond that has no counterpart, and no effect.
///
/// There are column families, Put, Delete, SingleDelete, DeleteRange, Merge with the application's
/// operators, Write, Get, MultiGet, KeyMayExist, operands of merges, iterators with bounds,
/// snapshots, compaction filters, Flush (of all families together), CompactRange, the log,
/// SetOptions and GetOptions as nacre::DB has them, RocksDB's properties and Nacre's, metadata of
/// tables, approximate sizes, VerifyChecksum. The rest answers `NotSupported`: wide columns,
/// timestamps, ingestion, live files, WAL files. So do options that would change what is read, as a
/// comparator that is not one of RocksDB's two bytewise ones, and listeners. docs/adapters.md goes
/// through the options. Those that RocksDB changes when it opens a database are changed so here,
/// and what is changed is in the LOG, which is `options.info_log` unless `nacre_options` name one.
///
/// Merge operators and compaction filters run in this process, as memory nodes do not have them.
/// What the nodes know is used if `nacre_options` name it and RocksDB's options name none. Filters
/// are asked for values, not for operands, and change nothing that a snapshot sees.
///
/// Failures are those of nacre::DB with RocksDB's codes: `Unavailable` of nodes is `IOError`, so is
/// `Fenced`.
///
/// Thread safety: as rocksdb::DB.
rocksdb::Status Open(const rocksdb::Options& options, const nacre::Options& nacre_options,
                     const std::string& name, std::unique_ptr<rocksdb::DB>* db);

/// The same with these column families, as `rocksdb::DB::Open` has it. What `nacre_options` say of
/// families holds for each of them. `*handles` are given back, by deleting them or with
/// `DestroyColumnFamilyHandle`, before the database is deleted.
rocksdb::Status Open(const rocksdb::DBOptions& options, const nacre::Options& nacre_options,
                     const std::string& name,
                     const std::vector<rocksdb::ColumnFamilyDescriptor>& families,
                     std::vector<rocksdb::ColumnFamilyHandle*>* handles,
                     std::unique_ptr<rocksdb::DB>* db);

/// rocksdb::DB::ListColumnFamilies of such a database.
rocksdb::Status ListColumnFamilies(const nacre::Options& nacre_options, const std::string& name,
                                   std::vector<std::string>* families);

/// rocksdb::DestroyDB of such a database.
rocksdb::Status Destroy(const nacre::Options& nacre_options, const std::string& name);

}  // namespace nacre::rocksdb_api
