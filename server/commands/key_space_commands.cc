#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "server/commands/command_lists.h"
#include "server/commands/scan_arguments.h"
#include "server/resp/numbers.h"
#include "server/session/server_state.h"

// Commands on all keys of a database.

namespace nacre::server {
namespace {

constexpr size_t kRowsAtOnce = 4096;
/// A random key is one of so many that follow a random place.
constexpr size_t kRandomWindow = 128;

std::string FirstMetaRow() { return std::string(1, kMetaRow); }
std::string BehindMetaRows() { return std::string(1, kMetaRow + 1); }

/// Decodes a meta row that has not expired; false for others, and notes malformed ones.
bool TakeMetaRow(Call& call, const Row& row, std::string_view* key, Meta* meta) {
  *key = std::string_view(row.key).substr(1);
  if (!DecodeMeta(row.value, meta)) {
    call.unit->Fail(
        Status::Corruption("the meta row of key '" + std::string(*key) + "' is malformed"));
    return false;
  }
  return !meta->ExpiredAt(call.unit->now_ms());
}

/// Calls `use` with each key of the database, in order.
Task<void> ForEachKey(Call& call, int database,
                      std::function<void(std::string_view key, const Meta& meta)> use) {
  std::string from = FirstMetaRow();
  while (true) {
    const std::vector<Row> rows =
        co_await call.unit->Scan(database, RowRange(from, BehindMetaRows(), kRowsAtOnce));
    for (const Row& row : rows) {
      std::string_view key;
      Meta meta;
      if (TakeMetaRow(call, row, &key, &meta)) use(key, meta);
    }
    if (rows.size() < kRowsAtOnce) co_return;
    from = rows.back().key + '\0';
  }
}

Task<void> Keys(Call& call) {
  std::vector<std::string> found;
  const std::string_view pattern = call.arg(1);
  co_await ForEachKey(call, call.database, [&](std::string_view key, const Meta& /*meta*/) {
    if (MatchesGlob(pattern, key)) found.emplace_back(key);
  });
  call.reply.Array(found.size());
  for (const std::string& key : found) call.reply.Bulk(key);
}

Task<void> DbSize(Call& call) {
  int64_t count = 0;
  co_await ForEachKey(call, call.database,
                      [&](std::string_view /*key*/, const Meta& /*meta*/) { ++count; });
  call.reply.Integer(count);
}

Task<void> RandomKey(Call& call) {
  Random& random = call.loop->random;
  std::string from = FirstMetaRow();
  for (int i = 0; i < 8; ++i) from.push_back(static_cast<char>(random.Uniform(256)));
  std::vector<std::string> keys;
  // The second round begins where there are keys for sure.
  for (const std::string& begin : {from, FirstMetaRow()}) {
    const std::vector<Row> rows =
        co_await call.unit->Scan(call.database, RowRange(begin, BehindMetaRows(), kRandomWindow));
    for (const Row& row : rows) {
      std::string_view key;
      Meta meta;
      if (keys.size() < kRandomWindow && TakeMetaRow(call, row, &key, &meta))
        keys.emplace_back(key);
    }
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  keys.empty() ? call.reply.Null() : call.reply.Bulk(keys[random.Uniform(keys.size())]);
}

Task<void> Scan(Call& call) {
  ScanArguments scan;
  if (!ParseScanArguments(call, 1, &scan)) co_return;
  const std::string from = scan.place.empty() ? FirstMetaRow() : scan.place;
  const std::vector<Row> rows =
      co_await call.unit->Scan(call.database, RowRange(from, BehindMetaRows(), scan.count));
  std::vector<std::string_view> keys;
  for (const Row& row : rows) {
    std::string_view key;
    Meta meta;
    if (TakeMetaRow(call, row, &key, &meta) && scan.Matches(key) &&
        (scan.type.empty() || SameWord(scan.type, TypeName(meta.type)))) {
      keys.push_back(key);
    }
  }
  AnswerCursor(call, rows, scan);
  call.reply.Array(keys.size());
  for (const std::string_view key : keys) call.reply.Bulk(key);
}

/// Whether FLUSHDB and FLUSHALL were told nothing else than how.
bool TakesFlushArgument(Call& call) {
  if (call.argc() == 1) return true;
  if (call.argc() == 2 && (SameWord(call.arg(1), "SYNC") || SameWord(call.arg(1), "ASYNC"))) {
    return true;
  }
  call.reply.Error(kSyntaxError);
  return false;
}

Task<void> FlushDb(Call& call) {
  if (TakesFlushArgument(call)) {
    call.unit->Clear(call.database);
    call.reply.Ok();
  }
  co_return;
}

Task<void> FlushAll(Call& call) {
  if (TakesFlushArgument(call)) {
    for (int i = 0; i < call.server->store->databases(); ++i) {
      if (call.server->store->Find(i) != nullptr) call.unit->Clear(i);
    }
    call.reply.Ok();
  }
  co_return;
}

constexpr Command kKeySpaceCommands[] = {
    {"keys", &Keys, 2, kReads | kWholeKeySpace},
    {"dbsize", &DbSize, 1, kReads | kWholeKeySpace},
    {"randomkey", &RandomKey, 1, kReads | kWholeKeySpace},
    {"scan", &Scan, -2, kReads | kWholeKeySpace},
    {"flushdb", &FlushDb, -1, kWrites | kAllLocks},
    {"flushall", &FlushAll, -1, kWrites | kAllLocks},
};

}  // namespace

std::span<const Command> KeySpaceCommands() { return kKeySpaceCommands; }

}  // namespace nacre::server
