#include "db_bench/flags/transaction_flags.h"

#include <fmt/format.h>
#include <gflags/gflags.h>

#include "db_bench/benchmark_list.h"

DEFINE_bool(transaction_db, false,
            "nacre, rocksdb: open the database with transactions that take locks");
DEFINE_bool(optimistic_transaction_db, false,
            "nacre, rocksdb: with transactions that are checked when they are committed");
DEFINE_uint64(
    transaction_sets, 2,
    "randomtransaction: the keys that a transaction changes, each in a part of its own of "
    "--num");
DEFINE_bool(transaction_set_snapshot, false,
            "randomtransaction: each takes a snapshot when it begins, and fails if a key of it has "
            "been written since");
DEFINE_int32(transaction_lock_timeout, 100,
             "--transaction_db: milliseconds that a transaction waits for a lock");

namespace nacre::bench {

Status ParseTransactionFlags(BenchConfig* config) {
  const bool wanted = FLAGS_transaction_db || FLAGS_optimistic_transaction_db;
  if (FLAGS_transaction_db && FLAGS_optimistic_transaction_db) {
    return Status::InvalidArgument(
        "--transaction_db and --optimistic_transaction_db exclude one another");
  }
  const char* const flag =
      FLAGS_transaction_db ? "--transaction_db" : "--optimistic_transaction_db";
  if (wanted && config->engine != EngineKind::kNacre && config->engine != EngineKind::kRocksdb) {
    return Status::InvalidArgument(fmt::format("{} is there for --engine=nacre and rocksdb", flag));
  }
  if (wanted && OwnsNothing(*config)) {
    return Status::InvalidArgument(fmt::format("{} needs a database that may be written", flag));
  }
  config->transactions = FLAGS_transaction_db              ? Transactions::kLocking
                         : FLAGS_optimistic_transaction_db ? Transactions::kOptimistic
                                                           : Transactions::kNone;
  if (FLAGS_transaction_sets == 0 || FLAGS_transaction_sets > config->num) {
    return Status::InvalidArgument("--transaction_sets must be in [1, --num]");
  }
  if (FLAGS_transaction_lock_timeout < 0) {
    return Status::InvalidArgument("--transaction_lock_timeout must not be negative");
  }
  config->transaction_sets = FLAGS_transaction_sets;
  config->transaction_set_snapshot = FLAGS_transaction_set_snapshot;
  config->transaction_lock_timeout_ms = FLAGS_transaction_lock_timeout;
  for (const std::string& name : config->benchmarks) {
    if (FindBenchmark(name)->needs_transactions && !wanted) {
      return Status::InvalidArgument(name +
                                     " needs --transaction_db or --optimistic_transaction_db");
    }
  }
  return Status::OK();
}

}  // namespace nacre::bench
