#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "db/manifest/manifest_log.h"
#include "db/manifest/manifest_state.h"
#include "pool/pool_impl.h"
#include "pool/space/space_allocator.h"
#include "pool/store/mirrored_extent.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {

/// A pool with one database in it, and what a manifest needs of that: space, and a root that is
/// kept here. Failures to start fail the test.
class ManifestPool : public ManifestSpace {
 public:
  explicit ManifestPool(int copies = 3, const TestPoolOptions& options = {});
  ManifestPool(int copies, std::shared_ptr<pool::PoolImpl> pool, uint64_t slab_bytes);

  Status ReserveReplicas(uint64_t bytes, std::vector<ExtentAddr>* copies) override;
  void FreeReplicas(const std::vector<ExtentAddr>& copies) override;
  Status PublishRoot(const std::string& value) override;

  pool::PoolClient* client() const { return pool_->client(); }
  pool::PoolImpl* pool() const { return pool_.get(); }
  uint64_t database_id() const { return database_id_; }
  const std::string& root() const { return root_; }
  pool::SpaceAllocator* space() const { return space_.get(); }
  /// How many replicas were reserved and not freed.
  uint64_t copies_in_use() const { return copies_in_use_; }

  /// Options of the next owner, which updates images only when they are asked for.
  ManifestLogOptions LogOptions();
  ManifestState InitialState() const;

  /// XORs `mask` onto a byte of a copy.
  void Flip(const ExtentAddr& copy, uint64_t offset, char mask);
  std::string ReadCopy(const ExtentAddr& copy, uint64_t offset, size_t n);
  /// At most 1 MiB.
  void WriteCopy(const ExtentAddr& copy, uint64_t offset, const std::string& bytes);

  // What goes wrong next, once.
  Status next_reserve;
  Status next_publish;
  bool publish_though_failed = false;  ///< The failure hides that the root was set.
  /// Called before space for a manifest is reserved.
  std::function<void()> on_reserve;

 private:
  const int copies_;
  std::shared_ptr<pool::PoolImpl> pool_;
  uint64_t database_id_ = 0;
  uint64_t epoch_ = 0;
  std::unique_ptr<pool::SpaceAllocator> space_;
  std::string root_;
  std::atomic<uint64_t> copies_in_use_{0};
  std::unique_ptr<rdma::MemoryRegion> buffer_;
  std::map<uint64_t, std::unique_ptr<pool::MirroredExtent>> extents_;  ///< Used by WriteCopy.
};

/// With bounds of up to `key_bytes`, on `fragments` of ten nodes.
TableMeta RandomTableMeta(Random* random, uint64_t id, size_t key_bytes = 20, int fragments = 3);
LogSegment RandomLogSegment(Random* random, uint64_t number);
/// An edit that fits `state`: adds, replaces and removes a few things.
ManifestEdit RandomManifestEdit(Random* random, const ManifestState& state, size_t key_bytes = 20);
/// All of it but the version: two states are equal if this is.
std::string EncodeForComparison(const ManifestState& state);

}  // namespace nacre
