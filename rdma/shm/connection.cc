#include "rdma/shm/connection.h"

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

bool Connection::TakeAnnouncement(const RegionMessage& message, std::vector<UniqueFd> fds) {
  if (message.header.magic != kWireMagic) return false;
  if (message.header.type == MessageType::kRegionDropped) {
    regions_.erase(message.key);
    return true;
  }
  if (message.header.type != MessageType::kRegionAdded ||
      message.access > static_cast<uint32_t>(Access::kRemoteAll)) {
    return false;
  }
  PeerRegion region{.key = {.address = message.address, .size = message.size, .key = message.key},
                    .access = static_cast<Access>(message.access),
                    .mapping = nullptr};
  const ObjectName name{peer_doorbell_.control->name().device, RegionObject(message.key)};
  if (same_process()) {
    region.mapping = MappingTable::Process()->Find(name);
    if (region.mapping == nullptr) return true;  // Dropped since.
  } else {
    const bool writable = region.access == Access::kRemoteAll;
    if (fds.size() != 1 ||
        !MappingTable::Process()
             ->FindOrMap(name, fds[0].get(), message.size, writable, &region.mapping)
             .ok()) {
      return false;
    }
  }
  if (region.mapping->size() < message.size) return false;
  regions_[message.key] = std::move(region);
  return true;
}

Status Connection::ReadAnnouncements(uint32_t count, const Deadline& deadline) {
  MutexLock lock(&mutex_);
  for (uint32_t i = 0; i < count; i++) {
    RegionMessage message;
    std::vector<UniqueFd> fds;
    NACRE_RETURN_IF_ERROR(ReceiveBy(socket(), deadline, &message, sizeof(message), &fds));
    if (!TakeAnnouncement(message, std::move(fds))) {
      return Status::Unavailable(parts_.peer + ": announced a region that cannot be mapped");
    }
  }
  return Status::OK();
}

bool Connection::Drain() {
  MutexLock lock(&mutex_);
  while (true) {
    RegionMessage message;
    std::vector<UniqueFd> fds;
    switch (Receive(socket(), &message, sizeof(message), &fds)) {
      case ReceiveResult::kMessage:
        if (!TakeAnnouncement(message, std::move(fds))) return false;
        break;
      case ReceiveResult::kNothing:
        return true;
      case ReceiveResult::kClosed:
        return false;
    }
  }
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
  std::vector<int> fds;
  if (fd >= 0 && !same_process()) fds.push_back(fd);
  if (!SendBy(socket(), deadline, &message, sizeof(message), fds).ok()) {
    // The peer's end learns of it by the hang-up, even if it is merely slow.
    shutdown(socket(), SHUT_RDWR);
    MarkPeerGone();
  }
}

void Connection::MarkPeerGone() {
  memory()->closed[1 - parts_.side].store(1, std::memory_order_release);
  parts_.receive_doorbell->Ring(parts_.receive_bit);
  if (parts_.send_doorbell != parts_.receive_doorbell) {
    parts_.send_doorbell->Ring(Doorbell::kWake);
  }
}

void Connection::CloseThisEnd() {
  memory()->closed[parts_.side].store(1, std::memory_order_release);
  Ring(peer_doorbell_.word, peer_doorbell_.bit, peer_doorbell_.event_fd.get());
}

}  // namespace nacre::rdma
