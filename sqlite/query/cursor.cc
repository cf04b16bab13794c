#include "sqlite/query/cursor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "sqlite/row/key_encoding.h"

namespace nacre::sqlite {
namespace {

/// Rows that are asked for together on the way through an index.
constexpr size_t kFetchMax = 64;

}  // namespace

void Cursor::Close() {
  iterator_.Close();
  single_.Reset();
  for (PinnableSlice& row : fetched_rows_) row.Reset();
  for (PinnableSlice& entry : fetched_entries_) entry.Reset();
  fetched_count_ = 0;
  view_ = ReadView();
  at_end_ = true;
  if (pinned_) table_->transaction()->Unpin();
  pinned_ = false;
}

int Cursor::ReadPlan(const char* plan, sqlite3_value** arguments) {
  const char* const scan = std::strchr(plan, '|') + 1;
  backwards_ = scan[Plan::kDirection] == 'b';
  covering_ = scan[Plan::kCovering] == 'c';
  unread_ = 0;
  waits_ = false;
  fetch_next_ = 1;
  size_t used;
  const KeySpace& keys = table_->schema().key_space(index_);
  const int code = ranges_.Reset(keys, plan, backwards_, arguments, &used);
  if (code == SQLITE_OK && scan[Plan::kLimit] != '-') ReadLimit(scan, arguments + used);
  if (ranges_.only_keys() && !ranges_.one_key()) covering_ = false;  // Rows are fetched.
  fetches_ = index_ != 0 ? !covering_ : ranges_.only_keys();
  return code;
}

void Cursor::ReadLimit(const char* scan, sqlite3_value** arguments) {
  int64_t wanted = sqlite3_value_int64(arguments[0]);
  if (wanted < 0) wanted = static_cast<int64_t>(kFetchMax);  // There is none.
  if (scan[Plan::kOffset] != '-') {
    const int64_t offset = std::max<int64_t>(sqlite3_value_int64(arguments[1]), 0);
    if (scan[Plan::kOffset] == 'O' && !ranges_.only_keys()) {
      unread_ = offset;
    } else {
      wanted += std::min<int64_t>(offset, kFetchMax);
    }
  }
  fetch_next_ = static_cast<size_t>(std::clamp<int64_t>(wanted, 1, kFetchMax));
}

int Cursor::Filter(int index, const char* plan, sqlite3_value** arguments) {
  Session* const session = table_->session();
  Transaction* const transaction = table_->transaction();
  if (sqlite3_get_autocommit(session->connection()) == 0) {
    const int code = session->Join();
    if (code != SQLITE_OK) return code;
    transaction->Begin();
  }
  if (!pinned_) transaction->Pin();
  pinned_ = true;
  int code = table_->Check();
  if (code != SQLITE_OK) return code;
  if (view_.state != transaction->view().state || view_.overlay != transaction->view().overlay) {
    view_ = transaction->view();
  }
  index_ = index;
  at_end_ = false;
  fetched_count_ = 0;
  fetched_at_ = 0;
  code = ReadPlan(plan, arguments);
  if (code != SQLITE_OK) return code;
  if (ranges_.empty()) {
    at_end_ = true;
    return SQLITE_OK;
  }
  if (ranges_.one_key()) return ReadOneRow();
  if (ranges_.only_keys()) return FetchRows();
  if (ranges_.Next()) iterator_.Open(view_, ranges_.begin(), ranges_.end(), backwards_);
  if (!fetches_) return ReadFromIterator();
  return unread_ > 0 ? WaitAtEntry() : FetchRows();
}

int Cursor::ReadOneRow() {
  const Schema& schema = table_->schema();
  Transaction* const transaction = table_->transaction();
  std::string& key = ranges_.begin();
  Status status = transaction->Get(view_, key, &single_);
  if (status.ok() && index_ != 0) {
    if (covering_) {
      entry_key_ = WithoutSpace(key);
      entry_value_ = single_;
      return SQLITE_OK;
    }
    key.clear();
    AppendSpace(schema.primary.space, &key);
    key.append(single_.data(), single_.size());
    status = transaction->Get(view_, key, &single_);
  }
  if (status.IsNotFound()) {
    at_end_ = true;
    return SQLITE_OK;
  }
  if (!status.ok()) return Fail(status);
  ShowRow(WithoutSpace(key), single_);
  return SQLITE_OK;
}

bool Cursor::SkipEmptyRanges() {
  while (!iterator_.Valid()) {
    if (!iterator_.status().ok() || !ranges_.Next()) return false;
    iterator_.Open(view_, ranges_.begin(), ranges_.end(), backwards_);
  }
  return true;
}

int Cursor::ReadFromIterator() {
  if (!SkipEmptyRanges()) {
    at_end_ = true;
    return Fail(iterator_.status());
  }
  const Slice key = iterator_.key();
  if (index_ == 0) {
    ShowRow(key, iterator_.value());
  } else {
    entry_key_ = key;
    entry_value_ = iterator_.value();
  }
  return SQLITE_OK;
}

Status Cursor::GatherFromIterator() {
  const Schema& schema = table_->schema();
  const KeySpace& keys = schema.key_space(index_);
  for (; fetched_count_ < fetch_next_ && SkipEmptyRanges(); iterator_.Next()) {
    Slice primary_key;
    NACRE_RETURN_IF_ERROR(PrimaryKeyOf(keys, iterator_.key(), iterator_.value(), &primary_key));
    std::string& key = fetched_keys_[fetched_count_++];
    key.clear();
    AppendSpace(schema.primary.space, &key);
    key.append(primary_key.data(), primary_key.size());
  }
  return iterator_.status();
}

Status Cursor::GatherUniqueKeys() {
  while (fetched_count_ == 0) {
    size_t count = 0;
    while (count < fetch_next_ && ranges_.Next()) fetched_keys_[count++] = ranges_.begin();
    if (index_ == 0) fetched_count_ = count;
    if (index_ == 0 || count == 0) return Status::OK();
    if (fetched_entries_.size() < count) fetched_entries_.resize(count);
    NACRE_RETURN_IF_ERROR(GetMany(count, fetched_keys_, &fetched_entries_));
    for (size_t i = 0; i < count; ++i) {
      if (!fetched_statuses_[i].ok()) continue;
      std::string& key = fetched_keys_[fetched_count_++];
      key.clear();
      AppendSpace(table_->schema().primary.space, &key);
      key.append(fetched_entries_[i].data(), fetched_entries_[i].size());
    }
  }
  return Status::OK();
}

Status Cursor::GatherKeys() {
  if (fetched_keys_.size() < fetch_next_) {
    fetched_keys_.resize(fetch_next_);
    fetched_rows_.resize(fetch_next_);
  }
  fetched_count_ = 0;
  fetched_at_ = 0;
  const Status status = ranges_.only_keys() ? GatherUniqueKeys() : GatherFromIterator();
  fetch_next_ = std::min(kFetchMax, 2 * fetch_next_);
  return status;
}

int Cursor::WaitAtEntry() {
  --unread_;
  waits_ = SkipEmptyRanges();
  at_end_ = !waits_;
  return Fail(iterator_.status());
}

int Cursor::EnsureRow() {
  waits_ = false;
  unread_ = 0;
  const int code = FetchRows();
  if (code != SQLITE_OK || !at_end_) return code;
  return Fail(Status::Aborted("the row was removed"));
}

int Cursor::FetchRows() {
  while (true) {
    Status status = GatherKeys();
    if (status.ok() && fetched_count_ == 0) {
      at_end_ = true;
      return SQLITE_OK;
    }
    if (status.ok()) status = GetMany(fetched_count_, fetched_keys_, &fetched_rows_);
    if (!status.ok()) return Fail(status);
    if (ShowFetched()) return SQLITE_OK;
  }
}

Status Cursor::GetMany(size_t count, const std::vector<std::string>& keys,
                       std::vector<PinnableSlice>* values) {
  fetched_statuses_.assign(count, Status::OK());
  std::vector<size_t> stored;  // Not among the own writes.
  stored.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    if (!view_.GetOwn(keys[i], &(*values)[i], &fetched_statuses_[i])) stored.push_back(i);
  }
  if (stored.size() == 1) {
    const size_t place = stored[0];
    fetched_statuses_[place] = table_->transaction()->Get(view_, keys[place], &(*values)[place]);
  } else if (!stored.empty()) {
    GetManyStored(stored, keys, values);
  }
  for (const Status& status : fetched_statuses_) {
    if (!status.ok() && !status.IsNotFound()) return status;
  }
  return Status::OK();
}

