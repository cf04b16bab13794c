#include "sharding/shard.h"

#include <atomic>
#include <utility>

#include "db/db_impl.h"
#include "transactions/below.h"

namespace nacre {

Shard::Shard(uint32_t id, size_t index, std::unique_ptr<DB> db, const Comparator* comparator)
    : id_(id),
      index_(index),
      db_(std::move(db)),
      engine_(EngineOf(db_.get())),
      prepared_(db_.get(), engine_),
      holds_(comparator) {
  operations_.PrepareToReclaim();
}

Status Shard::AwaitOperations(Deadline deadline) {
  constexpr std::chrono::microseconds kPause(20);
  const auto ended = std::make_shared<std::atomic<bool>>(false);
  operations_.Retire([ended] { ended->store(true, std::memory_order_relaxed); });
  while (!ended->load(std::memory_order_relaxed)) {
    if (deadline.Expired()) {
      return Status::TimedOut("operations on shard " + std::to_string(id_) + " do not end");
    }
    deadline.clock()->SleepFor(kPause);
    operations_.Collect();
  }
  return Status::OK();
}

void Shard::AddEndedDecision(std::string name) {
  MutexLock lock(&mutex_);
  ended_decisions_.push_back(std::move(name));
}

std::vector<std::string> Shard::TakeEndedDecisions() {
  MutexLock lock(&mutex_);
  return std::exchange(ended_decisions_, {});
}

Status Shard::Close() {
  prepared_.Close();
  return db_->Close();
}

}  // namespace nacre
