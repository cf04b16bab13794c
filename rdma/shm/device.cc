#include "rdma/shm/device.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <latch>
#include <set>
#include <utility>

#include "rdma/queue_depths.h"
#include "rdma/shm/listener.h"
#include "rdma/shm/queue_pair.h"
#include "util/threads/process_fence.h"

namespace nacre::rdma {

namespace {

constexpr int kMaxCompletions = 1 << 24;
constexpr uint64_t kKickEvent = 0;
/// How soon the death of another process is noticed by its life sign. Its socket tells as well,
/// but later.
constexpr int kLifeSignMillis = 10;
/// How long a peer may leave its socket full before it is cut off. Peers read it in a thread of
/// its own, so one that does not has stopped.
constexpr std::chrono::milliseconds kAnnounceTimeout{1000};
/// The time for the rest of a handshake that the connecting side has begun.
constexpr std::chrono::milliseconds kAcceptTimeout{2000};

RegionMessage Describe(const ShmRegion& region) {
  const RemoteKey key = region.remote_key();
  RegionMessage message;
  message.address = key.address;
  message.size = key.size;
  message.key = key.key;
  message.access = static_cast<uint32_t>(region.access());
  return message;
}

RegionMessage Dropped(RegionMessage region) {
  region.header.type = MessageType::kRegionDropped;
  return region;
}

Status CheckPrivateData(const std::string& data) {
  if (data.size() <= Device::kMaxPrivateData) return Status::OK();
  return Status::InvalidArgument("private data of " + std::to_string(data.size()) +
                                 " bytes; at most " + std::to_string(Device::kMaxPrivateData) +
                                 " are possible");
}

Status Rejection(const Answer& answer) {
  return Status::InvalidArgument(std::string(answer.private_data, answer.private_size));
}

/// OpenDevice has checked the value.
bool MayMap(const std::map<std::string, std::string>& parameters) {
  const auto map = parameters.find("map");
  return map == parameters.end() || map->second != "0";
}

Status ConnectFailure(const std::string& peer, const Status& status) {
  return status.IsTimedOut() ? Status::Unavailable(peer + ": " + std::string(status.message()))
                             : status.WithContext(peer);
}

}  // namespace

ShmDevice::ShmDevice(const char* scheme, const DeviceOptions& options, Clock* clock,
                     std::shared_ptr<SecretRing> ring, std::shared_ptr<DeviceControl> control,
                     UniqueFd epoll_fd, UniqueFd kick_fd)
    : scheme_(scheme),
      memory_kind_(std::strcmp(scheme, "embedded") == 0 ? MemoryKind::kPrivate
                                                        : MemoryKind::kShareable),
      lets_memory_go_(std::strcmp(scheme, "cxl") == 0),
      may_map_(MayMap(options.parameters)),
      clock_(clock),
      ring_(std::move(ring)),
      refusals_(options.logger, clock),
      control_(std::move(control)),
      writers_(options.logger),
      epoll_fd_(std::move(epoll_fd)),
      kick_fd_(std::move(kick_fd)) {
  std::latch begun(1);
  monitor_ = std::thread([this, &begun] {
    control_->block()->life_sign.Begin();
    begun.count_down();
    ProcessFence::Prepare();  // Here, as it takes its time.
    Monitor();
    control_->block()->life_sign.End();
  });
  begun.wait();
}

Status ShmDevice::Open(const char* scheme, const DeviceOptions& options, Clock* clock,
                       std::unique_ptr<Device>* device) {
  std::shared_ptr<SecretRing> ring;
  NACRE_RETURN_IF_ERROR(RingOf(options, &ring));
  std::shared_ptr<DeviceControl> control;
  NACRE_RETURN_IF_ERROR(DeviceControl::Create(NewDeviceId(), &control));
  UniqueFd epoll_fd(epoll_create1(EPOLL_CLOEXEC));
  UniqueFd kick_fd(eventfd(0, EFD_CLOEXEC));
  if (!epoll_fd.valid() || !kick_fd.valid()) return SystemError("open a shm device");
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kKickEvent}};
  if (epoll_ctl(epoll_fd.get(), EPOLL_CTL_ADD, kick_fd.get(), &event) != 0) {
    return SystemError("epoll_ctl");
  }
  device->reset(new ShmDevice(scheme, options, clock, std::move(ring), std::move(control),
                              std::move(epoll_fd), std::move(kick_fd)));
  return Status::OK();
}

