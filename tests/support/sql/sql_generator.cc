#include "tests/support/sql/sql_generator.h"

#include <algorithm>
#include <utility>

namespace nacre {
namespace {

const char* const kTypes[] = {"INT",  "TEXT", "REAL",        "NUMERIC",
                              "BLOB", "",     "VARCHAR(10)", "DOUBLE"};
const char* const kCollations[] = {"", "", "", "NOCASE", "RTRIM"};
const char* const kTexts[] = {"a", "A", "b", "B ", "b", "abc", "ABC", "a  ", "", "zz", "12", "3.0"};
const char* const kNumbers[] = {"0.5",
                                "-2.5",
                                "3.0",
                                "9007199254740993",
                                "-9007199254740993",
                                "1e300",
                                "4.25",
                                "9007199254740992.0",
                                "-0.0",
                                "7.0"};

const char* const kPatterns[] = {"LIKE 'a%'",    "LIKE 'AB%'",     "LIKE '1%'",  "LIKE 'b_%'",
                                 "LIKE '%'",     "LIKE 'b %'",     "LIKE 'abc'", "LIKE NULL",
                                 "GLOB 'a*'",    "GLOB 'A[A-C]*'", "GLOB '1?'",  "GLOB 'zz1*'",
                                 "NOT LIKE 'a%'"};
const char* const kCastTypes[] = {"TEXT", "INT", "REAL", "BLOB", "NUMERIC"};

std::string Joined(const std::vector<std::string>& parts, const char* separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += separator;
    text += part;
  }
  return text;
}

}  // namespace

const SqlGenerator::Column& SqlGenerator::AnyColumn(const Table& table) {
  return table.columns[static_cast<size_t>(Pick(static_cast<int>(table.columns.size())))];
}

std::string SqlGenerator::Literal() {
  switch (Pick(8)) {
    case 0:
      if (OneIn(3)) return "x'6162'";  // Its text is "ab".
      if (OneIn(2)) return "NULL";
      return std::string("x'") + (OneIn(3) ? "" : OneIn(2) ? "00" : "ff01") + "'";
    case 1:
    case 2:
      return std::string("'") + kTexts[Pick(std::size(kTexts))] + "'";
    case 3:
      return kNumbers[Pick(std::size(kNumbers))];
    default:
      return std::to_string(Pick(30) - 5);
  }
}

std::string SqlGenerator::LiteralFor(const Column& column) {
  if (OneIn(5)) return Literal();
  if (column.type == "TEXT" || column.type == "VARCHAR(10)") {
    return std::string("'") + kTexts[Pick(std::size(kTexts))] + std::to_string(Pick(20)) + "'";
  }
  return std::to_string(Pick(60));
}

std::string SqlGenerator::Operand(const Column& column) {
  const std::string literal = LiteralFor(column);
  switch (Pick(8)) {
    case 0:
      return std::string("CAST(") + literal + " AS " + kCastTypes[Pick(std::size(kCastTypes))] +
             ")";
    case 1:
    case 2:
      return "(SELECT " + literal + ")";  // SQLite does not know it before it runs.
    default:
      return literal;
  }
}

std::string SqlGenerator::List(const Column& column) {
  std::vector<std::string> values = {LiteralFor(column), Literal()};
  for (int i = Pick(6); i > 0; --i) values.push_back(Operand(column));
  return "(" + Joined(values, ", ") + ")";
}

std::string SqlGenerator::KeyPart(int column, bool may_collate) {
  std::string part = "c" + std::to_string(column);
  if (may_collate && OneIn(5)) part += OneIn(2) ? " COLLATE NOCASE" : " COLLATE BINARY";
  if (OneIn(3)) part += " DESC";
  return part;
}

/// One of a table, and on a column without other conditions: rows may be visited in any order.
std::string SqlGenerator::Check(const std::string& column) {
  const std::string name = OneIn(2) ? "CONSTRAINT holds " : "";
  switch (Pick(4)) {
    case 0:
      return name + "CHECK(" + column + " <> 'abc')";
    case 1:
      return name + "CHECK (" + column + " < 50 OR " + column + " > 'a5')";
    case 2:
      return name + "CHECK(length(" + column + ") + 0 < 4)";
    default:
      return name + "CHECK(" + column + " IS NULL OR " + column + " NOT IN (3, '7', 'b'))";
  }
}

