#include "sqlite/query/integrity_check.h"

#include <utility>

#include "sqlite/query/merged_iterator.h"
#include "sqlite/row/key_encoding.h"
#include "sqlite/row/stored_row.h"

namespace nacre::sqlite {
namespace {

/// Rows, or entries, that are looked for together.
constexpr size_t kTogether = 64;

/// A key and its value, both without the space.
struct Pair {
  std::string key;
  std::string value;
};

/// What no column of `affinity` holds, as SQLite names it; null if all is well.
const char* WrongType(const Value& value, Affinity affinity) {
  const bool number = value.type == ValueType::kInteger || value.type == ValueType::kReal;
  if (affinity == Affinity::kText) return number ? "NUMERIC" : nullptr;
  if (affinity == Affinity::kReal) return value.type == ValueType::kInteger ? "INTEGER" : nullptr;
  return nullptr;
}

class Checker {
 public:
  Checker(const Schema& schema, const ReadView& view, size_t findings_max,
          std::vector<std::string>* findings)
      : schema_(schema), view_(view), findings_max_(findings_max), findings_(findings) {}

  Status Run() {
    NACRE_RETURN_IF_ERROR(
        ForAll(schema_.primary, [this](const std::vector<Pair>& rows) { return CheckRows(rows); }));
    for (size_t i = 0; i < schema_.indexes.size(); ++i) {
      NACRE_RETURN_IF_ERROR(ForAll(schema_.indexes[i], [this, i](const std::vector<Pair>& entries) {
        return CheckEntries(i, entries);
      }));
    }
    return Status::OK();
  }

 private:
  /// A row that could be decoded.
  struct Row {
    std::vector<Value> values{};
    int64_t rowid = 0;
    StoredRow stored{};
  };

  bool Full() const { return findings_->size() >= findings_max_; }
  void Find(std::string sentence) {
    if (!Full()) findings_->push_back(std::move(sentence));
  }

  /// Calls `visit` with some of them at a time, until there are findings enough.
  template <typename Visit>
  Status ForAll(const KeySpace& keys, const Visit& visit) {
    std::string begin;
    AppendSpace(keys.space, &begin);
    MergedIterator iterator;
    iterator.Open(view_, begin, PrefixEnd(begin), /*backwards=*/false);
    std::vector<Pair> pairs;
    while (iterator.Valid() && !Full()) {
      pairs.clear();
      for (; iterator.Valid() && pairs.size() < kTogether; iterator.Next()) {
        pairs.push_back({iterator.key().ToString(), iterator.value().ToString()});
      }
      NACRE_RETURN_IF_ERROR(visit(pairs));
    }
    return iterator.status();
  }

  /// Reads from `space`; the keys exclude it. Own writes are seen.
  Status GetAll(uint32_t space, const std::vector<std::string>& keys,
                std::vector<PinnableSlice>* values, std::vector<Status>* statuses) {
    *values = std::vector<PinnableSlice>(keys.size());
    statuses->assign(keys.size(), Status::OK());
    std::vector<std::string> whole(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      AppendSpace(space, &whole[i]);
      whole[i].append(keys[i]);
    }
    const std::vector<Slice> stored(whole.begin(), whole.end());
    view_.MultiGetStored(space, stored, values->data(), statuses->data());
    for (size_t i = 0; i < keys.size(); ++i) {
      if (!view_.overlay->empty()) {
        (*values)[i].Reset();
        (*statuses)[i] = view_.Get(whole[i], &(*values)[i]);
      }
      if (!(*statuses)[i].ok() && !(*statuses)[i].IsNotFound()) return (*statuses)[i];
    }
    return Status::OK();
  }

  /// "row 7", or the key in hexadecimal digits.
  std::string NameOf(const Slice& primary_key) const {
    Value number;
    if (schema_.has_rowid() &&
        ReadKeyPart(schema_.primary.parts, 0, primary_key, nullptr, &number).ok() &&
        number.type == ValueType::kInteger) {
      return "row " + std::to_string(number.integer);
    }
    return "row x'" + primary_key.ToString(/*hex=*/true) + "'";
  }

  std::string IndexName(size_t i) const {
    std::string columns;
    for (const KeyPart& part : schema_.indexes[i].parts) {
      if (!columns.empty()) columns += ", ";
      columns += part.column == kRowNumber ? "rowid" : ColumnName(part.column);
    }
    return "index " + std::to_string(i + 1) + " (" + columns + ")";
  }

  const std::string& ColumnName(int column) const {
    return schema_.declaration.columns[static_cast<size_t>(column)].name;
  }

