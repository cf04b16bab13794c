#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "db/version/version.h"
#include "jobs/scrub_job.h"
#include "nacre/options.h"
#include "nacre/status.h"
#include "pool/pool_client.h"
#include "util/clock.h"
#include "util/mutex.h"
#include "util/threads/periodic_task.h"

namespace nacre {

/// What scrubbing has done since the database was opened. Monotonic.
struct ScrubCounters {
  std::atomic<uint64_t> bytes{0};      ///< Bytes of fragments that were checked.
  std::atomic<uint64_t> fragments{0};  ///< Found damaged, each time anew.
  std::atomic<uint64_t> passes{0};     ///< Through all tables.
};

/// Has the nodes check what they hold of a database's tables against its checksums: without end and
/// slowly, by a thread, and at full speed on request. Each node checks its own memory; nothing of
/// it is sent. Damage is reported to the tables' handles.
///
/// Thread safety: all methods may be called from many threads at once, save Start and Stop.
class Scrubber {
 public:
  struct Database {
    std::string name;
    uint64_t id = 0;
    pool::PoolClient* client = nullptr;
    Clock* clock = nullptr;
    Logger* log = nullptr;  ///< May be null.
    /// The tables at the moment.
    std::function<VersionList()> versions;
  };

  explicit Scrubber(Database database) : database_(std::move(database)) {}
  ~Scrubber() { Stop(); }
  Scrubber(const Scrubber&) = delete;
  Scrubber& operator=(const Scrubber&) = delete;

  /// `bytes_per_second`: of each node; 0: nothing is done by itself.
  void Start(uint64_t bytes_per_second);
  /// Ends what is under way, with `Aborted`. Idempotent.
  void Stop() EXCLUDES(mutex_);

  /// Has all tables checked now. `Corruption` names tables with more damage than can be read
  /// around, `Unavailable` tables that have lost too many nodes; damage that can be read around is
  /// no failure. Nodes that are lost are left out.
  Status VerifyNow() EXCLUDES(mutex_);

  const ScrubCounters& counters() const { return counters_; }

 private:
  /// What one pass has found damaged, by table.
  struct DamagedTable {
    std::shared_ptr<TableHandle> table;
    std::map<uint64_t, FragmentSet> rows;
  };
  struct Pass {
    uint64_t bytes_per_second = 0;
    const std::atomic<bool>* cancelled = nullptr;
    /// Tables made later are the next pass's. Metas: a pass keeps no table's space.
    std::vector<std::shared_ptr<const TableMeta>> tables;
    Mutex mutex;
    std::map<uint64_t, DamagedTable> damaged GUARDED_BY(mutex);
    Status failure GUARDED_BY(mutex);
  };
  /// Fragments that a node checks together, and whose they are.
  struct Batch {
    pool::ScrubJob job;
    std::vector<std::shared_ptr<TableHandle>> tables;  ///< By fragment.
  };

  void ScrubOnce(uint64_t bytes_per_second) EXCLUDES(mutex_);
  Status RunPass(Pass* pass);
  void ScrubNode(Pass* pass, NodeId node);
  /// The next fragments on `node`, of the pass's tables from `*next` on; `*next` becomes the first
  /// one after.
  Batch NextBatch(const Pass& pass, NodeId node, size_t* next) const;
  void Report(Pass* pass, NodeId node, const Batch& batch, const pool::ScrubResult& result);
  /// What the pass answers.
  Status Judge(Pass* pass);

  const Database database_;
  ScrubCounters counters_;
  std::atomic<bool> stopping_{false};
  /// The thread's pass makes way for a request.
  std::atomic<bool> interrupted_{false};
  Mutex mutex_;
  CondVar changed_{&mutex_};
  int verifying_ GUARDED_BY(mutex_) = 0;
  PeriodicTask task_;
};

}  // namespace nacre
