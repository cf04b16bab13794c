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

/// Decodes a meta row that has not expired; false for others, and notes malformed ones.
bool TakeMetaRow(UnitOfWork* unit, const Row& row, std::string_view* key, Meta* meta) {
  *key = unit->names().KeyOfMeta(row.key);
  if (!DecodeMeta(row.value, meta)) {
    unit->Fail(Status::Corruption("the meta row of key '" + std::string(*key) + "' is malformed"));
    return false;
  }
  return !meta->ExpiredAt(unit->now_ms());
}

/// Calls `use` with each key of the database, in order.
Task<void> ForEachKey(Call& call, int database,
                      std::function<void(std::string_view key, const Meta& meta)> use) {
  for (UnitOfWork* const unit : call.units) {
    std::string from;
    while (true) {
      const std::vector<Row> rows = co_await unit->ScanKeys(database, from, kRowsAtOnce);
      for (const Row& row : rows) {
        std::string_view key;
        Meta meta;
        if (TakeMetaRow(unit, row, &key, &meta)) use(key, meta);
      }
      if (rows.size() < kRowsAtOnce) break;
      from = rows.back().key + '\0';
    }
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

/// Keys that follow a place, of which the empty one comes before all.
Task<void> AddKeysBehind(UnitOfWork* unit, int database, std::string place,
                         std::vector<std::string>* keys) {
  const std::vector<Row> rows = co_await unit->ScanKeys(database, std::move(place), kRandomWindow);
  for (const Row& row : rows) {
    std::string_view key;
    Meta meta;
    if (keys->size() < kRandomWindow && TakeMetaRow(unit, row, &key, &meta)) {
      keys->emplace_back(key);
    }
  }
}

Task<void> RandomKey(Call& call) {
  Random& random = call.loop->random;
  std::vector<std::string> keys;
  const size_t count = call.units.size();
  const size_t first = count == 0 ? 0 : random.Uniform(count);
  for (size_t i = 0; i < count && keys.empty(); ++i) {
    UnitOfWork* const unit = call.units[(first + i) % count];
    const SlotRange& sections = unit->access().store->sections();
    const auto section = sections.first + static_cast<uint32_t>(random.Uniform(sections.size()));
    std::string place = unit->names().Kind(section, kMetaRow);
    for (int byte = 0; byte < 8; ++byte) place.push_back(static_cast<char>(random.Uniform(256)));
    co_await AddKeysBehind(unit, call.database, std::move(place), &keys);
    // This begins where there are keys for sure.
    co_await AddKeysBehind(unit, call.database, {}, &keys);
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  keys.empty() ? call.reply.Null() : call.reply.Bulk(keys[random.Uniform(keys.size())]);
}

Task<void> Scan(Call& call) {
  ScanArguments scan;
  if (!ParseScanArguments(call, 1, &scan)) co_return;
  std::vector<Row> rows;
  std::vector<std::string> keys;
  for (UnitOfWork* const unit : call.units) {
    if (rows.size() == scan.count) break;
    // Another server may have what is in between by now.
    const SlotRange& sections = unit->access().store->sections();
    if (!scan.place.empty() && unit->names().SectionOfRow(scan.place) >= sections.behind) continue;
    std::vector<Row> some =
        co_await unit->ScanKeys(call.database, scan.place, scan.count - rows.size());
    for (Row& row : some) {
      std::string_view key;
      Meta meta;
      if (TakeMetaRow(unit, row, &key, &meta) && scan.Matches(key) &&
          (scan.type.empty() || SameWord(scan.type, TypeName(meta.type)))) {
        keys.emplace_back(key);
      }
      rows.push_back(std::move(row));
    }
  }
  AnswerCursor(call, rows, scan);
  call.reply.Array(keys.size());
  for (const std::string& key : keys) call.reply.Bulk(key);
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
    for (UnitOfWork* const unit : call.units) unit->Clear(call.database);
    call.reply.Ok();
  }
  co_return;
}

Task<void> FlushAll(Call& call) {
  if (TakesFlushArgument(call)) {
    for (UnitOfWork* const unit : call.units) {
      const Store& store = *unit->access().store;
      for (int i = 0; i < store.databases(); ++i) {
        if (store.Find(i) != nullptr) unit->Clear(i);
      }
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
