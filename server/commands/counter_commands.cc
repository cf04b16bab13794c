#include <cmath>
#include <optional>

#include "server/commands/command_lists.h"
#include "server/resp/numbers.h"

namespace nacre::server {
namespace {

Task<void> Add(Call& call, int64_t delta) {
  std::optional<Meta> meta;
  const bool typed = co_await FindOfType(call, call.arg(1), Type::kString, &meta);
  if (!typed) co_return;
  int64_t value = 0;
  if (!meta.has_value()) {
    meta.emplace();
  } else if (!ParseInteger(meta->value, &value)) {
    call.reply.Error(kNotInteger);
    co_return;
  }
  if (__builtin_add_overflow(value, delta, &value)) {
    call.reply.Error("ERR increment or decrement would overflow");
    co_return;
  }
  meta->value = std::to_string(value);
  call.unit->Save(call.database, call.arg(1), *meta);
  call.reply.Integer(value);
}

Task<void> Incr(Call& call) { return Add(call, 1); }
Task<void> Decr(Call& call) { return Add(call, -1); }

Task<void> IncrBy(Call& call) {
  int64_t delta = 0;
  if (IntegerArgument(call, 2, &delta)) co_await Add(call, delta);
}

Task<void> DecrBy(Call& call) {
  int64_t delta = 0;
  if (!IntegerArgument(call, 2, &delta)) co_return;
  if (delta == INT64_MIN) {
    call.reply.Error("ERR decrement would overflow");
    co_return;
  }
  co_await Add(call, -delta);
}

Task<void> IncrByFloat(Call& call) {
  std::optional<Meta> meta;
  const bool typed = co_await FindOfType(call, call.arg(1), Type::kString, &meta);
  if (!typed) co_return;
  long double value = 0;
  long double delta = 0;
  if ((meta.has_value() && !ParseLongDouble(meta->value, &value)) ||
      !ParseLongDouble(call.arg(2), &delta)) {
    call.reply.Error(kNotFloat);
    co_return;
  }
  value += delta;
  if (std::isnan(value) || std::isinf(value)) {
    call.reply.Error("ERR increment would produce NaN or Infinity");
    co_return;
  }
  if (!meta.has_value()) meta.emplace();
  meta->value = FormatLongDouble(value);
  call.unit->Save(call.database, call.arg(1), *meta);
  call.reply.Bulk(meta->value);
}

constexpr Command kCounterCommands[] = {
    {"incr", &Incr, 2, kWrites | kFast | kMetaRowsOnly, 1, 1, 1},
    {"decr", &Decr, 2, kWrites | kFast | kMetaRowsOnly, 1, 1, 1},
    {"incrby", &IncrBy, 3, kWrites | kFast | kMetaRowsOnly, 1, 1, 1},
    {"decrby", &DecrBy, 3, kWrites | kFast | kMetaRowsOnly, 1, 1, 1},
    {"incrbyfloat", &IncrByFloat, 3, kWrites | kFast | kMetaRowsOnly, 1, 1, 1},
};

}  // namespace

std::span<const Command> CounterCommands() { return kCounterCommands; }

}  // namespace nacre::server
