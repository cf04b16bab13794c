#include "sharding/remote/served_clients.h"

#include <algorithm>
#include <iterator>

#include "util/planted_bug.h"

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
  for (const auto& [transaction, locker] : ended.lockers) {
    if (NACRE_PLANTED_BUG("locks.of-the-dead-are-kept")) break;
    for (const auto& shard : locker.shards) shard->locks()->table()->UnlockAll(locker.id);
  }
  return std::move(ended.batches);
}

TransactionID ServedClients::AddLocker(Client client, uint64_t transaction,
                                       const std::shared_ptr<LocalShard>& shard) {
  MutexLock lock(&mutex_);
  Locker& locker = clients_[client].lockers[transaction];
  if (locker.id == 0) locker.id = LocalLocks::IdOfOther(++last_locker_);
  locker.shards.insert(shard);
  return locker.id;
}

const ServedClients::Locker* ServedClients::LockerOf(Client client, uint64_t transaction) const {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return nullptr;
  const auto locker = found->second.lockers.find(transaction);
  return locker == found->second.lockers.end() ? nullptr : &locker->second;
}

TransactionID ServedClients::FindLocker(Client client, uint64_t transaction,
                                        const LocalShard& shard) const {
  MutexLock lock(&mutex_);
  const Locker* const locker = LockerOf(client, transaction);
  const auto is_it = [&](const auto& each) { return each.get() == &shard; };
  return locker != nullptr && std::ranges::any_of(locker->shards, is_it) ? locker->id : 0;
}

void ServedClients::RemoveLocker(Client client, uint64_t transaction, const LocalShard& shard) {
  MutexLock lock(&mutex_);
  if (LockerOf(client, transaction) == nullptr) return;
  auto& lockers = clients_[client].lockers;
  auto& shards = lockers[transaction].shards;
  std::erase_if(shards, [&](const auto& each) { return each.get() == &shard; });
  if (shards.empty()) lockers.erase(transaction);
}

void ServedClients::CancelAttempt(Client client, uint64_t attempt) {
  MutexLock lock(&mutex_);
  clients_[client].cancelled.insert(attempt);
}

bool ServedClients::MayKeepLock(Client client, uint64_t transaction, TransactionID owner,
                                uint64_t attempt) const {
  MutexLock lock(&mutex_);
  const Locker* const locker = LockerOf(client, transaction);
  return locker != nullptr && locker->id == owner &&
         !clients_.at(client).cancelled.contains(attempt);
}

void ServedClients::DropBelongingsOf(uint32_t shard) {
  // Destroyed without the lock.
  std::vector<std::shared_ptr<ServedSnapshot>> dropped;
  std::vector<std::shared_ptr<LocalShard>> left;
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
    for (auto it = belongings.lockers.begin(); it != belongings.lockers.end();) {
      auto& shards = it->second.shards;
      std::erase_if(shards, [&](const auto& each) {
        if (each->id() != shard) return false;
        left.push_back(each);
        return true;
      });
      it = shards.empty() ? belongings.lockers.erase(it) : std::next(it);
    }
  }
}

}  // namespace nacre
