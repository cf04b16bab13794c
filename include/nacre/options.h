#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/comparator.h"
#include "nacre/logger.h"
#include "nacre/slice.h"
#include "nacre/wal_recovery_mode.h"

namespace nacre {

class CompactionFilter;
class CompactionFilterFactory;
class EventListener;
class MergeOperator;
class Pool;
class SliceTransform;
class Snapshot;
class Statistics;
class WriteBufferManager;

enum class CompactionSite : uint8_t {
  /// The memory node that holds most of the input runs it. If that one cannot (dead, busy, unable
  /// to reach another node that takes part, unknown comparator), the next one does, and in the end
  /// this process.
  kAuto,
  kCompute,  ///< This process runs it.
};

/// Chooses who turns MemTables into tables. The nodes of the log have their bytes already, so a
/// flush there sends nothing again. This process flushes if that is impossible (an embedded pool,
/// unlogged writes, a lost replica of the log, nodes that are busy or do not know the comparator).
enum class NearDataFlush : uint8_t {
  /// The nodes flush, unless writers wait for flushes and this process is quicker with them, or
  /// less than a chunk is to be flushed, which is not worth a request.
  kAuto,
  kOn,   ///< The nodes flush whenever that is possible.
  kOff,  ///< This process flushes.
};

/// See DBOptions::repair_bytes_per_second.
inline constexpr uint64_t kAdaptiveRepair = UINT64_MAX;

/// Options of the database as a whole. Names and defaults are RocksDB's where RocksDB has the
/// option.
struct DBOptions {
  // ---- Where the data lives -----------------------------------------------------------------

  /// URI of the memory nodes: "embedded:", "shm:", "tcp:", "verbs:" or "mixed:", with addresses and
  /// parameters as at Pool (nacre/pool.h). Ignored when `pool` is set.
  std::string pool_uri = "embedded:?nodes=4&size=1GiB";
  /// An opened pool, to share it or to open a database again in the same process.
  std::shared_ptr<Pool> pool;
  /// How tables are kept on the nodes:
  ///   "none"     once;
  ///   "rep(n)"   n whole copies on different nodes: n - 1 of them may be lost;
  ///   "rs(k,m)"  spread over k nodes with Reed-Solomon parity on m others, k from 1 to 16 and m
  ///              from 0 to 4: any m may be lost, for m/k more bytes;
  /// or by level, "L0:rep(3),*:rs(4,2)". Tables below 64 KiB are replicated, m + 1 times. It takes
  /// as many failure domains (nacre-memnode --domain) as nodes.
  std::string redundancy = "none";
  /// Writes new tables with reduced redundancy while fewer nodes are alive than that takes; the LOG
  /// says so. Otherwise flushes fail with `Unavailable` until there are enough.
  bool allow_degraded_writes = false;
  /// While nodes are down, or slow (see slow_node_patience_min), and the pool has no others in
  /// their place, codes new tables for the rest: rs(3,2) on five nodes where `redundancy` is
  /// rs(4,2). As many nodes may be lost; the tables take more memory, until compactions write them
  /// anew. Otherwise flushes and compactions wait for slow nodes, and take `allow_degraded_writes`
  /// while nodes are down.
  bool allow_narrow_writes = true;
  CompactionSite compaction = CompactionSite::kAuto;
  NearDataFlush near_data_flush = NearDataFlush::kAuto;
  /// Each node goes through what it holds of the database without end, at this pace, and compares
  /// it with its checksums, so that damage is known before it is met. The owner reads all copies
  /// of its log and manifest at the same pace, and compares them. 0: only `DB::VerifyChecksum` does
  /// so. 16 MiB/s cost a node a few thousandths of a processor.
  uint64_t scrub_bytes_per_second = 16 << 20;

  // ---- Opening ------------------------------------------------------------------------------

