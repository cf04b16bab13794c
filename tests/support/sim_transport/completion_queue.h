#pragma once

#include <cstdint>
#include <deque>

#include "rdma/transport.h"
#include "util/simulation.h"

namespace nacre::rdma {

class SimQueuePair;

/// Completions in the order in which their times came. Polling is a scheduling point.
class SimCompletionQueue final : public CompletionQueue {
 public:
  SimCompletionQueue(Simulation* simulation, int capacity)
      : simulation_(simulation), capacity_(static_cast<uint64_t>(capacity)) {}

  int Poll(Completion* completions, int n) override;
  Status Wait(std::chrono::nanoseconds timeout) override;
  void Wake() override;

  bool HasRoom() const { return entries_.size() + promised_ < capacity_; }
  /// Reserves room for a completion that may come: each becomes a Push or is taken back.
  void Promise() { ++promised_; }
  void Unpromise() { --promised_; }
  /// `number`: of the request within its queue pair, 0 for receives.
  void Push(const Completion& completion, uint64_t number);
  void Remove(const QueuePair* queue_pair);

 private:
  struct Entry {
    Completion completion;
    uint64_t number = 0;
  };

  Simulation* const simulation_;
  const uint64_t capacity_;
  uint64_t promised_ = 0;
  std::deque<Entry> entries_;
  bool wake_ = false;
};

}  // namespace nacre::rdma
