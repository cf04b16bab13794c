#include "server/commands/sorted_set.h"

#include <algorithm>
#include <cmath>

#include "server/commands/scan_arguments.h"
#include "server/resp/numbers.h"

namespace nacre::server {
namespace {

std::string ScorePrefix(double score) { return ScoreSubKey(score, ""); }

struct ScoreBound {
  double score = 0;
  bool excluded = false;
};

bool ParseScoreBound(std::string_view text, ScoreBound* bound) {
  bound->excluded = text.starts_with("(");
  if (bound->excluded) text.remove_prefix(1);
  return ParseDouble(text, &bound->score);
}

bool ScoreArguments(Call& call, std::string_view min, std::string_view max, SortedSetRange* range) {
  ScoreBound low;
  ScoreBound high;
  if (!ParseScoreBound(min, &low) || !ParseScoreBound(max, &high)) {
    call.reply.Error("ERR min or max is not a float");
    return false;
  }
  const std::string first = ScorePrefix(low.score);
  const std::string last = ScorePrefix(high.score);
  range->from = low.excluded ? BehindPrefix(first) : first;
  range->to = high.excluded ? last : BehindPrefix(last);
  return true;
}

}  // namespace

double ScoreOf(const std::string& value) {
  Slice bytes(value);
  double score = 0;
  return TakeOrderedBits(&bytes, &score) ? score : 0;
}

Task<std::optional<double>> FindScore(Collection* set, std::string_view member) {
  const std::optional<std::string> value = co_await set->Get(FieldSubKey(member));
  if (!value.has_value()) co_return std::nullopt;
  co_return ScoreOf(*value);
}

void PutScore(Collection* set, std::string_view member, std::optional<double> old, double score) {
  if (old.has_value()) set->Delete(ScoreSubKey(*old, member));
  set->Put(FieldSubKey(member), OrderedBits(score));
  set->Put(ScoreSubKey(score, member), "");
}

void DeleteScore(Collection* set, const ScoredMember& member) {
  set->Delete(FieldSubKey(member.member));
  set->Delete(ScoreSubKey(member.score, member.member));
}

Task<void> ReplaceSortedSet(Call& call, std::string_view key, const ScoredMembers& members) {
  const std::optional<Meta> old = co_await call.unit->Find(call.database, key);
  if (old.has_value()) call.unit->Remove(call.database, key, *old);
  if (members.empty()) co_return;
  Collection set(call, key, Type::kSortedSet);
  set.Make();
  for (const ScoredMember& member : members) {
    PutScore(&set, member.member, std::nullopt, member.score);
  }
  set.Save(members.size());
}

bool RangeArguments(Call& call, size_t at, SortedSetRange* range) {
  if (range->by == SortedSetRange::By::kRank) {
    return IntegerArgument(call, at, &range->first) && IntegerArgument(call, at + 1, &range->last);
  }
  const std::string_view min = call.arg(range->reverse ? at + 1 : at);
  const std::string_view max = call.arg(range->reverse ? at : at + 1);
  if (range->by == SortedSetRange::By::kScore) return ScoreArguments(call, min, max, range);
  if (ParseLexBound(min, kFieldPart, /*upper=*/false, &range->from) &&
      ParseLexBound(max, kFieldPart, /*upper=*/true, &range->to)) {
    return true;
  }
  call.reply.Error("ERR min or max not valid string range item");
  return false;
}

Task<ScoredMembers> MembersInRange(Collection* set, SortedSetRange range) {
  ScoredMembers members;
  if (range.by == SortedSetRange::By::kRank) {
    const auto size = static_cast<int64_t>(set->size());
    if (range.first < 0) range.first = std::max<int64_t>(range.first + size, 0);
    if (range.last < 0) range.last += size;
    range.last = std::min(range.last, size - 1);
    if (range.first > range.last) co_return members;
    range.from = std::string(1, kScorePart);
    range.to = std::string(1, kScorePart + 1);
    range.offset = range.first;
    range.count = range.last - range.first + 1;
  }
  if (range.offset < 0) co_return members;
  const size_t limit = range.count < 0 ? SIZE_MAX : static_cast<size_t>(range.count);
  const size_t skip = static_cast<size_t>(range.offset);
  const std::vector<Row> rows =
      co_await set->Scan(RowRange(range.from, range.to, limit, range.reverse, skip));
  for (const Row& row : rows) {
    double score = 0;
    Slice member;
    if (DecodeScoreSubKey(set->SubKey(row.key), &score, &member)) {
      members.push_back({member.ToString(), score});
    } else if (DecodeFieldSubKey(set->SubKey(row.key), &member)) {
      members.push_back({member.ToString(), ScoreOf(row.value)});
    }
  }
  co_return members;
}

Task<ScoredMembers> MembersByScore(Collection* set) {
  SortedSetRange all;
  all.last = -1;
  return MembersInRange(set, all);
}

void AnswerMembers(Call& call, const ScoredMembers& members, bool with_scores) {
  const bool pairs = with_scores && call.reply.protocol() > 2;
  call.reply.Array(members.size() * (with_scores && !pairs ? 2 : 1));
  for (const ScoredMember& member : members) {
    if (pairs) call.reply.Array(2);
    call.reply.Bulk(member.member);
    if (with_scores) call.reply.Double(member.score);
  }
}

}  // namespace nacre::server
