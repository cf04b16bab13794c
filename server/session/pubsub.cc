#include "server/session/pubsub.h"

#include <memory>

#include "server/resp/numbers.h"
#include "server/resp/reply.h"
#include "server/session/server_state.h"

namespace nacre::server {
namespace {

/// A message on its way to the clients of one loop.
struct Delivery {
  const char* word = nullptr;  ///< What it is to those that subscribed to the channel by its name.
  std::string channel;
  std::string message;
  /// The clients, each with the pattern that it subscribed by; empty: by the channel's name.
  std::vector<std::pair<uint64_t, std::string>> to;
};

void Deliver(LoopState* loop, const Delivery& delivery) {
  for (const auto& [id, pattern] : delivery.to) {
    const auto client = loop->clients.find(id);
    if (client == loop->clients.end()) continue;
    Reply reply(client->second->protocol);
    reply.Push(pattern.empty() ? 3 : 4);
    reply.Bulk(pattern.empty() ? delivery.word : "pmessage");
    if (!pattern.empty()) reply.Bulk(pattern);
    reply.Bulk(delivery.channel);
    reply.Bulk(delivery.message);
    client->second->Send(reply.bytes());
  }
}

}  // namespace

std::set<std::string>& PubSub::SubscriptionsOf(Client* client, Kind kind) {
  if (kind == Kind::kPattern) return client->patterns;
  return kind == Kind::kChannel ? client->channels : client->shard_channels;
}

void PubSub::Subscribe(Client* client, LoopState* loop, Kind kind, const std::string& name) {
  if (!SubscriptionsOf(client, kind).insert(name).second) return;
  const MutexLock lock(&mutex_);
  Of(kind)[name].emplace(loop, client->id);
}

void PubSub::Unsubscribe(Client* client, LoopState* loop, Kind kind, const std::string& name) {
  if (SubscriptionsOf(client, kind).erase(name) == 0) return;
  const MutexLock lock(&mutex_);
  const auto subscribers = Of(kind).find(name);
  subscribers->second.erase({loop, client->id});
  if (subscribers->second.empty()) Of(kind).erase(subscribers);
}

void PubSub::EndOfSlots(LoopState* loop, SlotRange slots) {
  for (const auto& [id, client] : loop->clients) {
    const std::set<std::string> names = client->shard_channels;
    for (const std::string& name : names) {
      if (!slots.Has(SlotOfKey(name))) continue;
      Unsubscribe(client, loop, Kind::kShardChannel, name);
      Reply reply(client->protocol);
      reply.Push(3);
      reply.Bulk("sunsubscribe");
      reply.Bulk(name);
      reply.Integer(static_cast<int64_t>(client->shard_channels.size()));
      client->Send(reply.bytes());
    }
  }
}

void PubSub::UnsubscribeAll(Client* client, LoopState* loop) {
  for (const Kind kind : {Kind::kChannel, Kind::kPattern, Kind::kShardChannel}) {
    const std::set<std::string>& names = SubscriptionsOf(client, kind);
    while (!names.empty()) Unsubscribe(client, loop, kind, std::string(*names.begin()));
  }
}

int64_t PubSub::Publish(std::string_view channel, std::string_view message, Kind kind) {
  std::map<LoopState*, std::vector<std::pair<uint64_t, std::string>>> to;
  int64_t count = 0;
  const MutexLock lock(&mutex_);
  const ByName& channels = Of(kind);
  if (const auto named = channels.find(std::string(channel)); named != channels.end()) {
    for (const auto& [loop, id] : named->second) to[loop].emplace_back(id, "");
    count += static_cast<int64_t>(named->second.size());
  }
  if (kind == Kind::kChannel) {
    for (const auto& [pattern, subscribers] : Of(Kind::kPattern)) {
      if (!MatchesGlob(pattern, channel)) continue;
      for (const auto& [loop, id] : subscribers) to[loop].emplace_back(id, pattern);
      count += static_cast<int64_t>(subscribers.size());
    }
  }
  // With the mutex held, so that all see messages of a channel in the same order.
  for (auto& [loop, clients] : to) {
    auto delivery = std::make_shared<Delivery>();
    delivery->word = kind == Kind::kChannel ? "message" : "smessage";
    delivery->channel = channel;
    delivery->message = message;
    delivery->to = std::move(clients);
    loop->loop.Post([loop = loop, delivery] { Deliver(loop, *delivery); });
  }
  return count;
}

std::vector<std::string> PubSub::Channels(Kind kind, std::string_view pattern) const {
  std::vector<std::string> found;
  const MutexLock lock(&mutex_);
  for (const auto& [name, subscribers] : Of(kind)) {
    if (MatchesGlob(pattern, name)) found.push_back(name);
  }
  return found;
}

size_t PubSub::Subscribers(Kind kind, const std::string& channel) const {
  const MutexLock lock(&mutex_);
  const auto found = Of(kind).find(channel);
  return found == Of(kind).end() ? 0 : found->second.size();
}

size_t PubSub::patterns() const {
  const MutexLock lock(&mutex_);
  return Of(Kind::kPattern).size();
}

}  // namespace nacre::server
