#pragma once

#include <atomic>
#include <cstdint>

#include "db_bench/config.h"
#include "db_bench/engine/engine.h"
#include "db_bench/keys/key_chooser.h"
#include "db_bench/op_budget.h"
#include "db_bench/report/op_recorder.h"
#include "db_bench/twitter/expiry.h"
#include "db_bench/value_generator.h"
#include "db_bench/write_rate_limiter.h"
#include "db_bench/ycsb/ycsb_keys.h"
#include "nacre/status.h"
#include "util/clock.h"
#include "util/random.h"

// The workloads: what one thread does in a benchmark. Semantics are those of RocksDB's db_bench;
// random numbers come from `Worker::random` alone, so that a seed gives every engine the same keys.

namespace nacre::bench {

/// What the threads of one benchmark share.
struct SharedState {
  std::atomic<bool>* stop = nullptr;  ///< Set by a failure or a signal; ends all loops.
  std::atomic<int> foreground_running{0};
  WriteRateLimiter* write_limiter = nullptr;
  const KeyChooser* key_chooser = nullptr;
  YcsbRecords* ycsb_records = nullptr;
  RecordVersions* record_versions = nullptr;  ///< Null but in `twitter`.
  uint64_t ycsb_records_before = 0;           ///< How many there were when the benchmark started.
};

/// One thread of one benchmark.
/// Thread safety: none; one per thread. Nothing is owned.
struct Worker {
  const BenchConfig& config;
  Clock* clock;
  SharedState* shared;
  Session* session;
  OpRecorder* recorder;
  Random random;
  ValueGenerator values;
  OpenLoop* open_loop;  ///< Null: an operation starts when the one before it has ended.

  /// A number below --num, as --key_dist says.
  uint64_t RandomNumber() { return shared->key_chooser->Next(&random); }
  /// Runs until `ops` are done; a random workload goes on for --duration instead if that is set.
  OpBudget Budget(uint64_t ops, bool may_be_timed = true) const {
    return {clock,
            shared->stop,
            ops,
            may_be_timed ? config.duration_seconds : 0,
            config.ops_between_duration_checks,
            may_be_timed ? open_loop : nullptr};
  }
};

using Workload = Status (*)(Worker* worker);

Status FillSequential(Worker* worker);
/// The keys of a new database are uniform, whatever --key_dist says.
Status FillRandom(Worker* worker);
Status Overwrite(Worker* worker);
inline constexpr uint64_t kFillBatchEntries = 1000;
/// `kFillBatchEntries` in each batch, in sequence.
Status FillBatch(Worker* worker);
Status DeleteRandom(Worker* worker);
/// Writes no keys: what the network takes for the bytes of a Put.
Status RawWrite(Worker* worker);

Status ReadRandom(Worker* worker);
/// Keys that do not exist, each between two that may.
Status ReadMissing(Worker* worker);
/// --multiread_batch keys per MultiGet.
Status MultiReadRandom(Worker* worker);
/// Runs --async_reads coroutines in each thread.
Status AsyncReadRandom(Worker* worker);
Status ReadSequential(Worker* worker);
Status ReadReverse(Worker* worker);
/// A new iterator, a seek, and --seek_nexts steps.
Status SeekRandom(Worker* worker);

/// --readwritepercent reads in each hundred operations.
Status ReadRandomWriteRandom(Worker* worker);
/// --readwrites transactions a thread, each of which adds the same to a counter in each of
/// --transaction_sets sets.
Status RandomTransaction(Worker* worker);
/// Whether the counters of all sets add up to the same: `Corruption` if not.
Status VerifyTransactions(const BenchConfig& config, Session* session);
/// Writes the records 0 to --num - 1 of YCSB, all threads together.
Status YcsbLoad(Worker* worker);
// YCSB's workloads A to F, as its CoreWorkload defines them: --readwrites operations a thread. An
// update writes the whole value.
Status YcsbA(Worker* worker);
Status YcsbB(Worker* worker);
Status YcsbC(Worker* worker);
Status YcsbD(Worker* worker);
Status YcsbE(Worker* worker);
Status YcsbF(Worker* worker);

/// A mix as in the cluster --twitter_cluster of Twitter's caches. The database has YCSB's records.
/// Values that have lived for --ttl_ops are deleted, which are operations, too.
Status Twitter(Worker* worker);

/// The writer beside the readers of the ...whilewriting benchmarks: writes random keys until they
/// are done, or its own --writes with --finish_after_writes.
Status WriteInBackground(Worker* worker);

}  // namespace nacre::bench
