#include "sqlite/row/stored_row.h"

#include <utility>

#include "sqlite/row/key_encoding.h"

namespace nacre::sqlite {
namespace {

Status Malformed(const Schema& schema) {
  return Status::Corruption(schema.name + ": a row cannot be decoded");
}

}  // namespace

void StoredRow::Reset(const Schema* schema, const Slice& primary_key, const Slice& row) {
  schema_ = schema;
  primary_key_ = primary_key;
  row_.Reset(row, schema->slots);
  if (!unescaped_.empty()) unescaped_.clear();
}

Status StoredRow::Read(int column, Value* value) {
  if (column == kRowNumber) {
    return ReadKeyPart(schema_->primary.parts, 0, primary_key_, nullptr, value);
  }
  const int place = schema_->key_place[static_cast<size_t>(column)];
  if (place < 0) {
    const bool found = row_.Read(schema_->slot[static_cast<size_t>(column)], value);
    return found ? Status::OK() : Malformed(*schema_);
  }
  std::string scratch;
  NACRE_RETURN_IF_ERROR(ReadKeyPart(schema_->primary.parts, place, primary_key_, &scratch, value));
  if (value->bytes.data() == scratch.data()) {  // It had to be unescaped.
    unescaped_.push_back(std::move(scratch));
    value->bytes = unescaped_.back();
  }
  return Status::OK();
}

Status StoredRow::ReadAll(std::vector<Value>* values) {
  values->resize(schema_->declaration.columns.size());
  for (size_t i = 0; i < values->size(); ++i) {
    NACRE_RETURN_IF_ERROR(Read(static_cast<int>(i), &(*values)[i]));
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