  /// False if it cannot be decoded, or lies at the key of another row. `pair` stays.
  bool Decode(const Slice& key, const Slice& value, Row* row) const {
    row->stored.Reset(&schema_, key, value);
    if (!row->stored.ReadAll(&row->values).ok()) return false;
    Value number = Value::Integer(0);
    if (schema_.has_rowid() && !row->stored.Read(kRowNumber, &number).ok()) return false;
    if (number.type != ValueType::kInteger) return false;
    row->rowid = number.integer;
    std::string own_key;
    AppendPrimaryKey(schema_, row->values, row->rowid, &own_key);
    return Slice(own_key) == key;
  }

  void CheckColumns(const Slice& key, const Row& row) {
    for (size_t i = 0; i < row.values.size(); ++i) {
      const ColumnDeclaration& column = schema_.declaration.columns[i];
      const std::string place = " value in " + schema_.name + '.' + column.name;
      if (row.values[i].IsNull()) {
        if (column.not_null) Find("NULL" + place + " of " + NameOf(key));
      } else if (const char* type = WrongType(row.values[i], column.affinity)) {
        Find(type + place + " of " + NameOf(key));
      }
    }
  }

  Status CheckRows(const std::vector<Pair>& rows) {
    std::vector<std::vector<IndexEntry>> entries(schema_.indexes.size());
    std::vector<const Pair*> decoded;
    for (const Pair& pair : rows) {
      Row row;
      if (!Decode(pair.key, pair.value, &row)) {
        Find("malformed " + NameOf(pair.key) + " of " + schema_.name);
        continue;
      }
      CheckColumns(pair.key, row);
      decoded.push_back(&pair);
      for (size_t i = 0; i < entries.size(); ++i) {
        MakeIndexEntry(schema_.indexes[i], row.values, row.rowid, pair.key,
                       &entries[i].emplace_back());
      }
    }
    for (size_t i = 0; i < entries.size(); ++i) {
      NACRE_RETURN_IF_ERROR(CheckEntriesOfRows(i, decoded, entries[i]));
    }
    return Status::OK();
  }

  Status CheckEntriesOfRows(size_t index, const std::vector<const Pair*>& rows,
                            const std::vector<IndexEntry>& entries) {
    std::vector<std::string> keys;
    for (const IndexEntry& entry : entries) keys.push_back(WithoutSpace(entry.key).ToString());
    std::vector<PinnableSlice> values;
    std::vector<Status> statuses;
    NACRE_RETURN_IF_ERROR(GetAll(schema_.indexes[index].space, keys, &values, &statuses));
    for (size_t i = 0; i < entries.size(); ++i) {
      if (!statuses[i].ok()) {
        Find(NameOf(rows[i]->key) + " missing from " + IndexName(index));
      } else if (values[i] != Slice(entries[i].value)) {
        Find((entries[i].must_be_unique ? "non-unique entry in " : "malformed entry in ") +
             IndexName(index) + " of " + NameOf(rows[i]->key));
      }
    }
    return Status::OK();
  }

  /// Checks that all entries belong to rows.
  Status CheckEntries(size_t index, const std::vector<Pair>& entries) {
    std::vector<std::string> keys;
    for (const Pair& entry : entries) {
      Slice primary_key;
      const bool named =
          PrimaryKeyOf(schema_.indexes[index], entry.key, entry.value, &primary_key).ok();
      keys.push_back(named ? primary_key.ToString() : std::string());
    }
    std::vector<PinnableSlice> values;
    std::vector<Status> statuses;
    NACRE_RETURN_IF_ERROR(GetAll(schema_.primary.space, keys, &values, &statuses));
    for (size_t i = 0; i < entries.size(); ++i) {
      if (keys[i].empty()) {
        Find("malformed entry x'" + Slice(entries[i].key).ToString(/*hex=*/true) + "' in " +
             IndexName(index));
      } else if (!statuses[i].ok()) {
        Find("entry in " + IndexName(index) + " of " + NameOf(keys[i]) + ", which is missing");
      } else {
        CheckEntry(index, entries[i], keys[i], values[i]);
      }
    }
    return Status::OK();
  }

  void CheckEntry(size_t index, const Pair& entry, const std::string& primary_key,
                  const Slice& value) {
    Row row;
    if (!Decode(primary_key, value, &row)) return;  // The check of the rows has reported it.
    IndexEntry own;
    MakeIndexEntry(schema_.indexes[index], row.values, row.rowid, primary_key, &own);
    if (WithoutSpace(own.key) != Slice(entry.key)) {
      Find("entry in " + IndexName(index) + " of " + NameOf(primary_key) +
           ", which has other values");
    }
  }

  const Schema& schema_;
  const ReadView& view_;
  const size_t findings_max_;
  std::vector<std::string>* const findings_;
};

}  // namespace

Status CheckIntegrity(const Schema& schema, const ReadView& view, size_t findings_max,
                      std::vector<std::string>* findings) {
  return Checker(schema, view, findings_max, findings).Run();
}

}  // namespace nacre::sqlite