ShmDevice::~ShmDevice() {
  {
    MutexLock lock(&announce_mutex_);
    assert(connections_.empty() && regions_.empty() && "a device outlives what it made");
  }
  stopping_.store(true);
  KickMonitor();
  monitor_.join();
}

Status ShmDevice::AllocateRegion(size_t size, Access access,
                                 std::unique_ptr<MemoryRegion>* region) {
  if (size == 0) return Status::InvalidArgument("a region of 0 bytes");
  NACRE_RETURN_IF_ERROR(MappingTable::Process()->CheckRoomFor(size));
  uint32_t key;
  NACRE_RETURN_IF_ERROR(control_->TakeKey(&key));
  UniqueFd fd;
  std::shared_ptr<Mapping> mapping;
  const MemoryKind kind = access == Access::kLocalOnly ? MemoryKind::kPrivate : memory_kind_;
  const Status created =
      CreateMemory({control_->device_id(), RegionObject(key)}, size, kind, &fd, &mapping);
  if (!created.ok()) {
    control_->ReturnKey(key);
    return created;
  }
  return MakeRegion(key, size, access, std::move(fd), std::move(mapping), region);
}

Status ShmDevice::MapRegion(int fd, size_t size, Access access,
                            std::unique_ptr<MemoryRegion>* region) {
  if (size <= kMovedAwayAt) {
    return Status::InvalidArgument("a region of " + std::to_string(size) + " bytes of a file");
  }
  UniqueFd own(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!own.valid()) return SystemError("duplicate a descriptor");
  uint32_t key;
  NACRE_RETURN_IF_ERROR(control_->TakeKey(&key));
  std::shared_ptr<Mapping> mapping;
  const Status mapped =
      MapFile({control_->device_id(), RegionObject(key)}, own.get(), size, &mapping);
  if (!mapped.ok()) {
    control_->ReturnKey(key);
    return mapped;
  }
  return MakeRegion(key, size, access, std::move(own), std::move(mapping), region);
}

Status ShmDevice::MakeRegion(uint32_t key, size_t size, Access access, UniqueFd fd,
                             std::shared_ptr<Mapping> mapping,
                             std::unique_ptr<MemoryRegion>* region) {
  auto made =
      std::make_unique<ShmRegion>(this, size, access, key, std::move(fd), std::move(mapping));
  if (access != Access::kLocalOnly) {
    MutexLock lock(&announce_mutex_);
    regions_[key] = made.get();
    PutInForce(made->remote_key(), /*part_of=*/0, access);
    AnnounceToAll(Describe(*made), made->fd()->get());
  }
  *region = std::move(made);
  return Status::OK();
}

void ShmDevice::DropRegion(const ShmRegion* region) {
  const uint32_t key = region->remote_key().key;
  if (region->access() != Access::kLocalOnly) {
    MutexLock lock(&announce_mutex_);
    // Writes under way are not waited for: the memory goes back to the system, which does not reuse
    // it while a peer has it mapped.
    Invalidate(key);
    regions_.erase(key);
    AnnounceToAll(Dropped(Describe(*region)), -1);
  }
  control_->ReturnKey(key);
}

Status ShmDevice::Grant(const ShmRegion* region, size_t offset, size_t size, Access access,
                        std::unique_ptr<RegionGrant>* grant) {
  if (region->access() == Access::kLocalOnly || access == Access::kLocalOnly) {
    return Status::InvalidArgument("a grant of a region, or with an access, that is local only");
  }
  if (size == 0 || offset > region->size() || size > region->size() - offset) {
    return Status::InvalidArgument("a grant of " + std::to_string(size) + " bytes at " +
                                   std::to_string(offset) + " of a region of " +
                                   std::to_string(region->size()));
  }
  RemoteKey key{.address = region->remote_key().address + offset, .size = size, .key = 0};
  NACRE_RETURN_IF_ERROR(control_->TakeKey(&key.key));
  PutInForce(key, region->remote_key().key, access);
  *grant = std::make_unique<ShmGrant>(this, key);
  return Status::OK();
}

void ShmDevice::PutInForce(const RemoteKey& key, uint32_t part_of, Access access) {
  // The slot is this thread's alone until it holds the key. Release: see GrantSlot.
  GrantSlot& slot = control_->block()->GrantOf(key.key);
  slot.address.store(key.address, std::memory_order_release);
  slot.size.store(key.size, std::memory_order_release);
  slot.part_of.store(part_of, std::memory_order_release);
  slot.access.store(static_cast<uint32_t>(access), std::memory_order_release);
  control_->block()->SlotOf(key.key).store(key.key, std::memory_order_release);
}

