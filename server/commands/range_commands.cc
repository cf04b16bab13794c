#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nacre/iterator.h"
#include "server/commands/command_lists.h"
#include "server/commands/scan_arguments.h"
#include "server/resp/numbers.h"
#include "server/session/server_state.h"
#include "server/store/unix_time.h"

// What Redis does not have: ordered ranges over the keys of a database, and snapshots to read.

namespace nacre::server {
namespace {

constexpr const char* kNoSuchSnapshot = "ERR no such snapshot";
/// What a worker does before it takes another task.
constexpr size_t kRangeRowsAtOnce = 1024;
constexpr size_t kRangeBytesAtOnce = size_t{1} << 20;
/// A larger answer takes several commands.
constexpr size_t kRangeBytesMax = size_t{512} << 20;

/// What is left to look at of a range of meta rows.
struct KeyRange {
  std::string from;
  std::string to;  ///< It is not one of them.
  bool reverse = false;
  bool with_values = false;
  size_t limit = SIZE_MAX;  ///< Keys.
  std::optional<uint64_t> snapshot;
};

struct ListedKey {
  std::string key;
  std::optional<std::string> value;  ///< Strings only, if values are asked for.
};

/// What was found, in the order of the range.
struct Listing {
  std::vector<ListedKey> keys;
  size_t bytes = 0;
  bool done = false;
};

// ---- Arguments ----------------------------------------------------------------------------------

/// Takes the number of a snapshot. Answers an error and false if it is none.
bool SnapshotArgument(Call& call, size_t at, uint64_t* id) {
  int64_t value = 0;
  if (!IntegerArgument(call, at, &value)) return false;
  *id = static_cast<uint64_t>(value);
  return true;
}

bool ParseRange(Call& call, KeyRange* range) {
  for (size_t i = 3; i < call.argc(); ++i) {
    const std::string word = UpperCase(call.arg(i));
    if (word == "REV") {
      range->reverse = true;
    } else if (word == "WITHVALUES") {
      range->with_values = true;
    } else if (word == "LIMIT" && i + 1 < call.argc()) {
      int64_t limit = 0;
      if (!IntegerArgument(call, ++i, &limit)) return false;
      range->limit = limit < 0 ? SIZE_MAX : static_cast<size_t>(limit);
    } else if (word == "SNAPSHOT" && i + 1 < call.argc()) {
      uint64_t id = 0;
      if (!SnapshotArgument(call, ++i, &id)) return false;
      range->snapshot = id;
    } else {
      call.reply.Error(kSyntaxError);
      return false;
    }
  }
  // As in ZRANGE, REV has the higher end first.
  const size_t low = range->reverse ? 2 : 1;
  if (ParseLexBound(call.arg(low), kMetaRow, /*upper=*/false, &range->from) &&
      ParseLexBound(call.arg(3 - low), kMetaRow, /*upper=*/true, &range->to)) {
    return true;
  }
  call.reply.Error("ERR min or max not valid string range item");
  return false;
}

// ---- NRANGE -------------------------------------------------------------------------------------

/// Adds the key of a row unless it had expired by `now_ms`.
Status ListRow(const KeyRange& range, Slice row, Slice bytes, uint64_t now_ms, Listing* listing) {
  ListedKey listed;
  listed.key = row.ToString().substr(1);
  uint64_t expires_at_ms = 0;
  Slice value;
  if (DecodeStringMeta(bytes, &expires_at_ms, &value)) {
    if (range.with_values) listed.value = value.ToString();
  } else {
    Meta meta;
    if (!DecodeMeta(bytes.ToString(), &meta)) {
      return Status::Corruption("the meta row of key '" + listed.key + "' is malformed");
    }
    expires_at_ms = meta.expires_at_ms;
  }
  if (expires_at_ms != 0 && expires_at_ms <= now_ms) return Status::OK();
  listing->bytes += listed.key.size() + (listed.value.has_value() ? listed.value->size() : 0);
  listing->keys.push_back(std::move(listed));
  return Status::OK();
}

/// The rows up to this one are listed.
void GoBehind(Slice row, KeyRange* range) {
  if (range->reverse) {
    range->to = row.ToString();
  } else {
    range->from = row.ToString() + '\0';
  }
}

/// Lists some of the range as of a snapshot, on a worker, and takes that away from it.
Status ListSome(DB* db, ColumnFamilyHandle* family, const SnapshotView& view, KeyRange* range,
                Listing* listing) {
  const std::string first = range->from;
  const std::string behind = range->to;
  const Slice from(first);
  const Slice to(behind);
  ReadOptions options;
  options.snapshot = view.snapshot();
  options.iterate_lower_bound = &from;
  options.iterate_upper_bound = &to;
  const std::unique_ptr<Iterator> iterator = db->NewIterator(options, family);
  range->reverse ? iterator->SeekToLast() : iterator->Seek(from);
  const size_t bytes_max = listing->bytes + kRangeBytesAtOnce;
  for (size_t rows = 0; iterator->Valid(); ++rows) {
    if (listing->keys.size() == range->limit) {
      listing->done = true;
      return Status::OK();
    }
    if (rows == kRangeRowsAtOnce || listing->bytes >= bytes_max) return Status::OK();
    NACRE_RETURN_IF_ERROR(
        ListRow(*range, iterator->key(), iterator->value(), view.made_at_ms(), listing));
    GoBehind(iterator->key(), range);
    range->reverse ? iterator->Prev() : iterator->Next();
  }
  listing->done = true;
  return iterator->status();
}

/// Lists some of the range as a transaction sees it that has changed something.
Task<void> ListSomeInside(Call& call, KeyRange* range, Listing* listing) {
  const size_t limit = std::min(kRangeRowsAtOnce, range->limit - listing->keys.size());
  const std::vector<Row> rows = co_await call.unit->Scan(
      call.database, RowRange(range->from, range->to, limit, range->reverse));
  for (const Row& row : rows) {
    const Status listed = ListRow(*range, row.key, row.value, call.unit->now_ms(), listing);
    if (!listed.ok()) call.unit->Fail(listed);
    GoBehind(row.key, range);
  }
  listing->done = rows.size() < limit || listing->keys.size() == range->limit;
}

void AnswerListing(Call& call, const KeyRange& range, const Listing& listing) {
  const bool pairs = range.with_values && call.reply.protocol() > 2;
  call.reply.Array(listing.keys.size() * (range.with_values && !pairs ? 2 : 1));
  for (const ListedKey& listed : listing.keys) {
    if (pairs) call.reply.Array(2);
    call.reply.Bulk(listed.key);
    if (!range.with_values) continue;
    listed.value.has_value() ? call.reply.Bulk(*listed.value) : call.reply.Null();
  }
}

Task<void> NRange(Call& call) {
  KeyRange range;
  if (!ParseRange(call, &range)) co_return;
  std::shared_ptr<const SnapshotView> view;
  if (range.snapshot.has_value()) {
    view = call.server->snapshots.Find(*range.snapshot);
    if (view == nullptr) {
      call.reply.Error(kNoSuchSnapshot);
      co_return;
    }
  } else if (!call.unit->changed()) {
    // All of it as of one moment, whatever is written meanwhile.
    view = std::make_shared<SnapshotView>(call.access->store->db(), UnixMillis());
  }
  Listing listing;
  listing.done = range.limit == 0 || range.from >= range.to;
  while (!listing.done && call.unit->status().ok()) {
    if (view == nullptr) {
      co_await ListSomeInside(call, &range, &listing);
    } else {
      Store* const store = call.access->store;
      Status status;
      Offload offload(&call.loop->loop, call.loop->access.workers, [&] {
        status = ListSome(store->db(), store->Find(call.database)->family, *view, &range, &listing);
      });
      co_await offload;
      if (!status.ok()) call.unit->Fail(std::move(status));
    }
    if (listing.bytes > kRangeBytesMax) {
      call.reply.Error("ERR the range has more than " + std::to_string(kRangeBytesMax) +
                       " bytes, use LIMIT");
      co_return;
    }
  }
  AnswerListing(call, range, listing);
}

// ---- NGET ---------------------------------------------------------------------------------------

Task<void> NGet(Call& call) {
  if (!SameWord(call.arg(2), "SNAPSHOT")) {
    call.reply.Error(kSyntaxError);
    co_return;
  }
  uint64_t id = 0;
  if (!SnapshotArgument(call, 3, &id)) co_return;
  const std::shared_ptr<const SnapshotView> view = call.server->snapshots.Find(id);
  if (view == nullptr) {
    call.reply.Error(kNoSuchSnapshot);
    co_return;
  }
  const std::string row = call.unit->names().Meta(call.arg(1));
  ReadOptions options;
  options.snapshot = view->snapshot();
  PinnableSlice bytes;
  AsyncStatus reading = call.access->async->GetAsync(
      options, call.access->store->Find(call.database)->family, row, &bytes);
  const Status got = co_await reading;
  uint64_t expires_at_ms = 0;
  Slice value;
  Meta meta;
  if (got.IsNotFound()) {
    call.reply.Null();
  } else if (!got.ok()) {
    call.unit->Fail(got);
  } else if (DecodeStringMeta(bytes, &expires_at_ms, &value)) {
    const bool expired = expires_at_ms != 0 && expires_at_ms <= view->made_at_ms();
    expired ? call.reply.Null() : call.reply.Bulk(value.ToStringView());
  } else if (!DecodeMeta(bytes.ToString(), &meta)) {
    call.unit->Fail(
        Status::Corruption("the meta row of key '" + std::string(call.arg(1)) + "' is malformed"));
  } else if (meta.ExpiredAt(view->made_at_ms())) {
    call.reply.Null();
  } else {
    call.reply.Error(kWrongType);
  }
}

// ---- NSNAPSHOT ----------------------------------------------------------------------------------

void CreateSnapshot(Call& call) {
  // Nothing would give it up.
  if (call.client->ended) {
    call.reply.Error("ERR the connection has ended");
    return;
  }
  auto view = std::make_shared<SnapshotView>(call.access->store->db(), UnixMillis());
  const uint64_t id = call.server->snapshots.Add(std::move(view), call.client->id,
                                                 call.loop->loop.clock()->NowNanos());
  if (id == 0) {
    call.reply.Error("ERR max number of snapshots reached");
  } else {
    call.reply.Integer(static_cast<int64_t>(id));
  }
}

void ListSnapshots(Call& call) {
  const uint64_t now = call.loop->loop.clock()->NowNanos();
  const std::vector<SnapshotTable::Entry> entries = call.server->snapshots.List();
  call.reply.Array(entries.size());
  for (const SnapshotTable::Entry& entry : entries) {
    const uint64_t age_ns = now > entry.made_at_ns ? now - entry.made_at_ns : 0;
    call.reply.Map(3);
    call.reply.Bulk("id");
    call.reply.Integer(static_cast<int64_t>(entry.id));
    call.reply.Bulk("client");
    call.reply.Integer(static_cast<int64_t>(entry.client));
    call.reply.Bulk("age");
    call.reply.Integer(static_cast<int64_t>(age_ns / 1'000'000'000));
  }
}

Task<void> NSnapshot(Call& call) {
  const std::string word = UpperCase(call.arg(1));
  if (word == "CREATE" && call.argc() == 2) {
    CreateSnapshot(call);
  } else if (word == "LIST" && call.argc() == 2) {
    ListSnapshots(call);
  } else if (word == "RELEASE" && call.argc() == 3) {
    uint64_t id = 0;
    if (!SnapshotArgument(call, 2, &id)) co_return;
    if (call.server->snapshots.Remove(id)) {
      call.reply.Ok();
    } else {
      call.reply.Error(kNoSuchSnapshot);
    }
  } else if (word == "CREATE" || word == "LIST" || word == "RELEASE") {
    call.reply.Error("ERR wrong number of arguments for 'nsnapshot|" + LowerCase(word) +
                     "' command");
  } else {
    UnknownSubcommand(call);
  }
}

constexpr Command kRangeCommands[] = {
    {"nrange", &NRange, -3, kReads | kWholeKeySpace | kNotInCluster},
    {"nget", &NGet, 4, kReads | kFast | kNotInCluster, 1, 1, 1},
    WithSubcommands({"nsnapshot", &NSnapshot, -2, kNoMulti | kNotInCluster}, "create list release"),
};

}  // namespace

std::span<const Command> RangeCommands() { return kRangeCommands; }

}  // namespace nacre::server
