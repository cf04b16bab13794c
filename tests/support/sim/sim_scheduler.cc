#include "tests/support/sim/sim_scheduler.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <utility>

#include "tests/support/process/thread_stacks.h"

namespace nacre::sim {

namespace {

/// What a thread's work costs, as its process's clock has it: looking at the clock, and a
/// scheduling point (at most).
constexpr uint64_t kLookNanos = 25;
constexpr uint64_t kStepNanos = 400;
/// How much faster or slower than true a clock may run, in parts in a million.
constexpr int kDriftMax = 200;
/// The system destroys what belongs to a thread in rounds, of which ours is the last but one.
constexpr uintptr_t kLastRound = PTHREAD_DESTRUCTOR_ITERATIONS - 1;

enum Recorded : uint64_t { kTurn = 1, kEvent = 2, kEnd = 3, kKill = 4 };

uint64_t Mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9;
  x ^= x >> 27;
  x *= 0x94d049bb133111eb;
  return x ^ x >> 31;
}

thread_local void* current_thread = nullptr;

/// Its calls in a line.
std::string StackOf(int system_id) {
  const auto calls = CallsOf(system_id);
  if (!calls.has_value()) return {};
  std::string text = "           ";
  for (const uintptr_t call : *calls) text += fmt::format(" {:#x}", call);
  return text + "\n";
}

}  // namespace

struct Scheduler::SimThread {
  enum class State : uint8_t { kReady, kRunning, kParked, kEnded };

  uint64_t number = 0;
  ProcessId process = 0;
  std::string name;
  State state = State::kReady;
  const void* object = nullptr;  ///< That it is parked on.
  const char* what = "";
  uint64_t park = 0;  ///< Which time it is that it is parked; timers of others are void.
  bool timed_out = false;
  std::atomic<uint32_t> turn = 0;
  int system_id = 0;  ///< The system's number of it; 0: it has not begun.

  /// Release and acquire: what ran before the baton was handed over is visible after.
  void GiveTurn() {
    turn.store(1, std::memory_order_release);
    ::syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
  void TakeTurn() {
    while (turn.load(std::memory_order_acquire) == 0) {
      ::syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
    }
    turn.store(0, std::memory_order_relaxed);
  }
};

Scheduler::Scheduler(const SchedulerOptions& options) : options_(options), random_(options.seed) {
  pthread_key_create(&key_, &Scheduler::AtThreadEnd);
  PrepareStacks();
  NewProcess("test");
  NewThread("main");
  threads_[0]->state = SimThread::State::kRunning;
  current_thread = threads_[0].get();
  ready_.clear();
  Install(this);
}

Scheduler::~Scheduler() {
  Install(nullptr);
  current_thread = nullptr;
  pthread_key_delete(key_);
}

Scheduler::SimThread* Scheduler::Self() { return static_cast<SimThread*>(current_thread); }

// ---- Time ---------------------------------------------------------------------------------------

uint64_t Scheduler::LocalNanos(const Process& process) const {
  const auto passed = static_cast<double>(now_ - process.true_base);
  return process.local_base + static_cast<uint64_t>(passed * process.rate);
}

void Scheduler::Rebase(Process* process) {
  process->local_base = LocalNanos(*process);
  process->true_base = now_;
}

uint64_t Scheduler::NowNanos() {
  now_ += kLookNanos;
  return LocalNanos(processes_[Self()->process]);
}

void Scheduler::SleepFor(std::chrono::nanoseconds duration) {
  Park(Self(), std::max(duration, std::chrono::nanoseconds(0)), "a sleep");
}

void Scheduler::At(uint64_t nanos, std::function<void()> event) {
  timers_.push({.nanos = nanos,
                .number = ++timers_made_,
                .thread = nullptr,
                .park = 0,
                .event = std::make_shared<std::function<void()>>(std::move(event))});
}

void Scheduler::Fire() {
  while (!timers_.empty() && timers_.top().nanos <= now_) {
    const Timer timer = timers_.top();
    timers_.pop();
    if (timer.thread == nullptr) {
      Record(kEvent, timer.number);
      firing_ = true;
      (*timer.event)();
      firing_ = false;
      continue;
    }
    SimThread* const thread = timer.thread;
    if (thread->state != SimThread::State::kParked || thread->park != timer.park) continue;
    auto waiting = parked_.find(thread->object);
    std::erase(waiting->second, thread);
    if (waiting->second.empty()) parked_.erase(waiting);
    thread->timed_out = true;
    MakeReady(thread);
  }
}

// ---- Threads ------------------------------------------------------------------------------------

void Scheduler::MakeReady(SimThread* thread) {
  Process& process = processes_[thread->process];
  thread->state = SimThread::State::kReady;
  if (process.ended) return;
  (process.stopped ? process.held : ready_).push_back(thread);
}

Scheduler::SimThread* Scheduler::Choose() {
  while (true) {
    Fire();
    if (!ready_.empty()) break;
    if (timers_.empty()) FailWithPlaces("nobody can go on, and nothing will happen", true);
    now_ = std::max(now_, timers_.top().nanos);
    if (now_ > options_.nanos_max) FailWithPlaces("it takes too long", true);
  }
  const size_t chosen = ready_.size() == 1 ? 0 : Uniform(ready_.size());
  SimThread* const thread = ready_[chosen];
  ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(chosen));
  return thread;
}