void ShmDevice::Invalidate(uint32_t key) {
  // Later requests fail; those that have passed the check find the memory still mapped.
  control_->block()->SlotOf(key).store(0, std::memory_order_release);
}

Status ShmDevice::EndGrant(uint32_t key, bool first) {
  if (first) Invalidate(key);
  NACRE_RETURN_IF_ERROR(writers_.AwaitEndOf(
      key, first ? PeerWriters::Patience::kUsual : PeerWriters::Patience::kNone));
  control_->ReturnKey(key);
  return Status::OK();
}

void ShmDevice::AnnounceToAll(const RegionMessage& message, int fd) {
  const Deadline deadline = Deadline::After(clock_, kAnnounceTimeout);
  for (const auto& [id, connection] : connections_) {
    if (!connection->PeerClosed()) connection->Announce(message, fd, deadline);
  }
}

Status ShmDevice::RegisterLocal(char* data, size_t size, std::unique_ptr<MemoryRegion>* region) {
  if (size == 0) return Status::InvalidArgument("a region of 0 bytes");
  uint32_t key;
  NACRE_RETURN_IF_ERROR(control_->TakeKey(&key));
  *region = std::make_unique<ShmRegion>(this, size, Access::kLocalOnly, key, UniqueFd(),
                                        Mapping::Borrow(data, size));
  return Status::OK();
}

Status ShmDevice::CreateCompletionQueue(int capacity, std::unique_ptr<CompletionQueue>* queue) {
  if (capacity < 1 || capacity > kMaxCompletions) {
    return Status::InvalidArgument("a completion queue for " + std::to_string(capacity) +
                                   " completions: 1 to " + std::to_string(kMaxCompletions) +
                                   " are possible");
  }
  std::shared_ptr<LocalDoorbell> doorbell;
  NACRE_RETURN_IF_ERROR(LocalDoorbell::Create(control_, &doorbell));
  *queue = std::make_unique<ShmCompletionQueue>(capacity, std::move(doorbell));
  return Status::OK();
}

Status ShmDevice::Listen(const std::string& address, std::unique_ptr<Listener>* listener) {
  return ShmListener::Open(this, address, listener);
}

Status ShmDevice::Introduce(const std::shared_ptr<Connection>& connection, void* message,
                            size_t size, uint32_t* regions, const std::vector<int>& fds,
                            const Deadline& deadline, std::vector<RegionMessage>* told) {
  const int socket = connection->socket();
  writers_.Add(connection);
  std::vector<std::shared_ptr<const UniqueFd>> files;
  {
    MutexLock lock(&announce_mutex_);
    for (const auto& [key, region] : regions_) {
      told->push_back(Describe(*region));
      files.push_back(region->fd());
    }
  }
  *regions = static_cast<uint32_t>(told->size());
  NACRE_RETURN_IF_ERROR(SendBy(socket, deadline, message, size, fds));
  for (size_t i = 0; i < told->size(); i++) {
    UniqueFd made;
    int file = files[i]->get();
    NACRE_RETURN_IF_ERROR(connection->FileToHandOut(&file, &made));
    std::vector<int> region_fds;
    if (file >= 0) region_fds.push_back(file);
    NACRE_RETURN_IF_ERROR(SendBy(socket, deadline, &(*told)[i], sizeof(RegionMessage), region_fds));
  }
  return Status::OK();
}

void ShmDevice::KeepInformed(const std::shared_ptr<Connection>& connection,
                             const std::vector<RegionMessage>& told) {
  MutexLock lock(&announce_mutex_);
  const Deadline deadline = Deadline::After(clock_, kAnnounceTimeout);
  std::set<uint32_t> known;
  for (const RegionMessage& region : told) {
    known.insert(region.key);
    if (!regions_.contains(region.key)) connection->Announce(Dropped(region), -1, deadline);
  }
  for (const auto& [key, region] : regions_) {
    if (!known.contains(key))
      connection->Announce(Describe(*region), region->fd()->get(), deadline);
  }
  connections_[connection->id()] = connection;
}

