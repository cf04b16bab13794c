#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "jobs/job_peers.h"
#include "jobs/plugin_registry.h"
#include "nacre/status.h"
#include "pool/store/write_keys.h"
#include "pool/wire/messages.h"
#include "table/format/placement.h"

namespace nacre::pool {

/// What a node has done for its clients on threads of its own. Monotonic.
struct JobCounters {
  std::atomic<uint64_t> compactions{0};
  std::atomic<uint64_t> compactions_failed{0};  ///< Cancelled ones included.
  std::atomic<uint64_t> compaction_bytes_read{0};
  std::atomic<uint64_t> compaction_bytes_written{0};
  std::atomic<uint64_t> compaction_cpu_nanos{0};
  std::atomic<uint64_t> flushes{0};  ///< Key ranges of MemTables that were made tables here.
  std::atomic<uint64_t> flush_bytes_written{0};
  std::atomic<uint64_t> flush_cpu_nanos{0};
  std::atomic<uint64_t> rebuilt_bytes{0};  ///< Bytes of fragments.
  std::atomic<uint64_t> rebuild_cpu_nanos{0};
  std::atomic<uint64_t> scrubbed_bytes{0};
};

/// Work that a node does for a client, near the data: takes longer than a request may, and may
/// write to other nodes. One is made by the I/O thread, run by a thread of a NodeJobService, and
/// answered by the I/O thread.
class NodeJob {
 public:
  virtual ~NodeJob() = default;

  /// Takes over the client and the header; `InvalidArgument` unless the job is for the node with
  /// `instance_id`.
  Status SetHeader(uint64_t client, const control::JobHeader& header, uint64_t instance_id);

  uint64_t client_id() const { return client_id_; }
  uint64_t job_id() const { return job_id_; }
  uint64_t database_id() const { return database_id_; }
  uint64_t owner_epoch() const { return owner_epoch_; }
  const PeersKey& peers() const { return peers_; }
  /// To the outputs' extents on other nodes.
  const WriteKeys& write_keys() const { return write_keys_; }

  /// Where the job writes, or what it reads here: of the database, as far as it is this node's.
  virtual std::vector<ExtentAddr> Extents() const = 0;
  virtual Status Run(JobPeers* peers) = 0;
  /// Once it has ended, or could not begin.
  virtual void Count(JobCounters* counters) const = 0;
  /// After Run, if it succeeded.
  virtual void FillReply(control::Reply* reply) const = 0;

  /// The job ends soon with `Aborted`. Any thread.
  void Cancel() { cancelled_.store(true, std::memory_order_release); }
  const std::atomic<bool>* cancelled() const { return &cancelled_; }

  Status status;  ///< Once it has ended.

 private:
  uint64_t client_id_ = 0;
  uint64_t job_id_ = 0;
  uint64_t database_id_ = 0;
  uint64_t owner_epoch_ = 0;
  PeersKey peers_;
  WriteKeys write_keys_;
  std::atomic<bool> cancelled_{false};
};

/// The header of the job that `request` asks for; null if it asks for none.
const control::JobHeader* JobHeaderOf(const control::Request& request);
/// Makes that job, for the node with `instance_id`. Safe on any request.
Status MakeNodeJob(const control::Request& request, const PluginRegistry& plugins, uint64_t client,
                   uint64_t instance_id, std::shared_ptr<NodeJob>* job);

}  // namespace nacre::pool
