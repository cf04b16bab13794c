#include <algorithm>
#include <optional>

#include "server/commands/command_lists.h"
#include "server/resp/numbers.h"
#include "server/session/server_state.h"

namespace nacre::server {
namespace {

constexpr size_t kStringBytesMax = size_t{512} << 20;
constexpr const char* kTooLong = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";

/// What SET was told besides key and value.
struct SetOptions {
  bool if_missing = false;
  bool if_there = false;
  bool keep_expiry = false;
  bool get = false;
  uint64_t expires_at_ms = 0;
};

/// Takes the time that stands at `at`. Answers an error and false if there is none.
bool ExpiryArgument(Call& call, size_t at, bool seconds, bool absolute, uint64_t* expires_at_ms) {
  int64_t value = 0;
  if (!IntegerArgument(call, at, &value)) return false;
  const auto now = static_cast<int64_t>(call.unit->now_ms());
  int64_t result = 0;
  if (value <= 0 || __builtin_mul_overflow(value, seconds ? 1000 : 1, &result) ||
      __builtin_add_overflow(result, absolute ? 0 : now, &result)) {
    call.reply.Error("ERR invalid expire time in '" + std::string(call.command->name) +
                     "' command");
    return false;
  }
  *expires_at_ms = static_cast<uint64_t>(result);
  return true;
}

bool ParseSetOptions(Call& call, size_t first, SetOptions* options) {
  bool timed = false;
  for (size_t i = first; i < call.argc(); ++i) {
    const std::string word = UpperCase(call.arg(i));
    const bool is_time = word == "EX" || word == "PX" || word == "EXAT" || word == "PXAT";
    if (is_time && !timed && !options->keep_expiry && i + 1 < call.argc()) {
      timed = true;
      if (!ExpiryArgument(call, ++i, word[0] == 'E', word.size() == 4, &options->expires_at_ms)) {
        return false;
      }
    } else if (word == "NX" && !options->if_there) {
      options->if_missing = true;
    } else if (word == "XX" && !options->if_missing) {
      options->if_there = true;
    } else if (word == "KEEPTTL" && !timed) {
      options->keep_expiry = true;
    } else if (word == "GET") {
      options->get = true;
    } else {
      call.reply.Error(kSyntaxError);
      return false;
    }
  }
  return true;
}

/// Sets a string whatever was there. The lock may be kReplace.
Task<void> Replace(Call& call, std::string_view key, std::string_view value,
                   uint64_t expires_at_ms) {
  if (call.access->store->Find(call.database)->has_elements.load(std::memory_order_relaxed)) {
    const std::optional<Meta> old = co_await call.unit->Find(call.database, key);
    if (old.has_value() && old->type != Type::kString) {
      call.unit->Remove(call.database, key, *old);
    }
  }
  call.unit->SaveString(call.database, key, value, expires_at_ms);
}

bool IsPlainSet(const Call& call) {
  for (size_t i = 3; i < call.argc(); ++i) {
    const std::string word = UpperCase(call.arg(i));
    if (word == "NX" || word == "XX" || word == "KEEPTTL" || word == "GET") return false;
  }
  return true;
}
bool Always(const Call& /*call*/) { return true; }

Task<void> Set(Call& call) {
  SetOptions options;
  if (!ParseSetOptions(call, 3, &options)) co_return;
  const std::string_view key = call.arg(1);
  uint64_t expires_at_ms = options.expires_at_ms;
  if (!IsPlainSet(call)) {
    const std::optional<Meta> old = co_await call.unit->Find(call.database, key);
    if (options.get && old.has_value() && old->type != Type::kString) {
      call.reply.Error(kWrongType);
      co_return;
    }
    const bool refused = old.has_value() ? options.if_missing : options.if_there;
    if (options.get) {
      old.has_value() ? call.reply.Bulk(old->value) : call.reply.Null();
    } else {
      refused ? call.reply.Null() : call.reply.Ok();
    }
    if (refused) co_return;
    if (options.keep_expiry && old.has_value()) expires_at_ms = old->expires_at_ms;
  } else {
    call.reply.Ok();
  }
  co_await Replace(call, key, call.arg(2), expires_at_ms);
}

Task<void> SetWithExpiry(Call& call) {
  uint64_t expires_at_ms = 0;
  if (!ExpiryArgument(call, 2, call.command->name[0] == 's', false, &expires_at_ms)) co_return;
  co_await Replace(call, call.arg(1), call.arg(3), expires_at_ms);
  call.reply.Ok();
}

Task<void> SetIfMissing(Call& call) {
  const std::optional<Meta> old = co_await call.unit->Find(call.database, call.arg(1));
  if (!old.has_value()) co_await Replace(call, call.arg(1), call.arg(2), 0);
  call.reply.Integer(old.has_value() ? 0 : 1);
}

Task<void> Get(Call& call) {
  std::optional<Meta> meta;
  const bool typed = co_await FindOfType(call, call.arg(1), Type::kString, &meta);
  if (typed) meta.has_value() ? call.reply.Bulk(meta->value) : call.reply.Null();
}

Task<void> GetSet(Call& call) {
  std::optional<Meta> meta;
  const bool typed = co_await FindOfType(call, call.arg(1), Type::kString, &meta);
  if (!typed) co_return;
  meta.has_value() ? call.reply.Bulk(meta->value) : call.reply.Null();
  co_await Replace(call, call.arg(1), call.arg(2), 0);
}

Task<void> GetDel(Call& call) {
  std::optional<Meta> meta;
  const bool typed = co_await FindOfType(call, call.arg(1), Type::kString, &meta);
  if (!typed) co_return;
  meta.has_value() ? call.reply.Bulk(meta->value) : call.reply.Null();
  if (meta.has_value()) call.unit->Remove(call.database, call.arg(1), *meta);
}

Task<void> GetEx(Call& call) {
  uint64_t expires_at_ms = 0;
  const std::string word = call.argc() > 2 ? UpperCase(call.arg(2)) : "";
  const bool persist = word == "PERSIST" && call.argc() == 3;
  const bool timed =
      (word == "EX" || word == "PX" || word == "EXAT" || word == "PXAT") && call.argc() == 4;
  if (timed) {
    if (!ExpiryArgument(call, 3, word[0] == 'E', word.size() == 4, &expires_at_ms)) co_return;
  } else if (call.argc() > 2 && !persist) {
    call.reply.Error(kSyntaxError);
    co_return;
  }
  std::optional<Meta> meta;
  const bool typed = co_await FindOfType(call, call.arg(1), Type::kString, &meta);
  if (!typed) co_return;
  if (!meta.has_value()) {
    call.reply.Null();
    co_return;
  }
  call.reply.Bulk(meta->value);
  if (timed && expires_at_ms <= call.unit->now_ms()) {
    call.unit->Remove(call.database, call.arg(1), *meta);
  } else if (timed || (persist && meta->expires_at_ms != 0)) {
    meta->expires_at_ms = expires_at_ms;
    call.unit->Save(call.database, call.arg(1), *meta);
  }
}

Task<void> MGet(Call& call) {
  std::vector<std::string> rows;
  for (size_t i = 1; i < call.argc(); ++i) rows.push_back(call.unit->names().Meta(call.arg(i)));
  const auto values = co_await call.unit->MultiGet(call.database, std::move(rows));
  call.reply.Array(values.size());
  for (const std::optional<std::string>& bytes : values) {
    uint64_t expires_at_ms = 0;
    Slice value;
    const bool there = bytes.has_value() && DecodeStringMeta(*bytes, &expires_at_ms, &value) &&
                       (expires_at_ms == 0 || expires_at_ms > call.unit->now_ms());
    there ? call.reply.Bulk(value.ToStringView()) : call.reply.Null();
  }
}

Task<void> MSet(Call& call) {
  if (call.argc() % 2 == 0) {
    WrongArity(call);
    co_return;
  }
  const bool if_missing = call.argc() > 0 && std::string_view(call.command->name) == "msetnx";
  for (size_t i = 1; if_missing && i < call.argc(); i += 2) {
    const std::optional<Meta> old = co_await call.unit->Find(call.database, call.arg(i));
    if (old.has_value()) {
      call.reply.Integer(0);
      co_return;
    }
  }
  for (size_t i = 1; i < call.argc(); i += 2) {
    if (i / 2 % Yield::kTasksMax == 0) co_await Yield(&call.loop->loop);
    co_await Replace(call, call.arg(i), call.arg(i + 1), 0);
  }
  if_missing ? call.reply.Integer(1) : call.reply.Ok();
}

Task<void> Append(Call& call) {
  std::optional<Meta> meta;
  const bool typed = co_await FindOfType(call, call.arg(1), Type::kString, &meta);
  if (!typed) co_return;
  if (!meta.has_value()) meta.emplace();
  if (meta->value.size() + call.arg(2).size() > kStringBytesMax) {
    call.reply.Error(kTooLong);
    co_return;
  }
  meta->value.append(call.arg(2));
  call.unit->Save(call.database, call.arg(1), *meta);
  call.reply.Integer(static_cast<int64_t>(meta->value.size()));
}

Task<void> StrLen(Call& call) {
  std::optional<Meta> meta;
  const bool typed = co_await FindOfType(call, call.arg(1), Type::kString, &meta);
  if (typed) call.reply.Integer(meta.has_value() ? static_cast<int64_t>(meta->value.size()) : 0);
}

Task<void> GetRange(Call& call) {
  int64_t start = 0;
  int64_t end = 0;
  if (!IntegerArgument(call, 2, &start) || !IntegerArgument(call, 3, &end)) co_return;
  std::optional<Meta> meta;
  const bool typed = co_await FindOfType(call, call.arg(1), Type::kString, &meta);
  if (!typed) co_return;
  const std::string value = meta.has_value() ? meta->value : std::string();
  const auto size = static_cast<int64_t>(value.size());
  if (start < 0 && end < 0 && start > end) {
    call.reply.Bulk("");
    co_return;
  }
  if (start < 0) start = std::max<int64_t>(start + size, 0);
  if (end < 0) end = std::max<int64_t>(end + size, 0);
  end = std::min(end, size - 1);
  if (start > end || size == 0) {
    call.reply.Bulk("");
  } else {
    call.reply.Bulk(std::string_view(value).substr(static_cast<size_t>(start),
                                                   static_cast<size_t>(end - start + 1)));
  }
}

Task<void> SetRange(Call& call) {
  int64_t offset = 0;
  if (!IntegerArgument(call, 2, &offset)) co_return;
  if (offset < 0) {
    call.reply.Error("ERR offset is out of range");
    co_return;
  }
  std::optional<Meta> meta;
  const bool typed = co_await FindOfType(call, call.arg(1), Type::kString, &meta);
  if (!typed) co_return;
  const std::string_view part = call.arg(3);
  if (part.empty()) {
    call.reply.Integer(meta.has_value() ? static_cast<int64_t>(meta->value.size()) : 0);
    co_return;
  }
  const auto at = static_cast<uint64_t>(offset);
  if (at > kStringBytesMax || part.size() > kStringBytesMax - at) {
    call.reply.Error(kTooLong);
    co_return;
  }
  if (!meta.has_value()) meta.emplace();
  meta->value.resize(std::max<size_t>(meta->value.size(), at + part.size()), '\0');
  std::copy(part.begin(), part.end(), meta->value.begin() + offset);
  call.unit->Save(call.database, call.arg(1), *meta);
  call.reply.Integer(static_cast<int64_t>(meta->value.size()));
}

constexpr Command kStringCommands[] = {
    {"get", &Get, 2, kReads | kFast | kMetaRowsOnly, 1, 1, 1},
    {"set", &Set, -3, kWrites | kMetaRowsOnly, 1, 1, 1, nullptr, &IsPlainSet},
    {"setex", &SetWithExpiry, 4, kWrites | kMetaRowsOnly, 1, 1, 1, nullptr, &Always},
    {"psetex", &SetWithExpiry, 4, kWrites | kMetaRowsOnly, 1, 1, 1, nullptr, &Always},
    {"setnx", &SetIfMissing, 3, kWrites | kFast | kMetaRowsOnly, 1, 1, 1},
    {"getset", &GetSet, 3, kWrites | kFast | kMetaRowsOnly, 1, 1, 1},
    {"getdel", &GetDel, 2, kWrites | kFast | kMetaRowsOnly, 1, 1, 1},
    {"getex", &GetEx, -2, kWrites | kFast | kMetaRowsOnly, 1, 1, 1},
    {"mget", &MGet, -2, kReads | kFast | kMetaRowsOnly, 1, -1, 1},
    {"mset", &MSet, -3, kWrites | kMetaRowsOnly, 1, -1, 2, nullptr, &Always},
    {"msetnx", &MSet, -3, kWrites | kMetaRowsOnly, 1, -1, 2},
    {"append", &Append, 3, kWrites | kFast | kMetaRowsOnly, 1, 1, 1},
    {"strlen", &StrLen, 2, kReads | kFast | kMetaRowsOnly, 1, 1, 1},
    {"getrange", &GetRange, 4, kReads | kMetaRowsOnly, 1, 1, 1},
    {"substr", &GetRange, 4, kReads | kMetaRowsOnly, 1, 1, 1},
    {"setrange", &SetRange, 4, kWrites | kMetaRowsOnly, 1, 1, 1},
};

}  // namespace

std::span<const Command> StringCommands() { return kStringCommands; }

}  // namespace nacre::server
