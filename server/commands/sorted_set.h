#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/commands/collection.h"

namespace nacre::server {

/// A member of a sorted set, and its score.
struct ScoredMember {
  std::string member;
  double score = 0;
};
using ScoredMembers = std::vector<ScoredMember>;

/// The score that a member's row has.
double ScoreOf(const std::string& value);
Task<std::optional<double>> FindScore(Collection* set, std::string_view member);
/// Gives a member its score; `old` is the one that it had. The set was made; Save is left to the
/// caller.
void PutScore(Collection* set, std::string_view member, std::optional<double> old, double score);
void DeleteScore(Collection* set, const ScoredMember& member);
/// Makes the key a set of these members, whatever it was, or removes it if there are none.
Task<void> ReplaceSortedSet(Call& call, std::string_view key, const ScoredMembers& members);

/// Which members of a sorted set a command means, and in which order.
struct SortedSetRange {
  enum class By : uint8_t { kRank, kScore, kLex };
  By by = By::kRank;
  bool reverse = false;
  int64_t first = 0;  ///< By rank: both included; negative ones count from the end.
  int64_t last = 0;
  std::string from;  ///< Otherwise: sub-keys, of which the latter is not included.
  std::string to;
  int64_t offset = 0;
  int64_t count = -1;  ///< Negative: all.
};

/// Takes the two ends from arguments `at` and `at` + 1, where `range->by` and `range->reverse` say
/// what they are. Answers an error and false if they are malformed.
bool RangeArguments(Call& call, size_t at, SortedSetRange* range);
/// The members of the range, in its order.
Task<ScoredMembers> MembersInRange(Collection* set, SortedSetRange range);
/// All of them, by score.
Task<ScoredMembers> MembersByScore(Collection* set);

/// Answers members, each with its score if `with_scores`.
void AnswerMembers(Call& call, const ScoredMembers& members, bool with_scores);

}  // namespace nacre::server