  bool create_if_missing = false;
  bool error_if_exists = false;
  /// Makes families that are missing when `DB::Open` names column families.
  bool create_missing_column_families = false;
  /// Opens the database even if another process has it open: that one is fenced, whether it is well
  /// or not, and answers `Fenced` from then on. Otherwise `Open` answers `Busy`. A database whose
  /// owner is gone does not need this.
  bool take_over = false;
  /// How often a database opened by `DB::OpenAsSecondary` catches up with the owner by itself; 0:
  /// never.
  std::chrono::milliseconds follow_interval{0};
  /// Receives what would go to RocksDB's LOG. If null, `db_log_dir` names a directory for it.
  std::shared_ptr<Logger> info_log;
  /// The local directory for the LOG of the database, DIR/NAME_LOG; empty for none. The LOG is
  /// renamed, with the time in its name, at each opening and when it has `max_log_file_size` bytes
  /// or is `log_file_time_to_roll` seconds old (0: never).
  std::string db_log_dir;
  LogLevel info_log_level = LogLevel::kInfo;  ///< The least level that goes into the LOG.
  size_t max_log_file_size = 0;
  size_t log_file_time_to_roll = 0;
  size_t keep_log_file_num = 1000;  ///< Includes the current one; older ones are removed.
  /// Counts what the database does (nacre/statistics.h). Null counts nothing.
  std::shared_ptr<Statistics> statistics;
  /// Told of what happens (nacre/listener.h), in their order.
  std::vector<std::shared_ptr<EventListener>> listeners;
  /// HOST:PORT to answer GET /metrics at, for Prometheus; empty: what the environment variable
  /// NACRE_METRICS says, and nothing if that is not set. Databases of one process that name the
  /// same address share it. `Open` fails with `InvalidArgument` or `IOError` if it cannot be
  /// listened at. docs/operations.md lists the metrics.
  std::string metrics_address;
  /// A file with keys, to encrypt what nodes' memory has of keys and values by AES-256-GCM; empty:
  /// new tables and the log are not encrypted. Its lines are `ID HEX`, 64 hexadecimal digits; the
  /// first one is for what is written, all of them for what is read. It is read by `Open`, also by
  /// that of followers, and must be readable by its owner only. What was written before it was
  /// given stays as it is until it is compacted. Nodes have no keys, so flushes and compactions run
  /// in this process, and tables are read as if no memory were mapped. Without the file, or without
  /// the keys that tables and log name, `Open` answers `InvalidArgument`. docs/security.md.
  std::string encryption_key_file;
  /// An operation of the owner that takes at least so long is logged with what it waited for, node
  /// by node; `nacre.slow-operations` counts them, and GetMapProperty has the last ones. Get,
  /// MultiGet, writes and the moves of iterators are; an AsyncDB's are not. While it is set each
  /// operation measures its steps, which costs it some hundred nanoseconds. 0: none is slow.
  std::chrono::microseconds slow_operation_threshold{0};

  // ---- Log and manifest ----------------------------------------------------------------------

  /// Writes return before they are on the nodes, and `DB::FlushWAL` sends them: what was written
  /// since is lost with this process.
  bool manual_wal_flush = false;
  /// Keeps so many MiB of the log on the nodes after all in them is in tables, for those that read
  /// it from there (`DB::GetUpdatesSince`) and may be late. It takes that room m + 1 times; the
  /// next owner keeps it, and does not read it.
  uint64_t WAL_size_limit_MB = 0;
  /// As `WAL_size_limit_MB`, but only what archives that follow the database (nacre/archive.h) have
  /// not got yet, and no longer than ten minutes after one was last heard of. An archive that is
  /// further behind has a gap, and makes a new base.
  uint64_t max_archive_lag_MB = 256;
  /// What to do with a log that is damaged in all its copies.
  WALRecoveryMode wal_recovery_mode = WALRecoveryMode::kPointInTimeRecovery;
  /// The manifest's changes are brought into its image on the nodes after so long or so many of
  /// them, whichever comes first. They are durable before that; it bounds what is read again at the
  /// next opening.
  std::chrono::milliseconds manifest_image_interval{500};
  uint32_t manifest_image_edits = 256;

  // ---- Background work and stalls -----------------------------------------------------------

