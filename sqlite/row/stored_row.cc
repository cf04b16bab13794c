#include "sqlite/row/stored_row.h"

#include <utility>

#include "sqlite/row/key_encoding.h"

namespace nacre::sqlite {

Status StoredRow::Malformed() const {
  return Status::Corruption(schema_->name + ": a row cannot be decoded");
}

void StoredRow::Reset(const Schema* schema, const Slice& primary_key, const Slice& row) {
  schema_ = schema;
  primary_key_ = primary_key;
  key_rest_ = primary_key;
  key_next_ = 0;
  row_.Reset(row, schema->slots);
  if (!unescaped_.empty()) unescaped_.clear();
}

bool StoredRow::ReadKey(int place, Value* value) {
  if (place < key_next_) {
    key_rest_ = primary_key_;
    key_next_ = 0;
  }
  const std::vector<KeyPart>& parts = schema_->primary.parts;
  for (; key_next_ < place; ++key_next_) {
    if (!SkipValue(&key_rest_, parts[static_cast<size_t>(key_next_)].descending)) return false;
  }
  const KeyPart& part = parts[static_cast<size_t>(place)];
  std::string scratch;
  ++key_next_;
  if (!ReadValue(&key_rest_, part.descending, part.affinity, &scratch, value)) return false;
  if (value->bytes.data() == scratch.data()) {  // It had to be unescaped.
    unescaped_.push_back(std::move(scratch));
    value->bytes = unescaped_.back();
  }
  return true;
}

bool StoredRow::TryRead(int column, Value* value) {
  if (column == kRowNumber) return ReadKey(0, value);
  const int place = schema_->key_place[static_cast<size_t>(column)];
  return place < 0 ? row_.Read(schema_->slot[static_cast<size_t>(column)], value)
                   : ReadKey(place, value);
}

Status StoredRow::Read(int column, Value* value) {
  return TryRead(column, value) ? Status::OK() : Malformed();
}

Status StoredRow::ReadAll(std::vector<Value>* values) {
  values->resize(schema_->declaration.columns.size());
  for (size_t i = 0; i < values->size(); ++i) {
    if (!TryRead(static_cast<int>(i), &(*values)[i])) return Malformed();
  }
  return Status::OK();
}

Status ReadKeyPart(const std::vector<KeyPart>& parts, int place, Slice key, std::string* scratch,
                   Value* value) {
  for (int i = 0; i < place; ++i) {
    const bool descending = parts[static_cast<size_t>(i)].descending;
    if (!SkipValue(&key, descending)) return Status::Corruption("a key cannot be decoded");
  }
  const KeyPart& part = parts[static_cast<size_t>(place)];
  const bool read = ReadValue(&key, part.descending, part.affinity, scratch, value);
  return read ? Status::OK() : Status::Corruption("a key cannot be decoded");
}

void AppendPrimaryKey(const Schema& schema, const std::vector<Value>& values, int64_t rowid,
                      std::string* key) {
  if (schema.has_rowid()) {
    AppendValue(Value::Integer(rowid), Collation::kBinary, key);
    return;
  }
  for (const KeyPart& part : schema.primary.parts) {
    part.Append(values[static_cast<size_t>(part.column)], key);
  }
}

Slice EncodeRow(const Schema& schema, const std::vector<Value>& values, RowWriter* writer) {
  writer->Clear();
  for (size_t i = 0; i < values.size(); ++i) {
    if (schema.slot[i] >= 0) writer->Add(values[i]);
  }
  return writer->Finish();
}

void MakeIndexEntry(const KeySpace& index, const std::vector<Value>& values, int64_t rowid,
                    const Slice& primary_key, IndexEntry* entry) {
  entry->key.clear();
  entry->value.clear();
  entry->must_be_unique = index.unique;
  AppendSpace(index.space, &entry->key);
  for (const KeyPart& part : index.parts) {
    const Value value = part.column == kRowNumber ? Value::Integer(rowid)
                                                  : values[static_cast<size_t>(part.column)];
    if (value.IsNull()) entry->must_be_unique = false;
    part.Append(value, &entry->key);
  }
  std::string* const target = entry->must_be_unique ? &entry->value : &entry->key;
  target->append(primary_key.data(), primary_key.size());
}

Status PrimaryKeyOf(const KeySpace& index, const Slice& key, const Slice& value,
                    Slice* primary_key) {
  if (!value.empty()) {
    *primary_key = value;
    return Status::OK();
  }
  Slice rest = key;
  for (const KeyPart& part : index.parts) {
    if (!SkipValue(&rest, part.descending))
      return Status::Corruption("an index entry cannot be decoded");
  }
  *primary_key = rest;
  return Status::OK();
}

}  // namespace nacre::sqlite
