#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "nacre/status.h"
#include "rdma/transport.h"

namespace nacre::memnode {

/// The memory of one node: a header, the slab table, then the slabs (docs/formats.md).
///
///     0                     RegionHeader
///     kSlabTableOffset      one SlabEntry a slab
///     header.slab_area      the slabs
///
/// The header and the table describe the region to whoever finds it, such as a node started anew
/// over the same memory.
///
/// Thread safety: the slab methods from one thread; `leased` and what is constant from any.
class ServerRegion {
 public:
  static constexpr uint64_t kMagic = 0x6e6f69676572434eULL;  // "NCregion"
  static constexpr uint32_t kFormatVersion = 1;
  static constexpr uint64_t kSlabTableOffset = 4096;
  /// Smaller slabs would hold no table.
  static constexpr uint64_t kMinSlabBytes = 64 << 10;

  /// Little-endian.
  struct Header {
    uint64_t magic;
    uint32_t format_version;
    uint32_t header_crc;  ///< CRC32C of the header with this field 0.
    uint64_t instance_id;
    uint64_t slab_bytes;
    uint64_t slab_count;
    uint64_t slab_area;  ///< Offset of the first slab.
  };
  static_assert(sizeof(Header) == 48);

  struct SlabEntry {
    uint64_t database_id;  ///< 0: free.
    uint64_t owner_epoch;  ///< Reserved for take-over; 0.
  };
  static_assert(sizeof(SlabEntry) == 16);

  /// Room for `bytes` / `slab_bytes` slabs. `InvalidArgument` if that is none, or the slab size is
  /// no multiple of a page.
  static Status Create(rdma::Device* device, uint64_t bytes, uint64_t slab_bytes,
                       uint64_t instance_id, std::unique_ptr<ServerRegion>* region);

  /// `count` slabs for the database, contiguous if so wished; `extend_count` slabs at `extend_at`
  /// instead, if that is not 0 and they are free. `NoSpace` if there are not that many.
  Status Lease(uint64_t database_id, uint32_t count, bool contiguous, uint64_t extend_at,
               uint32_t extend_count, std::vector<uint64_t>* offsets);
  /// All or nothing; `InvalidArgument` if one of them is no slab of the database.
  Status Return(uint64_t database_id, const std::vector<uint64_t>& offsets);
  /// Frees every slab of the database.
  void ReturnAll(uint64_t database_id);
  /// Whether all of [offset, offset + length) is leased to the database.
  bool Owns(uint64_t database_id, uint64_t offset, uint64_t length) const;

  /// Unregisters and frees the memory; afterwards only the numbers below are left.
  void FreeMemory() { memory_.reset(); }

  rdma::MemoryRegion* memory() const { return memory_.get(); }
  char* data() const { return memory_->data(); }
  uint64_t size() const { return size_; }
  uint64_t slab_bytes() const { return slab_bytes_; }
  uint64_t slab_count() const { return slab_count_; }
  uint64_t leased() const { return leased_.load(std::memory_order_relaxed); }

 private:
  ServerRegion() = default;

  SlabEntry* entries() const {
    return reinterpret_cast<SlabEntry*>(memory_->data() + kSlabTableOffset);
  }
  uint64_t OffsetOf(uint64_t slab) const { return slab_area_ + slab * slab_bytes_; }
  bool IsFree(uint64_t first, uint64_t count) const;
  void Assign(uint64_t slab, uint64_t database_id, std::vector<uint64_t>* offsets);
  /// The slab at `offset`, or slab_count_.
  uint64_t SlabAt(uint64_t offset) const;

  std::unique_ptr<rdma::MemoryRegion> memory_;
  uint64_t size_ = 0;
  uint64_t slab_bytes_ = 0;
  uint64_t slab_count_ = 0;
  uint64_t slab_area_ = 0;
  std::atomic<uint64_t> leased_{0};
};

}  // namespace nacre::memnode
