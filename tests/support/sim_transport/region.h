#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "rdma/transport.h"

namespace nacre::rdma {

/// What a key of a device opens.
struct SimKey {
  char* data = nullptr;
  uint64_t address = 0;
  uint64_t size = 0;
  Access access = Access::kLocalOnly;
};

/// The keys of one device. Shared with its regions and with connections to it, which may outlive
/// the device.
class SimKeys {
 public:
  uint32_t Add(const SimKey& key, uint32_t wish);
  void Remove(uint32_t key) { keys_.erase(key); }
  /// The key that opens most memory.
  SimKey Largest() const;
  /// Drops the keys of a machine that has failed.
  void Clear() { keys_.clear(); }
  /// Null unless all of it may be used so.
  char* Find(const RemoteBuffer& buffer, uint64_t size, Access needed) const;

  TrafficCounters traffic{};  ///< The device's traffic.

 private:
  std::map<uint32_t, SimKey> keys_;
};

/// Memory that is mapped, or the caller's.
class SimRegion final : public MemoryRegion {
 public:
  SimRegion(std::shared_ptr<SimKeys> keys, char* data, size_t size, Access access, bool owned);
  ~SimRegion() override;

  char* data() const override { return data_; }
  size_t size() const override { return size_; }
  RemoteKey remote_key() const override { return {address_, size_, key_}; }
  Status Grant(size_t offset, size_t size, Access access,
               std::unique_ptr<RegionGrant>* grant) override;
  bool Contains(const LocalBuffer& buffer) const;

 private:
  const std::shared_ptr<SimKeys> keys_;
  char* const data_;
  const size_t size_;
  const Access access_;
  const bool owned_;
  const uint64_t address_;  ///< As peers know it: by chance, not where the memory happens to be.
  const uint32_t key_;
};

}  // namespace nacre::rdma
