#include "rdma/tcp/region.h"

#include <thread>
#include <utility>

#include "util/uri.h"

namespace nacre::rdma {

namespace {

class TcpGrant final : public RegionGrant {
 public:
  TcpGrant(RegionTable* table, RemoteKey key) : table_(table), key_(key) {}
  ~TcpGrant() override { End(); }
  RemoteKey remote_key() const override { return key_; }
  Status Revoke() override {
    End();
    return Status::OK();
  }

 private:
  void End() {
    if (std::exchange(in_force_, false)) table_->Remove(key_.key);
  }

  RegionTable* const table_;
  const RemoteKey key_;
  bool in_force_ = true;
};

}  // namespace

void RegionWindow::Revoke() const {
  revoked.store(true, std::memory_order_seq_cst);
  while (stores.load(std::memory_order_seq_cst) > 0) std::this_thread::yield();
}

RegionTable::RegionTable() : first_generation_(static_cast<uint32_t>(NewDeviceId())) {}

Status RegionTable::Add(std::shared_ptr<Mapping> memory, size_t offset, size_t size, Access access,
                        uint32_t* key) {
  auto window = std::make_shared<RegionWindow>();
  window->data = memory->data() + offset;
  window->memory = std::move(memory);
  window->size = size;
  window->access = access;
  MutexLock lock(&mutex_);
  uint32_t place = static_cast<uint32_t>(slots_.size());
  if (free_.size() >= kSlotsBeforeReuse || (place == kSlots && !free_.empty())) {
    place = free_.front();
    free_.pop_front();
  } else if (place == kSlots) {
    return Status::NoSpace("all " + std::to_string(kSlots) + " keys of the device are taken");
  } else {
    // Neither 0 nor all ones, which are what a forgotten key is likely to be.
    slots_.push_back({.key = (first_generation_ << kSlotBits) | place, .window = nullptr});
  }
  Slot& slot = slots_[place];
  while (slot.key == 0 || slot.key == ~uint32_t{0}) slot.key += kSlots;
  slot.window = std::move(window);
  *key = slot.key;
  return Status::OK();
}

void RegionTable::Remove(uint32_t key) {
  const uint32_t place = key % kSlots;
  std::shared_ptr<const RegionWindow> window;  // Its memory is not unmapped under the lock.
  {
    MutexLock lock(&mutex_);
    Slot& slot = slots_[place];
    window = std::move(slot.window);
    slot.window = nullptr;
    slot.key += kSlots;
    free_.push_back(place);
  }
  window->Revoke();
}

std::shared_ptr<const RegionWindow> RegionTable::Find(uint32_t key, uint64_t address, uint64_t size,
                                                      Access needed) {
  const uint32_t place = key % kSlots;
  MutexLock lock(&mutex_);
  if (place >= slots_.size() || slots_[place].key != key) return nullptr;
  const std::shared_ptr<const RegionWindow>& window = slots_[place].window;
  if (window == nullptr || window->access < needed) return nullptr;
  const uint64_t offset = address - reinterpret_cast<uint64_t>(window->data);
  if (offset > window->size || size > window->size - offset) return nullptr;
  return window;
}

TcpRegion::~TcpRegion() {
  table_->Remove(key_);
  DiscardMemory(*memory_, -1);
}

Status TcpRegion::Grant(size_t offset, size_t size, Access access,
                        std::unique_ptr<RegionGrant>* grant) {
  if (offset > size_ || size > size_ - offset) {
    return Status::InvalidArgument("a grant of " + std::to_string(size) + " bytes at " +
                                   std::to_string(offset) + " in a region of " +
                                   FormatBytes(size_));
  }
  uint32_t key;
  NACRE_RETURN_IF_ERROR(table_->Add(memory_, offset, size, access, &key));
  *grant = std::make_unique<TcpGrant>(
      table_,
      RemoteKey{.address = reinterpret_cast<uint64_t>(data() + offset), .size = size, .key = key});
  return Status::OK();
}

}  // namespace nacre::rdma
