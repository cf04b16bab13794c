#include "server/session/watch_table.h"

#include <algorithm>
#include <utility>

namespace nacre::server {

void WatchTable::Touch(const std::vector<TouchedKey>& keys) {
  if (entries_.load(std::memory_order_relaxed) == 0) return;
  const MutexLock lock(&mutex_);
  for (const TouchedKey& touched : keys) {
    const Key key(touched.database, touched.key);
    if (const auto watched = watches_.find(key); watched != watches_.end()) {
      for (const Watcher& watcher : watched->second) {
        watcher.state->changed.store(true, std::memory_order_relaxed);
      }
    }
    if (touched.there) WakeLocked(key, 0);
  }
}

void WatchTable::WakeLocked(const Key& key, uint64_t place) {
  const auto queue = blocked_.find(key);
  if (queue == blocked_.end()) return;
  if (queue->second.turn != 0) {
    queue->second.again = true;
    return;
  }
  const auto next = queue->second.waiting.upper_bound(place);
  if (next == queue->second.waiting.end()) return;
  queue->second.turn = next->first;
  next->second->turn = key;
  EndLocked(next->second, BlockedClient::End::kKey);
}

void WatchTable::EndTurn(const Key& key, uint64_t place, bool there) {
  const MutexLock lock(&mutex_);
  const auto queue = blocked_.find(key);
  queue->second.turn = 0;
  const bool again = std::exchange(queue->second.again, false);
  if (there) WakeLocked(key, again ? 0 : place);
  if (queue->second.turn == 0 && queue->second.waiting.empty()) blocked_.erase(queue);
}

bool WatchTable::ComesFirst(const Key& key, uint64_t place) const {
  const MutexLock lock(&mutex_);
  const auto queue = blocked_.find(key);
  return queue != blocked_.end() && queue->second.turn != 0 && queue->second.turn < place;
}

void WatchTable::TouchAll(int database) {
  const MutexLock lock(&mutex_);
  for (const auto& [key, watchers] : watches_) {
    if (key.first != database) continue;
    for (const Watcher& watcher : watchers) {
      if (watcher.there) watcher.state->changed.store(true, std::memory_order_relaxed);
    }
  }
}

void WatchTable::EndOfSlots(SlotRange slots) {
  const MutexLock lock(&mutex_);
  for (const auto& [key, watchers] : watches_) {
    if (!slots.Has(SlotOfKey(key.second))) continue;
    for (const Watcher& watcher : watchers) {
      watcher.state->changed.store(true, std::memory_order_relaxed);
    }
  }
  std::vector<BlockedClient*> blocked;
  for (const auto& [key, queue] : blocked_) {
    if (!slots.Has(SlotOfKey(key.second))) continue;
    for (const auto& [place, client] : queue.waiting) blocked.push_back(client);
  }
  // A client that waits for several keys is there several times, and is ended once.
  for (BlockedClient* const client : blocked) EndLocked(client, BlockedClient::End::kMoved);
}

void WatchTable::Watch(const std::shared_ptr<WatchState>& state, const Key& key, bool there) {
  const MutexLock lock(&mutex_);
  watches_[key].push_back({state, there});
  entries_.fetch_add(1, std::memory_order_relaxed);
}

void WatchTable::Unwatch(const std::shared_ptr<WatchState>& state) {
  const MutexLock lock(&mutex_);
  for (const WatchState::Key& each : state->keys) {
    const auto watched = watches_.find({each.database, each.key});
    if (watched == watches_.end()) continue;
    const auto is_its = [&](const Watcher& watcher) { return watcher.state == state; };
    entries_.fetch_sub(std::erase_if(watched->second, is_its), std::memory_order_relaxed);
    if (watched->second.empty()) watches_.erase(watched);
  }
}

void WatchTable::Block(BlockedClient* blocked) {
  const MutexLock lock(&mutex_);
  if (blocked->place == 0) blocked->place = ++last_place_;
  for (const Key& key : blocked->keys) blocked_[key].waiting[blocked->place] = blocked;
  entries_.fetch_add(blocked->keys.size(), std::memory_order_relaxed);
  waiting_.fetch_add(1, std::memory_order_relaxed);
}

void WatchTable::End(BlockedClient* blocked, BlockedClient::End end) {
  const MutexLock lock(&mutex_);
  EndLocked(blocked, end);
}

void WatchTable::EndLocked(BlockedClient* blocked, BlockedClient::End end) {
  if (blocked->end != BlockedClient::End::kNone) return;
  blocked->end = end;
  for (const Key& key : blocked->keys) {
    const auto queue = blocked_.find(key);
    if (queue == blocked_.end()) continue;
    queue->second.waiting.erase(blocked->place);
    if (queue->second.turn == 0 && queue->second.waiting.empty()) blocked_.erase(queue);
  }
  entries_.fetch_sub(blocked->keys.size(), std::memory_order_relaxed);
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  // The coroutine has suspended by the time that its loop comes to this.
  blocked->loop->Post([blocked] { blocked->waiter.resume(); });
}

}  // namespace nacre::server
