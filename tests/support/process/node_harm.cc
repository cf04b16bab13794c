#include "tests/support/process/node_harm.h"

#include <chrono>

#include "util/clock.h"
#include "util/log.h"

namespace nacre {
namespace {

using std::chrono::milliseconds;

/// As short as a hiccup, long enough to be slow, to be down, or for connections to be given up.
milliseconds AnyPause(Random* random) {
  const uint64_t kind = random->Uniform(20);
  if (kind < 8) return milliseconds(5 + random->Uniform(200));
  if (kind < 16) return milliseconds(200 + random->Uniform(1500));
  if (kind < 19) return milliseconds(2000 + random->Uniform(2500));
  return milliseconds(5000 + random->Uniform(3000));
}

/// By then the owner has noticed that a node is back which was down: it asks every two seconds.
constexpr milliseconds kNotice{3000};
/// A stop of this length may make a node down.
constexpr milliseconds kLongPause{1000};

}  // namespace

NodeHarm::NodeHarm(MemnodeProcesses* nodes, const Limits& limits, uint64_t seed)
    : nodes_(nodes), limits_(limits), counted_(nodes->size()) {
  if (limits.stops) {
    thread_ = std::thread([this, random = Random(seed)]() mutable { Run(&random); });
  }
}

NodeHarm::~NodeHarm() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(&mutex_);
    quit_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

std::vector<size_t> NodeHarm::RunningLocked(bool running) const {
  std::vector<size_t> found;
  for (size_t i = 0; i < nodes_->size(); ++i) {
    if ((*nodes_)[i].running() == running) found.push_back(i);
  }
  return found;
}

std::vector<size_t> NodeHarm::Running(bool running) const {
  MutexLock lock(&mutex_);
  return RunningLocked(running);
}

bool NodeHarm::Spares() const {
  return Away() < limits_.spare && counted_ - Away() > limits_.least;
}

void NodeHarm::Note(const char* what, size_t node) const {
  Log(limits_.log, LogLevel::kInfo, "soak: {} {}; {} of {} away, {} of them lost", what,
      (*nodes_)[node].address(), Away(), counted_, lost_);
}

void NodeHarm::MaybeKill(Random* random) {
  MutexLock lock(&mutex_);
  // It is unknown whether the owner has noticed yet that one is back.
  if (!Spares()) return;
  std::vector<size_t> victims = RunningLocked(true);
  std::erase_if(victims, [&](size_t node) { return stopped_.contains(node); });
  const size_t victim = victims[random->Uniform(victims.size())];
  ++lost_;
  ++kills_;
  Note("kills", victim);
  (*nodes_)[victim].Kill();
}

void NodeHarm::Start(size_t node) {
  MutexLock lock(&mutex_);
  (*nodes_)[node].Start();
  ++starts_;
  Note("has started", node);
}

void NodeHarm::Whole() {
  MutexLock lock(&mutex_);
  counted_ = RunningLocked(true).size();
  lost_ = 0;
  stopped_lost_ = 0;
}

void NodeHarm::SetOpening(bool opening) {
  MutexLock lock(&mutex_);
  opening_ = opening;
  if (!opening) return;
  lost_ += stopped_.size() - stopped_lost_;
  stopped_lost_ = stopped_.size();
}

void NodeHarm::SetCalm(bool calm) {
  MutexLock lock(&mutex_);
  calm_ += calm ? 1 : -1;
  changed_.SignalAll();
  while (calm && paused_) changed_.Wait();
}

void NodeHarm::Resume() {
  for (const size_t node : stopped_) {
    (*nodes_)[node].Resume();
    Note("lets go on", node);
  }
  paused_ = false;
  changed_.SignalAll();
}

void NodeHarm::Run(Random* random) {
  const auto after = [](milliseconds time) { return Deadline::After(Clock::System(), time); };
  MutexLock lock(&mutex_);
  while (!quit_) {
    const Deadline next = after(milliseconds(20 + random->Uniform(500)));
    while (!quit_ && !next.Expired()) changed_.WaitFor(next.Remaining());
    if (quit_ || calm_ > 0) continue;
    for (uint64_t n = 1 + random->Uniform(2); n > 0 && Spares(); --n) {
      const std::vector<size_t> running = RunningLocked(true);
      const size_t node = running[random->Uniform(running.size())];
      if (!stopped_.insert(node).second) continue;
      (*nodes_)[node].Pause();
      paused_ = true;
      stops_.fetch_add(1);
      lost_ += opening_ ? 1 : 0;
      stopped_lost_ += opening_ ? 1 : 0;
      Note("stops", node);
    }
    const milliseconds pause = AnyPause(random);
    const Deadline enough = after(pause);
    while (!quit_ && calm_ == 0 && !enough.Expired()) changed_.WaitFor(enough.Remaining());
    Resume();
    const Deadline noticed = after(pause < kLongPause ? milliseconds(200) : kNotice);
    while (!quit_ && !noticed.Expired()) changed_.WaitFor(noticed.Remaining());
    stopped_.clear();
    stopped_lost_ = 0;
  }
}

}  // namespace nacre
