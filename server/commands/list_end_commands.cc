#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/commands/collection.h"
#include "server/commands/command_lists.h"
#include "server/commands/list_ends.h"
#include "server/resp/numbers.h"
#include "server/session/blocking.h"

// What is taken from the ends of lists, and waits for lists that are empty.

namespace nacre::server {

void PushToList(Collection* list, bool left, const std::vector<std::string>& values) {
  list->Make();
  uint64_t count = list->size();
  for (const std::string& value : values) {
    int64_t& first = list->meta().first;
    const int64_t index = left ? --first : first + static_cast<int64_t>(count);
    list->Put(IndexSubKey(index), value);
    ++count;
  }
  list->Save(count);
}

Task<std::vector<std::string>> PopFromList(Collection* list, bool left, size_t count) {
  std::vector<std::string> values;
  count = std::min<size_t>(count, list->size());
  if (count == 0) co_return values;
  const int64_t first = list->meta().first;
  const auto size = static_cast<int64_t>(list->size());
  if (count == 1) {
    const std::optional<std::string> value =
        co_await list->Get(IndexSubKey(left ? first : first + size - 1));
    if (value.has_value()) values.push_back(*value);
  } else {
    const std::vector<Row> rows = co_await list->Scan(
        RowRange(IndexSubKey(first), IndexSubKey(first + size), count, /*backwards=*/!left));
    for (const Row& row : rows) values.push_back(row.value);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const auto offset = static_cast<int64_t>(i);
    list->Delete(IndexSubKey(left ? first + offset : first + size - 1 - offset));
  }
  if (left) list->meta().first += static_cast<int64_t>(values.size());
  list->Save(list->size() - values.size());
  co_return values;
}

namespace {

Task<void> Pop(Call& call) {
  int64_t count = 1;
  const bool counted = call.argc() == 3;
  if (call.argc() > 3) {
    WrongArity(call);
    co_return;
  }
  if (counted && (!ParseInteger(call.arg(2), &count) || count < 0)) {
    call.reply.Error("ERR value is out of range, must be positive");
    co_return;
  }
  Collection list(call, call.arg(1), Type::kList);
  const bool found = co_await list.Find();
  if (!found) co_return;
  if (!list.there()) {
    counted ? call.reply.NullArray() : call.reply.Null();
    co_return;
  }
  const std::vector<std::string> values =
      co_await PopFromList(&list, call.command->name[0] == 'l', static_cast<size_t>(count));
  if (counted) call.reply.Array(values.size());
  for (const std::string& value : values) call.reply.Bulk(value);
}

bool EndArgument(Call& call, size_t at, bool* left) {
  *left = SameWord(call.arg(at), "LEFT");
  if (*left || SameWord(call.arg(at), "RIGHT")) return true;
  call.reply.Error(kSyntaxError);
  return false;
}

/// Moves an element; false if there is none and nothing is answered.
Task<bool> MoveElement(Call& call, bool from_left, bool to_left) {
  Collection from(call, call.arg(1), Type::kList);
  const bool found = co_await from.FindToTake();
  if (!found) co_return true;
  if (!from.there()) co_return false;
  Collection other(call, call.arg(2), Type::kList);
  const bool same = from.key() == other.key();
  if (!same) {
    const bool found_to = co_await other.Find();
    if (!found_to) co_return true;
  }
  const std::vector<std::string> values = co_await PopFromList(&from, from_left, 1);
  PushToList(same ? &from : &other, to_left, values);
  for (const std::string& value : values) call.reply.Bulk(value);
  co_return true;
}

/// LMOVE and RPOPLPUSH, and what of BLMOVE and BRPOPLPUSH is the same.
Task<bool> AttemptMove(Call& call) {
  bool from_left = false;
  bool to_left = true;
  const bool names_ends = std::string_view(call.command->name).ends_with("lmove");
  if (names_ends && (!EndArgument(call, 3, &from_left) || !EndArgument(call, 4, &to_left))) {
    co_return true;
  }
  const bool answered = co_await MoveElement(call, from_left, to_left);
  co_return answered;
}

Task<void> LMove(Call& call) {
  const bool answered = co_await AttemptMove(call);
  if (!answered) call.reply.Null();
}

Task<void> BLMove(Call& call) {
  double seconds = 0;
  if (!TimeoutArgument(call, call.argc() - 1, &seconds)) co_return;
  std::vector<std::string> keys;
  keys.emplace_back(call.arg(1));
  co_await AttemptUntilAnswered(call, std::move(keys), seconds, &AttemptMove);
}

/// BLPOP and BRPOP, once.
Task<bool> AttemptPop(Call& call) {
  for (size_t i = 1; i + 1 < call.argc(); ++i) {
    Collection list(call, call.arg(i), Type::kList);
    const bool found = co_await list.FindToTake();
    if (!found) co_return true;
    if (!list.there()) continue;
    const std::vector<std::string> values =
        co_await PopFromList(&list, call.command->name[1] == 'l', 1);
    call.reply.Array(2);
    call.reply.Bulk(list.key());
    for (const std::string& value : values) call.reply.Bulk(value);
    co_return true;
  }
  co_return false;
}

Task<void> BPop(Call& call) {
  double seconds = 0;
  if (!TimeoutArgument(call, call.argc() - 1, &seconds)) co_return;
  std::vector<std::string> keys;
  for (size_t i = 1; i + 1 < call.argc(); ++i) keys.emplace_back(call.arg(i));
  co_await AttemptUntilAnswered(call, std::move(keys), seconds, &AttemptPop);
}

/// What LMPOP and BLMPOP were told.
struct MultiPop {
  std::vector<std::string_view> keys;
  bool left = true;
  size_t count = 1;
};

bool ParseMultiPop(Call& call, MultiPop* pop) {
  const size_t at = call.command->name[0] == 'b' ? 2 : 1;
  int64_t keys = 0;
  int64_t count = 1;
  if (!ParseInteger(call.arg(at), &keys) || keys < 1) {
    call.reply.Error("ERR numkeys should be greater than 0");
    return false;
  }
  const size_t where = at + 1 + static_cast<size_t>(keys);
  if (static_cast<uint64_t>(keys) >= call.argc() || where >= call.argc()) {
    call.reply.Error(kSyntaxError);
    return false;
  }
  if (!EndArgument(call, where, &pop->left)) return false;
  if (call.argc() == where + 3 && SameWord(call.arg(where + 1), "COUNT")) {
    if (!ParseInteger(call.arg(where + 2), &count) || count < 1) {
      call.reply.Error("ERR count should be greater than 0");
      return false;
    }
  } else if (call.argc() != where + 1) {
    call.reply.Error(kSyntaxError);
    return false;
  }
  pop->count = static_cast<size_t>(count);
  for (size_t i = at + 1; i < where; ++i) pop->keys.push_back(call.arg(i));
  return true;
}

Task<bool> AttemptMultiPop(Call& call) {
  MultiPop pop;
  if (!ParseMultiPop(call, &pop)) co_return true;
  for (const std::string_view key : pop.keys) {
    Collection list(call, key, Type::kList);
    const bool found = co_await list.FindToTake();
    if (!found) co_return true;
    if (!list.there()) continue;
    const std::vector<std::string> values = co_await PopFromList(&list, pop.left, pop.count);
    call.reply.Array(2);
    call.reply.Bulk(key);
    call.reply.Array(values.size());
    for (const std::string& value : values) call.reply.Bulk(value);
    co_return true;
  }
  co_return false;
}

Task<void> LMPop(Call& call) {
  const bool answered = co_await AttemptMultiPop(call);
  if (!answered) call.reply.NullArray();
}

Task<void> BLMPop(Call& call) {
  double seconds = 0;
  MultiPop pop;
  if (!TimeoutArgument(call, 1, &seconds) || !ParseMultiPop(call, &pop)) co_return;
  std::vector<std::string> keys(pop.keys.begin(), pop.keys.end());
  co_await AttemptUntilAnswered(call, std::move(keys), seconds, &AttemptMultiPop);
}

void PoppedKeys(const Call& call, std::vector<KeyRef>* keys) {
  CountedKeys(call, call.command->name[0] == 'b' ? 2 : 1, keys);
}

constexpr Command kListEndCommands[] = {
    {"lpop", &Pop, -2, kWrites | kFast, 1, 1, 1},
    {"rpop", &Pop, -2, kWrites | kFast, 1, 1, 1},
    {"lmove", &LMove, 5, kWrites, 1, 2, 1},
    {"rpoplpush", &LMove, 3, kWrites, 1, 2, 1},
    {"lmpop", &LMPop, -4, kWrites, 0, 0, 0, &PoppedKeys},
    {"blpop", &BPop, -3, kWrites | kBlocks, 1, -2, 1},
    {"brpop", &BPop, -3, kWrites | kBlocks, 1, -2, 1},
    {"blmove", &BLMove, 6, kWrites | kBlocks, 1, 2, 1},
    {"brpoplpush", &BLMove, 4, kWrites | kBlocks, 1, 2, 1},
    {"blmpop", &BLMPop, -5, kWrites | kBlocks, 0, 0, 0, &PoppedKeys},
};

}  // namespace

std::span<const Command> ListEndCommands() { return kListEndCommands; }

}  // namespace nacre::server
