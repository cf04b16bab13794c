#include "util/thread_index.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <new>
#include <system_error>

#include "util/mutex.h"

namespace nacre {

/// Which indexes are taken.
class ThreadIndex::Registry {
 public:
  /// Never destroyed, because threads may outlive static objects.
  static Registry& Get() {
    alignas(Registry) static char storage[sizeof(Registry)];
    static Registry* const registry = new (storage) Registry;
    return *registry;
  }

  /// The mutex orders what the last thread of an index wrote before what its next thread reads.
  size_t Take() {
    MutexLock lock(&mutex_);
    for (size_t word = 0; word < taken_.size(); ++word) {
      if (taken_[word] == UINT64_MAX) continue;
      const auto bit = static_cast<size_t>(std::countr_one(taken_[word]));
      taken_[word] |= uint64_t{1} << bit;
      const size_t index = word * 64 + bit;
      if (index >= limit_.load(std::memory_order_relaxed)) {
        limit_.store(index + 1, std::memory_order_release);  // Pairs with limit().
      }
      return index;
    }
    throw std::system_error(EAGAIN, std::generic_category(), "too many threads use Nacre at once");
  }

  void Return(size_t index) {
    MutexLock lock(&mutex_);
    taken_[index / 64] &= ~(uint64_t{1} << (index % 64));
  }

  /// Pairs with the release in Take.
  size_t limit() const { return limit_.load(std::memory_order_acquire); }
  pthread_key_t key() const { return key_; }

 private:
  static_assert(kMax % 64 == 0);

  Registry() {
    if (const int error = pthread_key_create(&key_, &ThreadIndex::Unregister); error != 0) {
      throw std::system_error(error, std::generic_category(), "pthread_key_create");
    }
  }

  Mutex mutex_;
  std::array<uint64_t, kMax / 64> taken_ GUARDED_BY(mutex_) = {};
  std::atomic<size_t> limit_ = 0;
  pthread_key_t key_ = 0;
};

size_t ThreadIndex::Register() {
  // A pthread key rather than a thread_local destructor: it runs after those, so they may still
  // use the index, and one that registers anew is cleaned up by another round.
  Registry& registry = Registry::Get();
  current_ = static_cast<uint32_t>(registry.Take());
  if (const int error = pthread_setspecific(registry.key(), &registry); error != 0) {
    Unregister(&registry);
    throw std::system_error(error, std::generic_category(), "pthread_setspecific");
  }
  return current_;
}

void ThreadIndex::Unregister(void* registry) {
  const size_t index = current_;
  current_ = kNone;
  static_cast<Registry*>(registry)->Return(index);
}

size_t ThreadIndex::Limit() { return Registry::Get().limit(); }

}  // namespace nacre
