#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "nacre/db.h"
#include "util/mutex.h"
#include "util/random.h"

namespace nacre {

/// Where clients find the database, which may be replaced while they use it. Thread-safe.
class SharedDB {
 public:
  explicit SharedDB(std::shared_ptr<DB> db) : current_{.db = std::move(db)} {}

  struct Current {
    /// A reference keeps it open.
    std::shared_ptr<DB> db;
    uint64_t number = 0;  ///< How many there have been before.
  };
  Current Get() const;
  void Set(std::shared_ptr<DB> db);
  /// Waits for a database after the one with this number; false if that takes longer than
  /// `patience`, or after Stop.
  bool AwaitAfter(uint64_t number, std::chrono::seconds patience);
  /// Wakes those that wait.
  void Stop();
  /// How many wait for a database after the one that is there now.
  int waiting() const;

 private:
  mutable Mutex mutex_;
  CondVar changed_{&mutex_};
  Current current_ GUARDED_BY(mutex_);
  bool stopped_ GUARDED_BY(mutex_) = false;
  int waiting_ GUARDED_BY(mutex_) = 0;
};

/// An operation as an observer sees it. A history is many of them; tests/history/checker tells
/// whether there is an order that explains it.
struct HistoryOperation {
  int64_t call_ns = 0;
  int64_t return_ns = 0;  ///< 0: unknown whether and when it takes effect.
  /// The last sequence that the database had before the call and after the return; 0 unless the
  /// options ask for them.
  uint64_t sequence_before = 0;
  uint64_t sequence_after = 0;
  bool write = false;
  std::vector<std::string> keys{};
  /// What each key was given, or was found to have. Without a value: deleted, or not there.
  std::vector<std::optional<std::string>> values{};
};

/// Writes the operations of each client to a file, one line each, as
/// tests/history/checker/history.go describes. Failures fail the test.
void WriteHistories(const std::vector<std::vector<HistoryOperation>>& histories,
                    const std::string& path);

struct HistoryOptions {
  int clients = 5;
  /// How many of them only read, and stay with a database until it answers that it is fenced: an
  /// owner that was replaced must not answer what was true before.
  int readers = 0;
  /// So many of them, the last ones, read from followers of the owner, as of now, and the others
  /// write only: what lies in all copies of the log shows to followers, and to the owner's own
  /// readers when it has noticed.
  int followers = 0;
  /// The clients go from group to group of keys; a group is checked as one object.
  int keys_in_group = 8;
  uint64_t operations_in_group = 1000;
  /// How many of 100 operations are on several keys: batches, MultiGets, snapshots and iterators.
  uint64_t percent_of_many = 60;
  /// So large that tables are made and compacted.
  size_t value_bytes = 1500;
  /// Between two operations of a client at most, so that histories do not grow beyond what can be
  /// checked while nodes die and come back.
  std::chrono::microseconds longest_pause{400};
  /// How long a client that was fenced waits for the next database.
  std::chrono::seconds patience{60};
  WriteOptions write{};
  /// Notes sequences beside each operation (`DB::GetLatestSequenceNumber`).
  bool note_sequences = false;
  uint64_t seed = 0;
};

/// How the operations went.
struct HistoryCounts {
  uint64_t operations = 0;
  uint64_t unknown_writes = 0;  ///< That answered an error, and may take effect yet.
  uint64_t failed_reads = 0;    ///< They are not part of the history.
};

/// One client: its random operations, and what came of them. One thread at a time.
class HistoryClient {
 public:
  /// `shared`, `started` (operations of all clients) and `options` outlive it.
  HistoryClient(int number, const HistoryOptions& options, SharedDB* shared,
                std::atomic<uint64_t>* started);

  /// Until `stop`. A client that is fenced waits for the next database; others go there as soon as
  /// there is one, unless they are readers.
  void Run(const std::atomic<bool>& stop);
  /// All keys of a group at once. A failure fails the test.
  void ReadGroup(uint64_t group);

  const std::vector<HistoryOperation>& history() const { return history_; }
  const HistoryCounts& counts() const { return counts_; }

 private:
  Status Step(DB* db);
  Status Write(DB* db, uint64_t group, bool many);
  Status GetOne(DB* db, uint64_t group);
  Status MultiGet(DB* db, uint64_t group);
  Status ReadSnapshot(DB* db, uint64_t group);
  Status Iterate(DB* db, uint64_t group);

  std::vector<std::string> KeysOf(uint64_t group) const;
  /// 1 to 4 keys of the group, none twice.
  std::vector<std::string> SomeKeysOf(uint64_t group);
  /// A value that was never written before.
  std::string NewValue();
  /// Adds what a key was found to have; the test fails if no client wrote it so.
  void Found(const Status& status, const Slice& key, const Slice& value, HistoryOperation* read);
  uint64_t SequenceNow(DB* db) const;
  Status Finish(DB* db, const Status& status, HistoryOperation operation);

  const int number_;
  const HistoryOptions& options_;
  const bool follower_;
  const bool reader_;
  ReadOptions read_;
  SharedDB* const shared_;
  std::atomic<uint64_t>* const started_;
  Random random_;
  uint64_t values_ = 0;
  /// After a write of unknown outcome, a client deletes nothing until it comes to another group: a
  /// delete that may take effect at any time cannot be told from others.
  uint64_t no_deletes_in_ = UINT64_MAX;
  std::vector<HistoryOperation> history_;
  HistoryCounts counts_;
};

/// Runs clients in threads of their own, while the test does harm.
class HistoryRun {
 public:
  /// `followers`: as many as the options say.
  HistoryRun(std::shared_ptr<DB> db, const HistoryOptions& options,
             const std::vector<std::shared_ptr<DB>>& followers = {});
  /// The clients of a database that has several members are divided among these.
  HistoryRun(const std::vector<std::shared_ptr<DB>>& members, const HistoryOptions& options);
  /// Stops.
  ~HistoryRun();
  HistoryRun(const HistoryRun&) = delete;
  HistoryRun& operator=(const HistoryRun&) = delete;

  void Start();
  /// A key in the middle of the group of keys that the clients use now.
  std::string MiddleKey() const;
  /// From now on the clients use `db`, readers when they are fenced; the old one is closed when the
  /// last of them has left it.
  void SetDB(std::shared_ptr<DB> db) { shared_.Set(std::move(db)); }
  /// Returns when the clients have begun `count` operations from now on. Fails the test if they do
  /// not get there.
  void AwaitOperations(uint64_t count);
  /// Returns when all clients of the owner have been fenced and wait for the next one. Fails the
  /// test if they do not get there.
  void AwaitAllFenced();
  /// Joins the clients. Idempotent.
  void Stop();

  /// After Stop: reads all there is once more, as part of the history.
  void ReadAll();
  /// After Stop: of each client what it did, in the order in which it did it.
  std::vector<std::vector<HistoryOperation>> histories() const;
  /// After Stop.
  HistoryCounts counts() const;

 private:
  const HistoryOptions options_;
  SharedDB shared_;
  std::vector<std::unique_ptr<SharedDB>> others_;  ///< Followers, or members but the first one.
  std::atomic<uint64_t> started_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::unique_ptr<HistoryClient>> clients_;
  std::vector<std::thread> threads_;
};

}  // namespace nacre
