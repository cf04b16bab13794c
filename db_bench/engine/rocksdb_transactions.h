#pragma once

#include <rocksdb/db.h>

#include <memory>
#include <string>

#include "db_bench/config.h"
#include "db_bench/engine/session_transaction.h"

namespace nacre::bench {

/// Opens a database with the transactions that the flags ask for, or without.
rocksdb::Status OpenRocksdbAs(const BenchConfig& config, const rocksdb::Options& options,
                              const std::string& path, std::unique_ptr<rocksdb::DB>* db);

/// Null if the database was opened without transactions. It outlives them.
std::unique_ptr<SessionTransaction> NewRocksdbTransaction(const BenchConfig& config,
                                                          rocksdb::DB* db);

}  // namespace nacre::bench
