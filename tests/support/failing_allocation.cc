#include "tests/support/failing_allocation.h"

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace nacre {
namespace {

// Allocations of the thread before the one that fails; below zero: none does, or one has.
constexpr int64_t kNone = -1;
constexpr int64_t kReached = -2;
thread_local int64_t left = kNone;

// Used by FailingThreads. The name is written before `one_in` is set, which is the release that
// threads acquire; `round` tells a thread that the name may be another.
char failing_name[16];
std::atomic<uint32_t> failing_one_in{0};
std::atomic<uint64_t> failing_round{0};
std::atomic<uint64_t> failed_of_threads{0};
thread_local uint64_t known_round = 0;
thread_local uint64_t random_state = 0;

/// It must not allocate.
bool IsOfFailingThreads() {
  const uint64_t round = failing_round.load(std::memory_order_acquire);
  char name[16] = {};
  const bool is_failing = ::pthread_getname_np(::pthread_self(), name, sizeof(name)) == 0 &&
                          std::strncmp(name, failing_name, sizeof(name)) == 0;
  if (known_round != round) random_state = round + reinterpret_cast<uintptr_t>(&random_state);
  known_round = round;
  return is_failing;
}

bool FailsHere() {
  const uint32_t one_in = failing_one_in.load(std::memory_order_acquire);
  if (one_in == 0 || !IsOfFailingThreads()) return false;
  // xorshift64*.
  random_state ^= random_state >> 12;
  random_state ^= random_state << 25;
  random_state ^= random_state >> 27;
  if ((random_state * 0x2545f4914f6cdd1d >> 32) % one_in != 0) return false;
  failed_of_threads.fetch_add(1, std::memory_order_relaxed);
  return true;
}

}  // namespace

FailingThreads::FailingThreads(const char* name, uint32_t one_in) {
  std::strncpy(failing_name, name, sizeof(failing_name) - 1);
  failed_of_threads.store(0, std::memory_order_relaxed);
  failing_round.fetch_add(1, std::memory_order_release);
  failing_one_in.store(one_in, std::memory_order_release);
}
FailingThreads::~FailingThreads() { failing_one_in.store(0, std::memory_order_release); }
uint64_t FailingThreads::failed() const {
  return failed_of_threads.load(std::memory_order_relaxed);
}

FailingAllocation::FailingAllocation(int64_t nth) { left = nth; }
FailingAllocation::~FailingAllocation() { left = kNone; }
bool FailingAllocation::reached() const { return left == kReached; }

FailingAllocation::Pause::Pause() : left_(left) { left = kNone; }
FailingAllocation::Pause::~Pause() { left = left_; }

}  // namespace nacre

void* operator new(std::size_t size) {
  if (nacre::left >= 0 && nacre::left-- == 0) {
    nacre::left = nacre::kReached;
    throw std::bad_alloc();
  }
  if (nacre::FailsHere()) throw std::bad_alloc();
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }
