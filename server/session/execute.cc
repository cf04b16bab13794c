#include "server/session/execute.h"

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "server/resp/numbers.h"
#include "server/session/key_events.h"
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

void EndTransaction(Call* call) {
  Client* const client = call->client;
  client->in_multi = false;
  client->multi_failed = false;
  client->queued.clear();
  if (client->watch != nullptr)
    call->server->watches.Unwatch(std::exchange(client->watch, nullptr));
}

namespace {

/// Writes what the unit of work has changed, and tells those who watch the keys. The locks stay.
Task<void> WriteChanges(Call* call, UnitOfWork* work) {
  UnitOfWork& unit = *work;
  const auto touched = unit.TakeTouched();
  const std::set<int> cleared = unit.cleared();
  const std::vector<ExpiredKey> expired = unit.TakeExpired();
  const std::vector<KeyEvent> events = unit.TakeEvents();
  call->server->expired_keys.fetch_add(expired.size(), std::memory_order_relaxed);
  AsyncStatus written = unit.Submit();
  // Later writes of the client come behind this one.
  if (call->lets_next_begin) call->client->LetNextBegin(call);
  Status status = co_await written;
  if (status.ok()) PublishEvents(call->server, events, expired);
  unit.Written(std::move(status));
  // After a failure, too: the write may have taken place.
  for (const int database : cleared) call->server->watches.TouchAll(database);
  call->server->watches.Touch(touched);
}

/// Whether the command reads the meta rows of its keys.
bool ReadsItsKeys(const Call& call) {
  const Command& command = *call.command;
  if (command.replaces == nullptr || !command.replaces(call)) return true;
  const Store::Database& database = *call.access->store->Find(call.database);
  return database.has_elements.load(std::memory_order_relaxed);
}

/// The call's units of work have come to `status`.
void EndWith(Call* call, const Status& status) {
  call->unit = nullptr;
  call->units.clear();
  if (status.ok()) return;
  // Those that only read may have seen changes that were not made.
  call->reply.Clear();
  call->reply.Error(ErrorText(status));
}

}  // namespace

Task<void> Execute(std::vector<Call*> calls) {
  Call* const first = calls.front();
  uint32_t flags = 0;
  uint32_t common_flags = ~uint32_t{0};
  std::vector<SlotLock> locks;
  locks.reserve(calls.size());
  std::vector<std::string> rows;
  std::vector<KeyRef> keys;
  for (const Call* call : calls) {
    flags |= call->command->flags;
    common_flags &= call->command->flags;
    keys.clear();
    AddKeys(*call, &keys);
    AddLocks(*call, keys, &locks);
    // A single row is read as well when it is asked for.
    const bool many = calls.size() > 1 || keys.size() > 1;
    if (!many || (call->command->flags & kMetaRowsOnly) == 0 || !ReadsItsKeys(*call)) continue;
    for (const KeyRef& key : keys) rows.push_back(first->access->store->names().Meta(key.key));
  }
  UnitOfWork unit(first->access, (flags & kWrites) != 0);
  if (first->access->store != nullptr && !locks.empty()) co_await unit.Lock(std::move(locks));
  if ((common_flags & kReads) != 0 && first->lets_next_begin) first->client->LetNextBegin(first);
  if (rows.size() > 1) co_await unit.ReadAhead(first->database, std::move(rows));
  for (Call* call : calls) {
    call->unit = &unit;
    if (unit.access().store != nullptr) call->units = {&unit};
    const KeyEventScope scope(call);
    co_await call->command->handler(*call);
  }
  if (unit.status().ok() && unit.changed()) co_await WriteChanges(first, &unit);
  for (Call* call : calls) EndWith(call, unit.status());
  unit.Unlock();
}

Task<void> ExecuteOnAll(Call* call, const std::vector<const StoreAccess*>& stores) {
  const bool writes = (call->command->flags & kWrites) != 0;
  // For a command that finds no database.
  UnitOfWork none(call->access, writes);
  std::vector<std::unique_ptr<UnitOfWork>> units;
  for (const StoreAccess* const store : stores) {
    units.push_back(std::make_unique<UnitOfWork>(store, writes));
    std::vector<SlotLock> locks = LocksOf(*call);
    if (!locks.empty()) co_await units.back()->Lock(std::move(locks));
    call->units.push_back(units.back().get());
  }
  call->unit = units.empty() ? &none : units.front().get();
  co_await call->command->handler(*call);
  Status status;
  for (const auto& unit : units) {
    if (unit->status().ok() && unit->changed()) co_await WriteChanges(call, unit.get());
    if (status.ok()) status = unit->status();
  }
  EndWith(call, status);
  for (const auto& unit : units) unit->Unlock();
}

}  // namespace nacre::server
