#include "tests/support/process/thread_stacks.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

namespace nacre {

namespace {

using std::chrono::steady_clock;

constexpr int kStackSignal = SIGUSR2;
constexpr int kMaxFrames = 48;
/// Frames of the handler and of the system.
constexpr int kOwnFrames = 2;
constexpr auto kAnswer = std::chrono::seconds(1);

std::array<void*, kMaxFrames> frames;
std::atomic<int> frame_count = -1;

void WriteStack(int /*signal*/) {
  // Release and acquire: the thread that asked sees the frames.
  frame_count.store(::backtrace(frames.data(), kMaxFrames), std::memory_order_release);
}

}  // namespace

void PrepareStacks() {
  // The first call loads what a handler must not.
  ::backtrace(frames.data(), kMaxFrames);
  struct sigaction action = {};
  action.sa_handler = &WriteStack;
  action.sa_flags = SA_RESTART;
  ::sigaction(kStackSignal, &action, nullptr);
}

std::optional<std::vector<uintptr_t>> CallsOf(int system_id) {
  frame_count.store(-1, std::memory_order_relaxed);
  if (::syscall(SYS_tgkill, ::getpid(), system_id, kStackSignal) != 0) return std::nullopt;
  const auto asked = steady_clock::now();
  int count = -1;
  while ((count = frame_count.load(std::memory_order_acquire)) < 0) {
    if (steady_clock::now() - asked > kAnswer) return std::nullopt;
    std::this_thread::yield();
  }
  Dl_info own;
  ::dladdr(reinterpret_cast<void*>(&WriteStack), &own);
  std::vector<uintptr_t> calls;
  for (int i = kOwnFrames; i < count; ++i) {
    Dl_info object;
    void* const frame = frames[static_cast<size_t>(i)];
    if (::dladdr(frame, &object) == 0 || object.dli_fbase != own.dli_fbase) continue;
    // The address of the call, not of where it returns to.
    calls.push_back(reinterpret_cast<uintptr_t>(frame) - 1 -
                    reinterpret_cast<uintptr_t>(object.dli_fbase));
  }
  return calls;
}

}  // namespace nacre
