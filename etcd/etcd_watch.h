#pragma once

#include <memory>
#include <string>

#include "etcd/grpc_api.h"
#include "nacre/status.h"
#include "util/clock.h"

namespace nacre {

/// One Watch call, which waits for one change of a range of keys. While it waits it asks etcd for
/// its progress about once a second, and so notices one that has stopped: pings of HTTP/2 in that
/// number are something for which etcd closes connections.
///
/// Thread safety: none; the thread that waits does all the work.
class EtcdWatch {
 public:
  explicit EtcdWatch(const std::shared_ptr<grpc::Channel>& channel);
  /// Cancels the call.
  ~EtcdWatch();
  EtcdWatch(const EtcdWatch&) = delete;
  EtcdWatch& operator=(const EtcdWatch&) = delete;

  /// Call it once. OK: `*changed` tells whether something has changed by the deadline, or whether
  /// etcd ended the watch since the changes after its start are no longer known. `Unavailable` if
  /// etcd ends the call or stops answering, `IOError` if it refuses it.
  Status Await(const etcdserverpb::WatchCreateRequest& request, Deadline deadline, bool* changed);

 private:
  enum Step : intptr_t { kStarted, kWritten, kRead, kFinished };

  static void* TagOf(Step step);
  void Write(const etcdserverpb::WatchRequest& request);
  /// What is to be done once `step` is completed; true if Await has its answer in `*result`.
  bool Completed(Step step, bool ok, Status* result, bool* changed);

  const std::unique_ptr<etcdserverpb::Watch::Stub> stub_;
  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  etcdserverpb::WatchRequest create_;
  etcdserverpb::WatchResponse response_;
  grpc::Status finished_;
  bool can_write_ = false;
  bool finishing_ = false;
  int silent_ticks_ = 0;
  std::unique_ptr<
      grpc::ClientAsyncReaderWriter<etcdserverpb::WatchRequest, etcdserverpb::WatchResponse>>
      stream_;
};

}  // namespace nacre
