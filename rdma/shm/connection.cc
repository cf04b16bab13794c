#include "rdma/shm/connection.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <utility>

#include "rdma/shm/socket.h"

namespace nacre::rdma {

Status Connection::SetPeerDoorbell(const DoorbellName& name, UniqueFd control, UniqueFd event_fd) {
  if (name.index >= ControlBlock::kDoorbells || name.group >= Doorbell::kGroups) {
    return Status::Unavailable(parts_.peer + ": names a doorbell that cannot be");
  }
  NACRE_RETURN_IF_ERROR(MappingTable::Process()->FindOrMap({name.device, kControlObject},
                                                           control.get(), sizeof(ControlBlock),
                                                           true, &peer_doorbell_.control));
  same_process_.store(peer_doorbell_.control->created_here(), std::memory_order_relaxed);
  peer_doorbell_.word =
      &reinterpret_cast<ControlBlock*>(peer_doorbell_.control->data())->doorbells[name.index];
  peer_doorbell_.bit = uint64_t{1} << name.group;
  peer_doorbell_.event_fd = std::move(event_fd);
  return Status::OK();
}

Status Connection::FileToHandOut(int* file, UniqueFd* made) const {
  if (*file < 0 || same_process()) {
    *file = -1;
    return Status::OK();
  }
  if (parts_.peer_may_write) return Status::OK();
  // Opened anew, since a duplicate would write as well as the original does.
  const std::string path = "/proc/self/fd/" + std::to_string(*file);
  *made = UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!made->valid()) return SystemError("open " + path + " for a peer that only reads");
  *file = made->get();
  return Status::OK();
}

Status Connection::TakeAnnouncement(Packet packet) {
  RegionMessage message;
  NACRE_RETURN_IF_ERROR(DecodeRegion(packet.bytes(), &message));
  if (message.header.type == MessageType::kRegionAdded) return AddRegion(message, packet.fds);
  regions_.erase(message.key);
  return Status::OK();
}

Status Connection::AddRegion(const RegionMessage& message, const std::vector<UniqueFd>& fds) {
  PeerRegion region{.key = {.address = message.address, .size = message.size, .key = message.key},
                    .access = static_cast<Access>(message.access),
                    .mapping = nullptr};
  const ObjectName name{peer_doorbell_.control->name().device, RegionObject(message.key)};
  if (same_process()) {
    region.mapping = MappingTable::Process()->Find(name);
    if (region.mapping == nullptr) return Status::OK();  // Dropped since.
  } else {
    if (fds.size() != 1) return Status::InvalidArgument("a region without its memory");
    const bool writable = may_write_ && region.access == Access::kRemoteAll;
    // Another connection of this process may have a descriptor of it that lets it write.
    const ObjectName kept_apart{name.device, ReadOnlyRegionObject(message.key)};
    NACRE_RETURN_IF_ERROR(MappingTable::Process()->FindOrMap(
        may_write_ ? name : kept_apart, fds[0].get(), message.size, writable, &region.mapping));
  }
  if (region.mapping->size() < message.size) {
    return Status::InvalidArgument("a region larger than its memory");
  }
  if (parts_.kept_memory != nullptr && region.mapping->kept() && !same_process()) {
    parts_.kept_memory->Add(parts_.process, region.mapping);
  }
  regions_[message.key] = std::move(region);
  return Status::OK();
}

void Connection::Malformed(const Status& why) {
  malformed_ = true;
  parts_.refusals->Malformed(parts_.peer, why.message());
  CutOff();
}

Status Connection::ReadAnnouncements(uint32_t count, const Deadline& deadline) {
  MutexLock lock(&mutex_);
  for (uint32_t i = 0; i < count; i++) {
    Packet packet;
    Status status = ReceiveBy(socket(), deadline, &packet);
    if (status.IsUnavailable() || status.IsTimedOut()) return status;
    if (status.ok()) status = TakeAnnouncement(std::move(packet));
    if (!status.ok()) {
      Malformed(status);
      return Status::Unavailable(parts_.peer + ": announced " + std::string(status.message()));
    }
  }
  return Status::OK();
}

bool Connection::Drain() {
  MutexLock lock(&mutex_);
  while (!malformed_) {
    Packet packet;
    Status status;
    switch (Receive(socket(), &packet)) {
      case ReceiveResult::kMessage:
        status = TakeAnnouncement(std::move(packet));
        break;
      case ReceiveResult::kMalformed:
        status = Status::InvalidArgument("a message longer than any");
        break;
      case ReceiveResult::kNothing:
        return true;
      case ReceiveResult::kClosed:
        return false;
    }
    if (!status.ok()) Malformed(status);
  }
  return false;
}

bool Connection::FindRegion(uint32_t key, PeerRegion* region) {
  for (int attempt = 0; attempt < 2; attempt++) {
    {
      MutexLock lock(&mutex_);
      const auto found = regions_.find(key);
      if (found != regions_.end()) {
        *region = found->second;
        return true;
      }
    }
    // What a close or bad announcement means is the monitor's business: it sees it as well.
    if (attempt == 0) Drain();
  }
  return false;
}

void Connection::Announce(const RegionMessage& message, int fd, const Deadline& deadline) {
  UniqueFd made;
  std::vector<int> fds;
  Status sent = FileToHandOut(&fd, &made);
  if (fd >= 0) fds.push_back(fd);
  if (sent.ok()) sent = SendBy(socket(), deadline, &message, sizeof(message), fds);
  if (!sent.ok()) {
    CutOff();
    MarkPeerGone();
  }
}

void Connection::CutOff() {
  cut_off_.store(true, std::memory_order_release);
  // The peer's end learns of it by the hang-up, even if it is merely slow.
  shutdown(socket(), SHUT_RDWR);
}

void Connection::MarkPeerGone() {
  memory()->closed[1 - parts_.side].store(1, std::memory_order_release);
  parts_.receive_doorbell->Ring(parts_.receive_bit);
  if (parts_.send_doorbell != parts_.receive_doorbell) {
    parts_.send_doorbell->Ring(Doorbell::kWake);
  }
}

void Connection::LookAtPeer() {
  if (!PeerClosed() && !Drain()) MarkPeerGone();
}

void Connection::RefuseRequests() {
  memory()->closed[parts_.side].store(1, std::memory_order_release);
}

void Connection::CloseThisEnd() {
  RefuseRequests();
  Ring(peer_doorbell_.word, peer_doorbell_.bit, peer_doorbell_.event_fd.get());
}

}  // namespace nacre::rdma
