#include "server/commands/collection.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "server/commands/scan_arguments.h"
#include "server/session/server_state.h"
#include "util/random.h"

namespace nacre::server {

Task<bool> Collection::Find() {
  std::optional<Meta> meta = co_await call_->unit->Find(database_, key_);
  if (meta.has_value() && meta->type != type_) {
    call_->reply.Error(kWrongType);
    co_return false;
  }
  Adopt(meta);
  co_return true;
}

Task<bool> Collection::FindToTake() {
  // What waits for longer comes first to another key.
  if (call_->turn != nullptr && key_ != *call_->turn &&
      call_->server->watches.ComesFirst({database_, std::string(key_)}, call_->place)) {
    co_return true;
  }
  const std::optional<Meta> meta = co_await call_->unit->Find(database_, key_);
  const bool typed = !meta.has_value() || meta->type == type_;
  if (!typed && call_->turn == nullptr) call_->reply.Error(kWrongType);
  if (typed) Adopt(meta);
  co_return typed || call_->turn != nullptr;
}

void Collection::Adopt(const std::optional<Meta>& meta) {
  there_ = meta.has_value();
  if (!there_) return;
  meta_ = *meta;
  prefix_ = call_->unit->names().ElementPrefix(key_, meta_.incarnation);
}

Slice Collection::SubKey(const std::string& row) const {
  Slice sub_key(row);
  sub_key.remove_prefix(prefix_.size());
  return sub_key;
}

Task<std::optional<std::string>> Collection::Get(const std::string& sub_key) {
  if (!there_ && !made_) co_return std::nullopt;
  co_return co_await call_->unit->Get(database_, Row(sub_key));
}

Task<std::vector<std::optional<std::string>>> Collection::MultiGet(
    const std::vector<std::string>& sub_keys) {
  std::vector<std::optional<std::string>> found(sub_keys.size());
  if (!there_ && !made_) co_return found;
  std::vector<std::string> rows;
  rows.reserve(sub_keys.size());
  for (const std::string& sub_key : sub_keys) rows.push_back(Row(sub_key));
  co_return co_await call_->unit->MultiGet(database_, std::move(rows));
}

Task<std::vector<Row>> Collection::Scan(RowRange sub_keys) {
  if (!there_ && !made_) co_return std::vector<nacre::server::Row>();
  sub_keys.from = Row(sub_keys.from);
  sub_keys.to = Row(sub_keys.to);
  co_return co_await call_->unit->Scan(database_, std::move(sub_keys));
}

Task<std::vector<Row>> Collection::ScanFields() {
  return Scan(RowRange(std::string(1, kFieldPart), std::string(1, kFieldPart + 1)));
}

void Collection::Make() {
  if (there_ || made_) return;
  made_ = true;
  meta_ = call_->unit->NewCollection(database_, type_);
  prefix_ = call_->unit->names().ElementPrefix(key_, meta_.incarnation);
}

void Collection::Put(const std::string& sub_key, std::string value) {
  call_->unit->Put(database_, Row(sub_key), std::move(value));
}

void Collection::Delete(const std::string& sub_key) {
  call_->unit->Delete(database_, Row(sub_key));
}

void Collection::Save(uint64_t count) {
  meta_.count = count;
  call_->unit->Save(database_, key_, meta_);
}

void Collection::Remove() {
  if (there_) call_->unit->Remove(database_, key_, meta_);
  there_ = made_ = false;
  meta_ = Meta();
}

std::string_view FieldOf(const Collection& collection, const std::string& row) {
  return collection.SubKey(row).ToStringView().substr(1);
}

std::vector<size_t> RandomIndexes(Call& call, size_t size, size_t count, bool distinct) {
  Random& random = call.loop->random;
  std::vector<size_t> indexes;
  if (!distinct) {
    for (size_t i = 0; size > 0 && i < count; ++i) indexes.push_back(random.Uniform(size));
    return indexes;
  }
  indexes.resize(size);
  std::iota(indexes.begin(), indexes.end(), size_t{0});
  count = std::min(count, size);
  for (size_t i = 0; i < count; ++i) std::swap(indexes[i], indexes[i + random.Uniform(size - i)]);
  indexes.resize(count);
  return indexes;
}

bool RandomCountArgument(Call& call, size_t at, int64_t* count) {
  // The longest answer that is made.
  constexpr int64_t kCountMax = int64_t{1} << 24;
  if (!IntegerArgument(call, at, count)) return false;
  if (*count >= -kCountMax) return true;
  call.reply.Error("ERR value is out of range");
  return false;
}

Task<void> ScanCollection(Call& call, Type type, size_t elements_each,
                          void (*answer)(Call& call, std::string_view field,
                                         const std::string& value)) {
  ScanArguments scan;
  if (!ParseScanArguments(call, 2, &scan)) co_return;
  Collection collection(call, call.arg(1), type);
  const bool found = co_await collection.Find();
  if (!found) co_return;
  // A cursor of another incarnation, or of another key, goes on at its sub-key.
  const std::string from = std::max(scan.place, std::string(1, kFieldPart));
  std::vector<Row> rows =
      co_await collection.Scan(RowRange(from, std::string(1, kFieldPart + 1), scan.count));
  uint64_t cursor = 0;
  if (rows.size() == scan.count) {
    cursor = call.server->cursors.Add(collection.SubKey(rows.back().key).ToString() + '\0');
  }
  std::erase_if(rows, [&](const Row& row) { return !scan.Matches(FieldOf(collection, row.key)); });
  call.reply.Array(2);
  call.reply.Bulk(std::to_string(cursor));
  call.reply.Array(rows.size() * elements_each);
  for (const Row& row : rows) answer(call, FieldOf(collection, row.key), row.value);
}

}  // namespace nacre::server
