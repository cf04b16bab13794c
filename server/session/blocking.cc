#include "server/session/blocking.h"

#include <chrono>
#include <optional>
#include <utility>

#include "server/resp/numbers.h"
#include "server/session/routing.h"
#include "server/session/server_state.h"

namespace nacre::server {
namespace {

constexpr double kTimeoutSecondsMax = 1e9;

}  // namespace

bool TimeoutArgument(Call& call, size_t at, double* seconds) {
  if (!ParseDouble(call.arg(at), seconds)) {
    call.reply.Error("ERR timeout is not a float or out of range");
    return false;
  }
  if (*seconds < 0) {
    call.reply.Error("ERR timeout is negative");
    return false;
  }
  if (*seconds > kTimeoutSecondsMax) {
    call.reply.Error("ERR timeout is out of range");
    return false;
  }
  return true;
}

Task<void> AttemptUntilAnswered(Call& call, std::vector<std::string> keys, double seconds,
                                Task<bool> (*attempt)(Call& call)) {
  EventLoop& loop = call.loop->loop;
  const uint64_t deadline = loop.clock()->NowNanos() + static_cast<uint64_t>(seconds * 1e9);
  uint64_t place = 0;
  WatchTable::Key turn;
  while (true) {
    const bool gone = call.client->ended || call.client->closing;
    bool answered = false;
    // Nothing is taken for a client that has gone while it waited.
    if (place == 0 || !gone) answered = co_await attempt(call);
    if (place != 0) {
      const std::optional<Meta> meta = co_await call.unit->Find(turn.first, turn.second);
      call.server->watches.EndTurn(turn, place, meta.has_value());
    }
    if (answered || !call.unit->status().ok()) co_return;
    if (call.in_exec || gone) {
      call.reply.NullArray();
      co_return;
    }
    if (call.access->leaving) {
      call.reply.Error(RedirectionOf(call, SlotOfKey(keys.front())));
      co_return;
    }
    BlockedClient blocked;
    blocked.loop = &loop;
    blocked.place = place;
    for (const std::string& key : keys) blocked.keys.emplace_back(call.database, key);
    call.server->watches.Block(&blocked);
    place = blocked.place;
    call.client->blocked = &blocked;
    std::optional<EventLoop::Timer> timer;
    if (seconds > 0) {
      const uint64_t now = loop.clock()->NowNanos();
      timer = loop.After(std::chrono::nanoseconds(deadline > now ? deadline - now : 0), [&] {
        timer.reset();
        call.server->watches.End(&blocked, BlockedClient::End::kTimeout);
      });
    }
    call.unit->Unlock();
    co_await AwaitKey(&blocked);
    call.client->blocked = nullptr;
    if (timer.has_value()) loop.Cancel(*timer);
    if (blocked.end == BlockedClient::End::kUnblocked) {
      call.reply.Error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
      co_return;
    }
    if (blocked.end == BlockedClient::End::kMoved) {
      call.reply.Error(RedirectionOf(call, SlotOfKey(keys.front())));
      co_return;
    }
    if (blocked.end != BlockedClient::End::kKey) {
      call.reply.NullArray();
      co_return;
    }
    turn = blocked.turn;
    call.turn = &turn.second;
    call.place = place;
    co_await call.unit->Lock(LocksOf(call));
  }
}

Task<void> AttemptOnKeys(Call& call, Task<bool> (*attempt)(Call& call)) {
  double seconds = 0;
  if (!TimeoutArgument(call, call.argc() - 1, &seconds)) co_return;
  std::vector<std::string> keys;
  for (size_t i = 1; i + 1 < call.argc(); ++i) keys.emplace_back(call.arg(i));
  co_await AttemptUntilAnswered(call, std::move(keys), seconds, attempt);
}

}  // namespace nacre::server