Status ShmDevice::ProveTo(const Connection& connection, const std::string& secret,
                          const Hello& hello, const Deadline& deadline,
                          Introduction* introduction) {
  // A listener of another version may have said so, and closed, before it is greeted.
  if (Status sent = SendBy(connection.socket(), deadline, &hello, sizeof(hello), {});
      !sent.ok() && !sent.IsUnavailable()) {
    return sent;
  }
  Packet packet;
  Status received = ReceiveBy(connection.socket(), deadline, &packet);
  if (received.IsUnavailable() || received.IsTimedOut()) return received;
  Challenge challenge;
  if (received.ok()) received = DecodeChallenge(packet.bytes(), packet.fds.size(), &challenge);
  if (received.IsNotSupported()) {
    refusals_.Refused(connection.peer(), received.message());
    return received;
  }
  Answer answer;
  if (!received.ok() && DecodeAnswer(packet.bytes(), packet.fds.size(), &answer).ok() &&
      answer.header.type == MessageType::kRejected) {
    return Rejection(answer);
  }
  if (!received.ok()) {
    refusals_.Malformed(connection.peer(), received.message());
    return Status::Unavailable("the listener does not speak this protocol");
  }
  const Handshake said = Said(hello, challenge);
  const Status proven = CheckProof(challenge.proof, secret, Role::kListener, said);
  if (!proven.ok()) {
    refusals_.Refused(connection.peer(), proven.message());
    return proven;
  }
  return Prove(secret, Role::kConnector, said, &introduction->proof);
}

Status ShmDevice::Connect(const std::string& address, const std::string& private_data,
                          QueueDepths depths, CompletionQueue* send_queue,
                          CompletionQueue* receive_queue, Deadline deadline, std::string* reply,
                          std::unique_ptr<QueuePair>* queue_pair) {
  NACRE_RETURN_IF_ERROR(CheckPrivateData(private_data));
  NACRE_RETURN_IF_ERROR(CheckDepths(depths));
  ShmAddress target;
  NACRE_RETURN_IF_ERROR(ParseShmAddress(address, &target));
  auto* const sends = static_cast<ShmCompletionQueue*>(send_queue);
  auto* const receives = static_cast<ShmCompletionQueue*>(receive_queue);
  const uint32_t number = next_connection_.fetch_add(1, std::memory_order_relaxed);
  const uint32_t slots = std::bit_ceil(static_cast<uint32_t>(std::max(1, depths.receive)));
  const uint32_t group = receives->NextGroup();

  Connection::Parts parts{.id = number,
                          .socket = {},
                          .process = {},
                          .peer = target.ToString(scheme_),
                          .side = 0,
                          .ring_slots = slots,
                          .memory = nullptr,
                          .send_doorbell = sends->doorbell(),
                          .receive_doorbell = receives->doorbell(),
                          .receive_bit = uint64_t{1} << group,
                          .refusals = &refusals_,
                          .kept_memory = lets_memory_go_ ? &kept_memory_ : nullptr};
  NACRE_RETURN_IF_ERROR(ConnectTo(target, deadline, &parts.socket));
  // The listener answers to the Hello that follows.
  parts.process = PeerProcess::Of(parts.socket.get());
  UniqueFd memory_fd;
  NACRE_RETURN_IF_ERROR(CreateMemory({control_->device_id(), ConnectionObject(number)},
                                     ConnectionMemory::Bytes(slots), MemoryKind::kShareable,
                                     &memory_fd, &parts.memory));
  auto connection = std::make_shared<Connection>(std::move(parts));

  Hello hello;
  hello.doorbell = {control_->device_id(), receives->doorbell()->index(), group};
  hello.connection = number;
  hello.ring_slots = slots;
  hello.send_depth = static_cast<uint32_t>(depths.send);
  hello.receive_depth = static_cast<uint32_t>(depths.receive);
  hello.control = depths.control ? 1 : 0;
  hello.process = getpid();
  hello.this_process_only = this_process_only() ? 1 : 0;
  hello.private_size = static_cast<uint32_t>(private_data.size());
  private_data.copy(hello.private_data, private_data.size());
  const std::shared_ptr<const Credential> own = ring_->own();
  NACRE_RETURN_IF_ERROR(DrawConnectorNonce(own->id(), &hello.nonce));

  const std::string& peer = connection->peer();
  Introduction introduction;
  Status status = ProveTo(*connection, own->secret(), hello, deadline, &introduction);
  if (!status.ok()) return ConnectFailure(peer, status);
  std::vector<RegionMessage> told;
  status = Introduce(connection, &introduction, sizeof(introduction), &introduction.regions,
                     {control_->fd(), receives->doorbell()->event_fd(), memory_fd.get()}, deadline,
                     &told);
  Answer answer;
  Packet packet;
  // A listener that refuses may close before it has read the regions.
  if (status.ok() || status.IsUnavailable()) {
    status = ReceiveBy(connection->socket(), deadline, &packet);
    if (status.ok()) status = DecodeAnswer(packet.bytes(), packet.fds.size(), &answer);
    if (status.IsInvalidArgument() || status.IsNotSupported()) {
      refusals_.Malformed(peer, status.message());
      status = Status::Unavailable("the listener's answer makes no sense");
    }
  }
  if (status.ok() && answer.header.type == MessageType::kRejected) {
    status = Rejection(answer);
  }
  if (status.ok()) {
    connection->set_may_write(answer.may_write != 0);
    status = connection->SetPeerDoorbell(answer.doorbell, std::move(packet.fds[0]),
                                         std::move(packet.fds[1]));
  }
  if (status.ok()) status = connection->ReadAnnouncements(answer.regions, deadline);
  if (status.ok()) status = Watch(connection);
  if (!status.ok()) {
    Disconnect(connection);
    return ConnectFailure(peer, status);
  }
  KeepInformed(connection, told);
  reply->assign(answer.private_data, answer.private_size);
  *queue_pair =
      std::make_unique<ShmQueuePair>(this, std::move(connection), depths, sends, receives, group);
  return Status::OK();
}

