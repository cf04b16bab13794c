#include "tests/support/sim_transport/region.h"

#include <sys/mman.h>

#include <string>

#include "util/simulation.h"

namespace nacre::rdma {

namespace {

constexpr uint64_t kPageBytes = 4096;

uint32_t DrawKey() { return static_cast<uint32_t>(Simulation::Current()->Random()); }

uint64_t DrawAddress() { return (Simulation::Current()->Random() >> 20) * kPageBytes; }

class SimGrant final : public RegionGrant {
 public:
  SimGrant(std::shared_ptr<SimKeys> keys, RemoteKey key) : keys_(std::move(keys)), key_(key) {}
  ~SimGrant() override { keys_->Remove(key_.key); }

  RemoteKey remote_key() const override { return key_; }
  Status Revoke() override {
    keys_->Remove(key_.key);
    return Status::OK();
  }

 private:
  const std::shared_ptr<SimKeys> keys_;
  const RemoteKey key_;
};

}  // namespace

uint32_t SimKeys::Add(const SimKey& key, uint32_t wish) {
  // The contract's tests take 0 and all ones for keys that no region has.
  while (wish == 0 || wish == ~uint32_t{0} || !keys_.try_emplace(wish, key).second) {
    wish = DrawKey();
  }
  return wish;
}

char* SimKeys::Find(const RemoteBuffer& buffer, uint64_t size, Access needed) const {
  const auto found = keys_.find(buffer.key);
  if (found == keys_.end()) return nullptr;
  const SimKey& key = found->second;
  const uint64_t offset = buffer.address - key.address;
  if (key.access < needed || offset > key.size || size > key.size - offset) return nullptr;
  return key.data + offset;
}

SimKey SimKeys::Largest() const {
  SimKey largest;
  for (const auto& [number, key] : keys_) {
    if (key.size > largest.size) largest = key;
  }
  return largest;
}

SimRegion::SimRegion(std::shared_ptr<SimKeys> keys, char* data, size_t size, Access access,
                     bool owned)
    : keys_(std::move(keys)),
      data_(data),
      size_(size),
      access_(access),
      owned_(owned),
      address_(DrawAddress()),
      key_(keys_->Add({data, address_, size, access}, DrawKey())) {}

SimRegion::~SimRegion() {
  keys_->Remove(key_);
  if (owned_) munmap(data_, size_);
}

Status SimRegion::Grant(size_t offset, size_t size, Access access,
                        std::unique_ptr<RegionGrant>* grant) {
  if (access == Access::kLocalOnly || access_ == Access::kLocalOnly) {
    return Status::InvalidArgument("a grant of a region, or with an access, that is local only");
  }
  if (size == 0 || offset > size_ || size > size_ - offset) {
    return Status::InvalidArgument("a grant of " + std::to_string(size) + " bytes at " +
                                   std::to_string(offset) + " of a region of " +
                                   std::to_string(size_));
  }
  RemoteKey key{.address = address_ + offset, .size = size, .key = 0};
  key.key = keys_->Add({data_ + offset, key.address, size, access}, DrawKey());
  *grant = std::make_unique<SimGrant>(keys_, key);
  return Status::OK();
}

bool SimRegion::Contains(const LocalBuffer& buffer) const {
  const auto offset = static_cast<uint64_t>(buffer.data - data_);
  return offset <= size_ && buffer.size <= size_ - offset;
}

}  // namespace nacre::rdma
