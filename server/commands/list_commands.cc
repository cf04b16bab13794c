#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "server/commands/collection.h"
#include "server/commands/command_lists.h"
#include "server/commands/list_ends.h"
#include "server/resp/numbers.h"

namespace nacre::server {
namespace {

/// LPUSH, RPUSH, LPUSHX and RPUSHX.
Task<void> Push(Call& call) {
  const std::string_view name = call.command->name;
  Collection list(call, call.arg(1), Type::kList);
  const bool found = co_await list.Find();
  if (!found) co_return;
  if (name.ends_with("x") && !list.there()) {
    call.reply.Integer(0);
    co_return;
  }
  std::vector<std::string> values;
  for (size_t i = 2; i < call.argc(); ++i) values.emplace_back(call.arg(i));
  PushToList(&list, name[0] == 'l', values);
  call.reply.Integer(static_cast<int64_t>(list.size()));
}

Task<void> LLen(Call& call) {
  Collection list(call, call.arg(1), Type::kList);
  const bool found = co_await list.Find();
  if (found) call.reply.Integer(static_cast<int64_t>(list.size()));
}

/// Makes of places that may be counted from the end the range [first, last) within the list.
void Clamp(const Collection& list, int64_t* first, int64_t* last) {
  const auto size = static_cast<int64_t>(list.size());
  if (*first < 0) *first = std::max<int64_t>(*first + size, 0);
  if (*last < 0) *last += size;
  *last = std::min(*last, size - 1) + 1;
  if (*first >= *last) *first = *last = 0;
}

Task<std::vector<Row>> RowsOf(Collection& list, int64_t first, int64_t last) {
  const int64_t base = list.meta().first;
  return list.Scan(RowRange(IndexSubKey(base + first), IndexSubKey(base + last)));
}

Task<void> LRange(Call& call) {
  int64_t first = 0;
  int64_t last = 0;
  if (!IntegerArgument(call, 2, &first) || !IntegerArgument(call, 3, &last)) co_return;
  Collection list(call, call.arg(1), Type::kList);
  const bool found = co_await list.Find();
  if (!found) co_return;
  Clamp(list, &first, &last);
  const std::vector<Row> rows = co_await RowsOf(list, first, last);
  call.reply.Array(rows.size());
  for (const Row& row : rows) call.reply.Bulk(row.value);
}

/// Makes an index from the end one from the head. False if there is no such element.
bool IndexInList(const Collection& list, int64_t* index) {
  const auto size = static_cast<int64_t>(list.size());
  if (*index < 0) *index += size;
  return *index >= 0 && *index < size;
}

Task<void> LIndex(Call& call) {
  int64_t index = 0;
  if (!IntegerArgument(call, 2, &index)) co_return;
  Collection list(call, call.arg(1), Type::kList);
  const bool found = co_await list.Find();
  if (!found) co_return;
  if (!IndexInList(list, &index)) {
    call.reply.Null();
    co_return;
  }
  const std::optional<std::string> value =
      co_await list.Get(IndexSubKey(list.meta().first + index));
  value.has_value() ? call.reply.Bulk(*value) : call.reply.Null();
}

Task<void> LSet(Call& call) {
  int64_t index = 0;
  Collection list(call, call.arg(1), Type::kList);
  const bool found = co_await list.Find();
  if (!found) co_return;
  if (!list.there()) {
    call.reply.Error(kNoSuchKey);
    co_return;
  }
  if (!IntegerArgument(call, 2, &index)) co_return;
  if (!IndexInList(list, &index)) {
    call.reply.Error(kOutOfRange);
    co_return;
  }
  list.Put(IndexSubKey(list.meta().first + index), std::string(call.arg(3)));
  list.Touch();
  call.reply.Ok();
}

Task<std::vector<std::string>> ValuesOf(Collection& list) {
  const std::vector<Row> rows = co_await RowsOf(list, 0, static_cast<int64_t>(list.size()));
  std::vector<std::string> values;
  for (const Row& row : rows) values.push_back(row.value);
  co_return values;
}

/// Makes the list, which has the values `old`, have the values `now`.
void Rewrite(Collection* list, const std::vector<std::string>& old,
             const std::vector<std::string>& now) {
  const int64_t base = list->meta().first;
  for (size_t i = 0; i < std::max(old.size(), now.size()); ++i) {
    const std::string sub_key = IndexSubKey(base + static_cast<int64_t>(i));
    if (i >= now.size()) {
      list->Delete(sub_key);
    } else if (i >= old.size() || old[i] != now[i]) {
      list->Put(sub_key, now[i]);
    }
  }
  list->Save(now.size());
}

Task<void> LInsert(Call& call) {
  const bool before = SameWord(call.arg(2), "BEFORE");
  if (!before && !SameWord(call.arg(2), "AFTER")) {
    call.reply.Error(kSyntaxError);
    co_return;
  }
  Collection list(call, call.arg(1), Type::kList);
  const bool found = co_await list.Find();
  if (!found) co_return;
  if (!list.there()) {
    call.reply.Integer(0);
    co_return;
  }
  const std::vector<std::string> old = co_await ValuesOf(list);
  const auto pivot = std::find(old.begin(), old.end(), call.arg(3));
  if (pivot == old.end()) {
    call.reply.Integer(-1);
    co_return;
  }
  std::vector<std::string> now = old;
  now.insert(now.begin() + (pivot - old.begin()) + (before ? 0 : 1), std::string(call.arg(4)));
  Rewrite(&list, old, now);
  call.reply.Integer(static_cast<int64_t>(now.size()));
}

Task<void> LRem(Call& call) {
  int64_t count = 0;
  if (!IntegerArgument(call, 2, &count)) co_return;
  Collection list(call, call.arg(1), Type::kList);
  const bool found = co_await list.Find();
  if (!found) co_return;
  const std::vector<std::string> old = co_await ValuesOf(list);
  std::vector<std::string> now = old;
  if (count < 0) std::reverse(now.begin(), now.end());
  int64_t left = count == 0 ? INT64_MAX : std::abs(count);
  std::erase_if(now, [&](const std::string& value) { return value == call.arg(3) && left-- > 0; });
  if (count < 0) std::reverse(now.begin(), now.end());
  if (now.size() != old.size()) Rewrite(&list, old, now);
  call.reply.Integer(static_cast<int64_t>(old.size() - now.size()));
}

Task<void> LTrim(Call& call) {
  int64_t first = 0;
  int64_t last = 0;
  if (!IntegerArgument(call, 2, &first) || !IntegerArgument(call, 3, &last)) co_return;
  Collection list(call, call.arg(1), Type::kList);
  const bool found = co_await list.Find();
  if (!found) co_return;
  call.reply.Ok();
  if (!list.there()) co_return;
  Clamp(list, &first, &last);
  if (first == last) {
    list.Remove();
    co_return;
  }
  const int64_t base = list.meta().first;
  const auto size = static_cast<int64_t>(list.size());
  for (int64_t i = 0; i < first; ++i) list.Delete(IndexSubKey(base + i));
  for (int64_t i = last; i < size; ++i) list.Delete(IndexSubKey(base + i));
  if (last - first == size) co_return;
  list.meta().first += first;
  list.Save(static_cast<uint64_t>(last - first));
}

struct PosOptions {
  int64_t rank = 1;
  std::optional<int64_t> count;
  int64_t most = 0;  ///< Elements that are looked at; 0: all.
};

bool ParsePosOptions(Call& call, PosOptions* options) {
  for (size_t i = 3; i < call.argc(); i += 2) {
    int64_t value = 0;
    if (i + 1 == call.argc()) {
      call.reply.Error(kSyntaxError);
      return false;
    }
    if (!IntegerArgument(call, i + 1, &value)) return false;
    const std::string word = UpperCase(call.arg(i));
    if (word == "RANK" && value == 0) {
      call.reply.Error(
          "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or "
          "use negative to start from the end of the list");
      return false;
    }
    if (word == "RANK" && value == INT64_MIN) {
      call.reply.Error(
          "ERR value is out of range, must be between -9223372036854775807 and "
          "9223372036854775807");
      return false;
    }
    if ((word == "COUNT" || word == "MAXLEN") && value < 0) {
      call.reply.Error("ERR " + word + " can't be negative");
      return false;
    }
    if (word == "RANK") {
      options->rank = value;
    } else if (word == "COUNT") {
      options->count = value;
    } else if (word == "MAXLEN") {
      options->most = value;
    } else {
      call.reply.Error(kSyntaxError);
      return false;
    }
  }
  return true;
}

Task<void> LPos(Call& call) {
  PosOptions options;
  if (!ParsePosOptions(call, &options)) co_return;
  Collection list(call, call.arg(1), Type::kList);
  const bool found = co_await list.Find();
  if (!found) co_return;
  const std::vector<std::string> values = co_await ValuesOf(list);
  const size_t most = options.most == 0
                          ? values.size()
                          : std::min(values.size(), static_cast<size_t>(options.most));
  const int64_t wanted = options.count.value_or(1);
  int64_t to_skip = std::abs(options.rank) - 1;
  std::vector<size_t> places;
  for (size_t i = 0; i < most; ++i) {
    const size_t at = options.rank > 0 ? i : values.size() - 1 - i;
    if (values[at] != call.arg(2) || to_skip-- > 0) continue;
    places.push_back(at);
    if (wanted != 0 && static_cast<int64_t>(places.size()) == wanted) break;
  }
  if (!options.count.has_value()) {
    places.empty() ? call.reply.Null() : call.reply.Integer(static_cast<int64_t>(places[0]));
    co_return;
  }
  call.reply.Array(places.size());
  for (const size_t place : places) call.reply.Integer(static_cast<int64_t>(place));
}

constexpr Command kListCommands[] = {
    {"lpush", &Push, -3, kWrites | kFast, 1, 1, 1},
    {"rpush", &Push, -3, kWrites | kFast, 1, 1, 1},
    {"lpushx", &Push, -3, kWrites | kFast, 1, 1, 1},
    {"rpushx", &Push, -3, kWrites | kFast, 1, 1, 1},
    {"llen", &LLen, 2, kReads | kFast | kMetaRowsOnly, 1, 1, 1},
    {"lrange", &LRange, 4, kReads, 1, 1, 1},
    {"lindex", &LIndex, 3, kReads, 1, 1, 1},
    {"lset", &LSet, 4, kWrites, 1, 1, 1},
    {"linsert", &LInsert, 5, kWrites, 1, 1, 1},
    {"lrem", &LRem, 4, kWrites, 1, 1, 1},
    {"ltrim", &LTrim, 4, kWrites, 1, 1, 1},
    {"lpos", &LPos, -3, kReads, 1, 1, 1},
};

}  // namespace

std::span<const Command> ListCommands() { return kListCommands; }

}  // namespace nacre::server