Status ShmDevice::Accept(UniqueFd socket, PeerProcess process, const Hello& hello, bool may_write,
                         uint32_t regions, std::vector<UniqueFd> fds,
                         ShmCompletionQueue* send_queue, ShmCompletionQueue* receive_queue,
                         const std::string& reply, std::unique_ptr<QueuePair>* queue_pair) {
  NACRE_RETURN_IF_ERROR(CheckPrivateData(reply));
  const QueueDepths depths{.send = static_cast<int>(hello.send_depth),
                           .receive = static_cast<int>(hello.receive_depth),
                           .control = hello.control != 0};
  const uint32_t group = receive_queue->NextGroup();
  Connection::Parts parts{
      .id = next_connection_.fetch_add(1, std::memory_order_relaxed),
      .socket = std::move(socket),
      .process = std::move(process),
      .peer = std::string(scheme_) + ": process " + std::to_string(hello.process),
      .side = 1,
      .ring_slots = hello.ring_slots,
      .memory = nullptr,
      .send_doorbell = send_queue->doorbell(),
      .receive_doorbell = receive_queue->doorbell(),
      .receive_bit = uint64_t{1} << group,
      .refusals = &refusals_,
      .kept_memory = lets_memory_go_ ? &kept_memory_ : nullptr,
      .peer_may_write = may_write};
  NACRE_RETURN_IF_ERROR(MappingTable::Process()->FindOrMap(
      {hello.doorbell.device, ConnectionObject(hello.connection)}, fds[2].get(),
      ConnectionMemory::Bytes(hello.ring_slots), true, &parts.memory));
  auto connection = std::make_shared<Connection>(std::move(parts));
  const Deadline deadline = Deadline::After(clock_, kAcceptTimeout);
  NACRE_RETURN_IF_ERROR(
      connection->SetPeerDoorbell(hello.doorbell, std::move(fds[0]), std::move(fds[1])));
  if (!connection->same_process() && (this_process_only() || hello.this_process_only != 0)) {
    return Status::InvalidArgument("an embedded device is reached from its own process only");
  }
  NACRE_RETURN_IF_ERROR(connection->ReadAnnouncements(regions, deadline));

  Answer answer;
  answer.doorbell = {control_->device_id(), receive_queue->doorbell()->index(), group};
  answer.private_size = static_cast<uint32_t>(reply.size());
  answer.may_write = may_write ? 1 : 0;
  reply.copy(answer.private_data, reply.size());
  // Attached before the peer learns the doorbell: it may send as soon as it has the answer.
  auto accepted =
      std::make_unique<ShmQueuePair>(this, connection, depths, send_queue, receive_queue, group);
  std::vector<RegionMessage> told;
  Status status =
      Introduce(connection, &answer, sizeof(answer), &answer.regions,
                {control_->fd(), receive_queue->doorbell()->event_fd()}, deadline, &told);
  if (status.ok()) status = Watch(connection);
  if (status.ok()) KeepInformed(connection, told);
  // On failure the queue pair's destructor takes the connection back.
  if (status.ok()) *queue_pair = std::move(accepted);
  return status;
}

