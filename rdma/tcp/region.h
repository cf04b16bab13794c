#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "rdma/memory.h"
#include "rdma/transport.h"
#include "util/mutex.h"

namespace nacre::rdma {

/// What one key opens: a region, or the part of it that was granted. A holder of this object may go
/// on using the memory, but its contents mean nothing once `revoked` is set.
///
/// A thread stores into it between BeginStore and EndStore; one that revokes it sets `revoked` and
/// then waits until no thread is in between. One of the two sees the other, as both store before
/// they load, sequentially consistently: so no byte lands after Revoke.
struct RegionWindow {
  std::shared_ptr<Mapping> memory;
  char* data = nullptr;  ///< Also its address on the wire.
  uint64_t size = 0;
  Access access = Access::kLocalOnly;
  /// Set before the memory is given up: a thread that reads the memory and then sees this unset,
  /// with acquire, has read what the owner left there.
  mutable std::atomic<bool> revoked{false};
  mutable std::atomic<uint32_t> stores{0};  ///< Stores under way.

  /// False if it was revoked: then nothing may be stored, and there is no EndStore.
  bool BeginStore() const {
    stores.fetch_add(1, std::memory_order_seq_cst);
    if (!revoked.load(std::memory_order_seq_cst)) [[likely]]
      return true;
    EndStore();
    return false;
  }
  /// Release: pairs with the acquire of the thread that revokes, which then finds all that was
  /// stored.
  void EndStore() const { stores.fetch_sub(1, std::memory_order_release); }
  /// A store takes as long as it takes to receive what has arrived.
  void Revoke() const;
};

/// The keys of a device. A key holds the generation of its place in the table, so that a key that
/// was revoked does not come back soon, and cannot be told from those of other tables.
///
/// Thread safety: all methods may be called from many threads.
class RegionTable {
 public:
  RegionTable();

  /// `NoSpace` if all keys are taken.
  Status Add(std::shared_ptr<Mapping> memory, size_t offset, size_t size, Access access,
             uint32_t* key) EXCLUDES(mutex_);
  /// Makes requests that name the key fail, and returns once the stores of earlier ones are done.
  /// The caller must not be inside a store.
  void Remove(uint32_t key) EXCLUDES(mutex_);
  /// The window that `key` opens, if `size` bytes at `address` are within it and it allows as much
  /// as `needed`; else null.
  std::shared_ptr<const RegionWindow> Find(uint32_t key, uint64_t address, uint64_t size,
                                           Access needed) EXCLUDES(mutex_);

 private:
  static constexpr uint32_t kSlotBits = 18;
  static constexpr uint32_t kSlots = uint32_t{1} << kSlotBits;
  /// So many places are in use before one is used again.
  static constexpr uint32_t kSlotsBeforeReuse = 1024;

  struct Slot {
    uint32_t key = 0;  ///< The key of the window, or of the next one in this place.
    std::shared_ptr<const RegionWindow> window;
  };

  const uint32_t first_generation_;
  Mutex mutex_;
  std::vector<Slot> slots_ GUARDED_BY(mutex_);
  std::deque<uint32_t> free_ GUARDED_BY(mutex_);
};

/// Memory of this process that peers reach through its device's sockets.
class TcpRegion final : public MemoryRegion {
 public:
  TcpRegion(RegionTable* table, std::shared_ptr<Mapping> memory, size_t size, uint32_t key)
      : table_(table), memory_(std::move(memory)), size_(size), key_(key) {}
  ~TcpRegion() override;

  char* data() const override { return memory_->data(); }
  size_t size() const override { return size_; }
  RemoteKey remote_key() const override {
    return {.address = reinterpret_cast<uint64_t>(data()), .size = size_, .key = key_};
  }
  Status Grant(size_t offset, size_t size, Access access,
               std::unique_ptr<RegionGrant>* grant) override;
  Status Populate() override { return PopulateMemory(*memory_); }

  /// Tells whose region it is.
  const RegionTable* table() const { return table_; }

 private:
  RegionTable* const table_;
  const std::shared_ptr<Mapping> memory_;
  const size_t size_;
  const uint32_t key_;
};

}  // namespace nacre::rdma
