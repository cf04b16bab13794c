#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "rdma/shm/control.h"
#include "rdma/transport.h"
#include "rdma/wait.h"

namespace nacre::rdma {

class ShmQueuePair;

/// Completions wait in a ring of this process: requests are carried out by the thread that posts
/// them, which is also the one that polls. What comes from elsewhere (messages, the death of a
/// peer) rings the doorbell, and Poll then visits the queue pairs of the doorbell bits that are
/// set. An idle Poll costs the load of one word.
class ShmCompletionQueue final : public CompletionQueue {
 public:
  ShmCompletionQueue(int capacity, std::shared_ptr<LocalDoorbell> doorbell);
  ~ShmCompletionQueue() override;

  int Poll(Completion* completions, int n) override;
  Status Wait(std::chrono::nanoseconds timeout) override;
  void Wake() override { doorbell_->Ring(Doorbell::kWake); }

  const std::shared_ptr<LocalDoorbell>& doorbell() const { return doorbell_; }

  /// The doorbell group for the next queue pair that will receive here.
  uint32_t NextGroup() { return next_group_++ % Doorbell::kGroups; }
  void Attach(ShmQueuePair* queue_pair, uint32_t group);
  /// Detaches the queue pair and removes its completions.
  void Detach(ShmQueuePair* queue_pair, uint32_t group);

  /// Whether one more completion fits beside those that wait and those promised to requests.
  bool HasRoom() const { return head_ - tail_ + promised_ < capacity_; }
  void Promise() { promised_++; }
  void Unpromise(uint64_t count) { promised_ -= count; }
  /// `send_number`: of a send-side request, to free its place when polled; 0 for a receive.
  void Push(uint64_t id, ShmQueuePair* queue_pair, Opcode opcode, CompletionCode code,
            uint32_t bytes, uint32_t immediate, uint64_t send_number) {
    Entry& entry = ring_[head_++ & mask_];
    entry.id = id;
    entry.queue_pair = reinterpret_cast<uintptr_t>(queue_pair);
    entry.sizes = bytes | uint64_t{immediate} << 32;
    entry.kinds = static_cast<uint64_t>(opcode) | static_cast<uint64_t>(code) << 8;
    entry.send_number = send_number;
  }

 private:
  /// A completion in words that are written and read one by one (hence volatile): a compiler that
  /// joins two of them into a vector makes a Poll that follows the Post closely wait until the
  /// stores have left the store buffer, twice the cost of all the rest.
  struct Entry {
    volatile uint64_t id;
    volatile uint64_t queue_pair;
    volatile uint64_t sizes;  ///< bytes, immediate << 32.
    volatile uint64_t kinds;  ///< opcode, code << 8.
    volatile uint64_t send_number;
  };

  void CollectArrivals();
  /// True if a Poll may find something or Wake was called; consumes the Wake.
  bool TakeReason();

  // What each request touches lies together.
  std::atomic<uint64_t>* const bits_;  ///< The doorbell's.
  const std::unique_ptr<Entry[]> ring_;
  const uint64_t mask_;
  const uint64_t capacity_;
  uint64_t head_ = 0;      ///< Pushed so far.
  uint64_t tail_ = 0;      ///< Polled so far.
  uint64_t promised_ = 0;  ///< Requests outstanding that will need an entry.

  const std::shared_ptr<LocalDoorbell> doorbell_;
  uint32_t next_group_ = 0;
  std::array<std::vector<ShmQueuePair*>, Doorbell::kGroups> groups_;
  AdaptiveSpin spin_;
};

}  // namespace nacre::rdma
