#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "rdma/memory.h"
#include "rdma/transport.h"

namespace nacre::rdma {

class ShmDevice;

/// A region of this process. Its bytes stay mapped for as long as a peer's request may be copying
/// them, but are given back to the system at once.
class ShmRegion final : public MemoryRegion {
 public:
  ShmRegion(ShmDevice* device, size_t size, Access access, uint32_t key, UniqueFd fd,
            std::shared_ptr<Mapping> mapping)
      : device_(device),
        data_(mapping->data()),
        size_(size),
        access_(access),
        key_(key),
        fd_(std::make_shared<const UniqueFd>(std::move(fd))),
        mapping_(std::move(mapping)) {}
  ~ShmRegion() override;

  char* data() const override { return data_; }
  size_t size() const override { return size_; }
  RemoteKey remote_key() const override {
    return {.address = reinterpret_cast<uint64_t>(data_), .size = size_, .key = key_};
  }

  Status Grant(size_t offset, size_t size, Access access,
               std::unique_ptr<RegionGrant>* grant) override;
  Status Populate() override { return PopulateMemory(*mapping_); }

  const ShmDevice* device() const { return device_; }
  Access access() const { return access_; }
  /// Its file; none for private memory.
  const std::shared_ptr<const UniqueFd>& fd() const { return fd_; }

 private:
  ShmDevice* const device_;
  char* const data_;
  const size_t size_;
  const Access access_;
  const uint32_t key_;
  const std::shared_ptr<const UniqueFd> fd_;
  const std::shared_ptr<Mapping> mapping_;
};

/// A key to part of a region, described in the control block.
class ShmGrant final : public RegionGrant {
 public:
  ShmGrant(ShmDevice* device, RemoteKey key) : device_(device), key_(key) {}
  ~ShmGrant() override;

  RemoteKey remote_key() const override { return key_; }
  Status Revoke() override;

 private:
  enum class State : uint8_t { kInForce, kRevoked, kOver };

  ShmDevice* const device_;
  const RemoteKey key_;
  State state_ = State::kInForce;
};

}  // namespace nacre::rdma
