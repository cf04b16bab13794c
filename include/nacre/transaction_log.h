#pragma once

#include <cstdint>
#include <memory>

#include "nacre/status.h"
#include "nacre/write_batch.h"

namespace nacre {

/// One batch as the log of a database has it.
struct BatchResult {
  uint64_t sequence = 0;  ///< Its first update has it; each update takes one more.
  std::unique_ptr<WriteBatch> write_batch;
};

/// The batches of a database in the order of their sequences, as its log on the memory nodes has
/// them: `DB::GetUpdatesSince`. It reads the log one-sidedly, whichever process owns the database,
/// and asks nothing of the owner. What it gives out was acknowledged, or stays as if it had been.
///
///     std::unique_ptr<TransactionLogIterator> updates;
///     Status status = db->GetUpdatesSince(sequence, &updates);
///     for (; status.ok(); Pause()) {
///       for (; updates->Valid(); updates->Next()) Take(updates->GetBatch());
///       updates->Next();  // Looks for what was written since.
///       status = updates->status();
///     }
///
/// Sequences that are left out are in no part of the log that there is: they were written without
/// it (`WriteOptions::disable_wal`), or its memory was given back before it was read, once all was
/// in tables. `Options::WAL_size_limit_MB` has some of it stay longer, and
/// `Options::max_archive_lag_MB` what a reader has not acknowledged yet.
///
/// Thread safety: none. It may outlive the DB it came from.
class TransactionLogIterator {
 public:
  virtual ~TransactionLogIterator() = default;

  /// Whether it is at a batch. False at the end of what there was, and after a failure.
  virtual bool Valid() const = 0;
  /// Goes to the next batch. At the end it looks whether there is more by now.
  virtual void Next() = 0;
  /// OK at the end. Otherwise why nothing more could be read; Next tries again. `Aborted`: the
  /// database was destroyed, which is final.
  virtual Status status() const = 0;
  /// The batch that it is at, once: it is moved out. Column families have their ids in it. It must
  /// be Valid.
  virtual BatchResult GetBatch() = 0;
  /// All that was acknowledged up to here has been seen once Valid is false: what is missing below
  /// is in no log.
  virtual uint64_t LatestSequence() const = 0;

  /// Tells the memory nodes, and by them the owner, how far the reader `reader` has come: a number
  /// other than 0 that it chooses, and keeps when it starts anew. The log behind `sequence` is kept
  /// for it, up to a bound (`Options::max_archive_lag_MB`), until it has not been heard of for ten
  /// minutes. `restorable`: all up to `sequence` can be had from the reader for good, so that
  /// `DB::WaitForArchive` need not wait for it any more. Costs a round trip to up to eight nodes.
  /// `Unavailable` if none of them could be told.
  virtual Status Acknowledge(uint64_t reader, uint64_t sequence, bool restorable) = 0;
};

}  // namespace nacre
