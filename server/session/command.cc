#include "server/session/command.h"

#include <algorithm>

#include "server/acl/acl_command.h"
#include "server/resp/numbers.h"

namespace nacre::server {
namespace {

/// Memory that a call keeps for the next one.
constexpr size_t kKeptBytesMax = size_t{4} << 10;

}  // namespace

Call Call::NewPart() const {
  Call part;
  part.client = client;
  part.loop = loop;
  part.server = server;
  part.access = access;
  part.unit = unit;
  part.units = units;
  part.reply.set_protocol(client->protocol);
  part.database = client->database;
  part.in_exec = true;
  return part;
}

void Call::Reset() {
  Request kept = std::move(request);
  Reply kept_reply = std::move(reply);
  *this = Call();
  if (kept.bytes.capacity() + kept_reply.bytes().capacity() > kKeptBytesMax) return;
  kept.bytes.clear();
  kept.args.clear();
  kept_reply.Clear();
  request = std::move(kept);
  reply = std::move(kept_reply);
}

bool TakesArguments(const Command& command, size_t argc) {
  const auto count = static_cast<int>(std::min<size_t>(argc, INT32_MAX));
  return command.arity >= 0 ? count == command.arity : count >= -command.arity;
}

void CountedKeys(const Call& call, size_t at, std::vector<KeyRef>* keys) {
  int64_t count = 0;
  if (at >= call.argc() || !ParseInteger(call.arg(at), &count)) return;
  for (size_t i = at + 1; i < call.argc() && count > 0; ++i, --count) {
    keys->push_back({call.database, call.arg(i)});
  }
}

void AddKeys(const Call& call, std::vector<KeyRef>* keys) {
  const Command& command = *call.command;
  if (command.first_key > 0) {
    const auto argc = static_cast<int>(call.argc());
    const int last = command.last_key < 0 ? argc + command.last_key : command.last_key;
    for (int i = command.first_key; i <= last && i < argc; i += command.key_step) {
      keys->push_back({call.database, call.arg(static_cast<size_t>(i))});
    }
  }
  if (command.keys != nullptr) command.keys(call, keys);
}

std::vector<KeyRef> KeysOf(const Call& call) {
  std::vector<KeyRef> keys;
  AddKeys(call, &keys);
  return keys;
}

void AddLocks(const Call& call, const std::vector<KeyRef>& keys, std::vector<SlotLock>* locks) {
  const Command& command = *call.command;
  if ((command.flags & kAllLocks) != 0) {
    *locks = LockTable::All();
    return;
  }
  LockMode mode = (command.flags & kWrites) != 0 ? LockMode::kChange : LockMode::kRead;
  if (command.replaces != nullptr && command.replaces(call)) mode = LockMode::kReplace;
  for (const KeyRef& key : keys) {
    locks->push_back({LockTable::SlotOf(key.database, key.key), mode});
  }
  if (command.more_locks != nullptr) command.more_locks(call, locks);
}

std::vector<SlotLock> LocksOf(const Call& call) {
  std::vector<SlotLock> locks;
  AddLocks(call, KeysOf(call), &locks);
  return locks;
}

bool HasWord(const Call& call, size_t from, std::string_view word) {
  for (size_t i = from; i < call.argc(); ++i) {
    if (SameWord(call.arg(i), word)) return true;
  }
  return false;
}

bool IntegerArgument(Call& call, size_t at, int64_t* value) {
  if (ParseInteger(call.arg(at), value)) return true;
  call.reply.Error(kNotInteger);
  return false;
}

bool FloatArgument(Call& call, size_t at, double* value) {
  if (ParseDouble(call.arg(at), value)) return true;
  call.reply.Error(kNotFloat);
  return false;
}

void WrongArity(Call& call) {
  call.reply.Error("ERR wrong number of arguments for '" + std::string(call.command->name) +
                   "' command");
}

void UnknownSubcommand(Call& call) {
  const Command& command = *call.command;
  const std::string name = UpperCase(command.name);
  std::string word(call.arg(1).substr(0, 128));
  const std::vector<std::string_view> known = Subcommands(command.subcommands);
  if (SameWord(word, "HELP") && call.argc() == 2) {
    call.reply.Array(known.size() + 1);
    call.reply.Simple(name + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    for (const std::string_view each : known) call.reply.Simple(UpperCase(each));
  } else if (SameWord(word, "HELP")) {
    call.reply.Error("ERR wrong number of arguments for '" + std::string(command.name) +
                     "|help' command");
  } else {
    const bool is_known =
        std::ranges::any_of(known, [&](std::string_view each) { return SameWord(each, word); });
    call.reply.Error((is_known ? "ERR unknown subcommand or wrong number of arguments for '"
                               : "ERR unknown subcommand '") +
                     word + "'. Try " + name + " HELP.");
  }
}

Task<bool> FindOfType(Call& call, std::string_view key, Type type, std::optional<Meta>* meta) {
  *meta = co_await call.unit->Find(call.database, key);
  if (!meta->has_value() || (*meta)->type == type) co_return true;
  call.reply.Error(kWrongType);
  co_return false;
}

}  // namespace nacre::server
