#pragma once

#include <memory>
#include <string>

#include "db_bench/config.h"
#include "db_bench/engine/session_transaction.h"
#include "nacre/db.h"
#include "nacre/options.h"
#include "nacre/status.h"
#include "nacre/utilities/optimistic_transaction_db.h"
#include "nacre/utilities/sharded_db.h"
#include "nacre/utilities/transaction_db.h"

namespace nacre::bench {

/// A database or keyspace that is open, with the transactions that --transaction_db or
/// --optimistic_transaction_db ask for.
struct NacreDatabase {
  std::unique_ptr<DB> db{};
  ShardedDB* keyspace = nullptr;                  ///< Null for a database.
  TransactionDB* locking = nullptr;               ///< `db`, or null.
  OptimisticTransactionDB* optimistic = nullptr;  ///< Likewise.
};

/// Opens a database to write it.
Status OpenNacre(const BenchConfig& config, const Options& options, const std::string& name,
                 NacreDatabase* database);
/// The same for a keyspace.
Status OpenNacreKeyspace(const BenchConfig& config, const ShardedOptions& options,
                         const std::string& name, NacreDatabase* database);

/// Null if the database has no transactions. It outlives them.
std::unique_ptr<SessionTransaction> NewNacreTransaction(const BenchConfig& config,
                                                        const NacreDatabase& database);

}  // namespace nacre::bench
