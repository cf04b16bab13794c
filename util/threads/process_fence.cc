#include "util/threads/process_fence.h"

#include <ctime>

#include "util/thread_sanitizer.h"
#include "util/threads/membarrier.h"

namespace nacre {

void ProcessFence::Prepare() {
  if (kThreadSanitizer) return;
  static const bool registered = Membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
  if (registered) prepared_.store(true, std::memory_order_relaxed);
}

void ProcessFence::HeavyFence() {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // Pairs with that in LightFence.
  if (Membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) || Membarrier(MEMBARRIER_CMD_GLOBAL)) return;
  // This process may not ask the kernel, but a peer may have: stores leave a processor within
  // microseconds.
  const timespec long_enough{.tv_sec = 0, .tv_nsec = 50'000'000};
  ::nanosleep(&long_enough, nullptr);
}

}  // namespace nacre