std::string SqlGenerator::Term(const Table& table, const std::string& alias) {
  static const char* const kOperators[] = {"=", "=", "<", "<=", ">", ">=", "<>", "IS", "IS NOT"};
  const Column& column = AnyColumn(table);
  const std::string name = alias + column.name;
  switch (Pick(9)) {
    case 0:
      return name + " BETWEEN " + Operand(column) + " AND " + Operand(column);
    case 1:
    case 2:
      return name + " IN " + List(column);
    case 3:
      return name + (OneIn(2) ? " IS NULL" : " IS NOT NULL");
    case 4:
      return name + ' ' + kPatterns[Pick(std::size(kPatterns))];
    default:
      return name + ' ' + kOperators[Pick(std::size(kOperators))] + ' ' + Operand(column);
  }
}

std::string SqlGenerator::Condition(const Table& table, const std::string& alias) {
  switch (Pick(6)) {
    case 0:
      return "1";
    case 1:
      return Term(table, alias) + " AND " + Term(table, alias);
    case 2:
      return Term(table, alias) + " OR " + Term(table, alias);
    case 3:
      return "NOT (" + Term(table, alias) + ")";
    case 4:
      return Term(table, alias) + " AND " + Term(table, alias) + " AND " + Term(table, alias);
    default:
      return Term(table, alias);
  }
}

std::string SqlGenerator::KeyEquals(const Table& table) {
  std::vector<std::string> terms;
  for (int column : table.primary_key) {
    const Column& part = table.columns[static_cast<size_t>(column)];
    terms.push_back(part.name + " = " + LiteralFor(part));
  }
  return terms.empty() ? "rowid = " + std::to_string(Pick(30)) : Joined(terms, " AND ");
}

std::string SqlGenerator::Key(const Table& table, const std::string& alias, bool descending) const {
  std::vector<std::string> parts;
  for (int column : table.primary_key) {
    parts.push_back(alias + table.columns[static_cast<size_t>(column)].name +
                    (descending ? " DESC" : ""));
  }
  return parts.empty() ? alias + "rowid" + (descending ? " DESC" : "") : Joined(parts, ", ");
}

std::string SqlGenerator::Conflict() {
  static const char* const kConflicts[] = {"",         "",          "OR REPLACE ", "OR IGNORE ",
                                           "OR FAIL ", "OR ABORT ", "OR ROLLBACK "};
  return kConflicts[Pick(std::size(kConflicts))];
}

SqlStatement SqlGenerator::Create() {
  Table table;
  table.name = "t" + std::to_string(next_table_++);
  const int kind = Pick(4);  // 0, 1: INTEGER PRIMARY KEY; 2: two columns; 3: none.
  table.has_rowid = kind != 2;
  std::vector<std::string> declared;
  const int count = 3 + Pick(4);
  for (int i = 0; i < count; ++i) {
    Column column{std::string("c") + std::to_string(i), kTypes[Pick(std::size(kTypes))],
                  kCollations[Pick(std::size(kCollations))], OneIn(5), false};
    if (kind < 2 && i == 0) column = {"c0", "INTEGER", "", false, true};
    std::string text = column.name + ' ' + column.type;
    if (kind < 2 && i == 0) text += " PRIMARY KEY";
    if (!column.collation.empty()) text += " COLLATE " + column.collation;
    if (column.not_null) text += " NOT NULL";
    declared.push_back(text);
    table.columns.push_back(column);
  }
  if (kind < 2) table.primary_key = {0};
  if (kind == 2) {
    table.primary_key = {1, 0};
    declared.push_back("PRIMARY KEY(" + KeyPart(1, false) + ", " + KeyPart(0, false) + ")");
    table.columns[0].in_key = table.columns[1].in_key = true;
  }
  std::vector<std::string> indexes;
  for (int i = Pick(4); i > 0; --i) {
    const int first = Pick(count);
    const int second = (first + 1 + Pick(count - 1)) % count;
    std::string columns = KeyPart(first, true);
    if (OneIn(2)) columns += ", " + KeyPart(second, true);
    if (OneIn(3)) {
      declared.push_back("UNIQUE(" + columns + ")");
      table.columns[static_cast<size_t>(first)].in_key = true;
      table.columns[static_cast<size_t>(second)].in_key = true;
    } else {
      indexes.push_back("INDEX(" + columns + ")");
    }
  }
  const Column& last = table.columns.back();
  if (OneIn(3) && !last.not_null && !last.in_key) declared.push_back(Check(last.name));
  SqlStatement statement;
  statement.native = "CREATE TABLE " + table.name + "(" + Joined(declared, ", ") + ")" +
                     (table.has_rowid ? "" : " WITHOUT ROWID");
  declared.insert(declared.end(), indexes.begin(), indexes.end());
  statement.nacre = "CREATE VIRTUAL TABLE " + table.name + " USING nacre(pool='" + pool_ + "', " +
                    options_ + Joined(declared, ", ") + ")";
  tables_.push_back(table);
  return statement;
}

