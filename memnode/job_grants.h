#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "nacre/status.h"
#include "rdma/transport.h"
#include "table/format/placement.h"

namespace nacre::pool {

/// The rights of the databases' jobs in one node's memory. The owner of a database begins each job
/// on all nodes that have space of its outputs, and on the one that is to run it; each grants keys
/// to just that space. When the owner has ended a job here, its keys are revoked for good. A
/// request to begin or to run it may still come, if it was overtaken: it is refused.
///
/// Ranges that touch share a key, as over verbs each key is a registration.
///
/// Thread safety: none (the node's I/O thread).
class JobGrants {
 public:
  /// Jobs at a time. An owner has a handful on each node; one that leaves more behind is at fault.
  static constexpr size_t kMost = 4096;

  /// `*keys`: one for each of `extents`, which the caller has checked to be the database's.
  /// `InvalidArgument` if the job has begun already, `Aborted` if it was ended before, `Busy` if
  /// there are too many, or no keys left.
  Status Begin(uint64_t database_id, uint64_t job_id, const std::vector<ExtentAddr>& extents,
               rdma::MemoryRegion* memory, std::vector<uint32_t>* keys);
  /// Whether it has begun and not been ended.
  bool Has(uint64_t database_id, uint64_t job_id) const;
  /// Revokes the job's keys. OK if there is no such job; `Unavailable` as RegionGrant::Revoke, and
  /// then to be called again.
  Status End(uint64_t database_id, uint64_t job_id);
  /// All jobs of the database.
  void EndAll(uint64_t database_id);
  /// Revokes the keys to anything in these bytes. `Unavailable` as RegionGrant::Revoke.
  Status RevokeWithin(uint64_t offset, uint64_t length);
  void Clear() { jobs_.clear(); }

  size_t size() const { return jobs_.size(); }

 private:
  struct Grant {
    uint64_t offset = 0;
    uint64_t length = 0;
    std::unique_ptr<rdma::RegionGrant> grant;
  };
  struct Job {
    bool ended = false;  ///< It is kept for the keys that could not be revoked.
    std::vector<Grant> grants;
  };
  using Key = std::pair<uint64_t, uint64_t>;  // Database and job.
  /// A request is overtaken by those that were sent while its connection timed out. One that comes
  /// later than so many jobs' ends leaves a grant whose keys were never handed out.
  static constexpr size_t kMostOvertaking = 1024;

  std::map<Key, Job> jobs_;
  std::deque<Key> ended_first_;  ///< Jobs that were ended before they had begun; oldest first.
};

}  // namespace nacre::pool
