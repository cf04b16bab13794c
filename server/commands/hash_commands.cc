#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/commands/collection.h"
#include "server/commands/command_lists.h"
#include "server/resp/numbers.h"

namespace nacre::server {
namespace {

std::vector<std::string> FieldArguments(const Call& call, size_t first, size_t step) {
  std::vector<std::string> sub_keys;
  for (size_t i = first; i < call.argc(); i += step) sub_keys.push_back(FieldSubKey(call.arg(i)));
  return sub_keys;
}

/// HSET and HMSET.
Task<void> HSet(Call& call) {
  if (call.argc() % 2 != 0) {
    WrongArity(call);
    co_return;
  }
  Collection hash(call, call.arg(1), Type::kHash);
  const bool found = co_await hash.Find();
  if (!found) co_return;
  const std::vector<std::string> fields = FieldArguments(call, 2, 2);
  const auto old = co_await hash.MultiGet(fields);
  hash.Make();
  std::set<std::string_view> added;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (!old[i].has_value()) added.insert(fields[i]);
    hash.Put(fields[i], std::string(call.arg(3 + 2 * i)));
  }
  added.empty() ? hash.Touch() : hash.Save(hash.size() + added.size());
  if (std::string_view(call.command->name) == "hmset") {
    call.reply.Ok();
  } else {
    call.reply.Integer(static_cast<int64_t>(added.size()));
  }
}

Task<void> HSetNx(Call& call) {
  Collection hash(call, call.arg(1), Type::kHash);
  const bool found = co_await hash.Find();
  if (!found) co_return;
  const std::string field = FieldSubKey(call.arg(2));
  const std::optional<std::string> old = co_await hash.Get(field);
  call.reply.Integer(old.has_value() ? 0 : 1);
  if (old.has_value()) co_return;
  hash.Make();
  hash.Put(field, std::string(call.arg(3)));
  hash.Save(hash.size() + 1);
}

Task<void> HGet(Call& call) {
  Collection hash(call, call.arg(1), Type::kHash);
  const bool found = co_await hash.Find();
  if (!found) co_return;
  const std::optional<std::string> value = co_await hash.Get(FieldSubKey(call.arg(2)));
  value.has_value() ? call.reply.Bulk(*value) : call.reply.Null();
}

Task<void> HMGet(Call& call) {
  Collection hash(call, call.arg(1), Type::kHash);
  const bool found = co_await hash.Find();
  if (!found) co_return;
  const auto values = co_await hash.MultiGet(FieldArguments(call, 2, 1));
  call.reply.Array(values.size());
  for (const auto& value : values) value.has_value() ? call.reply.Bulk(*value) : call.reply.Null();
}

Task<void> HDel(Call& call) {
  Collection hash(call, call.arg(1), Type::kHash);
  const bool found = co_await hash.Find();
  if (!found) co_return;
  const std::vector<std::string> fields = FieldArguments(call, 2, 1);
  const auto old = co_await hash.MultiGet(fields);
  std::set<std::string_view> removed;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (!old[i].has_value()) continue;
    removed.insert(fields[i]);
    hash.Delete(fields[i]);
  }
  if (!removed.empty()) hash.Save(hash.size() - removed.size());
  call.reply.Integer(static_cast<int64_t>(removed.size()));
}

Task<void> HLen(Call& call) {
  Collection hash(call, call.arg(1), Type::kHash);
  const bool found = co_await hash.Find();
  if (found) call.reply.Integer(static_cast<int64_t>(hash.size()));
}

/// HSTRLEN and HEXISTS.
Task<void> HStrLen(Call& call) {
  Collection hash(call, call.arg(1), Type::kHash);
  const bool found = co_await hash.Find();
  if (!found) co_return;
  const std::optional<std::string> value = co_await hash.Get(FieldSubKey(call.arg(2)));
  if (std::string_view(call.command->name) == "hexists") {
    call.reply.Integer(value.has_value() ? 1 : 0);
  } else {
    call.reply.Integer(value.has_value() ? static_cast<int64_t>(value->size()) : 0);
  }
}

/// HGETALL, HKEYS and HVALS.
Task<void> HGetAll(Call& call) {
  Collection hash(call, call.arg(1), Type::kHash);
  const bool found = co_await hash.Find();
  if (!found) co_return;
  const std::vector<Row> rows = co_await hash.ScanFields();
  const std::string_view name = call.command->name;
  name == "hgetall" ? call.reply.Map(rows.size()) : call.reply.Array(rows.size());
  for (const Row& row : rows) {
    if (name != "hvals") call.reply.Bulk(FieldOf(hash, row.key));
    if (name != "hkeys") call.reply.Bulk(row.value);
  }
}