SqlStatement SqlGenerator::Select() {
  const Table& table = AnyTable();
  const std::string columns = OneIn(2) ? "*" : AnyColumn(table).name + ", " + AnyColumn(table).name;
  if (OneIn(8)) return LimitedUnion();
  return {"SELECT " + columns + " FROM " + table.name + " WHERE " + Condition(table, "")};
}

SqlStatement SqlGenerator::LimitedUnion() {
  const Table& one = AnyTable();
  const Table& two = AnyTable();
  return {"SELECT count(*) FROM (SELECT " + AnyColumn(one).name + " FROM " + one.name + " WHERE " +
          Term(one, "") + " UNION ALL SELECT " + AnyColumn(two).name + " FROM " + two.name +
          " WHERE " + Term(two, "") + " LIMIT " + std::to_string(Pick(20)) + " OFFSET " +
          std::to_string(Pick(20)) + ")"};
}

SqlStatement SqlGenerator::OrderedSelect() {
  const Table& table = AnyTable();
  const bool descending = OneIn(2);
  std::string order = Key(table, "", descending);
  for (int i = Pick(3); i > 0; --i) {
    order = AnyColumn(table).name + (OneIn(2) ? " DESC, " : ", ") + order;
  }
  std::string sql =
      "SELECT * FROM " + table.name + " WHERE " + Condition(table, "") + " ORDER BY " + order;
  if (OneIn(3)) sql += " LIMIT " + std::to_string(Pick(8));
  if (sql.find("LIMIT") != std::string::npos && OneIn(3)) {
    sql += " OFFSET " + std::to_string(Pick(5));
  }
  return {sql, "", true};
}

SqlStatement SqlGenerator::Aggregate() {
  const Table& table = AnyTable();
  const std::string column = AnyColumn(table).name;
  const std::string where = " WHERE " + Condition(table, "");
  switch (Pick(3)) {
    case 0:
      return {"SELECT count(*), count(" + column + ") FROM " + table.name + where};
    case 1:
      return {"SELECT count(*), sum(CASE WHEN abs(" + column + ") < 1000 THEN " + column +
              " END) FROM " + table.name + where + " GROUP BY " + AnyColumn(table).name};
    default:
      return {"SELECT count(DISTINCT " + column + "), lower(max(" + column + ")) FROM " +
              table.name + where};
  }
}

SqlStatement SqlGenerator::Join() {
  const Table& one = AnyTable();
  const Table& two = AnyTable();
  static const char* const kOperators[] = {"=", "=", "=", "<", ">="};
  const std::string on = "x." + AnyColumn(one).name + ' ' +
                         kOperators[Pick(std::size(kOperators))] + " y." + AnyColumn(two).name;
  return {"SELECT x." + AnyColumn(one).name + ", y." + AnyColumn(two).name + " FROM " + one.name +
          " x " + (OneIn(3) ? "LEFT " : "") + "JOIN " + two.name + " y ON " + on + " WHERE " +
          Condition(one, "x.")};
}

SqlStatement SqlGenerator::Subquery() {
  const Table& one = AnyTable();
  const Table& two = AnyTable();
  const std::string mine = AnyColumn(one).name;
  const std::string other = AnyColumn(two).name;
  switch (Pick(3)) {
    case 0:
      return {"SELECT * FROM " + one.name + " WHERE " + mine + " IN (SELECT " + other + " FROM " +
              two.name + " WHERE " + Condition(two, "") + ")"};
    case 1:
      return {"SELECT count(*) FROM " + one.name + " x WHERE EXISTS (SELECT 1 FROM " + two.name +
              " y WHERE y." + other + " = x." + mine + " AND " + Condition(two, "y.") + ")"};
    default:
      return {"SELECT " + mine + ", (SELECT count(*) FROM " + two.name + " y WHERE y." + other +
              " <= x." + mine + ") FROM " + one.name + " x WHERE " + Condition(one, "x.")};
  }
}