void Scheduler::Switch(SimThread* self) {
  SimThread* const next = Choose();
  next->state = SimThread::State::kRunning;
  Record(kTurn, next->number);
  if (next == self) return;
  // It is the next thread's from here on.
  const bool ended = self->state == SimThread::State::kEnded;
  next->GiveTurn();
  if (!ended) AwaitTurn(self);
}

void Scheduler::AwaitTurn(SimThread* self) {
  self->TakeTurn();
  // What the system does at a thread's end is to be over before another one goes on.
  if (const int vanishing = std::exchange(ending_, 0); vanishing != 0) {
    while (::syscall(SYS_tgkill, ::getpid(), vanishing, 0) == 0) ::sched_yield();
  }
}

void Scheduler::Step() {
  now_ += Uniform(kStepNanos);
  if (++steps_ > options_.steps_max) FailWithPlaces("too many steps", true);
}

void Scheduler::Yield() {
  SimThread* const self = Self();
  Step();
  Fire();
  const Process& process = processes_[self->process];
  if (!process.ended && !process.stopped && (ready_.empty() || !OneIn(options_.switch_one_in))) {
    return;
  }
  MakeReady(self);
  Switch(self);
}

bool Scheduler::Park(const void* object, std::chrono::nanoseconds timeout, const char* what) {
  SimThread* const self = Self();
  Step();
  self->state = SimThread::State::kParked;
  self->object = object;
  self->what = what;
  self->timed_out = false;
  ++self->park;
  parked_[object].push_back(self);
  if (timeout != kForever) {
    // Threads are not woken to the nanosecond.
    const double rate = processes_[self->process].rate;
    const auto nanos = static_cast<double>(std::max<int64_t>(0, timeout.count()));
    timers_.push({.nanos = now_ + static_cast<uint64_t>(nanos / rate) + Uniform(kStepNanos) + 1,
                  .number = ++timers_made_,
                  .thread = self,
                  .park = self->park,
                  .event = nullptr});
  }
  Switch(self);
  return !self->timed_out;
}

void Scheduler::Unpark(const void* object, bool all) {
  const auto waiting = parked_.find(object);
  if (waiting == parked_.end()) return;
  do {
    // Which of several is chance's choice.
    const size_t chosen = waiting->second.size() == 1 ? 0 : Uniform(waiting->second.size());
    SimThread* const thread = waiting->second[chosen];
    waiting->second.erase(waiting->second.begin() + static_cast<std::ptrdiff_t>(chosen));
    MakeReady(thread);
  } while (all && !waiting->second.empty());
  if (waiting->second.empty()) parked_.erase(waiting);
}

uint64_t Scheduler::NewThread(const std::string& name) {
  auto thread = std::make_unique<SimThread>();
  thread->number = threads_.size();
  thread->name = name;
  thread->process = starting_ || Self() == nullptr ? next_process_ : Self()->process;
  threads_.push_back(std::move(thread));
  MakeReady(threads_.back().get());
  return threads_.back()->number;
}

void Scheduler::BeginThread(uint64_t thread) {
  SimThread* const self = threads_[thread].get();
  current_thread = self;
  self->system_id = static_cast<int>(::syscall(SYS_gettid));
  AwaitTurn(self);
  pthread_setspecific(key_, reinterpret_cast<void*>(uintptr_t{1}));
}

void Scheduler::AtThreadEnd(void* value) {
  auto* const scheduler = static_cast<Scheduler*>(Current());
  const auto round = reinterpret_cast<uintptr_t>(value);
  if (round < kLastRound) {
    pthread_setspecific(scheduler->key_, reinterpret_cast<void*>(round + 1));
    return;
  }
  scheduler->EndThread(Self());
}

void Scheduler::EndThread(SimThread* thread) {
  thread->state = SimThread::State::kEnded;
  Record(kEnd, thread->number);
  Unpark(&thread->number, /*all=*/true);
  ending_ = static_cast<int>(::syscall(SYS_gettid));
  Switch(thread);
}

