#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "db/family/column_family.h"
#include "db/follower/follower_view.h"
#include "db/manifest/manifest_follower.h"
#include "db/memtable/memtable.h"
#include "db/version/pinned_tables.h"
#include "db/version/table_handle.h"
#include "db/version/version.h"
#include "db/wal/log_encryption.h"
#include "db/wal/log_follower.h"
#include "nacre/options.h"
#include "nacre/status.h"
#include "pool/pool_client.h"
#include "util/memory/arena_block_pool.h"

namespace nacre {

/// A database that another process owns, as far as it has been read: manifest, tables, and the
/// log's records in MemTables of its own. Writes nothing, and asks nothing of the owner.
///
/// Records lie in the log in another order than that of their sequences. Those are shown up to the
/// first sequence that is missing: the owner acknowledges nothing beyond one that it is still to
/// write (db/write/write_sequencer.h). What waits behind it is kept aside, so that MemTables have
/// all records between the tables' last sequence and theirs. Most have earlier ones besides, which
/// show the same as the tables do.
///
/// Thread safety: none; used by one thread at a time. Views are read by any number.
class FollowerState {
 public:
  /// Is given what the log has, in the order of sequences.
  class LogObserver {
   public:
    virtual ~LogObserver() = default;
    virtual void Record(SequenceNumber first, uint32_t count, const Slice& updates) = 0;
    /// What View does not show yet may not be part of the log, and comes anew.
    virtual void Forget() = 0;
  };

  /// `client` and what tables share outlive this.
  FollowerState(std::string name, pool::PoolClient* client, const TableSurroundings& surroundings);

  /// Reads all of the families that `descriptors` name. Failures as those of ManifestFollower::Open
  /// and LogFollower::Advance; `InvalidArgument` for another comparator, or a family that there is
  /// not.
  Status Open(const std::vector<ColumnFamilyDescriptor>& descriptors, Logger* log);

  /// Reads the log alone, for `observer`, which outlives this; no family is open. Tables tell only
  /// what the log will not have any more. Fails as Open.
  Status OpenLog(LogObserver* observer);

  enum class Goal : uint8_t {
    /// What manifest and log have: as a rule everything. If the owner has lost all nodes that keep
    /// the segment which is read here, and has gone on in another one, it is what there was a
    /// second ago.
    kRecent,
    /// All that was acknowledged before the call, wherever it is. What the log's marks do not tell
    /// is found out by the heads of later segments, edits, and then the root, from more than half
    /// of its members.
    kAcknowledged,
    /// As kRecent, and with the manifest that the root names: tables that are gone are not in it.
    /// What the log's marks tell is not enough, as its memory does not say when a manifest has been
    /// left.
    kTables,
  };
  /// Even after a failure the state is one that the database had, and not an earlier one than
  /// before: what could be read counts.
  Status CatchUp(Goal goal);

  /// What there is now; the same object as long as nothing has changed.
  std::shared_ptr<const FollowerView> View();

  /// The tables of the manifest as it was read last, with nothing of the log. `InvalidArgument` if
  /// not all families of the database are open.
  Status PinTables(PinnedTables* pinned) const;

  uint64_t database_id() const { return manifest_.database_id(); }
  /// Those that were opened, by id. They never change.
  const std::map<uint32_t, std::shared_ptr<ColumnFamily>>& families() const { return families_; }
  /// Sequences beyond one that is missing.
  size_t waiting() const { return waiting_.size(); }
  /// Whether there are segments of a log.
  bool has_log() const { return has_log_; }
  uint64_t log_bytes_read() const { return log_.follower->bytes_read(); }
  uint64_t manifest_bytes_read() const { return manifest_.bytes_read(); }
  uint64_t manifest_reloads() const { return manifest_.reloads(); }

 private:
  struct LogReading {
    std::unique_ptr<LogFollower> follower;
    std::unique_ptr<LogDecryptor> decryptor;
    std::string decrypted;  ///< What it decrypted last.
  };

