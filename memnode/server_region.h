#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "memnode/job_grants.h"
#include "memnode/region_file.h"
#include "nacre/logger.h"
#include "nacre/status.h"
#include "pool/wire/region_layout.h"
#include "rdma/transport.h"

namespace nacre::pool {

/// The memory of one node: a header, the slab table, then the slabs (pool/wire/region_layout.h).
///
/// The header and the table describe the region to a node that is started anew over the same memory
/// (region_file.h). An entry of the table is stored before the lease is answered, and cleared after
/// the key was revoked. Peers may read all of it; only peers that were given a slab's key, or, as
/// jobs, keys to parts of it, write into the slab. All of these are revoked before the slab is
/// reused. If a process stands still inside a write under one of them and cannot be killed
/// (rdma::RegionGrant::Revoke), the slab stays unused.
///
/// Thread safety: the slab methods from one thread; `leased` and what is constant from any.
class ServerRegion {
 public:
  /// Smaller slabs would hold no table.
  static constexpr uint64_t kMinSlabBytes = 64 << 10;

  /// `*total`: of a region with room for `bytes` / `slab_bytes` slabs. `InvalidArgument` if that is
  /// none, or the slab size is no multiple of a page.
  static Status SizeOf(uint64_t bytes, uint64_t slab_bytes, uint64_t* total);
  /// Makes an empty region in memory of `device`; failures as SizeOf and AllocateRegion. `log` may
  /// be null; else it outlives the region.
  static Status Create(rdma::Device* device, uint64_t bytes, uint64_t slab_bytes,
                       uint64_t instance_id, Logger* log, std::unique_ptr<ServerRegion>* region);
  /// Opens the region in `file`; failures as SizeOf and MapRegion, and `Corruption` if what is
  /// there is not the region that the file says.
  static Status Open(rdma::Device* device, uint64_t bytes, uint64_t slab_bytes,
                     const RegionFile& file, Logger* log, std::unique_ptr<ServerRegion>* region);

  /// `count` slabs for the database, contiguous if so wished; `extend_count` slabs at `extend_at`
  /// instead, if that is not 0 and they are free. `NoSpace` if there are not that many, or the
  /// device has no keys for them.
  Status Lease(uint64_t database_id, uint32_t count, bool contiguous, uint64_t extend_at,
               uint32_t extend_count, std::vector<uint64_t>* offsets);
  /// All or nothing; `InvalidArgument` if one of them is no slab of the database, or has another
  /// key: then it has been leased anew since.
  Status Return(uint64_t database_id, const std::vector<uint64_t>& offsets,
                const std::vector<uint32_t>& keys);
  /// Frees every slab of the database.
  void ReturnAll(uint64_t database_id);
  /// Frees every slab of other databases.
  void ReturnAllBut(const std::set<uint64_t>& database_ids);
  /// Makes keys to all slabs of the database, for an owner that has just opened it. `Unavailable`
  /// if a writer of before may still write to one.
  Status GrantAll(uint64_t database_id);
  /// Revokes the keys to all slabs of the database, and those of its jobs; it keeps the slabs.
  void RevokeAll(uint64_t database_id);
  /// How many slabs these databases have together.
  uint64_t LeasedTo(const std::set<uint64_t>& database_ids) const;
  /// Offsets of the database's slabs.
  std::vector<uint64_t> SlabsOf(uint64_t database_id) const;
  /// The key of the leased slab at or around `offset`; its owner has the database open.
  uint32_t WriteKey(uint64_t offset) const;
  /// Whether all of [offset, offset + length) is leased to the database.
  bool Owns(uint64_t database_id, uint64_t offset, uint64_t length) const;

  /// Lets a job write into these extents, which lie in slabs of the database; see JobGrants.
  Status BeginJob(uint64_t database_id, uint64_t job_id, const std::vector<ExtentAddr>& extents,
                  std::vector<uint32_t>* keys) {
    return job_grants_.Begin(database_id, job_id, extents, memory_.get(), keys);
  }
  bool HasJob(uint64_t database_id, uint64_t job_id) const {
    return job_grants_.Has(database_id, job_id);
  }
  Status EndJob(uint64_t database_id, uint64_t job_id) {
    return job_grants_.End(database_id, job_id);
  }

  /// Unregisters and frees the memory; afterwards only the numbers below are left.
  void FreeMemory() {
    stuck_.clear();
    job_grants_.Clear();
    grants_.clear();
    memory_.reset();
  }

  rdma::MemoryRegion* memory() const { return memory_.get(); }
  char* data() const { return memory_->data(); }
  uint64_t size() const { return size_; }
  uint64_t slab_bytes() const { return slab_bytes_; }
  uint64_t slab_count() const { return slab_count_; }
  uint64_t slab_area() const { return slab_area_; }
  /// Leased slabs, with those that a peer may still write to, whosever they were.
  uint64_t leased() const { return leased_.load(std::memory_order_relaxed); }

 private:
  ServerRegion() = default;

  /// All but the memory.
  static Status LayOut(uint64_t bytes, uint64_t slab_bytes, Logger* log,
                       std::unique_ptr<ServerRegion>* region);
  RegionHeader HeaderOf(uint64_t instance_id) const;
  SlabEntry* entries() const {
    return reinterpret_cast<SlabEntry*>(memory_->data() + kSlabTableOffset);
  }
  uint64_t OffsetOf(uint64_t slab) const { return slab_area_ + slab * slab_bytes_; }
  bool IsFree(uint64_t first, uint64_t count) const;
  /// Gives `count` slabs from `slab` on to the database: all, or none if there are no keys.
  Status Assign(uint64_t slab, uint64_t count, uint64_t database_id,
                std::vector<uint64_t>* offsets);
  /// Revokes the key first.
  void TakeBack(uint64_t slab);
  Status GrantOne(uint64_t slab);
  /// Revokes the slab's key, if there is one, and keys of jobs to parts of it. A failure is logged
  /// and makes the slab a stuck one.
  Status RevokeOne(uint64_t slab);
  /// Frees the stuck slabs of no database whose writes have ended since.
  void FreeStuck();
  /// The slab at `offset`, or slab_count_.
  uint64_t SlabAt(uint64_t offset) const;

  std::unique_ptr<rdma::MemoryRegion> memory_;
  Logger* log_ = nullptr;
  std::vector<std::unique_ptr<rdma::RegionGrant>> grants_;  ///< Indexed by slab; null: no key.
  JobGrants job_grants_;
  /// Slabs of which a key is revoked, and kept, because a write under it may still land.
  std::set<uint64_t> stuck_;
  uint64_t size_ = 0;
  uint64_t slab_bytes_ = 0;
  uint64_t slab_count_ = 0;
  uint64_t slab_area_ = 0;
  std::atomic<uint64_t> leased_{0};
};

}  // namespace nacre::pool
