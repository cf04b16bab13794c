#pragma once

#include <memory>

#include "adapters/c/c_types.h"
#include "nacre/c_transactions.h"
#include "nacre/utilities/optimistic_transaction_db.h"
#include "nacre/utilities/transaction.h"
#include "nacre/utilities/transaction_db.h"

// What stands behind the opaque types of nacre/c_transactions.h.

struct nacre_transactiondb_t {
  nacre_t db;                 ///< Owns it.
  nacre::TransactionDB* rep;  ///< The same.
};

struct nacre_optimistictransactiondb_t {
  nacre_t db;                           ///< Owns it.
  nacre::OptimisticTransactionDB* rep;  ///< The same.
};

struct nacre_transaction_t {
  nacre::Transaction* rep;
  std::unique_ptr<nacre::Transaction> owned;  ///< The same; null if it is another's.
  nacre_snapshot_t snapshot;                  ///< Returned by `get_snapshot`.
};

struct nacre_transactiondb_options_t {
  nacre::TransactionDBOptions rep;
};

struct nacre_transaction_options_t {
  nacre::TransactionOptions rep;
};

struct nacre_optimistictransaction_options_t {
  nacre::OptimisticTransactionOptions rep;
};
