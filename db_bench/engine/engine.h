#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "db_bench/config.h"
#include "db_bench/engine/session_transaction.h"
#include "nacre/slice.h"
#include "nacre/status.h"

// What the workloads know of a database. All engines pay the same for it: one virtual call and no
// allocation per operation on this side of the engine's own API.

namespace nacre::bench {

class KeyspaceMembers;

/// What WaitForRepair has waited for.
struct RepairWork {
  uint64_t bytes = 0;      ///< Bytes of fragments.
  uint64_t nanos = 0;      ///< Time from the call to the end of the last repair.
  uint64_t cpu_nanos = 0;  ///< CPU time of the process that made them.
};

/// An iterator of the engine. Moving answers whether it stands on an entry.
/// Thread safety: none.
class Cursor {
 public:
  virtual ~Cursor() = default;
  virtual bool SeekToFirst() = 0;
  virtual bool SeekToLast() = 0;
  /// Moves to the first key >= target.
  virtual bool Seek(const Slice& target) = 0;
  /// Requires that the last movement answered true.
  virtual bool Next() = 0;
  /// Requires that the last movement answered true.
  virtual bool Prev() = 0;
  /// Requires that the last movement answered true, as does `value()`. The bytes stay until the
  /// next movement.
  Slice key() const { return key_; }
  virtual Slice value() = 0;
  /// Why it stands on no entry: OK at an end.
  virtual Status status() = 0;

 protected:
  Slice key_;
};

struct MultiGetResult {
  uint64_t found = 0;
  uint64_t value_bytes = 0;
};

/// Many lookups of one thread, each by one of several readers.
/// Thread safety: none.
class ConcurrentLookups {
 public:
  virtual ~ConcurrentLookups() = default;
  /// What `reader` is to look up next; stays until it is asked again. Null: it is done.
  virtual const Slice* Next(size_t reader) = 0;
  virtual void Found(const Slice& value) = 0;
  virtual void Missed() = 0;
};

/// One thread's access to an open engine. It keeps the buffers that its operations reuse.
/// Thread safety: none; must be destroyed before the engine is closed.
class Session {
 public:
  virtual ~Session() = default;

  virtual Status Put(const Slice& key, const Slice& value) = 0;
  virtual Status Delete(const Slice& key) = 0;

  /// Adds to this session's batch.
  virtual Status BatchPut(const Slice& key, const Slice& value) = 0;
  virtual Status BatchDelete(const Slice& key) = 0;
  /// Writes the batch atomically and empties it.
  virtual Status BatchWrite() = 0;

  /// `NotFound` if the key is absent. `*value` stays until the next read of this session.
  virtual Status Get(const Slice& key, Slice* value) = 0;
  /// Reads all keys with one call of the engine, if it has such a call. The first error, if any;
  /// absent keys are none.
  virtual Status MultiGet(std::span<const Slice> keys, MultiGetResult* result) = 0;

  /// Has `readers` coroutines look up what they are given, one key after the other each. The first
  /// error, if any. `NotSupported` if the engine has no such calls.
  virtual Status GetConcurrently(size_t /*readers*/, ConcurrentLookups* /*lookups*/) {
    return Status::NotSupported("this engine has no asynchronous Get");
  }

  /// Null if the database was opened without transactions.
  virtual std::unique_ptr<SessionTransaction> NewTransaction() { return nullptr; }

  /// Makes an iterator over the present state, which replaces the session's former one. It is not
  /// positioned.
  virtual Cursor* NewCursor() = 0;
  virtual void CloseCursor() = 0;

