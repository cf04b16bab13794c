#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "db/compaction/range_compactor.h"
#include "db/db_impl.h"
#include "db/manifest/manifest_state.h"
#include "db/version/pinned_tables.h"
#include "nacre/db.h"
#include "nacre/status.h"
#include "table/format/internal_key.h"

namespace nacre {

/// Copies ranges of keys of one database into others, while it serves reads and writes: first all
/// that it has, then, round by round, what was written since the round before. So the last round,
/// which writers wait for, has little to do, whatever the database holds.
///
/// A round copies the entries with sequences in (the last round's snapshot, a new snapshot], as
/// tables: a few flushes' worth of input, merged in this process.
///
/// Invariant: a snapshot of the round before is held until the next one has read its tables, and
/// each is taken before the flush that its round begins with. So no compaction merges an entry that
/// the next round copies with one that was copied, or gives it sequence 0.
///
/// From the second round on the source does not compact: what is new is in flushes of its own then,
/// and not in tables that are large for other reasons, all of which would have to be read.
///
/// Families are told by their names. Hidden ones, of transactions, are left out.
///
/// Thread safety: none; one thread uses it.
class DatabaseCopier {
 public:
  struct Target {
    DBImpl* db;
    std::optional<std::string> begin;  ///< User keys in [begin, end); nothing: open.
    std::optional<std::string> end;
  };

  /// The databases outlive it. Those of `targets` come from OpenTarget and are not written to.
  DatabaseCopier(DBImpl* source, std::vector<Target> targets);
  /// Lets the snapshot go, and the source compact.
  ~DatabaseCopier();
  DatabaseCopier(const DatabaseCopier&) = delete;
  DatabaseCopier& operator=(const DatabaseCopier&) = delete;

  /// Makes a database that is as `source`, without its tables, and cannot be opened by DB::Open
  /// until Finish has made it whole. `families` are those of the source.
  static Status OpenTarget(DBImpl* source, const DBOptions& options, const std::string& name,
                           const std::vector<ColumnFamilyDescriptor>& families,
                           std::unique_ptr<DBImpl>* target);
  /// Opens one that another process has begun, to be given up.
  static Status ReopenTarget(const DBOptions& options, const std::string& name,
                             const std::vector<ColumnFamilyDescriptor>& families,
                             std::unique_ptr<DBImpl>* target);
  /// Has `target` go on behind all that copiers have copied into it, up to `sequence`.
  static void StartWritesAfter(SequenceNumber sequence, DBImpl* target);
  /// It is whole, and durable.
  static Status Finish(DBImpl* target);

  /// One round. `*entries`: sequences that it was about. After a failure the targets are of no use.
  Status Round(uint64_t* entries);
  /// All up to here is copied.
  SequenceNumber copied() const { return copied_; }

 private:
  void HoldCompactions(bool hold);
  Status CopyTo(const Target& target, const PinnedTables& pinned, const SequenceWindow& window);
  Status CopyFamily(const Target& target, const ColumnFamily& from, const PinnedTables& pinned,
                    const SequenceWindow& window);

  DBImpl* const source_;
  const std::vector<Target> targets_;
  const Snapshot* snapshot_ = nullptr;  ///< It is at `copied_`; null: none yet.
  SequenceNumber copied_ = 0;
  bool holds_compactions_ = false;
};

}  // namespace nacre
