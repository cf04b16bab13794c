#include "rdma/verbs/event_loop.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "util/log.h"

namespace nacre::rdma {

namespace {

using std::chrono::steady_clock;

constexpr int kHeartbeatsPerTimeout = 4;
constexpr std::chrono::milliseconds kSuspicion{200};

bool MakeNonblocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

}  // namespace

VerbsEventLoop::VerbsEventLoop(const Adapter* adapter, std::shared_ptr<Logger> logger,
                               std::unique_ptr<rdma_event_channel, DestroyChannel> channel,
                               UniqueFd stop_fd)
    : adapter_(adapter),
      logger_(std::move(logger)),
      channel_(std::move(channel)),
      stop_fd_(std::move(stop_fd)),
      thread_([this] { Run(); }) {}

Status VerbsEventLoop::Start(const Adapter* adapter, std::shared_ptr<Logger> logger,
                             std::unique_ptr<VerbsEventLoop>* loop) {
  std::unique_ptr<rdma_event_channel, DestroyChannel> channel(rdma_create_event_channel());
  if (channel == nullptr) {
    return Status::Unavailable(std::string("rdma_create_event_channel: ") + std::strerror(errno) +
                               "; is the kernel module rdma_ucm loaded, may this user open "
                               "/dev/infiniband/rdma_cm?");
  }
  UniqueFd stop_fd(eventfd(0, EFD_CLOEXEC));
  if (!stop_fd.valid() || !MakeNonblocking(channel->fd) ||
      !MakeNonblocking(adapter->context()->async_fd)) {
    return VerbsError("watch the events of " + adapter->name(), errno);
  }
  loop->reset(
      new VerbsEventLoop(adapter, std::move(logger), std::move(channel), std::move(stop_fd)));
  return Status::OK();
}

VerbsEventLoop::~VerbsEventLoop() {
  stopping_.store(true);
  const uint64_t token = 1;
  [[maybe_unused]] const ssize_t written = write(stop_fd_.get(), &token, sizeof(token));
  thread_.join();
  EndParked();
}

Status VerbsEventLoop::CreateId(CmHandler* handler, UniqueCmId* id) {
  rdma_cm_id* made = nullptr;
  if (rdma_create_id(channel_.get(), &made, handler, RDMA_PS_TCP) != 0) {
    return VerbsError("rdma_create_id", errno);
  }
  id->reset(made);
  return Status::OK();
}

void VerbsEventLoop::Watch(VerbsConnection* connection) {
  {
    MutexLock lock(&mutex_);
    watched_.insert(connection);
  }
  if (adapter_failed()) connection->End(VerbsConnection::Fate::kPeerGone);
}

void VerbsEventLoop::Unwatch(VerbsConnection* connection) {
  MutexLock lock(&mutex_);
  watched_.erase(connection);
}

bool VerbsEventLoop::LinkIsUp() const {
  const auto now = steady_clock::now().time_since_epoch().count();
  return now >= suspected_until_.load(std::memory_order_relaxed) && adapter_->PortIsActive();
}

void VerbsEventLoop::SuspectLink() {
  const auto until = (steady_clock::now() + kSuspicion).time_since_epoch().count();
  suspected_until_.store(until, std::memory_order_relaxed);
}

void VerbsEventLoop::Park(std::shared_ptr<VerbsConnection> connection) {
  MutexLock lock(&mutex_);
  parked_.push_back(std::move(connection));
}

void VerbsEventLoop::EndParked() {
  std::vector<std::shared_ptr<VerbsConnection>> ended;  // Ends after the lock.
  MutexLock lock(&mutex_);
  if (stopping_.load() || (!parked_.empty() && LinkIsUp())) ended.swap(parked_);
}

void VerbsEventLoop::Run() {
  std::array<pollfd, 3> entries{
      {{.fd = channel_->fd, .events = POLLIN, .revents = 0},
       {.fd = adapter_->context()->async_fd, .events = POLLIN, .revents = 0},
       {.fd = stop_fd_.get(), .events = POLLIN, .revents = 0}}};
  while (!stopping_.load()) {
    const int timeout_ms = RemindOfHeartbeats();
    // A signal may have interrupted it.
    if (poll(entries.data(), entries.size(), timeout_ms) <= 0) continue;
    if (entries[0].revents != 0) TakeConnectionEvents();
    if (entries[1].revents != 0) TakeAdapterEvents();
  }
}

int VerbsEventLoop::RemindOfHeartbeats() {
  using std::chrono::milliseconds;
  const milliseconds timeout = adapter_->parameters().timeout;
  const milliseconds period = timeout / kHeartbeatsPerTimeout;
  const auto now = steady_clock::now();
  if (now >= next_period_) {
    next_period_ = now + period;
    EndParked();
    const bool given_up =
        port_down_since_ != steady_clock::time_point() && now - port_down_since_ >= timeout;
    link_given_up_.store(given_up, std::memory_order_relaxed);
    heartbeat_period_.fetch_add(1, std::memory_order_relaxed);
    MutexLock lock(&mutex_);
    for (VerbsConnection* connection : watched_) connection->RemindOfHeartbeat();
  }
  return static_cast<int>(std::chrono::ceil<milliseconds>(next_period_ - now).count());
}

void VerbsEventLoop::TakeConnectionEvents() {
  rdma_cm_event* event = nullptr;
  while (rdma_get_cm_event(channel_.get(), &event) == 0) {
    rdma_cm_id* const id =
        event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? event->listen_id : event->id;
    static_cast<CmHandler*>(id->context)->OnEvent(*event);
    rdma_ack_cm_event(event);
  }
}

void VerbsEventLoop::TakeAdapterEvents() {
  ibv_async_event event{};
  while (ibv_get_async_event(adapter_->context(), &event) == 0) {
    HandleAdapterEvent(event);
    // The acknowledgement comes last: what the event names cannot be destroyed before.
    ibv_ack_async_event(&event);
  }
}

void VerbsEventLoop::HandleAdapterEvent(const ibv_async_event& event) {
  const auto connection = [&] {
    return static_cast<VerbsConnection*>(event.element.qp->qp_context);
  };
  switch (event.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_PATH_MIG_ERR:
      Log(logger_, LogLevel::kWarn, "{}: {}: {}", adapter_->name(), connection()->peer(),
          ibv_event_type_str(event.event_type));
      connection()->End(VerbsConnection::Fate::kFailed);
      return;
    case IBV_EVENT_COMM_EST:
      connection()->NotifyEstablished();
      return;
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_DEVICE_FATAL:
      Log(logger_, LogLevel::kError, "{}: {}: all its connections end", adapter_->name(),
          ibv_event_type_str(event.event_type));
      FailAll();
      return;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
      if (event.element.port_num == adapter_->port()) {
        const bool up = event.event_type == IBV_EVENT_PORT_ACTIVE;
        port_down_since_ = up ? steady_clock::time_point() : steady_clock::now();
      }
      if (event.event_type == IBV_EVENT_PORT_ACTIVE) EndParked();
      [[fallthrough]];
    default:
      // A port that goes down may come up before the first request has been retried in vain.
      Log(logger_, LogLevel::kInfo, "{}: {}", adapter_->name(),
          ibv_event_type_str(event.event_type));
      return;
  }
}

void VerbsEventLoop::FailAll() {
  adapter_failed_.store(true, std::memory_order_release);
  MutexLock lock(&mutex_);
  for (VerbsConnection* connection : watched_) {
    connection->End(VerbsConnection::Fate::kPeerGone);
  }
}

}  // namespace nacre::rdma