void ShmDevice::Disconnect(const std::shared_ptr<Connection>& connection) {
  {
    MutexLock lock(&announce_mutex_);
    connections_.erase(connection->id());
  }
  connection->RefuseRequests();
  writers_.Remove(*connection);
  Unwatch(*connection);
  // This must not wait for the last reference: the monitor may hold one for a moment.
  shutdown(connection->socket(), SHUT_RDWR);
}

Status ShmDevice::Watch(const std::shared_ptr<Connection>& connection) {
  MutexLock lock(&watch_mutex_);
  watched_[connection->id()] = connection;
  epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {.u64 = connection->id()}};
  if (epoll_ctl(epoll_fd_.get(), EPOLL_CTL_ADD, connection->socket(), &event) != 0) {
    return SystemError("epoll_ctl");
  }
  if (!connection->same_process() && !has_remote_peers_.exchange(true)) KickMonitor();
  return Status::OK();
}

void ShmDevice::Unwatch(const Connection& connection) {
  MutexLock lock(&watch_mutex_);
  if (watched_.erase(connection.id()) == 0) return;
  epoll_event unused{};
  // The monitor has taken it out already if the peer is gone.
  epoll_ctl(epoll_fd_.get(), EPOLL_CTL_DEL, connection.socket(), &unused);
  past_traffic_.bytes_read += connection.tally.bytes_read.load(std::memory_order_relaxed);
  past_traffic_.bytes_written += connection.tally.bytes_written.load(std::memory_order_relaxed);
  past_traffic_.reads += connection.tally.reads.load(std::memory_order_relaxed);
  past_traffic_.writes += connection.tally.writes.load(std::memory_order_relaxed);
}

TrafficCounters ShmDevice::traffic() const {
  MutexLock lock(&watch_mutex_);
  TrafficCounters sum = past_traffic_;
  refusals_.AddTo(&sum);
  for (const auto& [id, connection] : watched_) {
    sum.bytes_read += connection->tally.bytes_read.load(std::memory_order_relaxed);
    sum.bytes_written += connection->tally.bytes_written.load(std::memory_order_relaxed);
    sum.reads += connection->tally.reads.load(std::memory_order_relaxed);
    sum.writes += connection->tally.writes.load(std::memory_order_relaxed);
  }
  return sum;
}

void ShmDevice::KickMonitor() {
  const uint64_t token = 1;
  [[maybe_unused]] const ssize_t written = write(kick_fd_.get(), &token, sizeof(token));
}

void ShmDevice::Monitor() {
  std::array<epoll_event, 64> events;
  while (!stopping_.load()) {
    const int timeout = has_remote_peers_.load() ? kLifeSignMillis : -1;
    const int count = epoll_wait(epoll_fd_.get(), events.data(), events.size(), timeout);
    for (int i = 0; i < count; i++) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      if (event.data.u64 == kKickEvent) {
        uint64_t tokens;
        [[maybe_unused]] const ssize_t size = read(kick_fd_.get(), &tokens, sizeof(tokens));
      } else {
        HandleSocket(event.data.u64, event.events);
      }
    }
    if (has_remote_peers_.load()) LookForDeaths();
  }
}

void ShmDevice::HandleSocket(uint64_t connection_id, uint32_t events) {
  std::shared_ptr<Connection> connection;
  {
    MutexLock lock(&watch_mutex_);
    const auto found = watched_.find(connection_id);
    if (found == watched_.end()) return;
    connection = found->second;
  }
  const bool open = connection->Drain();
  if (open && (events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR)) == 0) return;
  epoll_event unused{};
  epoll_ctl(epoll_fd_.get(), EPOLL_CTL_DEL, connection->socket(), &unused);
  connection->MarkPeerGone();
}

void ShmDevice::LookForDeaths() {
  MutexLock lock(&watch_mutex_);
  bool has_remote_peers = false;
  for (const auto& [id, connection] : watched_) {
    if (connection->same_process() || connection->PeerClosed()) continue;
    has_remote_peers = true;
    if (connection->peer_control()->life_sign.OwnerDied()) connection->MarkPeerGone();
  }
  has_remote_peers_.store(kept_memory_.LookForDeaths() || has_remote_peers);
}

}  // namespace nacre::rdma
