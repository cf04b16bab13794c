#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "nacre/logger.h"
#include "nacre/status.h"
#include "rdma/memory.h"
#include "rdma/transport.h"
#include "rdma/verbs/adapter.h"
#include "rdma/verbs/spent_keys.h"

namespace nacre::rdma {

/// Memory of this process that the adapter reads and writes: pinned, in huge pages where there are,
/// and registered in one piece, or in several where one would be more than the adapter takes. Each
/// piece has keys of its own.
///
/// Thread safety: all methods may be called from many threads at once.
class VerbsRegion final : public MemoryRegion {
 public:
  /// As Device::AllocateRegion. Gives and registers the memory with several threads, and tells
  /// `logger` (may be null) how far it is where that takes seconds. `adapter` outlives the region.
  static Status Allocate(const Adapter& adapter, size_t size, Access access, Logger* logger,
                         std::unique_ptr<MemoryRegion>* region);
  /// As Device::MapRegion.
  static Status Map(const Adapter& adapter, int fd, size_t size, Access access, Logger* logger,
                    std::unique_ptr<MemoryRegion>* region);
  /// As Device::RegisterLocal.
  static Status RegisterLocal(const Adapter& adapter, char* data, size_t size, Logger* logger,
                              std::unique_ptr<MemoryRegion>* region);

  char* data() const override { return mapping_->data(); }
  size_t size() const override { return size_; }
  RemoteKey remote_key() const override { return piece_key(0); }
  size_t piece_bytes() const override {
    return pieces_.size() == 1 ? size_ : size_t{1} << piece_shift_;
  }
  RemoteKey piece_key(size_t piece) const override;
  Status Grant(size_t offset, size_t size, Access access,
               std::unique_ptr<RegionGrant>* grant) override;

  const Adapter* adapter() const { return adapter_; }

  /// The elements that name `buffer` to the adapter, whose owner has checked that it is within the
  /// region: two if it goes over the end of a piece. It is no longer than a piece.
  int ScatterGather(const char* data, uint32_t size, std::array<ibv_sge, 2>* elements) const {
    const uint64_t offset = static_cast<uint64_t>(data - mapping_->data());
    const uint64_t index = offset >> piece_shift_;
    const uint64_t left = ((index + 1) << piece_shift_) - offset;
    (*elements)[0] = {.addr = Address(offset), .length = size, .lkey = pieces_[index]->lkey};
    if (size <= left) [[likely]]
      return 1;
    (*elements)[0].length = static_cast<uint32_t>(left);
    (*elements)[1] = {.addr = Address(offset + left),
                      .length = static_cast<uint32_t>(size - left),
                      .lkey = pieces_[index + 1]->lkey};
    return 2;
  }
  uint64_t max_part_bytes() const { return uint64_t{1} << piece_shift_; }

 private:
  VerbsRegion(const Adapter& adapter, size_t size, std::shared_ptr<Mapping> mapping,
              uint32_t piece_shift)
      : adapter_(&adapter), size_(size), mapping_(std::move(mapping)), piece_shift_(piece_shift) {}

  uint64_t Address(uint64_t offset) const {
    return reinterpret_cast<uintptr_t>(mapping_->data()) + offset;
  }
  static Status Make(const Adapter& adapter, std::shared_ptr<Mapping> mapping, size_t size,
                     Access access, Logger* logger, std::unique_ptr<MemoryRegion>* region);
  Status Register(Access access, Logger* logger);

  const Adapter* const adapter_;
  const size_t size_;
  const std::shared_ptr<Mapping> mapping_;  ///< Outlives the pieces.
  const uint32_t piece_shift_;              ///< For a region in one piece, no offset reaches it.
  std::vector<UniqueMemoryRegion> pieces_;
  const std::shared_ptr<SpentKeys> spent_keys_ = std::make_shared<SpentKeys>();
};

}  // namespace nacre::rdma
