#include "server/session/client.h"

namespace nacre::server {

std::string Client::Describe(uint64_t now_ns) const {
  const auto seconds = [&](uint64_t since) {
    return std::to_string(now_ns > since ? (now_ns - since) / 1'000'000'000 : 0);
  };
  std::string flags;
  if (in_multi) flags += "x";
  if (blocked != nullptr) flags += "b";
  if (subscriptions() > 0) flags += "P";
  if (no_evict) flags += "e";
  return "id=" + std::to_string(id) + " addr=" + address + " laddr=" + local_address +
         " name=" + name + " age=" + seconds(connected_at_ns) + " idle=" + seconds(last_seen_ns) +
         " flags=" + (flags.empty() ? "N" : flags) + " db=" + std::to_string(database) +
         " sub=" + std::to_string(channels.size()) + " psub=" + std::to_string(patterns.size()) +
         " multi=" + (in_multi ? std::to_string(queued.size()) : "-1") + " cmd=" + last_command +
         " user=" + (user == nullptr ? "(gone)" : user->name()) +
         " resp=" + std::to_string(protocol);
}

}  // namespace nacre::server
