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

namespace nacre::server {
namespace {

struct AddOptions {
  bool if_missing = false;  ///< NX
  bool if_there = false;    ///< XX
  bool if_greater = false;  ///< GT
  bool if_less = false;     ///< LT
  bool count_changes = false;
  bool increment = false;
  size_t first = 2;  ///< The argument with the first score.
};

bool ParseAddOptions(Call& call, AddOptions* options) {
  for (; options->first < call.argc(); ++options->first) {
    const std::string word = UpperCase(call.arg(options->first));
    if (word == "NX") {
      options->if_missing = true;
    } else if (word == "XX") {
      options->if_there = true;
    } else if (word == "GT") {
      options->if_greater = true;
    } else if (word == "LT") {
      options->if_less = true;
    } else if (word == "CH") {
      options->count_changes = true;
    } else if (word == "INCR") {
      options->increment = true;
    } else {
      break;
    }
  }
  const size_t rest = call.argc() - options->first;
  const char* error = nullptr;
  if (rest == 0 || rest % 2 != 0) {
    error = kSyntaxError;
  } else if (options->if_missing && options->if_there) {
    error = "ERR XX and NX options at the same time are not compatible";
  } else if (options->if_greater + options->if_less + options->if_missing > 1) {
    error = "ERR GT, LT, and/or NX options at the same time are not compatible";
  } else if (options->increment && rest != 2) {
    error = "ERR INCR option supports a single increment-element pair";
  }
  if (error != nullptr) call.reply.Error(error);
  return error == nullptr;
}

/// The score that ZADD is to set; nothing if it leaves the member as it is.
std::optional<double> NewScore(const AddOptions& options, std::optional<double> old, double given) {
  if (!old.has_value()) return options.if_there ? std::nullopt : std::optional(given);
  if (options.if_missing) return std::nullopt;
  const double score = options.increment ? *old + given : given;
  if ((options.if_greater && score <= *old) || (options.if_less && score >= *old)) {
    return std::nullopt;
  }
  return score;
}

/// ZADD and ZINCRBY.
Task<void> AddScores(Call& call, const AddOptions& options) {
  std::vector<double> scores;
  std::vector<std::string> fields;
  for (size_t i = options.first; i < call.argc(); i += 2) {
    double score = 0;
    if (!FloatArgument(call, i, &score)) co_return;
    scores.push_back(score);
    fields.push_back(FieldSubKey(call.arg(i + 1)));
  }
  Collection set(call, call.arg(1), Type::kSortedSet);
  const bool found = co_await set.Find();
  if (!found) co_return;
  const auto rows = co_await set.MultiGet(fields);
  std::map<std::string_view, std::optional<double>> current;
  for (size_t i = 0; i < fields.size(); ++i) {
    current[fields[i]] = rows[i].has_value() ? std::optional(ScoreOf(*rows[i])) : std::nullopt;
  }
  uint64_t added = 0;
  uint64_t changed = 0;
  std::optional<double> result;
  for (size_t i = 0; i < fields.size(); ++i) {
    std::optional<double>& old = current[fields[i]];
    result = NewScore(options, old, scores[i]);
    if (!result.has_value()) continue;
    if (std::isnan(*result)) {
      call.reply.Error("ERR resulting score is not a number (NaN)");
      co_return;
    }
    if (old == result) continue;
    set.Make();
    PutScore(&set, std::string_view(fields[i]).substr(1), old, *result);
    old.has_value() ? ++changed : ++added;
    old = result;
  }
  if (added > 0) {
    set.Save(set.size() + added);
  } else if (changed > 0) {
    set.Touch();
  }
  if (!options.increment) {
    call.reply.Integer(static_cast<int64_t>(added + (options.count_changes ? changed : 0)));
  } else {
    result.has_value() ? call.reply.Double(*result) : call.reply.Null();
  }
}

Task<void> ZAdd(Call& call) {
  AddOptions options;
  if (ParseAddOptions(call, &options)) co_await AddScores(call, options);
}

Task<void> ZIncrBy(Call& call) {
  AddOptions options;
  options.increment = true;
  co_await AddScores(call, options);
}

Task<void> ZRem(Call& call) {
  Collection set(call, call.arg(1), Type::kSortedSet);
  const bool found = co_await set.Find();
  if (!found) co_return;
  uint64_t removed = 0;
  for (size_t i = 2; i < call.argc(); ++i) {
    const std::optional<double> score = co_await FindScore(&set, call.arg(i));
    if (!score.has_value()) continue;
    const ScoredMember member{std::string(call.arg(i)), *score};
    DeleteScore(&set, member);
    ++removed;
  }
  if (removed > 0) set.Save(set.size() - removed);
  call.reply.Integer(static_cast<int64_t>(removed));
}

Task<void> ZScore(Call& call) {
  Collection set(call, call.arg(1), Type::kSortedSet);
  const bool found = co_await set.Find();
  if (!found) co_return;
  const std::optional<double> score = co_await FindScore(&set, call.arg(2));
  score.has_value() ? call.reply.Double(*score) : call.reply.Null();
}

Task<void> ZMScore(Call& call) {
  Collection set(call, call.arg(1), Type::kSortedSet);
  const bool found = co_await set.Find();
  if (!found) co_return;
  std::vector<std::string> fields;
  for (size_t i = 2; i < call.argc(); ++i) fields.push_back(FieldSubKey(call.arg(i)));
  const auto rows = co_await set.MultiGet(fields);
  call.reply.Array(rows.size());
  for (const auto& row : rows) {
    row.has_value() ? call.reply.Double(ScoreOf(*row)) : call.reply.Null();
  }
}

Task<void> ZCard(Call& call) {
  Collection set(call, call.arg(1), Type::kSortedSet);
  const bool found = co_await set.Find();
  if (found) call.reply.Integer(static_cast<int64_t>(set.size()));
}

/// ZRANK and ZREVRANK.
Task<void> ZRank(Call& call) {
  const bool reverse = std::string_view(call.command->name) == "zrevrank";
  Collection set(call, call.arg(1), Type::kSortedSet);
  const bool found = co_await set.Find();
  if (!found) co_return;
  const std::optional<double> score = co_await FindScore(&set, call.arg(2));
  if (!score.has_value()) {
    call.reply.Null();
    co_return;
  }
  const std::vector<Row> before =
      co_await set.Scan(RowRange(std::string(1, kScorePart), ScoreSubKey(*score, call.arg(2))));
  const auto rank = static_cast<int64_t>(before.size());
  call.reply.Integer(reverse ? static_cast<int64_t>(set.size()) - 1 - rank : rank);
}

Task<void> ZRandMember(Call& call) {
  int64_t count = 1;
  const bool counted = call.argc() > 2;
  if (counted && !RandomCountArgument(call, 2, &count)) co_return;
  const bool with_scores = call.argc() == 4 && SameWord(call.arg(3), "WITHSCORES");
  if (call.argc() > 4 || (call.argc() == 4 && !with_scores)) {
    call.reply.Error(kSyntaxError);
    co_return;
  }
  Collection set(call, call.arg(1), Type::kSortedSet);
  const bool found = co_await set.Find();
  if (!found) co_return;
  const ScoredMembers all = co_await MembersByScore(&set);
  ScoredMembers chosen;
  for (const size_t i :
       RandomIndexes(call, all.size(), static_cast<size_t>(count < 0 ? -count : count),
                     /*distinct=*/count > 0)) {
    chosen.push_back(all[i]);
  }
  if (counted) {
    AnswerMembers(call, chosen, with_scores);
  } else {
    chosen.empty() ? call.reply.Null() : call.reply.Bulk(chosen[0].member);
  }
}

Task<void> ZScan(Call& call) {
  return ScanCollection(call, Type::kSortedSet, 2,
                        [](Call& to, std::string_view field, const std::string& value) {
                          to.reply.Bulk(field);
                          to.reply.Bulk(FormatDouble(ScoreOf(value)));
                        });
}

constexpr Command kSortedSetCommands[] = {
    {"zadd", &ZAdd, -4, kWrites | kFast, 1, 1, 1},
    {"zincrby", &ZIncrBy, 4, kWrites | kFast, 1, 1, 1},
    {"zrem", &ZRem, -3, kWrites | kFast, 1, 1, 1},
    {"zscore", &ZScore, 3, kReads | kFast, 1, 1, 1},
    {"zmscore", &ZMScore, -3, kReads | kFast, 1, 1, 1},
    {"zcard", &ZCard, 2, kReads | kFast | kMetaRowsOnly, 1, 1, 1},
    {"zrank", &ZRank, 3, kReads, 1, 1, 1},
    {"zrevrank", &ZRank, 3, kReads, 1, 1, 1},
    {"zrandmember", &ZRandMember, -2, kReads, 1, 1, 1},
    {"zscan", &ZScan, -3, kReads, 1, 1, 1},
};

}  // namespace

std::span<const Command> SortedSetCommands() { return kSortedSetCommands; }

}  // namespace nacre::server