  /// What a Put sends to its log, written with the network's own operation and nothing around it.
  /// `NotSupported` if the engine has no network.
  virtual Status RawWrite() { return Status::NotSupported("rawwrite"); }
};

struct SpaceUsage {
  uint64_t user_bytes = 0;     ///< Live keys and values; RocksDB and LevelDB estimate.
  uint64_t stored_bytes = 0;   ///< Tables, with all copies.
  uint64_t compute_bytes = 0;  ///< Memory of this process: MemTables, indexes, filters, caches.
  uint64_t index_bytes = 0;    ///< The part kept for tables, without caches; LevelDB: 0.
  /// What the pool's memory holds, by names that are the engine's; RocksDB, LevelDB: nothing.
  std::vector<std::pair<std::string, uint64_t>> parts{};
};

/// Bytes since the engine was made, over all databases that it opened.
struct TrafficCounters {
  uint64_t compute_read = 0;     ///< Bytes that this process read over the network.
  uint64_t compute_written = 0;  ///< Bytes that this process wrote over the network.
  uint64_t memnode_read = 0;     ///< Bytes that the memory nodes read from one another.
  uint64_t memnode_written = 0;
  uint64_t compaction_read = 0;  ///< Bytes that compactions read, wherever they ran.
  uint64_t compaction_written = 0;
  uint64_t compaction_cpu_nanos = 0;  ///< CPU time of the threads that ran them; LevelDB: 0.
  uint64_t encoded_bytes = 0;         ///< Bytes whose parity this process computed.
  uint64_t encoding_cpu_nanos = 0;
};
TrafficCounters operator+(const TrafficCounters& a, const TrafficCounters& b);
TrafficCounters operator-(const TrafficCounters& a, const TrafficCounters& b);

/// A database under test. Nothing is open at first.
///
/// Thread safety: sessions of several threads may work at once; the methods here are for one
/// thread.
class Engine {
 public:
  virtual ~Engine() = default;

  /// Name, version, profile and place, for the head of the report.
  virtual std::string Describe() const = 0;
  /// Something that makes the numbers not what they could be, for the head of the report; empty
  /// if there is nothing.
  virtual std::string Warning() const { return {}; }

  /// Closes what is open, removes all data and opens an empty database.
  virtual Status OpenFresh() = 0;
  /// Opens what is there; an error if nothing is.
  virtual Status OpenExisting() = 0;
  /// Idempotent.
  virtual Status Close() = 0;

  // The rest requires an open database.

  /// What was counted before does not belong to this process's benchmarks. Once after each opening,
  /// which it is no part of: to ask all nodes takes its time.
  virtual Status StartCounting() { return Status::OK(); }

  virtual std::unique_ptr<Session> NewSession() = 0;
  virtual Status Flush() = 0;
  virtual Status CompactAll() = 0;
  /// Returns when no flush and no compaction is due or running.
  virtual Status WaitForCompaction() = 0;
  /// Returns when what was lost with memory nodes has been made anew. `NotSupported` where there is
  /// no such thing.
  virtual Status WaitForRepair(RepairWork* work);
  /// Bytes of fragments made anew so far. May be called from any thread while the database is open.
  virtual uint64_t RepairedBytes() const { return 0; }
  /// `NotSupported` if the engine has nothing of the kind.
  virtual Status VerifyChecksum() { return Status::NotSupported("verifychecksum"); }
  /// Writes a checkpoint into --checkpoint_dir; `*bytes` is what it has written. `NotSupported` as
  /// above, and likewise:
  virtual Status Checkpoint(uint64_t* /*bytes*/) { return Status::NotSupported("checkpoint"); }
  /// Makes another database of the latest checkpoint there, in the same pool; `*bytes` is what its
  /// tables have. DropRestored removes it.
  virtual Status Restore(uint64_t* /*bytes*/) { return Status::NotSupported("restore"); }
  virtual Status DropRestored() { return Status::NotSupported("restore"); }
  virtual Status Stats(std::string* text) = 0;
  virtual Status LevelStats(std::string* text) = 0;
  virtual Status Space(SpaceUsage* usage) = 0;
  /// What Space answers, as a table for people.
  virtual Status SpaceText(std::string* text);
  /// A line for each step of the last opening, "NAME MICROSECONDS". `NotSupported` by engines that
  /// do not measure it.
  virtual Status OpenTimeline(std::string* text);
  /// What manifest and log have done, by names that are the engine's; RocksDB, LevelDB: nothing.
  virtual std::vector<std::pair<std::string, uint64_t>> DurabilityCounters() { return {}; }
  /// All are 0 with --coordinator: each process has its own.
  virtual Status Traffic(TrafficCounters* counters) = 0;
  /// The members of the keyspace that is open; null if it has no --coordinator. Lives until it is
  /// closed.
  virtual KeyspaceMembers* members() { return nullptr; }
};

/// `config` must outlive the engine.
std::unique_ptr<Engine> NewNacreEngine(const BenchConfig& config);
std::unique_ptr<Engine> NewRocksdbEngine(const BenchConfig& config);
std::unique_ptr<Engine> NewLeveldbEngine(const BenchConfig& config);
std::unique_ptr<Engine> NewLmdbEngine(const BenchConfig& config);

/// The one that `config.engine` names.
std::unique_ptr<Engine> NewEngine(const BenchConfig& config);

}  // namespace nacre::bench
