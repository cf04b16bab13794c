#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/commands/collection.h"
#include "server/commands/command_lists.h"
#include "server/commands/multi_pop.h"
#include "server/commands/sorted_set.h"
#include "server/resp/numbers.h"
#include "server/session/blocking.h"

// Ranges of sorted sets, and their ends.

namespace nacre::server {
namespace {

using By = SortedSetRange::By;

/// "zrevrangebyscore" and the like.
SortedSetRange RangeByName(std::string_view name) {
  SortedSetRange range;
  range.reverse = name.find("rev") != std::string_view::npos;
  if (name.ends_with("score")) range.by = By::kScore;
  if (name.ends_with("lex")) range.by = By::kLex;
  return range;
}

struct RangeOptions {
  bool with_scores = false;
  bool limited = false;
};

/// Takes what follows behind the ends. `whole`: BYSCORE, BYLEX and REV are allowed, too.
bool ParseRangeOptions(Call& call, size_t at, bool whole, bool stores, SortedSetRange* range,
                       RangeOptions* options) {
  for (size_t i = at; i < call.argc(); ++i) {
    const std::string word = UpperCase(call.arg(i));
    if (word == "WITHSCORES" && !stores) {
      options->with_scores = true;
    } else if (word == "LIMIT" && i + 2 < call.argc()) {
      options->limited = true;
      if (!IntegerArgument(call, i + 1, &range->offset) ||
          !IntegerArgument(call, i + 2, &range->count)) {
        return false;
      }
      i += 2;
    } else if (whole && word == "BYSCORE") {
      range->by = By::kScore;
    } else if (whole && word == "BYLEX") {
      range->by = By::kLex;
    } else if (whole && word == "REV") {
      range->reverse = true;
    } else {
      call.reply.Error(kSyntaxError);
      return false;
    }
  }
  if (options->limited && range->by == By::kRank) {
    call.reply.Error(
        "ERR syntax error, LIMIT is only supported in combination with either BYSCORE "
        "or BYLEX");
    return false;
  }
  if (options->with_scores && range->by == By::kLex) {
    call.reply.Error("ERR syntax error, WITHSCORES not supported in combination with BYLEX");
    return false;
  }
  return true;
}

/// ZRANGE and all its older forms.
Task<void> ZRange(Call& call) {
  const std::string_view name = call.command->name;
  SortedSetRange range = RangeByName(name);
  RangeOptions options;
  if (!ParseRangeOptions(call, 4, name == "zrange", /*stores=*/false, &range, &options) ||
      !RangeArguments(call, 2, &range)) {
    co_return;
  }
  Collection set(call, call.arg(1), Type::kSortedSet);
  const bool found = co_await set.Find();
  if (!found) co_return;
  const ScoredMembers members = co_await MembersInRange(&set, range);
  AnswerMembers(call, members, options.with_scores);
}

Task<void> ZRangeStore(Call& call) {
  SortedSetRange range;
  RangeOptions options;
  if (!ParseRangeOptions(call, 5, /*whole=*/true, /*stores=*/true, &range, &options) ||
      !RangeArguments(call, 3, &range)) {
    co_return;
  }
  Collection set(call, call.arg(2), Type::kSortedSet);
  const bool found = co_await set.Find();
  if (!found) co_return;
  const ScoredMembers members = co_await MembersInRange(&set, range);
  co_await ReplaceSortedSet(call, call.arg(1), members);
  call.reply.Integer(static_cast<int64_t>(members.size()));
}

/// ZCOUNT and ZLEXCOUNT.
Task<void> ZCount(Call& call) {
  SortedSetRange range;
  range.by = std::string_view(call.command->name) == "zcount" ? By::kScore : By::kLex;
  if (!RangeArguments(call, 2, &range)) co_return;
  Collection set(call, call.arg(1), Type::kSortedSet);
  const bool found = co_await set.Find();
  if (!found) co_return;
  const ScoredMembers members = co_await MembersInRange(&set, range);
  call.reply.Integer(static_cast<int64_t>(members.size()));
}

void RemoveMembers(Collection* set, const ScoredMembers& members) {
  if (members.size() == set->size()) {
    set->Remove();
    return;
  }
  for (const ScoredMember& member : members) DeleteScore(set, member);
  if (!members.empty()) set->Save(set->size() - members.size());
}

/// ZREMRANGEBYRANK, ZREMRANGEBYSCORE and ZREMRANGEBYLEX.
Task<void> ZRemRange(Call& call) {
  SortedSetRange range = RangeByName(call.command->name);
  range.reverse = false;
  if (!RangeArguments(call, 2, &range)) co_return;
  Collection set(call, call.arg(1), Type::kSortedSet);
  const bool found = co_await set.Find();
  if (!found) co_return;
  const ScoredMembers members = co_await MembersInRange(&set, range);
  RemoveMembers(&set, members);
  call.reply.Integer(static_cast<int64_t>(members.size()));
}

/// Takes the members with the least or the greatest scores.
Task<ScoredMembers> TakeEnd(Collection* set, bool greatest, size_t count) {
  SortedSetRange range;
  range.reverse = greatest;
  range.last = static_cast<int64_t>(std::min<uint64_t>(count, set->size())) - 1;
  if (range.last < 0) co_return ScoredMembers();
  ScoredMembers members = co_await MembersInRange(set, range);
  RemoveMembers(set, members);
  co_return members;
}

/// ZPOPMIN and ZPOPMAX.
Task<void> ZPop(Call& call) {
  int64_t count = 1;
  const bool counted = call.argc() == 3;
  if (call.argc() > 3) {
    call.reply.Error(kSyntaxError);
    co_return;
  }
  if (counted && (!ParseInteger(call.arg(2), &count) || count < 0)) {
    call.reply.Error("ERR value is out of range, must be positive");
    co_return;
  }
  Collection set(call, call.arg(1), Type::kSortedSet);
  const bool found = co_await set.Find();
  if (!found) co_return;
  const bool greatest = std::string_view(call.command->name) == "zpopmax";
  const ScoredMembers members = co_await TakeEnd(&set, greatest, static_cast<size_t>(count));
  const bool pairs = counted && call.reply.protocol() > 2;
  call.reply.Array(members.size() * (pairs ? 1 : 2));
  for (const ScoredMember& member : members) {
    if (pairs) call.reply.Array(2);
    call.reply.Bulk(member.member);
    call.reply.Double(member.score);
  }
}

/// BZPOPMIN and BZPOPMAX, once.
Task<bool> AttemptZPop(Call& call) {
  for (size_t i = 1; i + 1 < call.argc(); ++i) {
    Collection set(call, call.arg(i), Type::kSortedSet);
    const bool found = co_await set.FindToTake();
    if (!found) co_return true;
    if (!set.there()) continue;
    const bool greatest = std::string_view(call.command->name) == "bzpopmax";
    const ScoredMembers members = co_await TakeEnd(&set, greatest, 1);
    call.reply.Array(3);
    call.reply.Bulk(set.key());
    for (const ScoredMember& member : members) {
      call.reply.Bulk(member.member);
      call.reply.Double(member.score);
    }
    co_return true;
  }
  co_return false;
}

Task<void> BZPop(Call& call) { return AttemptOnKeys(call, &AttemptZPop); }

Task<void> TakeMembers(Call& call, Collection* from, bool first, size_t count) {
  const ScoredMembers members = co_await TakeEnd(from, /*greatest=*/!first, count);
  call.reply.Array(members.size());
  for (const ScoredMember& member : members) {
    call.reply.Array(2);
    call.reply.Bulk(member.member);
    call.reply.Double(member.score);
  }
}

constexpr MultiPop kSortedSetPop{Type::kSortedSet, "MIN", "MAX", &TakeMembers};

Task<bool> AttemptZMPop(Call& call) { return AttemptMultiPop(call, kSortedSetPop); }
Task<void> ZMPop(Call& call) { return AnswerMultiPop(call, kSortedSetPop, &AttemptZMPop); }

constexpr Command kSortedSetRangeCommands[] = {
    {"zrange", &ZRange, -4, kReads, 1, 1, 1},
    {"zrevrange", &ZRange, -4, kReads, 1, 1, 1},
    {"zrangebyscore", &ZRange, -4, kReads, 1, 1, 1},
    {"zrevrangebyscore", &ZRange, -4, kReads, 1, 1, 1},
    {"zrangebylex", &ZRange, -4, kReads, 1, 1, 1},
    {"zrevrangebylex", &ZRange, -4, kReads, 1, 1, 1},
    {"zrangestore", &ZRangeStore, -5, kWrites, 1, 2, 1},
    {"zcount", &ZCount, 4, kReads, 1, 1, 1},
    {"zlexcount", &ZCount, 4, kReads, 1, 1, 1},
    {"zremrangebyrank", &ZRemRange, 4, kWrites, 1, 1, 1},
    {"zremrangebyscore", &ZRemRange, 4, kWrites, 1, 1, 1},
    {"zremrangebylex", &ZRemRange, 4, kWrites, 1, 1, 1},
    {"zpopmin", &ZPop, -2, kWrites | kFast, 1, 1, 1},
    {"zpopmax", &ZPop, -2, kWrites | kFast, 1, 1, 1},
    {"zmpop", &ZMPop, -4, kWrites, 0, 0, 0, &MultiPopKeys},
    {"bzpopmin", &BZPop, -3, kWrites | kBlocks, 1, -2, 1},
    {"bzpopmax", &BZPop, -3, kWrites | kBlocks, 1, -2, 1},
    {"bzmpop", &ZMPop, -5, kWrites | kBlocks, 0, 0, 0, &MultiPopKeys},
};

}  // namespace

std::span<const Command> SortedSetRangeCommands() { return kSortedSetRangeCommands; }

}  // namespace nacre::server
