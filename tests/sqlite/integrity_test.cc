// Goal: nacre_integrity_check finds each kind of damage, says which row it is, and finds nothing in
// sound tables.
// Method: a table that SQL has filled, in node processes; each kind of damage is written to its
// column families through Nacre's own interface, and undone before the next one.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "nacre/pool.h"
#include "sqlite/row/key_encoding.h"
#include "sqlite/row/row_encoding.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/sql/sql_connection.h"
#include "tests/support/status_assert.h"

namespace nacre::sqlite {
namespace {

using Rows = std::vector<std::string>;

// Families in the order in which they are made.
constexpr size_t kRows = 1;
constexpr size_t kUniqueFamily = 2;
constexpr size_t kOrdinary = 3;

std::string Key(const std::vector<Value>& values) {
  std::string key;
  for (const Value& value : values) AppendValue(value, Collation::kBinary, &key);
  return key;
}

std::string Row(const std::vector<Value>& values) {
  RowWriter writer;
  for (const Value& value : values) writer.Add(value);
  return writer.Finish().ToString();
}

class IntegrityTest : public testing::Test {
 protected:
  IntegrityTest() {
    SqlConnection connection(SqlTables::kNacre);
    connection.Query(create_);
    connection.Query(
        "WITH RECURSIVE i(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM i LIMIT 300) "
        "INSERT INTO t SELECT k, 'name ' || k, k % 10, k * 0.5 FROM i");
    connection.Query("INSERT INTO t VALUES(1000, 'no number', NULL, NULL)");
  }

  /// Opens the database beside SQL, which has it closed.
  void Write(const std::function<Status(DB*, const std::vector<ColumnFamilyHandle*>&)>& write) {
    DBOptions options;
    ASSERT_TRUE(IsOk(Pool::Open(nodes_.pool_uri(), &options.pool)));
    const std::vector<ColumnFamilyDescriptor> families = {
        {"default", {}}, {"sqlite.1", {}}, {"sqlite.2", {}}, {"sqlite.3", {}}};
    std::vector<ColumnFamilyHandle*> handles;
    std::unique_ptr<DB> db;
    ASSERT_TRUE(IsOk(DB::Open(options, "sqlite", families, &handles, &db)));
    EXPECT_TRUE(IsOk(write(db.get(), handles)));
    for (ColumnFamilyHandle* handle : handles) {
      EXPECT_TRUE(IsOk(db->DestroyColumnFamilyHandle(handle)));
    }
  }

  Rows Check(const std::string& arguments = "'t'") {
    SqlConnection connection(SqlTables::kNacre);
    connection.Query(create_);
    return connection.Query("SELECT * FROM nacre_integrity_check(" + arguments + ")");
  }

  /// Puts `value`, or deletes if it is null; the check then finds `findings`. Restores what was.
  void ExpectFindings(size_t family, const std::string& key, const std::string* value,
                      const Rows& findings) {
    bool was_there = false;
    std::string before;
    Write([&](DB* db, const auto& handles) {
      const Status status = db->Get(ReadOptions(), handles[family], key, &before);
      was_there = status.ok();
      if (!status.ok() && !status.IsNotFound()) return status;
      return value == nullptr ? db->Delete(WriteOptions(), handles[family], key)
                              : db->Put(WriteOptions(), handles[family], key, *value);
    });
    Rows expected;
    for (const std::string& finding : findings) expected.push_back("t:" + finding + "|");
    EXPECT_EQ(Check(), expected);
    Write([&](DB* db, const auto& handles) {
      return was_there ? db->Put(WriteOptions(), handles[family], key, before)
                       : db->Delete(WriteOptions(), handles[family], key);
    });
    EXPECT_EQ(Check(), Rows{"t:ok|"});
  }
  void ExpectFindings(size_t family, const std::string& key, const std::string& value,
                      const Rows& findings) {
    ExpectFindings(family, key, &value, findings);
  }

  static MemnodeProcessOptions NodeOptions() {
    MemnodeProcessOptions options;
    options.size = "512MiB";
    options.slab_size = "64MiB";
    return options;
  }

