#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/commands/collection.h"
#include "server/commands/command_lists.h"
#include "server/commands/list_ends.h"
#include "server/commands/multi_pop.h"
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

Task<void> BPop(Call& call) { return AttemptOnKeys(call, &AttemptPop); }

Task<void> TakeValues(Call& call, Collection* from, bool first, size_t count) {
  const std::vector<std::string> values = co_await PopFromList(from, first, count);
  call.reply.Array(values.size());
  for (const std::string& value : values) call.reply.Bulk(value);
}

constexpr MultiPop kListPop{Type::kList, "LEFT", "RIGHT", &TakeValues};

Task<bool> AttemptLMPop(Call& call) { return AttemptMultiPop(call, kListPop); }
Task<void> LMPop(Call& call) { return AnswerMultiPop(call, kListPop, &AttemptLMPop); }

constexpr Command kListEndCommands[] = {
    {"lpop", &Pop, -2, kWrites | kFast, 1, 1, 1},
    {"rpop", &Pop, -2, kWrites | kFast, 1, 1, 1},
    {"lmove", &LMove, 5, kWrites, 1, 2, 1},
    {"rpoplpush", &LMove, 3, kWrites, 1, 2, 1},
    {"lmpop", &LMPop, -4, kWrites, 0, 0, 0, &MultiPopKeys},
    {"blpop", &BPop, -3, kWrites | kBlocks, 1, -2, 1},
    {"brpop", &BPop, -3, kWrites | kBlocks, 1, -2, 1},
    {"blmove", &BLMove, 6, kWrites | kBlocks, 1, 2, 1},
    {"brpoplpush", &BLMove, 4, kWrites | kBlocks, 1, 2, 1},
    {"blmpop", &LMPop, -5, kWrites | kBlocks, 0, 0, 0, &MultiPopKeys},
};

}  // namespace

std::span<const Command> ListEndCommands() { return kListEndCommands; }

}  // namespace nacre::server
