#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "nacre/status.h"
#include "pool/wire/messages.h"
#include "rdma/transport.h"
#include "util/clock.h"

namespace nacre::pool {

class NodeLink;
struct ClientContext;

/// A connection that carries one request at a time to one node, with the memory for it.
///
/// A channel whose call failed with `Unavailable`, `TimedOut` or `Corruption` of its own (`broken`)
/// must be destroyed: a late reply may still be written into its memory until then.
///
/// Thread safety: none; one caller uses it at a time.
class RequestChannel {
 public:
  static Status Open(const ClientContext* context, const NodeLink* link, Deadline deadline,
                     std::unique_ptr<RequestChannel>* channel);
  ~RequestChannel();

  /// Sends `request` (id and reply buffer are filled in) and waits for the answer by polling.
  /// The status is the transport's; the node's own is in `*reply`.
  Status Call(control::Request* request, Deadline deadline, control::Reply* reply);

  /// For a call that takes as long as it takes: sleeps until the node wakes it. `still_wanted` is
  /// asked every `period`; a failure of it ends the call, and the channel.
  Status CallAndSleep(control::Request* request, std::chrono::nanoseconds period,
                      const std::function<Status()>& still_wanted, control::Reply* reply);

  /// The halves of a Call, for callers that ask several nodes at once: Begin sends, TryEnd takes
  /// the answer if it is there (else `*done` is false), CheckConnection fails when none can come
  /// any more.
  Status Begin(control::Request* request);
  Status TryEnd(control::Reply* reply, bool* done);
  Status CheckConnection();

  /// Whether the request of the last call has been handed to the transport. If not, the node
  /// certainly never sees it.
  bool sent() const { return sent_; }
  bool broken() const { return broken_ || queue_pair_->broken(); }

 private:
  RequestChannel(const ClientContext* context, const NodeLink* link, rdma::Device* device)
      : context_(context), link_(link), device_(device) {}

  /// Once the request is on its way, `wait` decides how the reply is waited for.
  Status Exchange(control::Request* request, const std::function<Status()>& wait,
                  control::Reply* reply);
  Status Send(control::Request* request);
  /// The answer does not fit: asks for it again, with room.
  Status FetchReply(uint64_t bytes);
  Status SendBytes(const std::string& bytes);
  bool ReplyArrived() const;
  /// Takes completions; fails when one of them does.
  Status PollQueue();
  Status AwaitByPolling(Deadline deadline);
  Status AwaitAsleep(std::chrono::nanoseconds period, const std::function<Status()>& still_wanted);
  Status UseReplyRegion(uint64_t bytes);
  Status Broken(Status why);

  const ClientContext* const context_;
  const NodeLink* const link_;
  rdma::Device* const device_;  ///< The one that leads to the node, which writes into our memory.
  // Destroyed in reverse order: the queue pair first, then what it used.
  std::unique_ptr<rdma::CompletionQueue> queue_;
  std::unique_ptr<rdma::MemoryRegion> send_region_;
  std::unique_ptr<rdma::MemoryRegion> large_region_;
  std::unique_ptr<rdma::MemoryRegion> reply_region_;
  std::unique_ptr<rdma::QueuePair> queue_pair_;
  uint64_t last_id_ = 0;
  int sends_outstanding_ = 0;
  bool fetching_ = false;  ///< The answer did not fit; what is awaited is the whole.
  bool sent_ = false;
  bool broken_ = false;
};

}  // namespace nacre::pool
