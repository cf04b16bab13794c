#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rdma/interposed_device.h"
#include "rdma/transport.h"
#include "util/clock.h"

namespace nacre::rdma {

class InterposedQueuePair;

/// An id in a wrapped queue: whose it is, and the low bits of the request's number.
inline constexpr int kTagShift = 40;
inline constexpr uint64_t kNumberMask = (uint64_t{1} << kTagShift) - 1;

/// Holds no completions itself: those of the wrapped queue are noted down with the requests they
/// belong to, and Poll hands out what is due at the head of each queue pair.
class InterposedCompletionQueue final : public CompletionQueue {
 public:
  InterposedCompletionQueue(std::unique_ptr<CompletionQueue> inner, int capacity, Clock* clock);

  int Poll(Completion* completions, int n) override;
  Status Wait(std::chrono::nanoseconds timeout) override;
  void Wake() override;

  CompletionQueue* inner() const { return inner_.get(); }
  Clock* clock() const { return clock_; }

  /// Returns the tag that the queue pair's ids carry in the wrapped queue.
  uint64_t Attach(InterposedQueuePair* queue_pair);
  void Detach(uint64_t tag);

  /// Completions that are promised: of signalled requests and of receives.
  bool HasRoom() const { return promised_ < capacity_; }
  void Promise() { promised_++; }
  void Unpromise(uint64_t count) { promised_ -= count; }
  /// Counts requests recorded by queue pairs of this queue; with none, a Poll is the wrapped
  /// queue's.
  void AddPending(int64_t count) { pending_ += count; }

 private:
  void Absorb();
  uint64_t NextDue();

  const std::unique_ptr<CompletionQueue> inner_;
  const uint64_t capacity_;
  Clock* const clock_;
  std::vector<InterposedQueuePair*> attached_;  ///< Indexed by tag; null means free.
  uint64_t promised_ = 0;
  int64_t pending_ = 0;
  size_t first_ = 0;  ///< Poll begins here, so that no queue pair is left out for long.
  std::atomic<bool> wake_{false};
};

class InterposedQueuePair final : public QueuePair {
 public:
  InterposedQueuePair(std::unique_ptr<QueuePair> inner, std::shared_ptr<Interposer> interposer,
                      QueueDepths depths, InterposedCompletionQueue* send_queue,
                      InterposedCompletionQueue* receive_queue);
  ~InterposedQueuePair() override;
  Status PostRead(uint64_t id, LocalBuffer to, RemoteBuffer from, uint8_t flags) override;
  Status PostWrite(uint64_t id, LocalBuffer from, RemoteBuffer to, uint8_t flags) override;
  Status PostWriteWithImm(uint64_t id, LocalBuffer from, RemoteBuffer to, uint32_t immediate,
                          uint8_t flags) override;
  Status PostCompareSwap(uint64_t id, LocalBuffer result, RemoteBuffer target, uint64_t expected,
                         uint64_t desired, uint8_t flags) override;
  Status PostFetchAdd(uint64_t id, LocalBuffer result, RemoteBuffer target, uint64_t addend,
                      uint8_t flags) override;
  Status PostSend(uint64_t id, LocalBuffer from, uint8_t flags) override;
  Status PostRecv(uint64_t id, LocalBuffer to) override;
  bool broken() const override { return inner_ == nullptr || inner_->broken(); }
  bool peer_hung_up() const override { return inner_ != nullptr && inner_->peer_hung_up(); }
  void LookAtPeer() override {
    if (inner_ != nullptr) inner_->LookAtPeer();
  }
  const std::string& peer() const override { return peer_; }

  /// A completion of the wrapped queue pair, for the request of this number.
  void Absorb(uint64_t number, const Completion& completion);
  /// When the head of the queue pair's requests in this queue is due; kNever if that depends on
  /// the wrapped queue pair.
  uint64_t NextDue(const InterposedCompletionQueue* queue);
  /// Takes the head if it is due. False if there is nothing to report.
  bool Take(const InterposedCompletionQueue* queue, uint64_t now, Completion* completion);

 private:
  struct Request {
    enum class State : uint8_t {
      kPosted,    ///< It is posted to the wrapped queue pair.
      kWithheld,  ///< Behind one that never completes: flushed with it.
      kFailing,   ///< When it comes to the head and is due, it breaks the queue pair.
      kDone,
    };
    Completion completion;  ///< As the caller will see it.
    State state = State::kPosted;
    bool report = true;   ///< Signalled, or a receive; failures are reported anyway.
    bool counted = true;  ///< The completion queue counts it among its promises.
    uint64_t due_nanos = 0;
  };

  /// Requests in the order of posting, at most as many as the queue pair is deep: in place, since a
  /// model of an adapter is to cost its caller little.
  class Requests {
   public:
    void Reserve(uint64_t depth) { places_.resize(std::bit_ceil(depth)); }
    bool empty() const { return begin_ == end_; }
    uint64_t size() const { return end_ - begin_; }
    /// The i-th from the front.
    Request& operator[](uint64_t i) { return places_[(begin_ + i) & (places_.size() - 1)]; }
    const Request& front() const { return places_[begin_ & (places_.size() - 1)]; }
    void push_back(const Request& request) { places_[end_++ & (places_.size() - 1)] = request; }
    void pop_front() { begin_++; }

   private:
    std::vector<Request> places_;
    uint64_t begin_ = 0;
    uint64_t end_ = 0;
  };

  /// `first` is the number of the front request.
  struct Lane {
    InterposedCompletionQueue* queue = nullptr;
    uint64_t tag = 0;
    uint64_t depth = 0;
    uint64_t first = 0;
    Requests requests;

    uint64_t Id() const { return tag | ((first + requests.size()) & kNumberMask); }
  };

  template <typename InnerPost>
  Status Post(Opcode opcode, uint64_t id, uint32_t bytes, uint8_t flags, InnerPost inner_post);
  static void Push(Lane* lane, const Request& request);
  static void Pop(Lane* lane);
  bool TakeFrom(Lane* lane, uint64_t now, Completion* completion);
  uint64_t DueOf(const Lane& lane) const;
  bool Blocked(const Request& request) const;
  /// All that is not done yet ends as flushed.
  void Flush(Lane* lane, bool also_posted);
  /// The wrapped queue pair goes, and with it the peer's end.
  void Break();
  /// When a request that was posted is due. An unsignalled one of a batch leaves with those that
  /// follow it, and its own end is not reported.
  uint64_t DueAfterPost(Opcode opcode, uint32_t bytes, uint8_t flags);

  std::unique_ptr<QueuePair> inner_;  ///< Null once broken by this decorator.
  const std::shared_ptr<Interposer> interposer_;
  const std::string peer_;
  Lane sends_;
  Lane receives_;
  bool doomed_ = false;       ///< A request that was posted will break the queue pair.
  uint64_t batch_read_ = 0;   ///< Bytes of the unsignalled reads of the batch so far.
  uint64_t batch_other_ = 0;  ///< The same of its other requests.
};

}  // namespace nacre::rdma
