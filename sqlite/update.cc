#include <limits>
#include <utility>

#include "sqlite/query/merged_iterator.h"
#include "sqlite/table.h"

namespace nacre::sqlite {

void Table::SetRowKey(const Slice& primary_key, std::string* key) const {
  key->clear();
  AppendSpace(schema_.primary.space, key);
  key->append(primary_key.data(), primary_key.size());
}

void Table::SetKeyOfIdentity(sqlite3_value* identity, std::string* key) const {
  if (!schema_.has_rowid()) return SetRowKey(StoredValue(identity, Affinity::kBlob).bytes, key);
  SetRowKey(Slice(), key);
  AppendValue(Value::Integer(sqlite3_value_int64(identity)), Collation::kBinary, key);
}

Status Table::FindRow(OldRow* old, bool* found) {
  const Status status = transaction_->Get(transaction_->view(), old->key, &old->bytes);
  *found = status.ok();
  if (status.IsNotFound()) return Status::OK();
  NACRE_RETURN_IF_ERROR(status);
  old->row.Reset(&schema_, old->primary_key(), old->bytes);
  NACRE_RETURN_IF_ERROR(old->row.ReadAll(&old->values));
  if (!schema_.has_rowid()) return Status::OK();
  Value rowid;
  NACRE_RETURN_IF_ERROR(old->row.Read(kRowNumber, &rowid));
  old->rowid = rowid.integer;
  return Status::OK();
}

Status Table::LastRowNumber(int64_t* rowid) {
  const uint32_t space = schema_.primary.space;
  if (const int64_t* known = transaction_->LastRow(space)) {
    *rowid = *known;
    return Status::OK();
  }
  std::string begin;
  AppendSpace(space, &begin);
  MergedIterator iterator;
  iterator.Open(transaction_->view(), begin, PrefixEnd(begin), /*backwards=*/true);
  NACRE_RETURN_IF_ERROR(iterator.status());
  *rowid = 0;
  if (iterator.Valid()) {
    Value value;
    NACRE_RETURN_IF_ERROR(ReadKeyPart(schema_.primary.parts, 0, iterator.key(), nullptr, &value));
    *rowid = value.integer;
  }
  // The first row may have any number, also one below zero.
  if (iterator.Valid()) transaction_->SetLastRow(space, *rowid);
  return Status::OK();
}

int Table::NextRowNumber(int64_t* rowid) {
  const Status status = LastRowNumber(rowid);
  if (!status.ok()) return Fail(status);
  if (*rowid == std::numeric_limits<int64_t>::max()) return SQLITE_FULL;
  ++*rowid;
  return SQLITE_OK;
}

int Table::TakeRowNumber(sqlite3_value* value, int64_t* rowid) {
  const Value number = StoredValue(value, Affinity::kInteger);
  if (number.type != ValueType::kInteger) return SQLITE_MISMATCH;
  *rowid = number.integer;
  return SQLITE_OK;
}

void Table::ReadNewRow(sqlite3_value** values, const OldRow* old, NewRow* row) const {
  const size_t count = schema_.declaration.columns.size();
  row->values.resize(count);
  for (size_t i = 0; i < count; ++i) {
    row->values[i] = old != nullptr && sqlite3_value_nochange(values[i]) != 0
                         ? old->values[i]
                         : StoredValue(values[i], schema_.declaration.columns[i].affinity);
  }
}

int Table::CheckNotNull(const NewRow& row) {
  const int number = schema_.has_rowid() ? schema_.rowid_column() : kRowNumber;
  for (size_t i = 0; i < row.values.size(); ++i) {
    const ColumnDeclaration& column = schema_.declaration.columns[i];
    if (!column.not_null || !row.values[i].IsNull() || static_cast<int>(i) == number) continue;
    sqlite3_free(zErrMsg);
    zErrMsg = sqlite3_mprintf("NOT NULL constraint failed: %s.%s", schema_.name.c_str(),
                              column.name.c_str());
    return SQLITE_CONSTRAINT;
  }
  return SQLITE_OK;
}

int Table::CheckConditions(const NewRow& row) {
  if (check_ == nullptr) return SQLITE_OK;
  std::string message;
  const int code = check_->Try(row.values, row.rowid, &message);
  if (code == SQLITE_OK) return SQLITE_OK;
  sqlite3_free(zErrMsg);
  zErrMsg = sqlite3_mprintf("%s", message.c_str());
  return code;
}

void Table::Finish(NewRow* row) const {
  if (schema_.has_rowid() && schema_.rowid_column() != kRowNumber) {
    row->values[static_cast<size_t>(schema_.rowid_column())] = Value::Integer(row->rowid);
  }
  SetRowKey(Slice(), &row->key);
  AppendPrimaryKey(schema_, row->values, row->rowid, &row->key);
  row->entries.resize(schema_.indexes.size());
  for (size_t i = 0; i < schema_.indexes.size(); ++i) {
    MakeIndexEntry(schema_.indexes[i], row->values, row->rowid, row->primary_key(),
                   &row->entries[i]);
  }
}

int Table::FailUnique(const KeySpace& keys) {
  std::string names;
  for (const KeyPart& part : keys.parts) {
    if (!names.empty()) names += ", ";
    names += schema_.name + '.';
    names += part.column == kRowNumber
                 ? "rowid"
                 : schema_.declaration.columns[static_cast<size_t>(part.column)].name;
  }
  sqlite3_free(zErrMsg);
  zErrMsg = sqlite3_mprintf("UNIQUE constraint failed: %s", names.c_str());
  return SQLITE_CONSTRAINT;
}

bool Table::IsAboveAllRows(int64_t rowid) const {
  const int64_t* const last = transaction_->LastRow(schema_.primary.space);
  return last != nullptr && rowid > *last;
}

Status Table::HasConflict(const Slice& key, const OldRow* old, bool is_index, std::string* other) {
  other->clear();
  PinnableSlice value;
  const Status status = transaction_->Get(transaction_->view(), key, &value);
  if (status.IsNotFound()) return Status::OK();
  NACRE_RETURN_IF_ERROR(status);
  Slice primary_key = value;
  if (!is_index) {
    primary_key = key;
    primary_key.remove_prefix(kSpaceBytes);
  }
  if (old == nullptr || primary_key != old->primary_key()) *other = primary_key.ToString();
  return Status::OK();
}

int Table::ResolveConflicts(const NewRow& row, const OldRow* old) {
  const bool replace = sqlite3_vtab_on_conflict(session_->connection()) == SQLITE_REPLACE;
  std::string other;
  for (size_t i = 0; i <= row.entries.size(); ++i) {
    const bool is_index = i > 0;
    if (is_index && !row.entries[i - 1].must_be_unique) continue;
    if (!is_index && schema_.has_rowid() && IsAboveAllRows(row.rowid)) continue;
    if (!is_index && old != nullptr && old->key == row.key) continue;
    const std::string& key = is_index ? row.entries[i - 1].key : row.key;
    Status status = HasConflict(key, old, is_index, &other);
    if (!status.ok()) return Fail(status);
    if (other.empty()) continue;
    if (!replace) return FailUnique(schema_.key_space(static_cast<int>(i)));
  }
  if (!replace) return SQLITE_OK;
  for (size_t i = 0; i <= row.entries.size(); ++i) {
    const bool is_index = i > 0;
    if (is_index && !row.entries[i - 1].must_be_unique) continue;
    const std::string& key = is_index ? row.entries[i - 1].key : row.key;
    Status status = HasConflict(key, old, is_index, &other);
    OldRow victim;
    bool found = false;
    if (status.ok() && !other.empty()) {
      SetRowKey(other, &victim.key);
      status = FindRow(&victim, &found);
    }
    if (!status.ok()) return Fail(status);
    if (found) Remove(victim);
  }
  return SQLITE_OK;
}

void Table::Remove(const OldRow& old) {
  IndexEntry entry;
  for (const KeySpace& index : schema_.indexes) {
    MakeIndexEntry(index, old.values, old.rowid, old.primary_key(), &entry);
    transaction_->Delete(entry.key);
  }
  transaction_->Delete(old.key);
  if (CommandList* commands = transaction_->commands()) {
    commands->Delete(schema_.name, old.primary_key());
  }
  transaction_->CountRows(statistics_, -1);
  if (!schema_.has_rowid()) return;
  const int64_t* const last = transaction_->LastRow(schema_.primary.space);
  if (last != nullptr && *last == old.rowid) transaction_->ForgetLastRow(schema_.primary.space);
}

void Table::Store(const NewRow& row, OldRow* old) {
  if (old != nullptr && old->key != row.key) {
    Remove(*old);
    old = nullptr;
  }
  const Slice bytes = EncodeRow(schema_, row.values, &writer_);
  transaction_->Put(row.key, bytes);
  if (CommandList* commands = transaction_->commands()) {
    commands->Put(schema_.name, row.primary_key(), bytes);
  }
  IndexEntry& before = old_entry_;
  for (size_t i = 0; i < row.entries.size(); ++i) {
    const IndexEntry& entry = row.entries[i];
    if (old != nullptr) {
      MakeIndexEntry(schema_.indexes[i], old->values, old->rowid, old->primary_key(), &before);
      if (before.key == entry.key) continue;
      transaction_->Delete(before.key);
    }
    transaction_->Put(entry.key, entry.value);
  }
  transaction_->CountRows(statistics_, old == nullptr ? 1 : 0);
  if (schema_.has_rowid() && IsAboveAllRows(row.rowid)) {
    transaction_->SetLastRow(schema_.primary.space, row.rowid);
  }
}

int Table::InsertRow(sqlite3_value** arguments, sqlite3_int64* rowid) {
  NewRow& row = new_row_;
  ReadNewRow(arguments + 2, nullptr, &row);
  if (schema_.has_rowid()) {
    sqlite3_value* number = arguments[1];
    const int column = schema_.rowid_column();
    if (column != kRowNumber && !row.values[static_cast<size_t>(column)].IsNull()) {
      number = arguments[2 + column];
    }
    const bool given = sqlite3_value_type(number) != SQLITE_NULL;
    const int code = given ? TakeRowNumber(number, &row.rowid) : NextRowNumber(&row.rowid);
    if (code != SQLITE_OK) return code;
    int64_t last;
    const Status status = LastRowNumber(&last);
    if (!status.ok()) return Fail(status);
  }
  int code = CheckNotNull(row);
  if (code != SQLITE_OK) return code;
  Finish(&row);
  code = CheckConditions(row);
  if (code == SQLITE_OK) code = ResolveConflicts(row, nullptr);
  if (code != SQLITE_OK) return code;
  Store(row, nullptr);
  if (schema_.has_rowid()) *rowid = row.rowid;
  return SQLITE_OK;
}

int Table::UpdateRow(sqlite3_value** arguments) {
  OldRow& old = old_row_;
  SetKeyOfIdentity(arguments[0], &old.key);
  bool found;
  const Status status = FindRow(&old, &found);
  if (!status.ok()) return Fail(status);
  if (!found) return SQLITE_OK;  // The statement itself has removed it.
  NewRow& row = new_row_;
  ReadNewRow(arguments + 2, &old, &row);
  if (schema_.has_rowid()) {
    const bool renumbered = sqlite3_value_int64(arguments[0]) != sqlite3_value_int64(arguments[1]);
    const int column = schema_.rowid_column();
    const bool by_column =
        column != kRowNumber && !renumbered && sqlite3_value_nochange(arguments[2 + column]) == 0;
    const int code = TakeRowNumber(by_column ? arguments[2 + column] : arguments[1], &row.rowid);
    if (code != SQLITE_OK) return code;
  }
  int code = CheckNotNull(row);
  if (code != SQLITE_OK) return code;
  Finish(&row);
  code = CheckConditions(row);
  if (code == SQLITE_OK) code = ResolveConflicts(row, &old);
  if (code != SQLITE_OK) return code;
  Store(row, &old);
  return SQLITE_OK;
}

int Table::DeleteRow(sqlite3_value* identity) {
  OldRow& old = old_row_;
  SetKeyOfIdentity(identity, &old.key);
  bool found;
  const Status status = FindRow(&old, &found);
  if (!status.ok()) return Fail(status);
  if (found) Remove(old);
  return SQLITE_OK;
}

Status Table::RedoPut(const Slice& primary_key, const Slice& bytes) {
  OldRow& old = old_row_;
  SetRowKey(primary_key, &old.key);
  bool found;
  NACRE_RETURN_IF_ERROR(FindRow(&old, &found));
  StoredRow stored;
  stored.Reset(&schema_, primary_key, bytes);
  NewRow& row = new_row_;
  NACRE_RETURN_IF_ERROR(stored.ReadAll(&row.values));
  if (schema_.has_rowid()) {
    Value rowid;
    NACRE_RETURN_IF_ERROR(stored.Read(kRowNumber, &rowid));
    row.rowid = rowid.integer;
  }
  Finish(&row);
  if (row.primary_key() != primary_key) {
    return Status::Corruption("a row of the command log does not fit its key");
  }
  Store(row, found ? &old : nullptr);
  return Status::OK();
}

Status Table::RedoDelete(const Slice& primary_key) {
  OldRow& old = old_row_;
  SetRowKey(primary_key, &old.key);
  bool found;
  NACRE_RETURN_IF_ERROR(FindRow(&old, &found));
  if (!found) return Status::Corruption("a row that the command log deletes is not there");
  Remove(old);
  return Status::OK();
}

int Table::Update(int count, sqlite3_value** arguments, sqlite3_int64* rowid) {
  const int code = Check();
  if (code != SQLITE_OK) return code;
  if (count == 1) return DeleteRow(arguments[0]);
  if (sqlite3_value_type(arguments[0]) == SQLITE_NULL) return InsertRow(arguments, rowid);
  return UpdateRow(arguments);
}

}  // namespace nacre::sqlite
