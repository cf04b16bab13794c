#include "rdma/shm/peer_writers.h"

#include <sched.h>

#include <chrono>
#include <string>
#include <thread>

#include "rdma/shm/ring.h"
#include "util/log.h"
#include "util/threads/process_fence.h"

namespace nacre::rdma {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// A step of a write (ShmQueuePair::kWriteStep) takes a fraction of this.
constexpr milliseconds kSpin{5};
/// How long to wait for a process that is not stopped: it waits for a processor, or for memory.
constexpr milliseconds kRunningPatience{3000};
/// Between a signal that kills and the end of the process its memory is taken apart.
constexpr milliseconds kDeathPatience{10000};

}  // namespace

void PeerWriters::Add(const std::shared_ptr<Connection>& connection) {
  MutexLock lock(&mutex_);
  entries_[connection->id()] = {.connection = connection};
}

void PeerWriters::Remove(const Connection& connection) {
  ProcessFence::HeavyFence();  // See WriteMark.
  MutexLock lock(&mutex_);
  const auto found = entries_.find(connection.id());
  if (found == entries_.end()) return;
  if (WriteMark::KeyOf(connection.PeerWrites()) == 0) {
    entries_.erase(found);
  } else {
    found->second.removed = true;
  }
}

std::vector<PeerWriters::Write> PeerWriters::WritesUnder(uint32_t key) {
  std::vector<Write> writes;
  MutexLock lock(&mutex_);
  for (auto it = entries_.begin(); it != entries_.end();) {
    const Entry& entry = it->second;
    const uint64_t mark = entry.connection->PeerWrites();
    const uint32_t writes_under = WriteMark::KeyOf(mark);
    if (writes_under == key) writes.push_back({entry.connection, mark});
    const bool over =
        entry.removed && (writes_under == 0 || entry.connection->peer_process().Ended());
    it = over ? entries_.erase(it) : std::next(it);
  }
  return writes;
}

Status PeerWriters::AwaitEndOf(uint32_t key, Patience patience) {
  Status result;
  ProcessFence::HeavyFence();  // See WriteMark.
  for (const Write& write : WritesUnder(key)) {
    if (Status s = AwaitEndOf(write, patience); !s.ok()) result = s;
  }
  return result;
}

Status PeerWriters::AwaitEndOf(const Write& write, Patience patience) const {
  const PeerProcess& process = write.connection->peer_process();
  if (process.is_this_process()) {
    while (!write.Over()) sched_yield();
    return Status::OK();
  }
  if (patience == Patience::kUsual && EndsByItself(write)) return Status::OK();
  if (write.Over() || process.Ended()) return Status::OK();
  return EndByForce(write);
}

bool PeerWriters::EndsByItself(const Write& write) {
  const PeerProcess& process = write.connection->peer_process();
  const auto start = steady_clock::now();
  while (steady_clock::now() - start < kSpin) {
    if (write.Over()) return true;
    sched_yield();
  }
  while (steady_clock::now() - start < kRunningPatience) {
    if (write.Over()) return true;
    if (process.Stopped()) return false;
    if (process.Ended()) return true;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return false;
}

Status PeerWriters::EndByForce(const Write& write) const {
  const PeerProcess& process = write.connection->peer_process();
  const std::string& peer = write.connection->peer();
  Status killed = process.Kill();
  if (killed.ok()) {
    Log(logger_, LogLevel::kWarn,
        "{}: killed process {}, which stood still inside a write whose key has ended", peer,
        process.id());
    if (process.AwaitEnd(kDeathPatience)) return Status::OK();
    killed = Status::TimedOut("it was killed, but has not ended");
  }
  if (write.Over() || process.Ended()) return Status::OK();
  Log(logger_, LogLevel::kError,
      "{}: process {} stands still inside a write whose key has ended: {}", peer, process.id(),
      killed.ToString());
  return Status::Unavailable(peer + ": process " + std::to_string(process.id()) +
                             " stands still inside a write: " + std::string(killed.message()));
}

}  // namespace nacre::rdma