  struct Waiting {
    uint32_t count = 0;
    std::string updates;
  };
  struct Filled {
    std::map<uint32_t, std::shared_ptr<MemTable>> memtables;  ///< Keyed by family.
    SequenceNumber last = 0;                                  ///< Its highest sequence.
  };

  Status CatchUpTo(Goal goal);
  Status CheckPatience(const Deadline& deadline) const;
  /// `*changed`: there was something new.
  Status ReadManifest(ManifestFollower::Look look, bool* changed);
  /// Reads the log by marks, if they are certain. False: that did not tell whether it was all.
  bool CatchUpByMarks();
  /// The log as far as it is known; whether that was all goes to `*end`.
  Status ReadLog(LogFollower::Look look, LogFollower::End* end);
  /// Takes the manifest's state over; after `replaced`, everything anew if need be.
  Status TakeManifest(bool replaced);
  /// Forgets what is not in tables; it is shown until the log has been read anew.
  void ForgetLog();
  /// Which node of the client each node of the manifest is.
  std::map<NodeId, NodeId> NumberNodes() const;
  /// Has nodes join of which only the nodes know that were there before.
  void LookForNodes();
  ExtentAddr Here(ExtentAddr extent) const;
  void TakeFamilies();
  void TakeLevels();
  Status TakeTables();
  /// All up to `sequence` is in tables.
  Status TablesThrough(SequenceNumber sequence);
  /// Operands apply once: MemTables that have any lose what is in tables.
  void LeaveOut(SequenceNumber sequence);
  void NewLog();
  Status TakeRecord(SequenceNumber first, uint32_t count, const Slice& updates);
  Status Insert(SequenceNumber first, uint32_t count, const Slice& updates);
  /// Nothing up to `sequence` is still to come.
  Status CompleteThrough(SequenceNumber sequence);
  /// Inserts what does not wait any more.
  Status InsertWaiting();
  std::shared_ptr<MemTable> NewMemTable(const ColumnFamily& family);
  /// The newest of memtables_ of the family.
  MemTable* MemTableOf(const ColumnFamily& family);

  const std::string name_;
  pool::PoolClient* const client_;
  const TableSurroundings surroundings_;

  LogObserver* observer_ = nullptr;  ///< Not null: it takes the records, and MemTables do not.
  std::map<uint32_t, std::shared_ptr<ColumnFamily>> families_;
  ManifestFollower manifest_;
  LogReading log_;
  std::map<NodeId, NodeId> numbers_;
  /// Tables by id, with their levels.
  std::map<uint64_t, std::pair<uint32_t, std::shared_ptr<TableHandle>>> tables_;
  std::map<uint32_t, std::shared_ptr<const Version>> versions_;  ///< Keyed by family.
  /// Dropped families as they were shown last; null, if they never were.
  std::map<uint32_t, std::shared_ptr<const ReadView>> dropped_;
  SequenceNumber tables_through_ = 0;
  std::vector<Filled> memtables_;  ///< Newest first; the first takes records.
  uint64_t memtable_generation_ = 0;
  SequenceNumber left_out_ = 0;  ///< Set by the last LeaveOut.
  SequenceNumber covered_ = 0;   ///< What is in tables up to here may be in no MemTable any more.
  std::shared_ptr<ArenaBlockPool> blocks_;
  SequenceNumber applied_ = 0;  ///< All up to here is in tables or MemTables.
  std::map<SequenceNumber, Waiting> waiting_;
  uint64_t generation_ = 0;
  bool has_log_ = false;
  uint64_t owner_epoch_ = 0;  ///< Epoch of the owner that made the manifest.
  uint64_t root_looked_at_nanos_ = 0;
  /// When the last complete look at log, manifest and root began, by BootClock; 0: there was none.
  uint64_t whole_look_nanos_ = 0;
  /// The log was forgotten, and what has been read since may be less than was shown before: either
  /// it has not been read to its end, or it is unknown whether the manifest has later segments.
  bool incomplete_ = true;
  bool changed_ = true;  ///< Whether anything changed since view_ was made.
  std::shared_ptr<const FollowerView> view_;
};

}  // namespace nacre
