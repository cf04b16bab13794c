#include "server/commands/each_client.h"

namespace nacre::server {

Task<void> ForEachClient(Call& call, std::function<void(Client*, LoopState*)> work) {
  for (const auto& each : call.server->loops) {
    LoopState* const there = each.get();
    OnLoop elsewhere(&call.loop->loop, &there->loop, [&work, there] {
      for (auto i = there->clients.begin(); i != there->clients.end();) {
        Client* const client = (i++)->second;
        work(client, there);
      }
    });
    co_await elsewhere;
  }
}

}  // namespace nacre::server
