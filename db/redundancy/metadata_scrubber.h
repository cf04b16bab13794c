#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "db/manifest/manifest_log.h"
#include "db/wal/log_scrub.h"
#include "db/wal/log_writer.h"
#include "nacre/logger.h"
#include "nacre/status.h"
#include "pool/pool_client.h"
#include "pool/read/pool_reader.h"
#include "util/clock.h"
#include "util/mutex.h"
#include "util/threads/periodic_task.h"

namespace nacre {

/// What scrubbing of log and manifest has done since the database was opened. Monotonic.
struct MetadataScrubCounters {
  std::atomic<uint64_t> bytes{0};    ///< Read and compared.
  std::atomic<uint64_t> damaged{0};  ///< Replicas found damaged, each time anew.
  std::atomic<uint64_t> healed{0};   ///< Those of them whose damage is gone since.
  std::atomic<uint64_t> passes{0};   ///< Through log and manifest.
};

/// Compares the replicas of an open database's log and manifest with their checksums: without end
/// and slowly, by a thread, and at full speed on request. The owner reads them, since they are
/// small beside the tables and only it knows how far they count. What is damaged is healed at once:
/// a replica of a log segment is written anew from one that is whole, the records of a segment of
/// which no replica is whole go into tables, and the manifest is renewed.
///
/// Thread safety: all methods may be called from many threads at once, save Start and Stop.
class MetadataScrubber {
 public:
  struct Database {
    std::string name;
    uint64_t id = 0;
    pool::PoolClient* client = nullptr;
    Clock* clock = nullptr;
    Logger* logger = nullptr;  ///< May be null.
    ManifestLog* manifest = nullptr;
    LogWriter* log = nullptr;  ///< Null: there is none.
    /// Begins to bring what the log has into tables, from MemTables.
    std::function<void()> flush_log;
    /// Drops the log's segments that are not needed, which may have been kept while one was healed.
    std::function<void()> release_log;
  };

  explicit MetadataScrubber(Database database) : database_(std::move(database)) {}
  ~MetadataScrubber() { Stop(); }
  MetadataScrubber(const MetadataScrubber&) = delete;
  MetadataScrubber& operator=(const MetadataScrubber&) = delete;

  /// `bytes_per_second`: of all replicas together; 0: nothing is done by itself.
  void Start(uint64_t bytes_per_second);
  /// Ends what is under way, with `Aborted`. Idempotent.
  void Stop();

  /// Compares all replicas now, and heals them. Answers why damage could not be healed: as
  /// ManifestLog::Renew does. Replicas on lost nodes are left out.
  Status VerifyNow() EXCLUDES(healing_) { return RunPass(0); }

  const MetadataScrubCounters& counters() const { return counters_; }

 private:
  void ScrubOnce(uint64_t bytes_per_second) EXCLUDES(healing_);
  Status RunPass(uint64_t bytes_per_second) EXCLUDES(healing_);
  Status ScrubManifest(pool::PoolReader* reader, const PassBytes& pass) EXCLUDES(healing_);
  Status ScrubLog(pool::PoolReader* reader, const PassBytes& pass) EXCLUDES(healing_);
  /// Looks again, at full speed, at a segment that looked damaged, and heals it if it is.
  void HealSegment(pool::PoolReader* reader, uint64_t number) EXCLUDES(healing_);
  /// How many replicas of a sealed segment were healed; `*flush`: some were not.
  void HealCopies(pool::PoolReader* reader, const WrittenSegment& written, bool* flush);
  std::string Name(const WrittenSegment& written, const ExtentAddr& copy) const;

  const Database database_;
  MetadataScrubCounters counters_;
  std::atomic<bool> stopping_{false};
  Mutex healing_;  ///< One heals at a time.
  PeriodicTask task_;
};

}  // namespace nacre