  /// Bytes per second admitted while slowed down; 0 means 16 MiB/s, as in RocksDB.
  uint64_t delayed_write_rate = 0;
  int max_background_jobs = 2;
  /// Key ranges that one compaction may be cut into, each run by its own executor. 0: as many as
  /// the nodes have workers that run nothing for this database, none smaller than a table.
  uint32_t max_subcompactions = 0;

  /// Bytes that the MemTables of all families may have before the database flushes; 0: each family
  /// has `write_buffer_size` to itself. `write_buffer_manager` is for several databases together,
  /// and comes first.
  size_t db_write_buffer_size = 0;
  std::shared_ptr<WriteBufferManager> write_buffer_manager;

  // ---- Remote memory ------------------------------------------------------------------------

  /// That of the nodes; databases that are opened for reading take whatever it is.
  size_t slab_size = 64 << 20;
  /// Keep tables, log and manifest on as few nodes as `redundancy` takes, which are chosen by load,
  /// as long as these have room: what compactions read and write lies where they run then. For many
  /// databases that share a pool; one alone has all nodes work for it without.
  bool home_nodes = false;
  size_t chunk_size = 256 << 10;
  /// See PoolOptions; of the pool that `pool_uri` names. A pool that was opened before has its own.
  int max_queue_pairs_per_node = 0;
  /// Bytes of fragments per second that are made anew when nodes are lost or drained, over all
  /// nodes; 0: as many as they can, which is some 2 GB for each of their processors.
  /// kAdaptiveRepair: more and more as long as nodes answer as soon as they did without it, else
  /// less, down to 64 MiB. `nacre-ctl repair limit` overrides it.
  uint64_t repair_bytes_per_second = kAdaptiveRepair;
  /// A wait for a node longer than this fails with `TimedOut` or `Unavailable`.
  std::chrono::milliseconds operation_timeout{10'000};
  /// These three: see PoolOptions; of the pool that `pool_uri` names.
  std::chrono::milliseconds slow_node_patience_min{4};
  std::chrono::milliseconds slow_node_patience_max{20};
  uint32_t hedged_reads_percent = 5;

  // ---- Local memory -------------------------------------------------------------------------

  /// Bytes of indexes kept here. Beyond it the tables of deeper levels have Bloom filters in the
  /// place of point indexes, and range indexes are here only while they are used: a seek into a
  /// table whose index had to go reads it again, 4 KB for each MB of records. Filters are always
  /// here, also where they alone take more. Tables that were written without a budget have none: a
  /// lookup in one that is cold costs a read from its node, until a compaction has written it anew.
  size_t index_memory_budget = SIZE_MAX;
  /// Bytes of memory, at least 64 KiB, for records that Get and MultiGet ask for often, of this
  /// process only; its tables and the heads of entries are counted in. 0: no such cache. A record
  /// that is here is not read from its node again. Records above some 2 % of the memory of a shard
  /// (up to 64 of at least 4 MiB each) do not enter, nor do those of nodes whose memory this
  /// process can load (`embedded:`, `shm:`, `cxl:` without `map=0`), for which it is not consulted,
  /// nor what is read with `ReadOptions::verify_checksums` off. Iterators pass it by.
  size_t record_cache_size = 0;
};

/// Options of one column family. They are not stored: each opening gives them anew.
struct ColumnFamilyOptions {
  /// Orders the keys. It is not owned and must outlive the database.
  const Comparator* comparator = BytewiseComparator();
  /// What `DB::Merge` does. Null: it answers `NotSupported`, and reads of keys that were merged
  /// answer `InvalidArgument`. The database does not remember it.
  std::shared_ptr<MergeOperator> merge_operator;
  /// Asked by compactions what is to become of values. The filter is not owned, must outlive the
  /// database and be thread-safe; of both, the filter is used.
  const CompactionFilter* compaction_filter = nullptr;
  std::shared_ptr<CompactionFilterFactory> compaction_filter_factory;
  /// What of a key is its prefix, for iterators with `ReadOptions::prefix_same_as_start`.
  std::shared_ptr<const SliceTransform> prefix_extractor;

  // ---- MemTables ----------------------------------------------------------------------------

