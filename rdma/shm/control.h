#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "nacre/status.h"
#include "rdma/memory.h"
#include "rdma/unique_fd.h"
#include "util/mutex.h"

namespace nacre::rdma {

// The control block of a shm device: memory that all its peers have mapped. It says which keys are
// valid and what grants of parts of regions there are, and holds the doorbell of each completion
// queue.

/// Rung by any process that has work for a completion queue.
///
/// Invariants (no lost wake-up):
///  1. Work is made visible before its bit is set (the setter's RMW releases).
///  2. The owner sleeps only if its own RMW that set kSleeping found no other bit set.
///  All accesses that matter are RMWs of one word, so they have one order: a setter's RMW comes
///  either before the owner's, which then sees the bit and stays awake, or after it, and then the
///  setter sees kSleeping and writes the eventfd.
///  3. Each setter that sees kSleeping writes the eventfd, even if another did: that one might have
///  been killed in between. Spare eventfd tokens cost one spurious turn of the owner's loop.
struct alignas(64) Doorbell {
  /// Work bits 0 to kGroups-1: a queue pair of that group has a message, or has lost its peer.
  static constexpr int kGroups = 62;
  static constexpr uint64_t kWork = (uint64_t{1} << kGroups) - 1;
  static constexpr uint64_t kWake = uint64_t{1} << 62;  ///< CompletionQueue::Wake.
  static constexpr uint64_t kSleeping = uint64_t{1} << 63;

  std::atomic<uint64_t> bits;
};

/// Sets `bit` and wakes the owner if it sleeps on `event_fd`. Any thread, any process.
inline void Ring(Doorbell* doorbell, uint64_t bit, int event_fd) {
  const uint64_t before = doorbell->bits.fetch_or(bit, std::memory_order_acq_rel);
  if ((before & Doorbell::kSleeping) != 0) {
    const uint64_t token = 1;
    // Fails only when 2^64-2 tokens are there already: the owner wakes anyway.
    [[maybe_unused]] const ssize_t written = ::write(event_fd, &token, sizeof(token));
  }
}

/// Tells peers that a process died before the system has taken its memory apart, which takes a
/// second for some GiB of small pages, and only after which its sockets hang up: a robust mutex
/// that a thread of the owner holds for life. The kernel marks it first of all when that thread
/// ends.
class alignas(64) LifeSign {
 public:
  void Initialize();
  /// Both by one thread of the owner.
  void Begin();
  void End();
  /// True once the owner has died in between. Does not block. Any process.
  bool OwnerDied();

 private:
  pthread_mutex_t mutex_;
};

/// Describes what a grant's key names: part of a region, with an access of its own. It stands
/// beside the key in the control block, so a grant comes and goes without a message to any peer.
///
/// Invariant: a slot's fields change only while it holds no key. They are stored with release after
/// the last key was taken out and before the next is put in, and loaded with acquire between two
/// looks at the key: a peer that sees a field of the next grant sees that the last key is gone.
struct GrantSlot {
  std::atomic<uint64_t> address;  ///< The first byte's address in the owner's address space.
  std::atomic<uint64_t> size;
  std::atomic<uint32_t> part_of;  ///< Key of the region; 0: the slot's key is a region's own.
  std::atomic<uint32_t> access;
};

/// Layout shared by processes of one protocol version.
struct ControlBlock {
  static constexpr uint32_t kKeySlots = 32768;
  static constexpr uint32_t kDoorbells = 1024;

  /// The key of a region or a grant, in the slot that the key's low bits name; anything else: the
  /// key is invalid.
  std::atomic<uint32_t> keys[kKeySlots];
  GrantSlot grants[kKeySlots];
  Doorbell doorbells[kDoorbells];
  LifeSign life_sign;

  GrantSlot& GrantOf(uint32_t key) { return grants[key % kKeySlots]; }
  std::atomic<uint32_t>& SlotOf(uint32_t key) { return keys[key % kKeySlots]; }
};
static_assert(sizeof(Doorbell) == 64);
static_assert(sizeof(GrantSlot) == 24);
static_assert(sizeof(ControlBlock) == 32768 * (4 + 24) + 1024 * 64 + 64);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

/// The owner's side of the control block: hands out region keys and doorbells.
/// Thread safety: all methods may be called from many threads.
class DeviceControl {
 public:
  static Status Create(uint64_t device_id, std::shared_ptr<DeviceControl>* control);

  uint64_t device_id() const { return mapping_->name().device; }
  int fd() const { return fd_.get(); }
  ControlBlock* block() const { return reinterpret_cast<ControlBlock*>(mapping_->data()); }

  /// A key that was not used for at least the last 2^17 keys of its slot, not yet valid. Of the
  /// lowest slot that is free: peers keep a table by slot.
  /// `NoSpace` if all slots are taken.
  Status TakeKey(uint32_t* key) EXCLUDES(mutex_);
  void ReturnKey(uint32_t key) EXCLUDES(mutex_);

 private:
  friend class LocalDoorbell;
  DeviceControl(UniqueFd fd, std::shared_ptr<Mapping> mapping);

  const UniqueFd fd_;
  const std::shared_ptr<Mapping> mapping_;
  Mutex mutex_;
  /// Slots from this one on were never used.
  uint32_t fresh_slot_ GUARDED_BY(mutex_) = 0;
  /// The key that each other free slot gets next, by slot.
  std::map<uint32_t, uint32_t> free_keys_ GUARDED_BY(mutex_);
  std::vector<uint32_t> free_doorbells_ GUARDED_BY(mutex_);
};

/// Owns one doorbell of the device and the eventfd that goes with it.
class LocalDoorbell {
 public:
  /// `NoSpace` if the device's doorbells are all taken.
  static Status Create(std::shared_ptr<DeviceControl> control,
                       std::shared_ptr<LocalDoorbell>* doorbell);
  ~LocalDoorbell();
  LocalDoorbell(const LocalDoorbell&) = delete;
  LocalDoorbell& operator=(const LocalDoorbell&) = delete;

  uint32_t index() const { return index_; }
  Doorbell* word() const { return word_; }
  int event_fd() const { return event_fd_.get(); }
  void Ring(uint64_t bit) const { rdma::Ring(word_, bit, event_fd_.get()); }

 private:
  LocalDoorbell(std::shared_ptr<DeviceControl> control, uint32_t index, UniqueFd event_fd);

  const std::shared_ptr<DeviceControl> control_;
  const uint32_t index_;
  Doorbell* const word_;
  const UniqueFd event_fd_;
};

}  // namespace nacre::rdma
