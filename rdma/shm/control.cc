#include "rdma/shm/control.h"

#include <sys/eventfd.h>

#include <cassert>
#include <cerrno>
#include <new>
#include <utility>

namespace nacre::rdma {

void LifeSign::Initialize() {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&mutex_, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

void LifeSign::Begin() {
  [[maybe_unused]] const int result = pthread_mutex_lock(&mutex_);
  assert(result == 0 && "peers see the mutex only once it is held");
}

void LifeSign::End() { pthread_mutex_unlock(&mutex_); }

bool LifeSign::OwnerDied() {
  const int result = pthread_mutex_trylock(&mutex_);
  // The first to notice now holds it. Given back without being made consistent, it says
  // ENOTRECOVERABLE to all others.
  if (result == EOWNERDEAD || result == 0) pthread_mutex_unlock(&mutex_);
  return result == EOWNERDEAD || result == ENOTRECOVERABLE;
}

DeviceControl::DeviceControl(UniqueFd fd, std::shared_ptr<Mapping> mapping)
    : fd_(std::move(fd)), mapping_(std::move(mapping)) {
  block()->life_sign.Initialize();
  for (uint32_t index = ControlBlock::kDoorbells; index > 0; index--) {
    free_doorbells_.push_back(index - 1);
  }
}

Status DeviceControl::Create(uint64_t device_id, std::shared_ptr<DeviceControl>* control) {
  UniqueFd fd;
  std::shared_ptr<Mapping> mapping;
  // The kernel's zeroes are valid atomics: no key is valid, no bell rings.
  NACRE_RETURN_IF_ERROR(CreateMemory({device_id, kControlObject}, sizeof(ControlBlock),
                                     MemoryKind::kShareable, &fd, &mapping));
  control->reset(new DeviceControl(std::move(fd), std::move(mapping)));
  return Status::OK();
}

Status DeviceControl::TakeKey(uint32_t* key) {
  MutexLock lock(&mutex_);
  if (free_keys_.empty()) {
    if (fresh_slot_ == ControlBlock::kKeySlots) {
      return Status::NoSpace("the device has " + std::to_string(ControlBlock::kKeySlots) +
                             " regions and grants already");
    }
    *key = ControlBlock::kKeySlots + fresh_slot_++;
    return Status::OK();
  }
  *key = free_keys_.begin()->second;
  free_keys_.erase(free_keys_.begin());
  return Status::OK();
}

void DeviceControl::ReturnKey(uint32_t key) {
  uint32_t next = key + ControlBlock::kKeySlots;
  if (next < ControlBlock::kKeySlots) next += ControlBlock::kKeySlots;  // Never key 0.
  MutexLock lock(&mutex_);
  try {
    free_keys_.emplace(key % ControlBlock::kKeySlots, next);
  } catch (const std::bad_alloc&) {
    // The slot is not used again. This is called as regions end, where nothing may be thrown.
  }
}

LocalDoorbell::LocalDoorbell(std::shared_ptr<DeviceControl> control, uint32_t index,
                             UniqueFd event_fd)
    : control_(std::move(control)),
      index_(index),
      word_(&control_->block()->doorbells[index]),
      event_fd_(std::move(event_fd)) {
  word_->bits.store(0, std::memory_order_relaxed);
}

Status LocalDoorbell::Create(std::shared_ptr<DeviceControl> control,
                             std::shared_ptr<LocalDoorbell>* doorbell) {
  UniqueFd event_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event_fd.valid()) return SystemError("eventfd");
  uint32_t index;
  {
    MutexLock lock(&control->mutex_);
    if (control->free_doorbells_.empty()) {
      return Status::NoSpace("the device has " + std::to_string(ControlBlock::kDoorbells) +
                             " completion queues already");
    }
    index = control->free_doorbells_.back();
    control->free_doorbells_.pop_back();
  }
  doorbell->reset(new LocalDoorbell(std::move(control), index, std::move(event_fd)));
  return Status::OK();
}

LocalDoorbell::~LocalDoorbell() {
  MutexLock lock(&control_->mutex_);
  control_->free_doorbells_.push_back(index_);
}

}  // namespace nacre::rdma
