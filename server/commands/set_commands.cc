#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/commands/collection.h"
#include "server/commands/command_lists.h"
#include "server/commands/multi_pop.h"
#include "server/resp/numbers.h"

namespace nacre::server {
namespace {

std::vector<std::string> MemberArguments(const Call& call, size_t first) {
  std::vector<std::string> sub_keys;
  for (size_t i = first; i < call.argc(); ++i) sub_keys.push_back(FieldSubKey(call.arg(i)));
  return sub_keys;
}

Task<void> SAdd(Call& call) {
  Collection set(call, call.arg(1), Type::kSet);
  const bool found = co_await set.Find();
  if (!found) co_return;
  const std::vector<std::string> members = MemberArguments(call, 2);
  const auto old = co_await set.MultiGet(members);
  set.Make();
  std::set<std::string_view> added;
  for (size_t i = 0; i < members.size(); ++i) {
    if (old[i].has_value()) continue;
    added.insert(members[i]);
    set.Put(members[i], "");
  }
  if (!added.empty()) set.Save(set.size() + added.size());
  call.reply.Integer(static_cast<int64_t>(added.size()));
}

Task<void> SRem(Call& call) {
  Collection set(call, call.arg(1), Type::kSet);
  const bool found = co_await set.Find();
  if (!found) co_return;
  const std::vector<std::string> members = MemberArguments(call, 2);
  const auto old = co_await set.MultiGet(members);
  std::set<std::string_view> removed;
  for (size_t i = 0; i < members.size(); ++i) {
    if (!old[i].has_value()) continue;
    removed.insert(members[i]);
    set.Delete(members[i]);
  }
  if (!removed.empty()) set.Save(set.size() - removed.size());
  call.reply.Integer(static_cast<int64_t>(removed.size()));
}

Task<void> SIsMember(Call& call) {
  Collection set(call, call.arg(1), Type::kSet);
  const bool found = co_await set.Find();
  if (!found) co_return;
  const std::optional<std::string> member = co_await set.Get(FieldSubKey(call.arg(2)));
  call.reply.Integer(member.has_value() ? 1 : 0);
}

Task<void> SMIsMember(Call& call) {
  Collection set(call, call.arg(1), Type::kSet);
  const bool found = co_await set.Find();
  if (!found) co_return;
  const auto members = co_await set.MultiGet(MemberArguments(call, 2));
  call.reply.Array(members.size());
  for (const auto& member : members) call.reply.Integer(member.has_value() ? 1 : 0);
}

Task<void> SCard(Call& call) {
  Collection set(call, call.arg(1), Type::kSet);
  const bool found = co_await set.Find();
  if (found) call.reply.Integer(static_cast<int64_t>(set.size()));
}

Task<void> SMembers(Call& call) {
  Collection set(call, call.arg(1), Type::kSet);
  const bool found = co_await set.Find();
  if (!found) co_return;
  const std::vector<Row> rows = co_await set.ScanFields();
  call.reply.Set(rows.size());
  for (const Row& row : rows) call.reply.Bulk(FieldOf(set, row.key));
}

Task<void> SMove(Call& call) {
  Collection from(call, call.arg(1), Type::kSet);
  Collection to(call, call.arg(2), Type::kSet);
  const bool found = co_await from.Find();
  if (!found) co_return;
  if (!from.there()) {
    call.reply.Integer(0);
    co_return;
  }
  const bool found_to = co_await to.Find();
  if (!found_to) co_return;
  const std::string member = FieldSubKey(call.arg(3));
  const std::optional<std::string> old = co_await from.Get(member);
  call.reply.Integer(old.has_value() ? 1 : 0);
  if (!old.has_value() || from.key() == to.key()) co_return;
  const std::optional<std::string> in_both = co_await to.Get(member);
  from.Delete(member);
  from.Save(from.size() - 1);
  if (in_both.has_value()) co_return;
  to.Make();
  to.Put(member, "");
  to.Save(to.size() + 1);
}

Task<void> SPop(Call& call) {
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
  Collection set(call, call.arg(1), Type::kSet);
  const bool found = co_await set.Find();
  if (!found) co_return;
  if (!set.there() && !counted) {
    call.reply.Null();
    co_return;
  }
  const std::vector<Row> rows = co_await set.ScanFields();
  const std::vector<size_t> chosen =
      RandomIndexes(call, rows.size(), static_cast<size_t>(count), /*distinct=*/true);
  if (counted) call.reply.Set(chosen.size());
  const bool all = chosen.size() == rows.size();
  for (const size_t i : chosen) {
    call.reply.Bulk(FieldOf(set, rows[i].key));
    if (!all) set.Delete(set.SubKey(rows[i].key).ToString());
  }
  if (all) {
    set.Remove();
  } else if (!chosen.empty()) {
    set.Save(set.size() - chosen.size());
  }
}

Task<void> SRandMember(Call& call) {
  int64_t count = 1;
  const bool counted = call.argc() > 2;
  if (call.argc() > 3) {
    call.reply.Error(kSyntaxError);
    co_return;
  }
  if (counted && !RandomCountArgument(call, 2, &count)) co_return;
  Collection set(call, call.arg(1), Type::kSet);
  const bool found = co_await set.Find();
  if (!found) co_return;
  const std::vector<Row> rows = co_await set.ScanFields();
  const std::vector<size_t> chosen = RandomIndexes(
      call, rows.size(), static_cast<size_t>(count < 0 ? -count : count), /*distinct=*/count > 0);
  if (!counted) {
    chosen.empty() ? call.reply.Null() : call.reply.Bulk(FieldOf(set, rows[chosen[0]].key));
    co_return;
  }
  call.reply.Array(chosen.size());
  for (const size_t i : chosen) call.reply.Bulk(FieldOf(set, rows[i].key));
}

// ---- Several sets -------------------------------------------------------------------------------

using Members = std::vector<std::string>;

/// The members of a set, in order. Nothing if the key is of another type, which is answered.
Task<std::optional<Members>> MembersOf(Call& call, std::string_view key) {
  Collection set(call, key, Type::kSet);
  const bool found = co_await set.Find();
  if (!found) co_return std::nullopt;
  Members members;
  const std::vector<Row> rows = co_await set.ScanFields();
  for (const Row& row : rows) members.emplace_back(FieldOf(set, row.key));
  co_return members;
}

Members Combine(char operation, const Members& a, const Members& b) {
  Members result;
  const auto end = std::back_inserter(result);
  if (operation == 'i') {
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), end);
  } else if (operation == 'u') {
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), end);
  } else {
    std::set_difference(a.begin(), a.end(), b.begin(), b.end(), end);
  }
  return result;
}

