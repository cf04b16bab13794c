#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/commands/collection.h"
#include "server/commands/command_lists.h"
#include "server/commands/sorted_set.h"
#include "server/resp/numbers.h"

// Unions, intersections and differences of sorted sets and sets.

namespace nacre::server {
namespace {

enum class Aggregate : uint8_t { kSum, kMin, kMax };

struct CombineOptions {
  char operation = 'u';  ///< u, i or d.
  size_t first = 0;      ///< The argument with the first key.
  size_t keys = 0;
  std::vector<double> weights;
  Aggregate aggregate = Aggregate::kSum;
  bool with_scores = false;
  int64_t limit = 0;  ///< ZINTERCARD only; 0: none.
};

using Scores = std::map<std::string, double>;

/// Takes the word at `*i` and what belongs to it.
bool TakeOption(Call& call, bool stores, size_t* i, CombineOptions* options) {
  const std::string word = UpperCase(call.arg(*i));
  const size_t rest = call.argc() - *i - 1;
  if (word == "WEIGHTS" && options->operation != 'd' && rest >= options->keys) {
    for (size_t k = 0; k < options->keys; ++k) {
      if (!ParseDouble(call.arg(++*i), &options->weights[k])) {
        call.reply.Error("ERR weight value is not a float");
        return false;
      }
    }
    return true;
  }
  if (word == "AGGREGATE" && options->operation != 'd' && rest >= 1) {
    const std::string how = UpperCase(call.arg(++*i));
    if (how == "SUM" || how == "MIN" || how == "MAX") {
      options->aggregate = how == "SUM"   ? Aggregate::kSum
                           : how == "MIN" ? Aggregate::kMin
                                          : Aggregate::kMax;
      return true;
    }
  } else if (word == "WITHSCORES" && !stores) {
    options->with_scores = true;
    return true;
  }
  call.reply.Error(kSyntaxError);
  return false;
}

/// `at`: the argument that says how many keys there are.
bool ParseCombineOptions(Call& call, size_t at, bool stores, CombineOptions* options) {
  int64_t keys = 0;
  if (!IntegerArgument(call, at, &keys)) return false;
  if (keys < 1) {
    call.reply.Error("ERR at least 1 input key is needed for '" + std::string(call.command->name) +
                     "' command");
    return false;
  }
  if (static_cast<uint64_t>(keys) > call.argc() - at - 1) {
    call.reply.Error(kSyntaxError);
    return false;
  }
  options->operation = call.command->name[1];
  options->first = at + 1;
  options->keys = static_cast<size_t>(keys);
  options->weights.assign(options->keys, 1.0);
  for (size_t i = options->first + options->keys; i < call.argc(); ++i) {
    if (!TakeOption(call, stores, &i, options)) return false;
  }
  return true;
}

/// The members of a sorted set, or of a set, whose scores are 1. Nothing if the key is of another
/// type, which is answered.
Task<std::optional<Scores>> ScoresOf(Call& call, std::string_view key, double weight) {
  const std::optional<Meta> meta = co_await call.unit->Find(call.database, key);
  Scores scores;
  if (!meta.has_value()) co_return scores;
  if (meta->type != Type::kSortedSet && meta->type != Type::kSet) {
    call.reply.Error(kWrongType);
    co_return std::nullopt;
  }
  Collection set(call, key, meta->type);
  set.Adopt(meta);
  const std::vector<Row> rows = co_await set.ScanFields();
  for (const Row& row : rows) {
    const double score = meta->type == Type::kSet ? 1 : ScoreOf(row.value);
    // Infinity times 0 is nothing.
    const double weighted = std::isnan(score * weight) ? 0 : score * weight;
    scores.emplace(FieldOf(set, row.key), weighted);
  }
  co_return scores;
}

double AggregateOf(Aggregate aggregate, double a, double b) {
  if (aggregate == Aggregate::kMin) return std::min(a, b);
  if (aggregate == Aggregate::kMax) return std::max(a, b);
  return std::isnan(a + b) ? 0 : a + b;
}

void CombineWith(const CombineOptions& options, const Scores& more, Scores* scores) {
  if (options.operation == 'u') {
    for (const auto& [member, score] : more) {
      const auto [place, added] = scores->emplace(member, score);
      if (!added) place->second = AggregateOf(options.aggregate, place->second, score);
    }
    return;
  }
  for (auto i = scores->begin(); i != scores->end();) {
    const auto other = more.find(i->first);
    if ((other != more.end()) != (options.operation == 'i')) {
      i = scores->erase(i);
      continue;
    }
    if (other != more.end()) {
      i->second = AggregateOf(options.aggregate, i->second, other->second);
    }
    ++i;
  }
}

Task<std::optional<ScoredMembers>> Combined(Call& call, const CombineOptions& options) {
  std::optional<Scores> scores =
      co_await ScoresOf(call, call.arg(options.first), options.weights[0]);
  for (size_t i = 1; i < options.keys && scores.has_value(); ++i) {
    const std::optional<Scores> more =
        co_await ScoresOf(call, call.arg(options.first + i), options.weights[i]);
    if (!more.has_value()) co_return std::nullopt;
    CombineWith(options, *more, &*scores);
  }
  if (!scores.has_value()) co_return std::nullopt;
  ScoredMembers members;
  for (const auto& [member, score] : *scores) members.push_back({member, score});
  std::stable_sort(members.begin(), members.end(),
                   [](const ScoredMember& a, const ScoredMember& b) { return a.score < b.score; });
  co_return members;
}

/// ZUNION, ZINTER and ZDIFF.
Task<void> ZCombine(Call& call) {
  CombineOptions options;
  if (!ParseCombineOptions(call, 1, /*stores=*/false, &options)) co_return;
  const std::optional<ScoredMembers> members = co_await Combined(call, options);
  if (members.has_value()) AnswerMembers(call, *members, options.with_scores);
}

/// ZUNIONSTORE, ZINTERSTORE and ZDIFFSTORE.
Task<void> ZCombineStore(Call& call) {
  CombineOptions options;
  if (!ParseCombineOptions(call, 2, /*stores=*/true, &options)) co_return;
  const std::optional<ScoredMembers> members = co_await Combined(call, options);
  if (!members.has_value()) co_return;
  co_await ReplaceSortedSet(call, call.arg(1), *members);
  call.reply.Integer(static_cast<int64_t>(members->size()));
}

Task<void> ZInterCard(Call& call) {
  int64_t keys = 0;
  int64_t limit = 0;
  if (!IntegerArgument(call, 1, &keys)) co_return;
  if (keys < 1) {
    call.reply.Error("ERR at least 1 input key is needed for 'zintercard' command");
    co_return;
  }
  if (static_cast<uint64_t>(keys) > call.argc() - 2) {
    call.reply.Error("ERR Number of keys can't be greater than number of args");
    co_return;
  }
  const auto behind = static_cast<size_t>(keys) + 2;
  if (call.argc() == behind + 2 && SameWord(call.arg(behind), "LIMIT")) {
    if (!ParseInteger(call.arg(behind + 1), &limit) || limit < 0) {
      call.reply.Error("ERR LIMIT can't be negative");
      co_return;
    }
  } else if (call.argc() != behind) {
    call.reply.Error(kSyntaxError);
    co_return;
  }
  CombineOptions options;
  options.operation = 'i';
  options.first = 2;
  options.keys = static_cast<size_t>(keys);
  options.weights.assign(options.keys, 1.0);
  const std::optional<ScoredMembers> members = co_await Combined(call, options);
  if (!members.has_value()) co_return;
  const auto size = static_cast<int64_t>(members->size());
  call.reply.Integer(limit > 0 ? std::min(limit, size) : size);
}

void CombinedKeys(const Call& call, std::vector<KeyRef>* keys) {
  CountedKeys(call, call.command->first_key == 1 ? 2 : 1, keys);
}

constexpr Command kSortedSetStoreCommands[] = {
    {"zunion", &ZCombine, -3, kReads, 0, 0, 0, &CombinedKeys},
    {"zinter", &ZCombine, -3, kReads, 0, 0, 0, &CombinedKeys},
    {"zdiff", &ZCombine, -3, kReads, 0, 0, 0, &CombinedKeys},
    {"zunionstore", &ZCombineStore, -4, kWrites, 1, 1, 1, &CombinedKeys},
    {"zinterstore", &ZCombineStore, -4, kWrites, 1, 1, 1, &CombinedKeys},
    {"zdiffstore", &ZCombineStore, -4, kWrites, 1, 1, 1, &CombinedKeys},
    {"zintercard", &ZInterCard, -3, kReads, 0, 0, 0, &CombinedKeys},
};

}  // namespace

std::span<const Command> SortedSetStoreCommands() { return kSortedSetStoreCommands; }

}  // namespace nacre::server
