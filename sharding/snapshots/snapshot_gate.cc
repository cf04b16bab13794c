#include "sharding/snapshots/snapshot_gate.h"

#include <algorithm>

namespace nacre {

void SnapshotGate::AwaitTaken() {
  MutexLock lock(&mutex_);
  const uint64_t stops = stops_;
  while (taking() && stops_ == stops) changed_.Wait();
}

Status SnapshotGate::Enter(const std::string& batch, Deadline deadline,
                           const std::atomic<bool>* given_up) {
  const auto may_wait = [&] {
    return !deadline.Expired() && (given_up == nullptr || !given_up->load());
  };
  MutexLock lock(&mutex_);
  if (closed_ != 0 && !entered_.contains(batch)) {
    ++waiting_;
    while (closed_ != 0 && may_wait()) changed_.WaitFor(deadline.Remaining());
    --waiting_;
    if (closed_ != 0) {
      return Status::TimedOut("a batch over several shards waits for a snapshot to be taken");
    }
    if (admitted_ > 0) --admitted_;
    changed_.SignalAll();
  }
  AddEntered(batch);
  return Status::OK();
}

void SnapshotGate::EnterAtOnce(const std::string& batch) {
  MutexLock lock(&mutex_);
  if (closed_ != 0 && !entered_.contains(batch)) OpenNow();
  AddEntered(batch);
}

void SnapshotGate::AddEntered(const std::string& batch) {
  ++entered_[batch];
  batches_.store(entered_.size(), std::memory_order_seq_cst);
}

void SnapshotGate::Wake() {
  MutexLock lock(&mutex_);
  changed_.SignalAll();
}

void SnapshotGate::Leave(const std::string& batch) {
  MutexLock lock(&mutex_);
  const auto entered = entered_.find(batch);
  if (--entered->second > 0) return;
  entered_.erase(entered);
  batches_.store(entered_.size(), std::memory_order_seq_cst);
  changed_.SignalAll();
}

Status SnapshotGate::Close(Deadline deadline, Token* token) {
  MutexLock lock(&mutex_);
  const uint64_t place = *queue_.insert(++last_place_).first;
  const auto may_close = [&]() REQUIRES(mutex_) {
    return closed_ == 0 && admitted_ == 0 && *queue_.begin() == place;
  };
  while (!may_close() && !deadline.Expired()) changed_.WaitFor(deadline.Remaining());
  const bool closes = may_close();
  queue_.erase(place);
  if (!closes) {
    changed_.SignalAll();  // The next in the queue may be the first one now.
    return Status::TimedOut("a snapshot waits for another one");
  }
  closed_ = *token = ++last_token_;
  while (!entered_.empty()) {
    if (deadline.Expired()) {
      OpenNow();
      return Status::TimedOut("a snapshot waits for a batch over several shards");
    }
    changed_.WaitFor(deadline.Remaining());
    if (closed_ != *token) return Status::Aborted("a snapshot has taken too long");
  }
  return Status::OK();
}

bool SnapshotGate::Stop(Token token) {
  MutexLock lock(&mutex_);
  if (closed_ != token) return false;
  ++stops_;
  taking_.store(true, std::memory_order_seq_cst);
  return true;
}

bool SnapshotGate::IsStopped(Token token) const {
  MutexLock lock(&mutex_);
  return closed_ == token && taking();
}

void SnapshotGate::Open(Token token) {
  MutexLock lock(&mutex_);
  if (closed_ == token && token != 0) OpenNow();
}

void SnapshotGate::OpenNow() {
  closed_ = 0;
  admitted_ = waiting_;
  taking_.store(false, std::memory_order_seq_cst);
  changed_.SignalAll();
}

}  // namespace nacre