void Cursor::GetManyStored(const std::vector<size_t>& places, const std::vector<std::string>& keys,
                           std::vector<PinnableSlice>* values) {
  std::vector<Slice> wanted;
  wanted.reserve(places.size());
  for (const size_t place : places) wanted.emplace_back(keys[place]);
  std::vector<PinnableSlice> found(places.size());
  std::vector<Status> statuses(places.size());
  view_.MultiGetStored(SpaceOf(keys[places[0]]), wanted, found.data(), statuses.data());
  for (size_t i = 0; i < places.size(); ++i) {
    (*values)[places[i]] = std::move(found[i]);
    fetched_statuses_[places[i]] = std::move(statuses[i]);
  }
}

bool Cursor::ShowFetched() {
  // There may be none, or it was removed since its entry was read, by the same connection.
  while (fetched_at_ < fetched_count_ && !fetched_statuses_[fetched_at_].ok()) ++fetched_at_;
  if (fetched_at_ == fetched_count_) return false;
  ShowRow(WithoutSpace(fetched_keys_[fetched_at_]), fetched_rows_[fetched_at_]);
  return true;
}

void Cursor::ShowRow(const Slice& primary_key, const Slice& row) {
  row_.Reset(&table_->schema(), primary_key, row);
}

int Cursor::Next() {
  if (ranges_.one_key()) {
    at_end_ = true;
    return SQLITE_OK;
  }
  if (!fetches_) {
    iterator_.Next();
    return ReadFromIterator();
  }
  if (waits_) {
    iterator_.Next();
    if (unread_ > 0) return WaitAtEntry();
    waits_ = false;
    return FetchRows();
  }
  ++fetched_at_;
  return ShowFetched() ? SQLITE_OK : FetchRows();
}