Task<void> HIncrBy(Call& call) {
  int64_t delta = 0;
  if (!IntegerArgument(call, 3, &delta)) co_return;
  Collection hash(call, call.arg(1), Type::kHash);
  const bool found = co_await hash.Find();
  if (!found) co_return;
  const std::string field = FieldSubKey(call.arg(2));
  const std::optional<std::string> old = co_await hash.Get(field);
  int64_t value = 0;
  if (old.has_value() && !ParseInteger(*old, &value)) {
    call.reply.Error("ERR hash value is not an integer");
    co_return;
  }
  if (__builtin_add_overflow(value, delta, &value)) {
    call.reply.Error("ERR increment or decrement would overflow");
    co_return;
  }
  hash.Make();
  hash.Put(field, std::to_string(value));
  old.has_value() ? hash.Touch() : hash.Save(hash.size() + 1);
  call.reply.Integer(value);
}

Task<void> HIncrByFloat(Call& call) {
  long double delta = 0;
  if (!ParseLongDouble(call.arg(3), &delta)) {
    call.reply.Error(kNotFloat);
    co_return;
  }
  if (std::isinf(delta)) {
    call.reply.Error("ERR value is NaN or Infinity");
    co_return;
  }
  Collection hash(call, call.arg(1), Type::kHash);
  const bool found = co_await hash.Find();
  if (!found) co_return;
  const std::string field = FieldSubKey(call.arg(2));
  const std::optional<std::string> old = co_await hash.Get(field);
  long double value = 0;
  if (old.has_value() && !ParseLongDouble(*old, &value)) {
    call.reply.Error("ERR hash value is not a float");
    co_return;
  }
  value += delta;
  if (std::isnan(value) || std::isinf(value)) {
    call.reply.Error("ERR increment would produce NaN or Infinity");
    co_return;
  }
  const std::string text = FormatLongDouble(value);
  hash.Make();
  hash.Put(field, text);
  old.has_value() ? hash.Touch() : hash.Save(hash.size() + 1);
  call.reply.Bulk(text);
}

Task<void> HRandField(Call& call) {
  int64_t count = 1;
  const bool counted = call.argc() > 2;
  if (counted && !RandomCountArgument(call, 2, &count)) co_return;
  const bool with_values = call.argc() == 4 && SameWord(call.arg(3), "WITHVALUES");
  if (call.argc() > 4 || (call.argc() == 4 && !with_values)) {
    call.reply.Error(kSyntaxError);
    co_return;
  }
  Collection hash(call, call.arg(1), Type::kHash);
  const bool found = co_await hash.Find();
  if (!found) co_return;
  const std::vector<Row> rows = co_await hash.ScanFields();
  const std::vector<size_t> chosen = RandomIndexes(
      call, rows.size(), static_cast<size_t>(count < 0 ? -count : count), /*distinct=*/count > 0);
  if (!counted) {
    chosen.empty() ? call.reply.Null() : call.reply.Bulk(FieldOf(hash, rows[chosen[0]].key));
    co_return;
  }
  const bool pairs = with_values && call.reply.protocol() > 2;
  call.reply.Array(chosen.size() * (with_values && !pairs ? 2 : 1));
  for (const size_t i : chosen) {
    if (pairs) call.reply.Array(2);
    call.reply.Bulk(FieldOf(hash, rows[i].key));
    if (with_values) call.reply.Bulk(rows[i].value);
  }
}

Task<void> HScan(Call& call) {
  return ScanCollection(call, Type::kHash, 2,
                        [](Call& to, std::string_view field, const std::string& value) {
                          to.reply.Bulk(field);
                          to.reply.Bulk(value);
                        });
}

constexpr Command kHashCommands[] = {
    {"hset", &HSet, -4, kWrites | kFast, 1, 1, 1},
    {"hmset", &HSet, -4, kWrites | kFast, 1, 1, 1},
    {"hsetnx", &HSetNx, 4, kWrites | kFast, 1, 1, 1},
    {"hget", &HGet, 3, kReads | kFast, 1, 1, 1},
    {"hmget", &HMGet, -3, kReads | kFast, 1, 1, 1},
    {"hdel", &HDel, -3, kWrites | kFast, 1, 1, 1},
    {"hlen", &HLen, 2, kReads | kFast | kMetaRowsOnly, 1, 1, 1},
    {"hstrlen", &HStrLen, 3, kReads | kFast, 1, 1, 1},
    {"hexists", &HStrLen, 3, kReads | kFast, 1, 1, 1},
    {"hgetall", &HGetAll, 2, kReads, 1, 1, 1},
    {"hkeys", &HGetAll, 2, kReads, 1, 1, 1},
    {"hvals", &HGetAll, 2, kReads, 1, 1, 1},
    {"hincrby", &HIncrBy, 4, kWrites | kFast, 1, 1, 1},
    {"hincrbyfloat", &HIncrByFloat, 4, kWrites | kFast, 1, 1, 1},
    {"hrandfield", &HRandField, -2, kReads, 1, 1, 1},
    {"hscan", &HScan, -3, kReads, 1, 1, 1},
};

}  // namespace

std::span<const Command> HashCommands() { return kHashCommands; }

}  // namespace nacre::server
