#include "server/commands/multi_pop.h"

#include <string>
#include <utility>

#include "server/resp/numbers.h"
#include "server/session/blocking.h"

namespace nacre::server {
namespace {

struct PopArguments {
  std::vector<std::string_view> keys;
  bool first = false;
  size_t count = 1;
};

bool Blocks(const Call& call) { return call.command->name[0] == 'b'; }

/// Where the number of keys is: a timeout comes before it.
size_t KeyCountAt(const Call& call) { return Blocks(call) ? 2 : 1; }

bool ParsePop(Call& call, const MultiPop& pop, PopArguments* arguments) {
  const size_t at = KeyCountAt(call);
  int64_t keys = 0;
  int64_t count = 1;
  if (!KeyCountArgument(call, at, &keys)) return false;
  const size_t where = at + 1 + static_cast<size_t>(keys);
  const bool complete = static_cast<uint64_t>(keys) < call.argc() && where < call.argc();
  arguments->first = complete && SameWord(call.arg(where), pop.first);
  if (!complete || (!arguments->first && !SameWord(call.arg(where), pop.last))) {
    call.reply.Error(kSyntaxError);
    return false;
  }
  if (call.argc() == where + 3 && SameWord(call.arg(where + 1), "COUNT")) {
    if (!ParseInteger(call.arg(where + 2), &count) || count < 1) {
      call.reply.Error("ERR count should be greater than 0");
      return false;
    }
  } else if (call.argc() != where + 1) {
    call.reply.Error(kSyntaxError);
    return false;
  }
  arguments->count = static_cast<size_t>(count);
  for (size_t i = at + 1; i < where; ++i) arguments->keys.push_back(call.arg(i));
  return true;
}

}  // namespace

bool KeyCountArgument(Call& call, size_t at, int64_t* count) {
  if (ParseInteger(call.arg(at), count) && *count >= 1) return true;
  call.reply.Error("ERR numkeys should be greater than 0");
  return false;
}

Task<bool> AttemptMultiPop(Call& call, const MultiPop& pop) {
  PopArguments arguments;
  if (!ParsePop(call, pop, &arguments)) co_return true;
  for (const std::string_view key : arguments.keys) {
    Collection from(call, key, pop.type);
    const bool found = co_await from.FindToTake();
    if (!found) co_return true;
    if (!from.there()) continue;
    call.reply.Array(2);
    call.reply.Bulk(key);
    co_await pop.take(call, &from, arguments.first, arguments.count);
    co_return true;
  }
  co_return false;
}

Task<void> AnswerMultiPop(Call& call, const MultiPop& pop, Task<bool> (*attempt)(Call& call)) {
  if (!Blocks(call)) {
    const bool answered = co_await attempt(call);
    if (!answered) call.reply.NullArray();
    co_return;
  }
  double seconds = 0;
  PopArguments arguments;
  if (!TimeoutArgument(call, 1, &seconds) || !ParsePop(call, pop, &arguments)) co_return;
  std::vector<std::string> keys(arguments.keys.begin(), arguments.keys.end());
  co_await AttemptUntilAnswered(call, std::move(keys), seconds, attempt);
}

void MultiPopKeys(const Call& call, std::vector<KeyRef>* keys) {
  CountedKeys(call, KeyCountAt(call), keys);
}

}  // namespace nacre::server