Status Cursor::CurrentPrimaryKey(Slice* primary_key) const {
  if (index_ != 0 && covering_) {
    return PrimaryKeyOf(table_->schema().key_space(index_), entry_key_, entry_value_, primary_key);
  }
  *primary_key = row_.primary_key();
  return Status::OK();
}

Status Cursor::ReadEntry(int column, Value* value) {
  const Schema& schema = table_->schema();
  const KeySpace& keys = schema.key_space(index_);
  for (size_t place = 0; place < keys.parts.size(); ++place) {
    if (keys.parts[place].column != column || !keys.parts[place].exact) continue;
    return ReadKeyPart(keys.parts, static_cast<int>(place), entry_key_, &scratch_, value);
  }
  Slice key;
  NACRE_RETURN_IF_ERROR(CurrentPrimaryKey(&key));
  const int place = column == kRowNumber ? 0 : schema.key_place[static_cast<size_t>(column)];
  return ReadKeyPart(schema.primary.parts, place, key, &scratch_, value);
}

int Cursor::Column(sqlite3_context* context, int column) {
  // An UPDATE that leaves the column as it is: Table::UpdateRow takes it from the row.
  if (sqlite3_vtab_nochange(context) != 0) return SQLITE_OK;
  if (waits_) {
    const int code = EnsureRow();
    if (code != SQLITE_OK) return code;
  }
  if ((index_ != 0 && covering_) || column == table_->schema().column_count()) {
    return EntryColumn(context, column);
  }
  Value value;
  if (!row_.TryRead(column, &value)) return Fail(row_.Malformed());
  SetResult(context, value);
  return SQLITE_OK;
}

int Cursor::EntryColumn(sqlite3_context* context, int column) {
  Value value;
  if (column == table_->schema().column_count()) {
    Slice primary_key;
    const Status status = CurrentPrimaryKey(&primary_key);
    if (!status.ok()) return Fail(status);
    value = Value::Blob(primary_key);
  } else if (const Status status = ReadEntry(column, &value); !status.ok()) {
    return Fail(status);
  }
  SetResult(context, value);
  return SQLITE_OK;
}

int Cursor::Rowid(sqlite3_int64* rowid) {
  if (waits_) {
    const int code = EnsureRow();
    if (code != SQLITE_OK) return code;
  }
  Value value;
  const Status status =
      index_ != 0 && covering_ ? ReadEntry(kRowNumber, &value) : row_.Read(kRowNumber, &value);
  *rowid = value.integer;
  return Fail(status);
}

}  // namespace nacre::sqlite
