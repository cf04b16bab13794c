#include "server/session/execute.h"

#include <set>
#include <string>
#include <utility>

#include "server/resp/numbers.h"
#include "server/session/server_state.h"

namespace nacre::server {

const Command* ServerState::FindCommand(std::string_view name) const {
  const std::string lower = LowerCase(name);
  const auto found = commands.find(lower);
  return found == commands.end() ? nullptr : found->second;
}

std::string ErrorText(const Status& status) {
  if (status.IsNoSpace()) return "OOM the pool is full: " + std::string(status.message());
  if (status.IsFenced()) return "READONLY another server has taken the database over";
  return "ERR " + status.ToString();
}

Task<void> WriteChanges(Call* call) {
  UnitOfWork& unit = *call->unit;
  if (!unit.status().ok() || !unit.changed()) co_return;
  const auto touched = unit.TakeTouched();
  const std::set<int> cleared = unit.cleared();
  call->server->expired_keys.fetch_add(unit.TakeExpired(), std::memory_order_relaxed);
  AsyncStatus written = unit.Submit();
  // Later writes of the client come behind this one.
  if (!call->in_exec) call->client->LetNextBegin(call);
  Status status = co_await written;
  unit.Note(std::move(status));
  // After a failure, too: the write may have taken place.
  for (const int database : cleared) call->server->watches.TouchAll(database);
  call->server->watches.Touch(touched);
}

Task<void> Execute(Call* call) {
  UnitOfWork unit(&call->loop->access, (call->command->flags & kWrites) != 0);
  call->unit = &unit;
  std::vector<SlotLock> locks = LocksOf(*call);
  if (!locks.empty()) co_await unit.Lock(std::move(locks));
  if ((call->command->flags & kReads) != 0) call->client->LetNextBegin(call);
  co_await call->command->handler(*call);
  co_await WriteChanges(call);
  if (!unit.status().ok()) {
    call->reply.Clear();
    call->reply.Error(ErrorText(unit.status()));
  }
  unit.Unlock();
  call->unit = nullptr;
}

}  // namespace nacre::server
