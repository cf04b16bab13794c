#pragma once

#include <random>
#include <string>
#include <vector>

namespace nacre {

/// A statement for a table of SQLite's own and for one of Nacre. The two differ where tables are
/// created; otherwise `nacre` is empty.
struct SqlStatement {
  std::string native;
  std::string nacre{};
  bool ordered = false;  ///< The rows come in an order that the statement fixes.
};

/// Random SQL over a few tables with random columns, keys and indexes. Statements whose outcome
/// depends on the order in which SQLite visits rows are not made: several rows at once change no
/// key, and what is limited is ordered by a key. The same seed gives the same statements, whatever
/// these answer.
class SqlGenerator {
 public:
  /// `options` of the database, each with a comma behind it.
  SqlGenerator(uint64_t seed, std::string pool, std::string options = "")
      : random_(seed), pool_(std::move(pool)), options_(std::move(options)) {}

  SqlStatement Next();
  /// Drops or renames a table. Not in a transaction, whose end may undo it.
  SqlStatement ChangeTables();
  /// All rows of all tables, in order.
  std::vector<SqlStatement> Contents() const;

 private:
  static constexpr size_t kTables = 3;

  struct Column {
    std::string name;
    std::string type;
    std::string collation;
    bool not_null;
    bool in_key;  ///< It belongs to the primary key or a unique index.
  };
  struct Table {
    std::string name;
    std::vector<Column> columns;
    std::vector<int> primary_key;
    bool has_rowid;
  };

  int Pick(int count) { return static_cast<int>(random_() % static_cast<uint64_t>(count)); }
  bool OneIn(int count) { return Pick(count) == 0; }
  const Table& AnyTable() {
    return tables_[static_cast<size_t>(Pick(static_cast<int>(tables_.size())))];
  }
  const Column& AnyColumn(const Table& table);

  std::string Literal();
  std::string LiteralFor(const Column& column);
  /// To compare a column with: a constant, perhaps one that SQLite does not see as such.
  std::string Operand(const Column& column);
  std::string List(const Column& column);
  std::string KeyPart(int column, bool may_collate);
  std::string Check(const std::string& column);
  std::string Term(const Table& table, const std::string& alias);
  std::string Condition(const Table& table, const std::string& alias);
  std::string KeyEquals(const Table& table);
  std::string Key(const Table& table, const std::string& alias, bool descending = false) const;
  std::string Conflict();

  SqlStatement Select();
  /// LIMIT and OFFSET over both of two queries.
  SqlStatement LimitedUnion();
  SqlStatement OrderedSelect();
  SqlStatement Aggregate();
  SqlStatement Join();
  SqlStatement Subquery();
  SqlStatement Insert();
  SqlStatement InsertSelect();
  SqlStatement Update();
  SqlStatement Delete();
  SqlStatement TransactionControl();
  SqlStatement Create();

  std::mt19937_64 random_;
  const std::string pool_;
  const std::string options_;
  std::vector<Table> tables_;
  int next_table_ = 0;
};

}  // namespace nacre
