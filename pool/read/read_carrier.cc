#include "pool/read/read_carrier.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace nacre::pool {

ReadCarrier::ReadCarrier(std::function<void(const Work&)> start,
                         std::function<void(const StreamRead&, const std::atomic<bool>&)> await)
    : start_(std::move(start)), await_(std::move(await)) {}

ReadCarrier::~ReadCarrier() {
  Thread thread;
  {
    MutexLock lock(&mutex_);
    ending_.store(true, std::memory_order_relaxed);
    thread = std::move(thread_);
  }
  filled_.SignalAll();
  if (thread.joinable()) thread.Join();
}

bool ReadCarrier::Take(std::span<const StreamPart> parts, const std::shared_ptr<StreamRead>& read) {
  Work work{.parts = {parts.begin(), parts.end()}, .read = read};
  {
    MutexLock lock(&mutex_);
    if (refused_ || waiting_.size() >= kMostReads) return false;
    if (!thread_.joinable()) {
      try {
        thread_ = Thread("nacre-reads", [this] { Run(); });
      } catch (const std::system_error&) {
        refused_ = true;
        return false;
      }
    }
    waiting_.push_back(std::move(work));
  }
  filled_.Signal();
  return true;
}

bool ReadCarrier::GiveBack(const StreamRead& read, Work* work) {
  MutexLock lock(&mutex_);
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const Work& one) { return one.read.get() == &read; });
  if (found == waiting_.end()) return false;
  *work = std::move(*found);
  waiting_.erase(found);
  return true;
}

bool ReadCarrier::Next(bool wait, Work* work) {
  MutexLock lock(&mutex_);
  while (wait && waiting_.empty() && !ending_.load(std::memory_order_relaxed)) filled_.Wait();
  if (waiting_.empty() || ending_.load(std::memory_order_relaxed)) return false;
  *work = std::move(waiting_.front());
  waiting_.pop_front();
  return true;
}

void ReadCarrier::Run() {
  std::deque<std::shared_ptr<StreamRead>> under_way;
  Work work;
  while (!ending_.load(std::memory_order_relaxed)) {
    if (Next(/*wait=*/under_way.empty(), &work)) {
      // If there is no other reference, the read has been given up.
      if (work.read.use_count() > 1) {
        start_(work);
        under_way.push_back(std::move(work.read));
      }
      work = Work();
      continue;
    }
    if (under_way.empty()) continue;
    if (under_way.front().use_count() > 1) await_(*under_way.front(), ending_);
    under_way.pop_front();
  }
}

}  // namespace nacre::pool
