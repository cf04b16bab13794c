#include "util/threads/thread.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>
#include <vector>

#include "util/simulation.h"

namespace nacre {

namespace {

/// What a simulation reports, on every machine.
constexpr size_t kSimulatedConcurrency = 4;

}  // namespace

Thread::Thread(const std::string& name, std::function<void()> body) {
  Simulation* const simulation = Simulation::Current();
  if (simulation != nullptr) simulated_ = simulation->NewThread(name);
  thread_ = std::thread([simulation, number = simulated_, name, run = std::move(body)]() mutable {
    NameThis(name);
    if (simulation != nullptr) simulation->BeginThread(number);
    const std::function<void()> mine = std::move(run);  // What it captured ends on this thread.
    mine();
  });
}

void Thread::NameThis(const std::string& name) {
  // Linux takes 15 bytes and the terminator. A thread without its name works as well.
  ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());
}

void Thread::Join() {
  if (Simulation* simulation = Simulation::Current()) simulation->AwaitThread(simulated_);
  thread_.join();
}

void RunTogether(const std::string& name, size_t count, const std::function<void(size_t)>& work,
                 size_t at_once) {
  if (count == 0) return;
  const size_t threads = std::clamp<size_t>(at_once, 1, count);
  std::vector<std::exception_ptr> thrown(count);
  std::atomic<size_t> next{threads};
  const auto run = [&](size_t first) {
    // Relaxed: each number is taken once.
    for (size_t i = first; i < count; i = next.fetch_add(1, std::memory_order_relaxed)) {
      try {
        work(i);
      } catch (...) {
        thrown[i] = std::current_exception();
      }
    }
  };
  std::vector<Thread> others;
  others.reserve(threads - 1);
  try {
    for (size_t i = 1; i < threads; ++i) others.emplace_back(name, [&run, i] { run(i); });
    run(0);
  } catch (...) {
    thrown[0] = std::current_exception();
  }
  for (Thread& other : others) other.Join();
  for (const std::exception_ptr& exception : thrown) {
    if (exception != nullptr) std::rethrow_exception(exception);
  }
}

size_t Thread::HardwareConcurrency() {
  if (Simulation::Current() != nullptr) return kSimulatedConcurrency;
  return std::max<size_t>(1, std::thread::hardware_concurrency());
}

}  // namespace nacre