void Scheduler::AwaitThread(uint64_t thread) {
  SimThread* const awaited = threads_[thread].get();
  while (awaited->state != SimThread::State::kEnded) Park(&awaited->number, kForever, "a thread");
}

uint32_t Scheduler::process() const { return Self()->process; }

// ---- Processes ----------------------------------------------------------------------------------

ProcessId Scheduler::NewProcess(const std::string& name) {
  processes_.push_back({.name = name});
  Process& process = processes_.back();
  process.true_base = now_;
  // Each machine counts from a start of its own, and no two clocks run alike.
  process.local_base = now_ + Uniform(uint64_t{1} << 40);
  process.rate = 1.0 + (static_cast<double>(Uniform(2 * kDriftMax + 1)) - kDriftMax) * 1e-6;
  return static_cast<ProcessId>(processes_.size() - 1);
}

Thread Scheduler::Start(ProcessId process, const std::string& name, std::function<void()> body) {
  next_process_ = process;
  starting_ = true;
  Thread thread(name, std::move(body));
  starting_ = false;
  return thread;
}

void Scheduler::Kill(ProcessId process) {
  if (processes_[process].ended) return;
  Record(kKill, process);
  processes_[process].ended = true;
  processes_[process].held.clear();
  std::erase_if(ready_, [=](const SimThread* thread) { return thread->process == process; });
  for (auto& [object, waiting] : parked_) {
    std::erase_if(waiting, [=](const SimThread* thread) { return thread->process == process; });
  }
  std::erase_if(parked_, [](const auto& entry) { return entry.second.empty(); });
  for (const auto& thread : threads_) {
    if (thread->process == process && thread->state == SimThread::State::kParked) ++thread->park;
  }
  SimThread* const self = Self();
  // After an event the scheduler itself goes on, and finds out.
  if (!firing_ && self->process == process && self->state == SimThread::State::kRunning) Yield();
}

void Scheduler::Stop(ProcessId process) {
  Process& stopped = processes_[process];
  stopped.stopped = true;
  std::erase_if(ready_, [&](SimThread* thread) {
    if (thread->process != process) return false;
    stopped.held.push_back(thread);
    return true;
  });
}

void Scheduler::Continue(ProcessId process) {
  Process& stopped = processes_[process];
  stopped.stopped = false;
  for (SimThread* thread : std::exchange(stopped.held, {})) ready_.push_back(thread);
}

void Scheduler::Advance(ProcessId process, std::chrono::nanoseconds by) {
  Rebase(&processes_[process]);
  processes_[process].local_base += static_cast<uint64_t>(by.count());
}

void Scheduler::SetDrift(ProcessId process, int64_t parts_per_million) {
  Rebase(&processes_[process]);
  processes_[process].rate = 1.0 + static_cast<double>(parts_per_million) * 1e-6;
}

// ---- The record ---------------------------------------------------------------------------------

void Scheduler::Record(uint64_t what, uint64_t detail) {
  digest_ = Mix(digest_ ^ Mix(detail + Mix(now_ ^ what << 56)));
}

void Scheduler::Log(const std::string& line) {
  if (options_.log == nullptr) return;
  const SimThread& self = *Self();
  options_.log(fmt::format("{:>14.6f} ms  {:<8} {:<16} {}", static_cast<double>(now_) * 1e-6,
                           processes_[self.process].name, self.name, line));
}

std::string Scheduler::Places(bool stacks) const {
  std::string places;
  for (const auto& thread : threads_) {
    const Process& process = processes_[thread->process];
    if (thread->state == SimThread::State::kEnded || process.ended) continue;
    places += fmt::format("  {:<8} {:<16} {}\n", process.name, thread->name,
                          thread->state == SimThread::State::kRunning ? "goes on"
                          : thread->state == SimThread::State::kReady ? "could go on"
                                                                      : thread->what);
    if (stacks && thread->system_id != 0) places += StackOf(thread->system_id);
  }
  if (stacks) places += "  (addr2line -Cpfie BINARY ADDRESS... names the places)\n";
  return places;
}

void Scheduler::Fail(const std::string& why) { FailWithPlaces(why, /*stacks=*/false); }

void Scheduler::FailWithPlaces(const std::string& why, bool stacks) {
  const std::string text =
      fmt::format("at {:.6f} ms: {}\n{}", static_cast<double>(now_) * 1e-6, why, Places(stacks));
  if (options_.fail != nullptr) options_.fail(text);
  std::fprintf(stderr, "simulation: %s", text.c_str());
  std::abort();
}

}  // namespace nacre::sim