  MemnodeProcesses nodes_{2, NodeOptions()};
  const std::string create_ = "CREATE VIRTUAL TABLE t USING nacre(pool='" + nodes_.pool_uri() +
                              "', id INTEGER PRIMARY KEY, name TEXT NOT NULL, n INT, r REAL, "
                              "UNIQUE(name), INDEX(n, r))";
};

TEST_F(IntegrityTest, FindsNothingInSoundTables) {
  EXPECT_EQ(Check(), Rows{"t:ok|"});
  SqlConnection connection(SqlTables::kNacre);
  connection.Query(create_);
  connection.Query("BEGIN");
  connection.Query("UPDATE t SET name = name || '!', n = n + 1 WHERE id % 3 = 0");
  connection.Query("DELETE FROM t WHERE id % 7 = 0");
  EXPECT_EQ(connection.Query("SELECT * FROM nacre_integrity_check('T')"), Rows{"t:ok|"})
      << "with own writes";
  connection.Query("COMMIT");
  EXPECT_EQ(connection.Query("SELECT * FROM nacre_integrity_check('t')"), Rows{"t:ok|"});
}

TEST_F(IntegrityTest, FindsRowsThatAreGoneOrAreNone) {
  ExpectFindings(kRows, Key({Value::Integer(7)}), nullptr,
                 {"entry in index 1 (name) of row 7, which is missing",
                  "entry in index 2 (n, r) of row 7, which is missing"});
  ExpectFindings(kRows, Key({Value::Integer(7)}), "\xff\xff\xff\xff", {"malformed row 7 of t"});
  ExpectFindings(kRows, Key({Value::Text("x")}),
                 Row({Value::Text("m"), Value::Integer(1), Value::Real(1)}),
                 {"malformed row x'307800' of t"});
  ExpectFindings(kRows, "\x77", "", {"malformed row x'77' of t"});
  ExpectFindings(kRows, Key({Value::Integer(7)}) + "more",
                 Row({Value::Text("m"), Value::Integer(1), Value::Real(1)}),
                 {"malformed row 7 of t"});
}

TEST_F(IntegrityTest, FindsValuesThatColumnsDoNotHold) {
  ExpectFindings(kRows, Key({Value::Integer(7)}),
                 Row({Value(), Value::Integer(7), Value::Real(3.5)}),
                 {"NULL value in t.name of row 7", "row 7 missing from index 1 (name)",
                  "entry in index 1 (name) of row 7, which has other values"});
  ExpectFindings(kRows, Key({Value::Integer(7)}),
                 Row({Value::Text("name 7"), Value::Integer(7), Value::Integer(1)}),
                 {"INTEGER value in t.r of row 7", "row 7 missing from index 2 (n, r)",
                  "entry in index 2 (n, r) of row 7, which has other values"});
  ExpectFindings(kRows, Key({Value::Integer(7)}),
                 Row({Value::Integer(5), Value::Integer(7), Value::Real(3.5)}),
                 {"NUMERIC value in t.name of row 7", "row 7 missing from index 1 (name)",
                  "entry in index 1 (name) of row 7, which has other values"});
}

TEST_F(IntegrityTest, FindsEntriesThatAreGoneOrWrong) {
  ExpectFindings(kUniqueFamily, Key({Value::Text("name 7")}), nullptr,
                 {"row 7 missing from index 1 (name)"});
  ExpectFindings(kOrdinary, Key({Value::Integer(7), Value::Real(3.5), Value::Integer(7)}), nullptr,
                 {"row 7 missing from index 2 (n, r)"});
  ExpectFindings(kOrdinary, Key({Value::Integer(9), Value::Real(3.5), Value::Integer(7)}), "",
                 {"entry in index 2 (n, r) of row 7, which has other values"});
  ExpectFindings(kOrdinary, Key({Value::Integer(9), Value::Real(3.5), Value::Integer(5000)}), "",
                 {"entry in index 2 (n, r) of row 5000, which is missing"});
  ExpectFindings(kOrdinary, "\x77", "", {"malformed entry x'77' in index 2 (n, r)"});
}

// Two rows of the same name: the entry can name one of them only.
TEST_F(IntegrityTest, FindsUniqueValuesThatAreThereTwice) {
  ExpectFindings(kRows, Key({Value::Integer(7)}),
                 Row({Value::Text("name 8"), Value::Integer(7), Value::Real(3.5)}),
                 {"non-unique entry in index 1 (name) of row 7",
                  "entry in index 1 (name) of row 7, which has other values"});
  ExpectFindings(kUniqueFamily, Key({Value::Text("name 7")}), Key({Value::Integer(8)}),
                 {"non-unique entry in index 1 (name) of row 7",
                  "entry in index 1 (name) of row 8, which has other values"});
}

TEST_F(IntegrityTest, SaysNoMoreThanIsAskedFor) {
  Write([](DB* db, const auto& handles) {
    return db->DeleteRange(WriteOptions(), handles[kUniqueFamily], "", "\xff");
  });
  EXPECT_EQ(Check().size(), 100u);
  EXPECT_EQ(Check("'t', 3").size(), 3u);
  EXPECT_EQ(Check("'t', 1000").size(), 301u);
  SqlConnection connection(SqlTables::kNacre);
  EXPECT_EQ(connection.Run("SELECT * FROM nacre_integrity_check('u')").code, SQLITE_ERROR);
  EXPECT_EQ(connection.Run("SELECT * FROM nacre_integrity_check").code, SQLITE_ERROR);
}

}  // namespace
}  // namespace nacre::sqlite
