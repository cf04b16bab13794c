#include "etcd/etcd_watch.h"

#include <algorithm>
#include <chrono>

#include "etcd/etcd_call.h"

namespace nacre {
namespace {

/// Ticks are counted instead of time: a host that stood still may find the answer in its socket.
constexpr std::chrono::nanoseconds kTick = std::chrono::milliseconds(800);
constexpr int kSilentTicksMax = 3;

}  // namespace

EtcdWatch::EtcdWatch(const std::shared_ptr<grpc::Channel>& channel)
    : stub_(etcdserverpb::Watch::NewStub(channel)) {
  RequireLeader(&context_);
}

EtcdWatch::~EtcdWatch() {
  context_.TryCancel();
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

void* EtcdWatch::TagOf(Step step) { return reinterpret_cast<void*>(step); }

void EtcdWatch::Write(const etcdserverpb::WatchRequest& request) {
  can_write_ = false;
  stream_->Write(request, TagOf(kWritten));
}

bool EtcdWatch::Completed(Step step, bool ok, Status* result, bool* changed) {
  switch (step) {
    case kStarted:
      if (!ok) break;
      Write(create_);
      stream_->Read(&response_, TagOf(kRead));
      return false;
    case kWritten:
      can_write_ = ok;
      return false;
    case kRead:
      if (!ok) break;
      silent_ticks_ = 0;
      if (response_.events_size() > 0 || response_.canceled()) {
        *changed = true;
        return true;
      }
      stream_->Read(&response_, TagOf(kRead));
      return false;
    case kFinished:
      *result = FromGrpc(finished_);
      if (result->ok()) *result = Status::Unavailable("ended the watch");
      return true;
  }
  if (!finishing_) {
    finishing_ = true;
    can_write_ = false;
    stream_->Finish(&finished_, TagOf(kFinished));
  }
  return false;
}

Status EtcdWatch::Await(const etcdserverpb::WatchCreateRequest& request, Deadline deadline,
                        bool* changed) {
  *changed = false;
  *create_.mutable_create_request() = request;
  etcdserverpb::WatchRequest ask;
  ask.mutable_progress_request();
  stream_ = stub_->PrepareAsyncWatch(&context_, &queue_);
  stream_->StartCall(TagOf(kStarted));
  while (!deadline.Expired()) {
    const std::chrono::nanoseconds tick = std::min(kTick, deadline.Remaining());
    void* tag = nullptr;
    bool ok = false;
    const auto next = queue_.AsyncNext(&tag, &ok, GrpcTime(tick));
    if (next == grpc::CompletionQueue::GOT_EVENT) {
      Status result;
      if (Completed(static_cast<Step>(reinterpret_cast<intptr_t>(tag)), ok, &result, changed)) {
        return result;
      }
    } else if (tick == kTick) {
      if (++silent_ticks_ >= kSilentTicksMax) return Status::Unavailable("has stopped answering");
      if (can_write_) Write(ask);
    }
  }
  return Status::OK();
}

}  // namespace nacre
