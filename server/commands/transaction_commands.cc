#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/commands/command_lists.h"
#include "server/resp/numbers.h"
#include "server/session/execute.h"
#include "server/session/key_events.h"
#include "server/session/permission.h"
#include "server/session/server_state.h"

// MULTI, EXEC, DISCARD, WATCH and UNWATCH: EXEC locks all keys that its commands name, and those
// that are watched, and has one unit of work for all of them.

namespace nacre::server {
namespace {

Task<void> Multi(Call& call) {
  if (call.client->in_multi) {
    call.reply.Error("ERR MULTI calls can not be nested");
  } else {
    call.client->in_multi = true;
    call.reply.Ok();
  }
  co_return;
}

Task<void> Discard(Call& call) {
  if (!call.client->in_multi) {
    call.reply.Error("ERR DISCARD without MULTI");
    co_return;
  }
  EndTransaction(&call);
  call.reply.Ok();
}

/// The call of a command that was queued, which then has no arguments any more if it `takes` them.
Call CallOf(const Call& exec, QueuedCommand& queued, bool takes) {
  Call call = exec.NewPart();
  if (takes) {
    call.request = std::move(queued.request);
  } else {
    call.request.args = queued.request.args;
  }
  call.command = queued.command;
  return call;
}

void ExecLocks(const Call& exec, std::vector<SlotLock>* locks) {
  int64_t database = exec.client->database;
  for (QueuedCommand& queued : exec.client->queued) {
    Call call = CallOf(exec, queued, /*takes=*/false);
    call.database = static_cast<int>(database);
    if (std::string_view(call.command->name) == "select") ParseInteger(call.arg(1), &database);
    const std::vector<SlotLock> more = LocksOf(call);
    locks->insert(locks->end(), more.begin(), more.end());
  }
  if (exec.client->watch == nullptr) return;
  for (const WatchState::Key& key : exec.client->watch->keys) {
    locks->push_back({LockTable::SlotOf(key.database, key.key), LockMode::kRead});
  }
}

/// Whether what is watched is as it was. Its locks are held.
bool IsUnchanged(const Call& exec) {
  const WatchState* const watch = exec.client->watch.get();
  if (watch == nullptr) return true;
  if (watch->changed.load(std::memory_order_relaxed)) return false;
  for (const WatchState::Key& key : watch->keys) {
    if (key.expires_at_ms != 0 && key.expires_at_ms <= exec.unit->now_ms()) return false;
  }
  return true;
}

Task<void> Exec(Call& call) {
  Client* const client = call.client;
  if (!client->in_multi) {
    call.reply.Error("ERR EXEC without MULTI");
    co_return;
  }
  const bool failed = client->multi_failed;
  std::vector<QueuedCommand> commands = std::exchange(client->queued, {});
  const bool unchanged = IsUnchanged(call);
  EndTransaction(&call);
  if (failed) {
    call.reply.Error("EXECABORT Transaction discarded because of previous errors.");
    co_return;
  }
  if (!unchanged) {
    call.reply.NullArray();
    co_return;
  }
  call.reply.Array(commands.size());
  size_t begun = 0;
  for (QueuedCommand& queued : commands) {
    if (++begun % Yield::kTasksMax == 0) co_await Yield(&call.loop->loop);
    Call part = CallOf(call, queued, /*takes=*/true);
    // What the user may do can have been changed since it was queued.
    const std::string error = Forbidden(part, CallContext::kMulti);
    if (error.empty()) {
      const KeyEventScope scope(&part);
      co_await part.command->handler(part);
    } else {
      part.reply.Error(error);
    }
    call.reply.Append(part.reply.bytes());
  }
  call.reply.set_protocol(client->protocol);
}

Task<void> Watch(Call& call) {
  if (call.client->in_multi) {
    call.reply.Error("ERR WATCH inside MULTI is not allowed");
    co_return;
  }
  auto& watch = call.client->watch;
  if (watch == nullptr) watch = std::make_shared<WatchState>();
  for (size_t i = 1; i < call.argc(); ++i) {
    const std::string key(call.arg(i));
    const bool known =
        std::any_of(watch->keys.begin(), watch->keys.end(), [&](const WatchState::Key& other) {
          return other.database == call.database && other.key == key;
        });
    if (known) continue;
    const std::optional<Meta> meta = co_await call.unit->Find(call.database, key);
    watch->keys.push_back({call.database, key, meta.has_value() ? meta->expires_at_ms : 0});
    call.server->watches.Watch(watch, {call.database, key}, meta.has_value());
  }
  call.reply.Ok();
}

Task<void> Unwatch(Call& call) {
  if (call.client->watch != nullptr) {
    call.server->watches.Unwatch(std::exchange(call.client->watch, nullptr));
  }
  call.reply.Ok();
  co_return;
}

constexpr Command kTransactionCommands[] = {
    {"multi", &Multi, 1, kFast | kAtOnce},
    {"exec", &Exec, 1, kWrites | kAtOnce, 0, 0, 0, nullptr, nullptr, &ExecLocks},
    {"discard", &Discard, 1, kFast | kAtOnce},
    {"watch", &Watch, -2, kFast | kAtOnce, 1, -1, 1},
    {"unwatch", &Unwatch, 1, kFast},
};

}  // namespace

std::span<const Command> TransactionCommands() { return kTransactionCommands; }

}  // namespace nacre::server
