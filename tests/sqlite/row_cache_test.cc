// Goal: what a connection keeps of the rows that it read is what the database has, also when the
// row changes: by the connection itself, by another one, by what is rolled back.
// Method: random calls beside a model that remembers what was ever told of each key; then two
// connections over an embedded pool in chosen orders.

#include "sqlite/row_cache.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/seed.h"
#include "tests/support/sql/sql_connection.h"
#include "util/random.h"

namespace nacre {
namespace {

using sqlite::RowCache;
using Rows = std::vector<std::string>;

std::string KeyOf(uint64_t number) { return "key" + std::to_string(number); }

TEST(RowCacheTest, NeverHasWhatTheStateHasNot) {
  Random random(TestSeed(61));
  RowCache cache;
  std::map<std::string, std::string> state;  // What a cache may have.
  uint64_t id = 0;
  size_t found = 0;
  for (int i = 0; i < 200'000; ++i) {
    const std::string key = KeyOf(random.Uniform(3000));
    const std::string value(random.Uniform(RowCache::kBytesMax + 20),
                            static_cast<char>('a' + random.Uniform(26)));
    const uint64_t action = random.Uniform(100);
    Slice known;
    if (action < 60) {
      if (cache.Find(key, &known)) {
        ++found;
        ASSERT_TRUE(state.contains(key)) << key;
        ASSERT_EQ(known, Slice(state[key])) << key;
      }
    } else if (action < 90) {
      if (!state.contains(key)) state[key] = value;
      cache.Add(key, state[key]);
    } else if (action < 95) {
      cache.Write(key, value);
      state[key] = value;
      cache.MoveTo(++id);
    } else if (action < 99 || random.Uniform(100) != 0) {
      cache.Delete(key);
      state.erase(key);
      cache.MoveTo(++id);
    } else {
      cache.Use(++id);
      state.clear();
    }
    ASSERT_EQ(cache.state(), id);
  }
  EXPECT_GT(found, 10'000u);
}

TEST(RowCacheTest, KeepsWhatWasReadLastAndNothingThatIsLong) {
  RowCache cache;
  Slice known;
  EXPECT_FALSE(cache.Find("a", &known));
  cache.Use(7);
  cache.Add("a", "1");
  ASSERT_TRUE(cache.Find("a", &known));
  EXPECT_EQ(known, Slice("1"));
  cache.Use(7);
  EXPECT_TRUE(cache.Find("a", &known));
  cache.Write("a", std::string(RowCache::kBytesMax, 'x'));
  EXPECT_FALSE(cache.Find("a", &known));
  cache.Add("b", std::string(RowCache::kBytesMax, 'x'));
  EXPECT_FALSE(cache.Find("b", &known));
  cache.Add("b", std::string(RowCache::kBytesMax - 1, 'x'));
  EXPECT_TRUE(cache.Find("b", &known));
  cache.Use(8);
  EXPECT_FALSE(cache.Find("b", &known));
  // The last one is there whatever came before it, and no more than there are places.
  size_t kept = 0;
  constexpr uint64_t kMany = 3 * RowCache::kPlacesMax;
  for (uint64_t i = 0; i < kMany; ++i) {
    cache.Add(KeyOf(i), "v");
    ASSERT_TRUE(cache.Find(KeyOf(i), &known));
  }
  for (uint64_t i = 0; i < kMany; ++i) kept += cache.Find(KeyOf(i), &known) ? 1 : 0;
  EXPECT_LE(kept, RowCache::kPlacesMax);
  EXPECT_GT(kept, RowCache::kPlacesMax / 2);
}

class RowCacheSqlTest : public testing::Test {
 protected:
  RowCacheSqlTest() {
    for (SqlConnection* connection : {&one_, &two_}) {
      connection->Query(
          "CREATE VIRTUAL TABLE t USING nacre(pool='embedded:?nodes=2&size=128MiB', "
          "id INTEGER PRIMARY KEY, name TEXT NOT NULL, n INT, UNIQUE(name), INDEX(n))");
    }
    one_.Query("INSERT INTO t VALUES(1, 'a', 10), (2, 'b', 20)");
  }
  Rows Read(SqlConnection* connection) {
    return connection->Query("SELECT id, name, n FROM t WHERE id = 1");
  }
  Rows ReadByName(SqlConnection* connection, const std::string& name) {
    return connection->Query("SELECT id, n FROM t WHERE name = '" + name + "'");
  }

  SqlConnection one_{SqlTables::kNacre};
  SqlConnection two_{SqlTables::kNacre};
};

TEST_F(RowCacheSqlTest, OthersChangesAreSeen) {
  for (SqlConnection* connection : {&one_, &two_}) {
    EXPECT_EQ(Read(connection), Rows{"i:1|t:a|i:10|"});
    EXPECT_EQ(ReadByName(connection, "a"), Rows{"i:1|i:10|"});
  }
  one_.Query("UPDATE t SET n = 11, name = 'c' WHERE id = 1");
  for (SqlConnection* connection : {&one_, &two_}) {
    EXPECT_EQ(Read(connection), Rows{"i:1|t:c|i:11|"});
    EXPECT_EQ(ReadByName(connection, "a"), Rows{});
    EXPECT_EQ(ReadByName(connection, "c"), Rows{"i:1|i:11|"});
  }
  two_.Query("DELETE FROM t WHERE id = 1");
  EXPECT_EQ(Read(&one_), Rows{});
  two_.Query("INSERT INTO t VALUES(1, 'd', 12)");
  EXPECT_EQ(Read(&one_), Rows{"i:1|t:d|i:12|"});
  // Another one has written between the state of a transaction and its commit.
  one_.Query("BEGIN");
  EXPECT_EQ(Read(&one_), Rows{"i:1|t:d|i:12|"});
  two_.Query("UPDATE t SET n = 13 WHERE id = 1");
  EXPECT_EQ(Read(&one_), Rows{"i:1|t:d|i:12|"});
  one_.Query("UPDATE t SET n = 21 WHERE id = 2");
  one_.Query("COMMIT");
  EXPECT_EQ(Read(&one_), Rows{"i:1|t:d|i:13|"});
}

TEST_F(RowCacheSqlTest, WhatIsRolledBackIsNot) {
  EXPECT_EQ(Read(&one_), Rows{"i:1|t:a|i:10|"});
  one_.Query("BEGIN");
  one_.Query("UPDATE t SET n = 30 WHERE id = 1");
  EXPECT_EQ(Read(&one_), Rows{"i:1|t:a|i:30|"});
  one_.Query("SAVEPOINT s");
  one_.Query("DELETE FROM t WHERE id = 1");
  EXPECT_EQ(Read(&one_), Rows{});
  one_.Query("ROLLBACK TO s");
  EXPECT_EQ(Read(&one_), Rows{"i:1|t:a|i:30|"});
  one_.Query("ROLLBACK");
  EXPECT_EQ(Read(&one_), Rows{"i:1|t:a|i:10|"});
  EXPECT_EQ(Read(&two_), Rows{"i:1|t:a|i:10|"});
}

TEST_F(RowCacheSqlTest, AnUpdateKeepsTheColumnsThatItDoesNotName) {
  for (const char* where : {"id = 1", "name = 'a'", "n = 10", "n > 0 AND id < 2"}) {
    SCOPED_TRACE(where);
    one_.Query(std::string("UPDATE t SET n = n + 1 WHERE ") + where);
    EXPECT_EQ(Read(&two_), Rows{"i:1|t:a|i:11|"});
    one_.Query("UPDATE t SET n = 10 WHERE id = 1");
  }
  one_.Query("UPDATE t SET id = 3 WHERE name = 'b'");
  EXPECT_EQ(two_.Query("SELECT id, name, n FROM t WHERE id > 1"), Rows{"i:3|t:b|i:20|"});
  EXPECT_EQ(ReadByName(&two_, "b"), Rows{"i:3|i:20|"});
  EXPECT_EQ(two_.Query("SELECT * FROM nacre_integrity_check('t')"), Rows{"t:ok|"});
}

}  // namespace
}  // namespace nacre
