#pragma once

#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "rdma/transport.h"
#include "rdma/unique_fd.h"
#include "rdma/verbs/adapter.h"
#include "rdma/verbs/completion_signal.h"
#include "rdma/wait.h"

namespace nacre::rdma {

class VerbsQueuePair;

/// A completion queue of the adapter, and beside it those completions that are ready without it:
/// taken out of it early, or made by queue pairs that are broken. The ready ones always come first,
/// so the order of each queue pair is kept.
///
/// Room: each work request under way has one completion promised to it, and so cannot overrun the
/// queue; the adapter's queue is twice as large as what is promised, because a broken queue pair
/// with anything under way adds one request of its own. Heartbeats have room beside that.
class VerbsCompletionQueue final : public CompletionQueue {
 public:
  /// `adapter` outlives the queue. `InvalidArgument` for a capacity that the adapter has not got.
  static Status Create(const Adapter& adapter, int capacity,
                       std::unique_ptr<CompletionQueue>* queue);
  ~VerbsCompletionQueue() override;

  int Poll(Completion* completions, int n) override;
  Status Wait(std::chrono::nanoseconds timeout) override;
  void Wake() override { signal_->Set(CompletionSignal::kWake); }

  ibv_cq* get() const { return queue_.get(); }
  const std::shared_ptr<CompletionSignal>& signal() const { return signal_; }

  /// Returns the number by which the queue pair's work requests name it here.
  uint32_t Attach(VerbsQueuePair* queue_pair);
  /// Must follow the end of the adapter's queue pair; removes its completions as well.
  void Detach(VerbsQueuePair* queue_pair);

  /// Whether `count` more completions fit beside those that wait and those promised.
  bool HasRoom(uint64_t count = 1) const { return ReadyCount() + promised_ + count <= capacity_; }
  void Promise(uint64_t count) { promised_ += count; }
  void Unpromise(uint64_t count) { promised_ -= count; }
  /// Promises a completion that callers never get, and that takes no room from them. False while
  /// as many are under way as the adapter's queue has room for.
  bool PromiseHeartbeat() {
    if (heartbeats_ == heartbeats_max_) return false;
    heartbeats_++;
    capacity_++;
    promised_++;
    return true;
  }
  /// Ends a heartbeat that PromiseHeartbeat gave and Unpromise took back.
  void EndHeartbeat() {
    heartbeats_--;
    capacity_--;
  }
  /// Hands a completion to the caller of Poll that is under way, else keeps it for the next one.
  void Emit(const Completion& completion) {
    if (room_ > 0 && ReadyCount() == 0) [[likely]] {
      *out_++ = completion;
      room_--;
    } else {
      ready_[ready_head_++ & ready_mask_] = completion;
    }
  }
  /// Takes what the adapter has into the ready ones, at most a batch. False if there was nothing.
  bool Collect();

 private:
  static constexpr int kBatch = 32;

  VerbsCompletionQueue(int capacity, int heartbeats, UniqueCompletionChannel channel,
                       UniqueCompletionQueue queue, std::shared_ptr<CompletionSignal> signal);

  uint64_t ReadyCount() const { return ready_head_ - ready_tail_; }
  /// Passes up to `max` completions of the adapter on to their queue pairs; how many there were.
  int Take(int max);
  void Attend();
  /// True if a Poll may find something or Wake was called; consumes the Wake.
  bool TakeReason();
  Status Sleep(std::chrono::nanoseconds timeout);

  // What each Poll touches lies together.
  const std::shared_ptr<CompletionSignal> signal_;
  const UniqueCompletionChannel channel_;
  const UniqueCompletionQueue queue_;
  std::vector<VerbsQueuePair*>
      queue_pairs_;            ///< Indexed by the number given by Attach; null: free.
  Completion* out_ = nullptr;  ///< Where Emit may write,
  int room_ = 0;               ///< and how many.
  uint64_t ready_head_ = 0;
  uint64_t ready_tail_ = 0;
  uint64_t promised_ = 0;
  uint64_t capacity_;  ///< What callers asked for, and the heartbeats under way.
  const uint64_t ready_mask_;
  const std::unique_ptr<Completion[]> ready_;
  /// The adapter will write to channel_ at its next completion.
  bool armed_ = false;
  AdaptiveSpin spin_;
  uint64_t heartbeats_ = 0;  ///< Heartbeats in flight.
  const uint64_t heartbeats_max_;
};

}  // namespace nacre::rdma
