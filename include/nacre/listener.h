#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/status.h"

namespace nacre {

class ColumnFamilyHandle;
class DB;

// What a database tells its listeners. Names of methods and fields are RocksDB's where it has them;
// a table has a number, and no path.

/// Why a table was made.
enum class TableFileCreationReason : uint8_t { kFlush, kCompaction, kRecovery, kMisc };

/// Which work failed.
enum class BackgroundErrorReason : uint8_t { kFlush, kCompaction };

enum class WriteStallCondition : uint8_t { kNormal, kDelayed, kStopped };

struct WriteStallInfo {
  /// The family that is behind it; the default one if that is none, since writes stall for all.
  std::string cf_name;
  struct {
    WriteStallCondition cur = WriteStallCondition::kNormal;
    WriteStallCondition prev = WriteStallCondition::kNormal;
  } condition;
};

struct MemTableInfo {
  std::string cf_name;
  uint64_t earliest_seqno = 0;  ///< None of its entries is before it.
  uint64_t num_entries = 0;     ///< Those of writers that are not done yet may be missing.
  uint64_t num_deletes = 0;
};

/// One MemTable to tables. All families' MemTables of one generation are flushed together, each
/// with an event of its own.
struct FlushJobInfo {
  uint32_t cf_id = 0;
  std::string cf_name;
  uint64_t job_id = 0;  ///< The same id as in the events of its tables.
  bool triggered_writes_slowdown = false;
  bool triggered_writes_stop = false;
  // These are set on completion only.
  std::vector<uint64_t> file_numbers;  ///< Its tables; empty if every entry in it is gone.
  uint64_t smallest_seqno = 0;
  uint64_t largest_seqno = 0;
  uint64_t num_entries = 0;  ///< Entries in the tables.
  uint64_t total_bytes = 0;
};

struct CompactionFileInfo {
  int level = 0;
  uint64_t file_number = 0;
};

struct CompactionJobStats {
  uint64_t elapsed_micros = 0;
  uint64_t num_input_files = 0;
  uint64_t num_output_files = 0;
  uint64_t total_input_bytes = 0;
  uint64_t total_output_bytes = 0;
  bool is_manual_compaction = false;
};

/// `status`, outputs and `stats` are of what is complete only.
struct CompactionJobInfo {
  uint32_t cf_id = 0;
  std::string cf_name;
  Status status;
  uint64_t job_id = 0;  ///< 0: tables only change their level.
  int base_input_level = 0;
  int output_level = 0;
  bool is_trivial_move = false;  ///< Tables changed their level and nothing else.
  std::vector<CompactionFileInfo> input_file_infos;
  std::vector<CompactionFileInfo> output_file_infos;
  CompactionJobStats stats;
};

struct TableFileCreationInfo {
  std::string db_name;
  std::string cf_name;
  uint64_t file_number = 0;
  uint64_t file_size = 0;
  uint64_t job_id = 0;
  TableFileCreationReason reason = TableFileCreationReason::kMisc;
  Status status;  ///< OK: it is part of the database.
};

struct TableFileDeletionInfo {
  std::string db_name;
  uint64_t file_number = 0;
  uint64_t job_id = 0;  ///< 0: the family was dropped.
  Status status;
};

/// A memory node, as an owner sees it.
struct NodeInfo {
  std::string address;
};

/// What was repaired after nodes were lost, or were to be left.
struct NodeRebuildInfo {
  uint64_t tables = 0;
  uint64_t bytes = 0;  ///< Bytes of the fragments that were rebuilt.
};

/// Told of what happens in a database (`Options::listeners`). The owner has one thread for it,
/// which calls all listeners in their order, event by event in the order in which these took place,
/// and holds no lock: a listener may call the database, also what waits for flushes, but neither
/// `Close` nor the destructor. Work goes on meanwhile, so that what is told may be past; a listener
/// that takes long delays what follows. Of more than 65,536 events that wait the oldest are dropped
/// (see the property `nacre.events.dropped`). `Close` returns when all that waits was told.
///
/// Databases that another process owns have nothing to tell: their listeners are not called.
class EventListener {
 public:
  virtual ~EventListener() = default;

  virtual void OnFlushBegin(DB* /*db*/, const FlushJobInfo& /*info*/) {}
  /// The tables are part of the database.
  virtual void OnFlushCompleted(DB* /*db*/, const FlushJobInfo& /*info*/) {}
  virtual void OnCompactionBegin(DB* /*db*/, const CompactionJobInfo& /*info*/) {}
  virtual void OnCompactionCompleted(DB* /*db*/, const CompactionJobInfo& /*info*/) {}
  virtual void OnTableFileCreated(const TableFileCreationInfo& /*info*/) {}
  /// A table was dropped from the database. Its memory is freed once no reader needs it.
  virtual void OnTableFileDeleted(const TableFileDeletionInfo& /*info*/) {}
  virtual void OnMemTableSealed(const MemTableInfo& /*info*/) {}
  /// Runs on the thread that destroys the handle, which stays usable until this returns.
  virtual void OnColumnFamilyHandleDeletionStarted(ColumnFamilyHandle* /*handle*/) {}
  /// An attempt failed; another one follows after a while. `error` is a copy: to change it changes
  /// nothing.
  virtual void OnBackgroundError(BackgroundErrorReason /*reason*/, Status* /*error*/) {}
  virtual void OnStallConditionsChanged(const WriteStallInfo& /*info*/) {}

  // ---- What RocksDB has not got ----

  /// A node of the pool cannot be reached (any more), or, `OnNodeJoined`, can be (again).
  virtual void OnNodeLost(DB* /*db*/, const NodeInfo& /*info*/) {}
  virtual void OnNodeJoined(DB* /*db*/, const NodeInfo& /*info*/) {}
  /// A node that is there has become slow (PoolOptions::slow_node_patience_min), or,
  /// `OnNodePrompt`, answers as fast as others again. Of changes within 20 ms only what came of
  /// them is told.
  virtual void OnNodeSlow(DB* /*db*/, const NodeInfo& /*info*/) {}
  virtual void OnNodePrompt(DB* /*db*/, const NodeInfo& /*info*/) {}
  /// A pass over the tables has made fragments anew on other nodes. Others may be left: property
  /// "nacre.repair.tables-left".
  virtual void OnRebuildCompleted(DB* /*db*/, const NodeRebuildInfo& /*info*/) {}
  /// Another process has taken the database over: all that writes here answers `Fenced` from now
  /// on. Told once.
  virtual void OnFenced(DB* /*db*/, const Status& /*status*/) {}
};

}  // namespace nacre