  /// A MemTable of the family that has grown to this is flushed, and with it those of all other
  /// families: they share the log, which is released as far as all of them are in tables.
  size_t write_buffer_size = 64 << 20;
  /// The most MemTables that a family may have, with the one that takes writes; the least value
  /// among the families holds for all.
  int max_write_buffer_number = 2;

  // ---- Levels and stalls --------------------------------------------------------------------

  int num_levels = 7;
  int level0_file_num_compaction_trigger = 4;
  int level0_slowdown_writes_trigger = 20;
  int level0_stop_writes_trigger = 36;
  uint64_t target_file_size_base = 64 << 20;
  int target_file_size_multiplier = 1;
  uint64_t max_bytes_for_level_base = 256 << 20;
  double max_bytes_for_level_multiplier = 10;
  uint64_t soft_pending_compaction_bytes_limit = 64ULL << 30;
  uint64_t hard_pending_compaction_bytes_limit = 256ULL << 30;
  bool disable_auto_compactions = false;
};

/// Options of a database and its default column family.
struct Options : DBOptions, ColumnFamilyOptions {
  Options() = default;
  Options(const DBOptions& db_options, const ColumnFamilyOptions& family_options)
      : DBOptions(db_options), ColumnFamilyOptions(family_options) {}
};

struct ReadOptions {
  /// The state to read, which is not owned. Null reads the latest one.
  const Snapshot* snapshot = nullptr;
  /// For `DB::OpenAsSecondary`: sees all that the owner acknowledged before the call, and what
  /// linearizable reads that had ended by then saw on any follower. This costs one round trip more,
  /// now and then three, one of which is a request to the nodes. An owner's reads are always
  /// linearizable. Limits: docs/durability.md, section 11.
  bool linearizable = false;
  /// For `Get` and `MultiGet` of a keyspace (ShardedDB), without a snapshot: what another member
  /// owns may be read from the memory nodes, by a follower of the shard in this process, which
  /// costs its owner nothing. It shows the state of `Options::follow_interval` ago (50 ms if that
  /// is 0), or an earlier one while this process cannot reach the coordinator; of a batch over
  /// several shards perhaps a part. Where that is not to be had the owner is asked, as always with
  /// `linearizable`.
  bool read_from_follower = false;
  bool verify_checksums = true;
  /// Iterators stay within [*iterate_lower_bound, *iterate_upper_bound). The bounds are not owned
  /// and must outlive the iterator. Each seek uses their values at that time.
  const Slice* iterate_lower_bound = nullptr;
  const Slice* iterate_upper_bound = nullptr;
  /// Iterators end where the prefix (`Options::prefix_extractor`) differs from that of the key last
  /// sought. Without an extractor, or for a key that has no prefix, this has no effect.
  bool prefix_same_as_start = false;
  /// Accepted for RocksDB's sake: iterators see all keys in order in any case. `total_order_seek`
  /// turns `prefix_same_as_start` off.
  bool total_order_seek = false;
  bool auto_prefix_mode = false;
  /// Bytes an iterator reads ahead at most; 0 lets it grow by itself.
  size_t readahead_size = 0;
};

struct WriteOptions {
  /// Return only when the write is on all nodes of the log, as every write does unless
  /// `Options::manual_wal_flush` is set.
  bool sync = false;
  /// Write nothing to the log: what was not flushed is lost with this process. An embedded pool,
  /// which ends with its process, has no log.
  bool disable_wal = false;
  /// Fail with `Incomplete` instead of waiting while writes are stalled.
  bool no_slowdown = false;
};

struct FlushOptions {
  bool wait = true;
  /// Accepted for RocksDB's sake: flushing never waits for a stall to pass here.
  bool allow_write_stall = false;
};

struct CompactRangeOptions {
  /// Moves all of the deepest level to `target_level` afterwards, if it has keys of the range.
  bool change_level = false;
  int target_level = -1;  ///< Negative: the least that it fits into, over empty levels only.
  /// 0 uses `Options::max_subcompactions`.
  uint32_t max_subcompactions = 0;
};

}  // namespace nacre
