#include "sqlite/cursor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "sqlite/key_encoding.h"

namespace nacre::sqlite {
namespace {

/// Rows that are asked for together on the way through an index.
constexpr size_t kFetchMax = 64;

/// Whether `argument` can be looked for in the order of `part`, and as what.
///
/// SQLite converts both sides of a comparison by the types of columns on either side, but does not
/// tell a virtual table of the other side's. Against a column with a numeric type the outcome is
/// the same with all of them. Otherwise only constants, which have no type, are sure.
bool IsSearchable(sqlite3_value* argument, const KeyPart& part, bool constant, Value* value) {
  const int type = sqlite3_value_type(argument);
  if (part.affinity == Affinity::kText) {
    if (type != SQLITE_TEXT && type != SQLITE_BLOB && type != SQLITE_NULL && !constant) {
      return false;
    }
    *value = StoredValue(argument, Affinity::kText);
    return true;
  }
  if (part.affinity == Affinity::kBlob) {
    if (type != SQLITE_BLOB && type != SQLITE_NULL && !constant) return false;
    *value = StoredValue(argument, Affinity::kBlob);
    return true;
  }
  *value = StoredValue(argument, Affinity::kNumeric);
  return true;
}

}  // namespace

void Cursor::Close() {
  iterator_.Close();
  single_.Reset();
  for (PinnableSlice& row : fetched_rows_) row.Reset();
  fetched_count_ = 0;
  view_ = ReadView();
  at_end_ = true;
  if (pinned_) table_->transaction()->Unpin();
  pinned_ = false;
}

void Cursor::AddBound(char op, sqlite3_value* argument, const KeyPart& part, bool constant,
                      const std::string& prefix) {
  if (sqlite3_value_type(argument) == SQLITE_NULL) {
    bounds_.empty = true;
    return;
  }
  Value value;
  if (!IsSearchable(argument, part, constant, &value)) return;
  std::string key = prefix;
  AppendValue(value, part.collation, &key);
  switch (op) {
    case '>':
      bounds_.begin = PrefixEnd(key);
      return;
    case 'g':
      bounds_.begin = std::move(key);
      return;
    case '<':
      bounds_.end = std::move(key);
      break;
    default:
      bounds_.end = PrefixEnd(key);
  }
  if (part.affinity != Affinity::kText || constant) return;
  // If the other side is a numeric column, texts that look like numbers are less than all others.
  std::string numbers_end = prefix;
  AppendValue(Value::Text(":"), Collation::kBinary, &numbers_end);  // Follows on '9'.
  if (bounds_.end < numbers_end) bounds_.end = std::move(numbers_end);
}

const char* Cursor::AddEqualParts(const KeySpace& keys, const char* plan,
                                  sqlite3_value*** argument) {
  bool searchable = true;
  bool has_null = false;
  size_t place = 0;
  for (; *plan != '|'; ++plan, ++*argument) {
    if (!searchable) continue;
    const KeyPart& part = keys.parts[place];
    const bool constant = *plan == 'E' || *plan == 'I';
    const bool is = *plan == 'i' || *plan == 'I';
    Value value;
    searchable = IsSearchable(**argument, part, constant, &value);
    if (!searchable) continue;
    if (value.IsNull() && !is) bounds_.empty = true;
    has_null = has_null || value.IsNull();
    AppendValue(value, part.collation, &bounds_.begin);
    ++place;
  }
  bounds_.parts = place;
  bounds_.one_row = keys.unique && place == keys.parts.size() && !has_null;
  return searchable ? plan + 1 : nullptr;
}

void Cursor::MakeBounds(const char* plan, sqlite3_value** arguments) {
  const KeySpace& keys = table_->schema().key_space(index_);
  bounds_.begin.clear();
  bounds_.end.clear();
  bounds_.empty = false;
  AppendSpace(keys.space, &bounds_.begin);
  const char* const scan = std::strchr(plan, '|') + 1;
  backwards_ = scan[2] == 'b';
  covering_ = scan[3] == 'c';
  const bool constant = scan[4] == 'K';
  const bool searchable = AddEqualParts(keys, plan, &arguments) != nullptr;
  if (bounds_.one_row) return;
  const std::string prefix = bounds_.begin;
  bounds_.end = PrefixEnd(prefix);
  if (!searchable || (scan[0] == '-' && scan[1] == '-')) return;
  const KeyPart& part = keys.parts[bounds_.parts];
  AppendAfterNull(&bounds_.begin);  // NULL is in no range.
  if (scan[0] != '-') AddBound(scan[0], *arguments++, part, constant, prefix);
  if (scan[1] != '-') AddBound(scan[1], *arguments, part, constant, prefix);
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
  const int code = table_->Check();
  if (code != SQLITE_OK) return code;
  if (view_.state != transaction->view().state || view_.overlay != transaction->view().overlay) {
    view_ = transaction->view();
  }
  index_ = index;
  at_end_ = false;
  fetched_count_ = 0;
  fetched_at_ = 0;
  fetch_next_ = 1;
  MakeBounds(plan, arguments);
  if (bounds_.empty) {
    at_end_ = true;
    return SQLITE_OK;
  }
  if (bounds_.one_row) return ReadOneRow();
  iterator_.Open(view_, bounds_.begin, bounds_.end, backwards_);
  return index_ == 0 || covering_ ? ReadFromIterator() : FetchRows();
}

int Cursor::ReadOneRow() {
  const Schema& schema = table_->schema();
  Status status = view_.Get(bounds_.begin, &single_);
  if (status.ok() && index_ != 0) {
    if (covering_) {
      entry_key_ = WithoutSpace(bounds_.begin);
      entry_value_ = single_;
      return SQLITE_OK;
    }
    bounds_.begin.clear();
    AppendSpace(schema.primary.space, &bounds_.begin);
    bounds_.begin.append(single_.data(), single_.size());
    status = view_.Get(bounds_.begin, &single_);
  }
  if (status.IsNotFound()) {
    at_end_ = true;
    return SQLITE_OK;
  }
  if (!status.ok()) return Fail(status);
  ShowRow(WithoutSpace(bounds_.begin), single_);
  return SQLITE_OK;
}

int Cursor::ReadFromIterator() {
  if (!iterator_.Valid()) {
    at_end_ = true;
    return Fail(iterator_.status());
  }
  if (index_ == 0) {
    ShowRow(iterator_.key(), iterator_.value());
  } else {
    entry_key_ = iterator_.key();
    entry_value_ = iterator_.value();
  }
  return SQLITE_OK;
}

int Cursor::FetchRows() {
  const Schema& schema = table_->schema();
  const KeySpace& keys = schema.key_space(index_);
  while (true) {
    if (fetched_keys_.size() < fetch_next_) {
      fetched_keys_.resize(fetch_next_);
      fetched_rows_.resize(fetch_next_);
    }
    fetched_count_ = 0;
    fetched_at_ = 0;
    for (; fetched_count_ < fetch_next_ && iterator_.Valid(); iterator_.Next()) {
      Slice primary_key;
      const Status status = PrimaryKeyOf(keys, iterator_.key(), iterator_.value(), &primary_key);
      if (!status.ok()) return Fail(status);
      std::string& key = fetched_keys_[fetched_count_++];
      key.clear();
      AppendSpace(schema.primary.space, &key);
      key.append(primary_key.data(), primary_key.size());
    }
    if (!iterator_.status().ok()) return Fail(iterator_.status());
    fetch_next_ = std::min(kFetchMax, 2 * fetch_next_);
    if (fetched_count_ == 0) {
      at_end_ = true;
      return SQLITE_OK;
    }
    const Status status = ReadRows();
    if (!status.ok()) return Fail(status);
    if (ShowFetched()) return SQLITE_OK;
  }
}

Status Cursor::ReadRows() {
  fetched_statuses_.assign(fetched_count_, Status::OK());
  if (view_.overlay->empty() && fetched_count_ > 1) {
    std::vector<Slice> keys;
    keys.reserve(fetched_count_);
    for (size_t i = 0; i < fetched_count_; ++i) keys.push_back(WithoutSpace(fetched_keys_[i]));
    view_.MultiGetStored(table_->schema().primary.space, keys, fetched_rows_.data(),
                         fetched_statuses_.data());
  } else {
    for (size_t i = 0; i < fetched_count_; ++i) {
      fetched_statuses_[i] = view_.Get(fetched_keys_[i], &fetched_rows_[i]);
    }
  }
  for (const Status& status : fetched_statuses_) {
    if (!status.ok() && !status.IsNotFound()) return status;
  }
  return Status::OK();
}

bool Cursor::ShowFetched() {
  // A row may have been removed since its entry was read, by the same connection.
  while (fetched_at_ < fetched_count_ && !fetched_statuses_[fetched_at_].ok()) ++fetched_at_;
  if (fetched_at_ == fetched_count_) return false;
  ShowRow(WithoutSpace(fetched_keys_[fetched_at_]), fetched_rows_[fetched_at_]);
  return true;
}

void Cursor::ShowRow(const Slice& primary_key, const Slice& row) {
  row_.Reset(&table_->schema(), primary_key, row);
}

int Cursor::Next() {
  if (bounds_.one_row) {
    at_end_ = true;
    return SQLITE_OK;
  }
  if (index_ == 0 || covering_) {
    iterator_.Next();
    return ReadFromIterator();
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
  Value value;
  Status status;
  if (column == table_->schema().column_count()) {
    Slice primary_key;
    status = CurrentPrimaryKey(&primary_key);
    value = Value::Blob(primary_key);
  } else {
    status = index_ != 0 && covering_ ? ReadEntry(column, &value) : row_.Read(column, &value);
  }
  if (!status.ok()) return Fail(status);
  SetResult(context, value);
  return SQLITE_OK;
}

int Cursor::Rowid(sqlite3_int64* rowid) {
  Value value;
  const Status status =
      index_ != 0 && covering_ ? ReadEntry(kRowNumber, &value) : row_.Read(kRowNumber, &value);
  *rowid = value.integer;
  return Fail(status);
}

}  // namespace nacre::sqlite
