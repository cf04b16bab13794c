#include "sharding/remote/served_clients.h"

#include <iterator>

namespace nacre {

ServedClients::~ServedClients() {
  for (const auto& [client, belongings] : clients_) {
    for (const LocalOwner::Token token : belongings.tokens) owner_->OpenGate(token);
  }
}

uint64_t ServedClients::Keep(Client client, std::shared_ptr<ServedSnapshot> snapshot) {
  MutexLock lock(&mutex_);
  clients_[client].snapshots.emplace(++last_snapshot_, std::move(snapshot));
  return last_snapshot_;
}

std::shared_ptr<ServedSnapshot> ServedClients::Find(Client client, uint64_t snapshot) const {
  MutexLock lock(&mutex_);
  const auto found = clients_.find(client);
  if (found == clients_.end()) return nullptr;
  const auto kept = found->second.snapshots.find(snapshot);
  return kept == found->second.snapshots.end() ? nullptr : kept->second;
}

void ServedClients::Release(Client client, uint64_t snapshot) {
  std::shared_ptr<ServedSnapshot> released;  // Destroyed without the lock.
  MutexLock lock(&mutex_);
  const auto found = clients_.find(client);
  if (found == clients_.end()) return;
  const auto kept = found->second.snapshots.find(snapshot);
  if (kept == found->second.snapshots.end()) return;
  released = std::move(kept->second);
  found->second.snapshots.erase(kept);
}

void ServedClients::AddToken(Client client, LocalOwner::Token token) {
  MutexLock lock(&mutex_);
  clients_[client].tokens.insert(token);
}

void ServedClients::RemoveToken(Client client, LocalOwner::Token token) {
  MutexLock lock(&mutex_);
  if (const auto found = clients_.find(client); found != clients_.end()) {
    found->second.tokens.erase(token);
  }
}

void ServedClients::AddBatch(Client client, uint32_t shard, const std::string& batch) {
  MutexLock lock(&mutex_);
  clients_[client].batches.emplace(shard, batch);
}

void ServedClients::RemoveBatch(Client client, uint32_t shard, const std::string& batch) {
  MutexLock lock(&mutex_);
  if (const auto found = clients_.find(client); found != clients_.end()) {
    found->second.batches.erase({shard, batch});
  }
}

ServedClients::Prepared ServedClients::EndClient(Client client) {
  Belongings ended;
  {
    MutexLock lock(&mutex_);
    const auto found = clients_.find(client);
    if (found == clients_.end()) return {};
    ended = std::move(found->second);
    clients_.erase(found);
  }
  for (const LocalOwner::Token token : ended.tokens) owner_->OpenGate(token);
  return std::move(ended.batches);
}

void ServedClients::DropSnapshotsOf(uint32_t shard) {
  std::vector<std::shared_ptr<ServedSnapshot>> dropped;  // Destroyed without the lock.
  MutexLock lock(&mutex_);
  for (auto& [client, belongings] : clients_) {
    for (auto it = belongings.snapshots.begin(); it != belongings.snapshots.end();) {
      const auto next = std::next(it);
      if (it->second->shard()->id() == shard) {
        dropped.push_back(std::move(it->second));
        belongings.snapshots.erase(it);
      }
      it = next;
    }
  }
}

}  // namespace nacre
