#include <optional>
#include <string>

#include "server/commands/command_lists.h"
#include "server/resp/numbers.h"
#include "server/session/server_state.h"

namespace nacre::server {
namespace {

Task<void> Del(Call& call) {
  int64_t removed = 0;
  for (size_t i = 1; i < call.argc(); ++i) {
    const std::optional<Meta> meta = co_await call.unit->Find(call.database, call.arg(i));
    if (!meta.has_value()) continue;
    call.unit->Remove(call.database, call.arg(i), *meta);
    ++removed;
  }
  call.reply.Integer(removed);
}

/// EXISTS and TOUCH, which counts accesses nowhere.
Task<void> Exists(Call& call) {
  int64_t found = 0;
  for (size_t i = 1; i < call.argc(); ++i) {
    const std::optional<Meta> meta = co_await call.unit->Find(call.database, call.arg(i));
    found += meta.has_value() ? 1 : 0;
  }
  call.reply.Integer(found);
}

Task<void> TypeOf(Call& call) {
  const std::optional<Meta> meta = co_await call.unit->Find(call.database, call.arg(1));
  call.reply.Simple(meta.has_value() ? TypeName(meta->type) : "none");
}

// ---- Expiry -------------------------------------------------------------------------------------

struct ExpireOptions {
  bool if_none = false;    ///< NX: only keys without an expiry.
  bool if_some = false;    ///< XX: only keys with one.
  bool if_later = false;   ///< GT; no expiry is later than all.
  bool if_sooner = false;  ///< LT
};

bool ParseExpireOptions(Call& call, ExpireOptions* options) {
  for (size_t i = 3; i < call.argc(); ++i) {
    const std::string word = UpperCase(call.arg(i));
    if (word == "NX") {
      options->if_none = true;
    } else if (word == "XX") {
      options->if_some = true;
    } else if (word == "GT") {
      options->if_later = true;
    } else if (word == "LT") {
      options->if_sooner = true;
    } else {
      call.reply.Error("ERR Unsupported option " + std::string(call.arg(i)));
      return false;
    }
  }
  if (options->if_none && (options->if_some || options->if_later || options->if_sooner)) {
    call.reply.Error("ERR NX and XX, GT or LT options at the same time are not compatible");
    return false;
  }
  if (options->if_later && options->if_sooner) {
    call.reply.Error("ERR GT and LT options at the same time are not compatible");
    return false;
  }
  return true;
}

/// All four of EXPIRE, PEXPIRE, EXPIREAT and PEXPIREAT.
Task<void> Expire(Call& call) {
  const std::string_view name = call.command->name;
  int64_t value = 0;
  if (!IntegerArgument(call, 2, &value)) co_return;
  int64_t at = 0;
  const bool absolute = name.ends_with("at");
  if (__builtin_mul_overflow(value, name.starts_with("p") ? 1 : 1000, &at) ||
      __builtin_add_overflow(at, absolute ? 0 : static_cast<int64_t>(call.unit->now_ms()), &at)) {
    call.reply.Error("ERR invalid expire time in '" + std::string(name) + "' command");
    co_return;
  }
  ExpireOptions options;
  if (!ParseExpireOptions(call, &options)) co_return;
  std::optional<Meta> meta = co_await call.unit->Find(call.database, call.arg(1));
  const auto old = meta.has_value() ? static_cast<int64_t>(meta->expires_at_ms) : 0;
  const bool refused = (options.if_none && old != 0) || (options.if_some && old == 0) ||
                       (options.if_later && (old == 0 || at <= old)) ||
                       (options.if_sooner && old != 0 && at >= old);
  if (!meta.has_value() || refused) {
    call.reply.Integer(0);
    co_return;
  }
  if (at <= static_cast<int64_t>(call.unit->now_ms())) {
    call.unit->Remove(call.database, call.arg(1), *meta);
  } else {
    meta->expires_at_ms = static_cast<uint64_t>(at);
    call.unit->Save(call.database, call.arg(1), *meta);
  }
  call.reply.Integer(1);
}

/// All four of TTL, PTTL, EXPIRETIME and PEXPIRETIME.
Task<void> TimeToLive(Call& call) {
  const std::string_view name = call.command->name;
  const std::optional<Meta> meta = co_await call.unit->Find(call.database, call.arg(1));
  if (!meta.has_value() || meta->expires_at_ms == 0) {
    call.reply.Integer(meta.has_value() ? -1 : -2);
    co_return;
  }
  const bool absolute = name.ends_with("time");
  const uint64_t ms = meta->expires_at_ms - (absolute ? 0 : call.unit->now_ms());
  const uint64_t rounding = absolute ? 0 : 500;
  call.reply.Integer(static_cast<int64_t>(name.starts_with("p") ? ms : (ms + rounding) / 1000));
}

Task<void> Persist(Call& call) {
  std::optional<Meta> meta = co_await call.unit->Find(call.database, call.arg(1));
  const bool expires = meta.has_value() && meta->expires_at_ms != 0;
  if (expires) {
    meta->expires_at_ms = 0;
    call.unit->Save(call.database, call.arg(1), *meta);
  }
  call.reply.Integer(expires ? 1 : 0);
}

// ---- Copies -------------------------------------------------------------------------------------

/// Makes `to` what `from` is, whatever it was. `from` and `to` differ.
Task<void> CopyKey(Call& call, KeyRef from, const Meta& meta, KeyRef to) {
  const std::optional<Meta> old = co_await call.unit->Find(to.database, to.key);
  if (old.has_value()) call.unit->Remove(to.database, to.key, *old);
  Meta copy = meta;
  copy.stored_expiry_ms = 0;
  if (meta.type != Type::kString) {
    copy.incarnation = call.unit->NewCollection(to.database, meta.type).incarnation;
    const std::string prefix = call.unit->names().ElementPrefix(from.key, meta.incarnation);
    const std::string new_prefix = call.unit->names().ElementPrefix(to.key, copy.incarnation);
    const std::vector<Row> rows =
        co_await call.unit->Scan(from.database, RowRange(prefix, BehindPrefix(prefix)));
    for (const Row& row : rows) {
      call.unit->Put(to.database, new_prefix + row.key.substr(prefix.size()), row.value);
    }
  }
  call.unit->Save(to.database, to.key, copy);
}

Task<void> Rename(Call& call) {
  const bool if_missing = std::string_view(call.command->name) == "renamenx";
  const std::string_view from = call.arg(1);
  const std::string_view to = call.arg(2);
  const std::optional<Meta> meta = co_await call.unit->Find(call.database, from);
  if (!meta.has_value()) {
    call.reply.Error(kNoSuchKey);
    co_return;
  }
  if (if_missing) {
    const std::optional<Meta> old = co_await call.unit->Find(call.database, to);
    call.reply.Integer(old.has_value() ? 0 : 1);
    if (old.has_value()) co_return;
  } else {
    call.reply.Ok();
  }
  if (from == to) co_return;
  co_await CopyKey(call, {call.database, from}, *meta, {call.database, to});
  call.unit->Remove(call.database, from, *meta);
}

/// The database that a command names; answers an error and false if there is none.
bool DatabaseArgument(Call& call, size_t at, int* database) {
  int64_t number = 0;
  if (!IntegerArgument(call, at, &number)) return false;
  if (number < 0 || number >= call.access->store->databases()) {
    call.reply.Error("ERR DB index is out of range");
    return false;
  }
  *database = static_cast<int>(number);
  return true;
}

/// COPY's and MOVE's key in the other database.
void CopyKeys(const Call& call, std::vector<KeyRef>* keys) {
  const bool moves = std::string_view(call.command->name) == "move";
  int64_t database = call.database;
  if (moves) {
    if (call.argc() > 2) ParseInteger(call.arg(2), &database);
  } else {
    for (size_t i = 3; i + 1 < call.argc(); ++i) {
      if (SameWord(call.arg(i), "DB")) ParseInteger(call.arg(i + 1), &database);
    }
  }
  if (call.argc() < 3) return;
  keys->push_back({static_cast<int>(database), call.arg(moves ? 1 : 2)});
}

/// Makes the database if it is not there. Answers an error and false if that fails.
Task<bool> MakeDatabase(Call& call, int database) {
  if (call.access->store->Find(database) != nullptr) co_return true;
  Status made;
  Offload offload(&call.loop->loop, call.loop->access.workers,
                  [&] { made = call.access->store->Make(database); });
  co_await offload;
  if (!made.ok()) call.unit->Fail(made);
  co_return made.ok();
}

/// COPY and MOVE, once their arguments are known.
Task<void> CopyTo(Call& call, KeyRef from, KeyRef to, bool replaces, bool moves) {
  if (from.database == to.database && from.key == to.key) {
    call.reply.Error("ERR source and destination objects are the same");
    co_return;
  }
  const bool made = co_await MakeDatabase(call, to.database);
  if (!made) co_return;
  const std::optional<Meta> meta = co_await call.unit->Find(from.database, from.key);
  const std::optional<Meta> old = co_await call.unit->Find(to.database, to.key);
  const bool copies = meta.has_value() && (replaces || !old.has_value());
  if (copies) co_await CopyKey(call, from, *meta, to);
  if (copies && moves) call.unit->Remove(from.database, from.key, *meta);
  call.reply.Integer(copies ? 1 : 0);
}

Task<void> Copy(Call& call) {
  int database = call.database;
  bool replace = false;
  for (size_t i = 3; i < call.argc(); ++i) {
    if (SameWord(call.arg(i), "REPLACE")) {
      replace = true;
    } else if (SameWord(call.arg(i), "DB") && i + 1 < call.argc()) {
      if (!DatabaseArgument(call, ++i, &database)) co_return;
    } else {
      call.reply.Error(kSyntaxError);
      co_return;
    }
  }
  const KeyRef from{call.database, call.arg(1)};
  const KeyRef to{database, call.arg(2)};
  co_await CopyTo(call, from, to, replace, /*moves=*/false);
}

Task<void> Move(Call& call) {
  int database = 0;
  if (!DatabaseArgument(call, 2, &database)) co_return;
  const KeyRef from{call.database, call.arg(1)};
  const KeyRef to{database, call.arg(1)};
  co_await CopyTo(call, from, to, /*replaces=*/false, /*moves=*/true);
}

// ---- What keys are ------------------------------------------------------------------------------

/// Names as Redis has them for values that are not small; there is one way to keep each type here.
const char* EncodingName(const Meta& meta) {
  switch (meta.type) {
    case Type::kString: {
      int64_t number = 0;
      if (meta.value.size() <= 20 && ParseInteger(meta.value, &number)) return "int";
      return meta.value.size() <= 44 ? "embstr" : "raw";
    }
    case Type::kList:
      return "quicklist";
    case Type::kSet:
    case Type::kHash:
      return "hashtable";
    case Type::kSortedSet:
      return "skiplist";
  }
  return "unknown";
}

Task<void> Object(Call& call) {
  const std::string_view what = call.arg(1);
  const bool known = SameWord(what, "ENCODING") || SameWord(what, "REFCOUNT") ||
                     SameWord(what, "FREQ") || SameWord(what, "IDLETIME");
  if (call.argc() != 3 || !known) {
    UnknownSubcommand(call);
    co_return;
  }
  const std::optional<Meta> meta = co_await call.unit->Find(call.database, call.arg(2));
  if (!meta.has_value()) {
    call.reply.Null();
  } else if (SameWord(what, "ENCODING")) {
    call.reply.Bulk(EncodingName(*meta));
  } else if (SameWord(what, "REFCOUNT")) {
    call.reply.Integer(1);
  } else {
    call.reply.Error("ERR accesses to keys are not counted");
  }
}

/// The bytes of a key's rows, before they are compressed or replicated.
Task<void> Memory(Call& call) {
  if (!SameWord(call.arg(1), "USAGE") || call.argc() < 3) {
    UnknownSubcommand(call);
    co_return;
  }
  const bool samples = call.argc() == 5 && SameWord(call.arg(3), "SAMPLES");
  int64_t count = 0;
  if (call.argc() > 3 && (!samples || !ParseInteger(call.arg(4), &count) || count < 0)) {
    call.reply.Error(kSyntaxError);
    co_return;
  }
  const std::optional<Meta> meta = co_await call.unit->Find(call.database, call.arg(2));
  if (!meta.has_value()) {
    call.reply.Null();
    co_return;
  }
  size_t bytes = call.unit->names().Meta(call.arg(2)).size() + EncodeMeta(*meta).size();
  if (meta->type != Type::kString) {
    const std::string prefix = call.unit->names().ElementPrefix(call.arg(2), meta->incarnation);
    const std::vector<Row> rows =
        co_await call.unit->Scan(call.database, RowRange(prefix, BehindPrefix(prefix)));
    for (const Row& row : rows) bytes += row.key.size() + row.value.size();
  }
  call.reply.Integer(static_cast<int64_t>(bytes));
}

constexpr Command kKeyCommands[] = {
    {"del", &Del, -2, kWrites | kMetaRowsOnly, 1, -1, 1},
    {"unlink", &Del, -2, kWrites | kFast | kMetaRowsOnly, 1, -1, 1},
    {"exists", &Exists, -2, kReads | kFast | kMetaRowsOnly, 1, -1, 1},
    {"touch", &Exists, -2, kReads | kFast | kMetaRowsOnly, 1, -1, 1},
    {"type", &TypeOf, 2, kReads | kFast | kMetaRowsOnly, 1, 1, 1},
    {"expire", &Expire, -3, kWrites | kFast | kMetaRowsOnly, 1, 1, 1},
    {"pexpire", &Expire, -3, kWrites | kFast | kMetaRowsOnly, 1, 1, 1},
    {"expireat", &Expire, -3, kWrites | kFast | kMetaRowsOnly, 1, 1, 1},
    {"pexpireat", &Expire, -3, kWrites | kFast | kMetaRowsOnly, 1, 1, 1},
    {"ttl", &TimeToLive, 2, kReads | kFast | kMetaRowsOnly, 1, 1, 1},
    {"pttl", &TimeToLive, 2, kReads | kFast | kMetaRowsOnly, 1, 1, 1},
    {"expiretime", &TimeToLive, 2, kReads | kFast | kMetaRowsOnly, 1, 1, 1},
    {"pexpiretime", &TimeToLive, 2, kReads | kFast | kMetaRowsOnly, 1, 1, 1},
    {"persist", &Persist, 2, kWrites | kFast | kMetaRowsOnly, 1, 1, 1},
    {"rename", &Rename, 3, kWrites, 1, 2, 1},
    {"renamenx", &Rename, 3, kWrites | kFast, 1, 2, 1},
    {"copy", &Copy, -3, kWrites, 1, 1, 1, &CopyKeys},
    {"move", &Move, 3, kWrites | kFast, 1, 1, 1, &CopyKeys},
    WithSubcommands({"object", &Object, -2, kReads, 2, 2, 1}, "encoding freq idletime refcount"),
    WithSubcommands({"memory", &Memory, -2, kReads, 2, 2, 1}, "usage"),
};

}  // namespace

std::span<const Command> KeyCommands() { return kKeyCommands; }

}  // namespace nacre::server
