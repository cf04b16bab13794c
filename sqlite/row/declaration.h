#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nacre/status.h"
#include "sqlite/database.h"
#include "sqlite/row/value.h"

namespace nacre::sqlite {

/// As a name in SQL.
std::string Quoted(const std::string& name);

struct ColumnDeclaration {
  std::string name;
  std::string type;
  Affinity affinity = Affinity::kBlob;
  Collation collation = Collation::kBinary;
  bool not_null = false;
};

/// A column of a key, and how it is ordered there.
struct KeyColumn {
  int column = 0;
  std::optional<Collation> collation{};  ///< None: that of the column.
  bool descending = false;
};

struct IndexDeclaration {
  std::vector<KeyColumn> columns;
  bool unique = false;
};

/// What stands between the parentheses of CREATE VIRTUAL TABLE ... USING nacre(...): options
/// (name='value'), columns as in CREATE TABLE, PRIMARY KEY(...), UNIQUE(...), INDEX(...) and
/// CHECK(...).
///
/// As in SQLite, one primary key column of type INTEGER is the row's number, and a table without a
/// primary key numbers its rows; any other primary key works as in a table WITHOUT ROWID.
struct Declaration {
  DatabaseOptions database;
  std::vector<ColumnDeclaration> columns;
  std::vector<KeyColumn> primary_key;  ///< Empty: rows are only numbered.
  std::vector<IndexDeclaration> indexes;
  std::vector<std::string> arguments;  ///< As given, except for the options.
  /// CHECK(...) as written, perhaps with CONSTRAINT and a name before it.
  std::vector<std::string> checks;

  /// `InvalidArgument` names what is wrong, `NotSupported` what SQLite's tables have and these have
  /// not (DEFAULT, FOREIGN KEY, ...).
  static Status Parse(const std::vector<std::string>& arguments, Declaration* declaration);

  /// Parses the `arguments` of another one, for a table in the database of `options`.
  static Status ParseTable(const std::vector<std::string>& arguments,
                           const DatabaseOptions& options, Declaration* declaration);

  /// Rows have numbers: the primary key is one INTEGER column, or missing.
  bool HasRowid() const;
  /// The statement that tells SQLite of the columns. A table without numbers gets a hidden column
  /// behind the others that holds the encoded primary key, as SQLite knows rows of a virtual table
  /// by one value.
  std::string CreateTable() const;
  /// The columns with their types and collations, as CREATE TABLE has them.
  std::string ColumnList() const;
  /// Columns and keys in one form, to compare declarations.
  std::string Signature() const;
};

}  // namespace nacre::sqlite