SqlStatement SqlGenerator::Insert() {
  const Table& table = AnyTable();
  std::vector<std::string> rows;
  const int count = OneIn(3) ? 1 + Pick(5) : 1;
  for (int i = 0; i < count; ++i) {
    std::vector<std::string> values;
    for (const Column& column : table.columns) {
      // After a row number that is none, SQLite may keep the rows before it.
      const bool number = column.type == "INTEGER" && count > 1;
      values.push_back(column.type == "INTEGER" && OneIn(3) ? "NULL"
                       : number                             ? std::to_string(Pick(60))
                                                            : LiteralFor(column));
    }
    rows.push_back("(" + Joined(values, ", ") + ")");
  }
  return {"INSERT " + Conflict() + "INTO " + table.name + " VALUES " + Joined(rows, ", ")};
}

SqlStatement SqlGenerator::InsertSelect() {
  const Table& to = AnyTable();
  const Table& from = AnyTable();
  std::vector<std::string> values;
  for (const Column& column : to.columns) {
    values.push_back(column.type == "INTEGER" ? "NULL"
                     : OneIn(3)               ? LiteralFor(column)
                                              : AnyColumn(from).name);
  }
  return {"INSERT " + Conflict() + "INTO " + to.name + " SELECT " + Joined(values, ", ") +
          " FROM " + from.name + " WHERE " + Condition(from, "") + " ORDER BY " + Key(from, "") +
          " LIMIT 5"};
}

SqlStatement SqlGenerator::Update() {
  const Table& table = AnyTable();
  const Column& column = AnyColumn(table);
  if (column.in_key || OneIn(3)) {
    return {"UPDATE " + Conflict() + table.name + " SET " + column.name + " = " +
            LiteralFor(column) + " WHERE " + KeyEquals(table)};
  }
  const std::string value = OneIn(2) ? LiteralFor(column) : AnyColumn(table).name;
  return {"UPDATE " + table.name + " SET " + column.name + " = " + value + " WHERE " +
          Condition(table, "")};
}

SqlStatement SqlGenerator::Delete() {
  const Table& table = AnyTable();
  return {"DELETE FROM " + table.name + " WHERE " +
          (OneIn(2) ? KeyEquals(table) : Term(table, "") + " AND " + Term(table, ""))};
}

SqlStatement SqlGenerator::TransactionControl() {
  static const char* const kStatements[] = {
      "BEGIN",       "BEGIN",     "COMMIT",    "COMMIT",        "ROLLBACK",     "SAVEPOINT a",
      "SAVEPOINT b", "RELEASE a", "RELEASE b", "ROLLBACK TO a", "ROLLBACK TO b"};
  return {kStatements[Pick(std::size(kStatements))]};
}

SqlStatement SqlGenerator::ChangeTables() {
  const auto table = tables_.begin() + Pick(static_cast<int>(tables_.size()));
  if (OneIn(3)) {
    const std::string name = "t" + std::to_string(next_table_++);
    const SqlStatement statement = {"ALTER TABLE " + table->name + " RENAME TO " + name};
    table->name = name;
    return statement;
  }
  const SqlStatement statement = {"DROP TABLE " + table->name};
  tables_.erase(table);
  return statement;
}

SqlStatement SqlGenerator::Next() {
  if (tables_.size() < kTables) return Create();
  const int kind = Pick(100);
  if (kind < 12) return Select();
  if (kind < 24) return OrderedSelect();
  if (kind < 30) return Aggregate();
  if (kind < 38) return Join();
  if (kind < 44) return Subquery();
  if (kind < 70) return Insert();
  if (kind < 73) return InsertSelect();
  if (kind < 85) return Update();
  if (kind < 91) return Delete();
  return TransactionControl();
}

std::vector<SqlStatement> SqlGenerator::Contents() const {
  std::vector<SqlStatement> statements;
  for (const Table& table : tables_) {
    statements.push_back({"SELECT * FROM " + table.name + " ORDER BY " + Key(table, ""), "", true});
  }
  return statements;
}

}  // namespace nacre