/// `operation`: i, u or d. Arguments `first` to `last`, which is not one of them, name the sets.
Task<std::optional<Members>> CombineAll(Call& call, char operation, size_t first, size_t last) {
  std::optional<Members> result = co_await MembersOf(call, call.arg(first));
  for (size_t i = first + 1; i < last && result.has_value(); ++i) {
    const std::optional<Members> more = co_await MembersOf(call, call.arg(i));
    if (!more.has_value()) co_return std::nullopt;
    *result = Combine(operation, *result, *more);
  }
  co_return result;
}

/// SINTER, SUNION, SDIFF.
Task<void> Combination(Call& call) {
  const std::optional<Members> result =
      co_await CombineAll(call, call.command->name[1], 1, call.argc());
  if (!result.has_value()) co_return;
  call.reply.Set(result->size());
  for (const std::string& member : *result) call.reply.Bulk(member);
}

/// SINTERSTORE, SUNIONSTORE, SDIFFSTORE.
Task<void> StoreCombination(Call& call) {
  const std::optional<Members> result =
      co_await CombineAll(call, call.command->name[1], 2, call.argc());
  if (!result.has_value()) co_return;
  const std::optional<Meta> old = co_await call.unit->Find(call.database, call.arg(1));
  if (old.has_value()) call.unit->Remove(call.database, call.arg(1), *old);
  call.reply.Integer(static_cast<int64_t>(result->size()));
  if (result->empty()) co_return;
  Collection set(call, call.arg(1), Type::kSet);
  set.Make();
  for (const std::string& member : *result) set.Put(FieldSubKey(member), "");
  set.Save(result->size());
}

Task<void> SInterCard(Call& call) {
  int64_t keys = 0;
  int64_t limit = 0;
  if (!KeyCountArgument(call, 1, &keys)) co_return;
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
  const std::optional<Members> result = co_await CombineAll(call, 'i', 2, behind);
  if (!result.has_value()) co_return;
  const auto size = static_cast<int64_t>(result->size());
  call.reply.Integer(limit > 0 ? std::min(limit, size) : size);
}

void CountedSetKeys(const Call& call, std::vector<KeyRef>* keys) { CountedKeys(call, 1, keys); }

Task<void> SScan(Call& call) {
  return ScanCollection(
      call, Type::kSet, 1,
      [](Call& to, std::string_view field, const std::string& /*value*/) { to.reply.Bulk(field); });
}

constexpr Command kSetCommands[] = {
    {"sadd", &SAdd, -3, kWrites | kFast, 1, 1, 1},
    {"srem", &SRem, -3, kWrites | kFast, 1, 1, 1},
    {"sismember", &SIsMember, 3, kReads | kFast, 1, 1, 1},
    {"smismember", &SMIsMember, -3, kReads | kFast, 1, 1, 1},
    {"scard", &SCard, 2, kReads | kFast | kMetaRowsOnly, 1, 1, 1},
    {"smembers", &SMembers, 2, kReads, 1, 1, 1},
    {"smove", &SMove, 4, kWrites | kFast, 1, 2, 1},
    {"spop", &SPop, -2, kWrites, 1, 1, 1},
    {"srandmember", &SRandMember, -2, kReads, 1, 1, 1},
    {"sinter", &Combination, -2, kReads, 1, -1, 1},
    {"sunion", &Combination, -2, kReads, 1, -1, 1},
    {"sdiff", &Combination, -2, kReads, 1, -1, 1},
    {"sinterstore", &StoreCombination, -3, kWrites, 1, -1, 1},
    {"sunionstore", &StoreCombination, -3, kWrites, 1, -1, 1},
    {"sdiffstore", &StoreCombination, -3, kWrites, 1, -1, 1},
    {"sintercard", &SInterCard, -3, kReads, 0, 0, 0, &CountedSetKeys},
    {"sscan", &SScan, -3, kReads, 1, 1, 1},
};

}  // namespace

std::span<const Command> SetCommands() { return kSetCommands; }

}  // namespace nacre::server
