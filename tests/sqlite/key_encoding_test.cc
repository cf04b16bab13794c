// Goal: the bytewise order of keys is SQLite's order of the values, and exact values come back.
// Method: all pairs of values at the edges of types, of integers and of doubles, and random ones.
// SQLite itself compares them, column for column.

#include "sqlite/row/key_encoding.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/support/sql/sql_connection.h"

namespace nacre::sqlite {
namespace {

struct Sample {
  std::string literal;
  Value value;
};

const std::vector<Sample>& Samples() {
  static const std::vector<Sample> samples = {
      {"NULL", Value()},
      {"0", Value::Integer(0)},
      {"1", Value::Integer(1)},
      {"-1", Value::Integer(-1)},
      {"0.5", Value::Real(0.5)},
      {"-0.5", Value::Real(-0.5)},
      {"1e-300", Value::Real(1e-300)},
      {"-1e300", Value::Real(-1e300)},
      {"9e999", Value::Real(std::numeric_limits<double>::infinity())},
      {"9007199254740991", Value::Integer(9007199254740991)},
      {"9007199254740992", Value::Integer(9007199254740992)},
      {"9007199254740993", Value::Integer(9007199254740993)},
      {"9007199254740994.0", Value::Real(9007199254740994.0)},
      {"-9007199254740993", Value::Integer(-9007199254740993)},
      {"-9007199254740992.0", Value::Real(-9007199254740992.0)},
      {"9223372036854775807", Value::Integer(std::numeric_limits<int64_t>::max())},
      {"9223372036854775806", Value::Integer(std::numeric_limits<int64_t>::max() - 1)},
      {"9223372036854775808.0", Value::Real(9223372036854775808.0)},
      {"-9223372036854775807", Value::Integer(-std::numeric_limits<int64_t>::max())},
      {"''", Value::Text("")},
      {"'a'", Value::Text("a")},
      {"'A'", Value::Text("A")},
      {"'a '", Value::Text("a ")},
      {"'ab'", Value::Text("ab")},
      {"'b'", Value::Text("b")},
      {"x''", Value::Blob("")},
      {"x'00'", Value::Blob(Slice("\0", 1))},
      {"x'0000'", Value::Blob(Slice("\0\0", 2))},
      {"x'00ff'", Value::Blob(Slice("\0\xff", 2))},
      {"x'01'", Value::Blob("\x01")},
      {"x'0001'", Value::Blob(Slice("\0\x01", 2))},
      {"x'0101'", Value::Blob("\x01\x01")},
      {"x'02'", Value::Blob("\x02")},
      {"x'ff'", Value::Blob("\xff")},
  };
  return samples;
}

int Sign(int order) { return order < 0 ? -1 : (order > 0 ? 1 : 0); }

/// SQLite's own opinion, with NULL before all others.
int SqliteOrder(SqlConnection* connection, const Sample& a, const Sample& b,
                const char* collation) {
  if (a.value.IsNull() || b.value.IsNull()) return int{b.value.IsNull()} - int{a.value.IsNull()};
  const std::string one = a.literal + " COLLATE " + collation;
  const std::vector<std::string> rows = connection->Query("SELECT (" + one + " > " + b.literal +
                                                          ") - (" + one + " < " + b.literal + ")");
  return rows[0] == "i:0|" ? 0 : (rows[0] == "i:1|" ? 1 : -1);
}

class KeyEncodingTest : public testing::TestWithParam<std::pair<Collation, const char*>> {};

TEST_P(KeyEncodingTest, KeepsTheOrderOfSqlite) {
  SqlConnection connection(SqlTables::kNative);
  const auto [collation, name] = GetParam();
  for (const Sample& a : Samples()) {
    for (const Sample& b : Samples()) {
      std::string one;
      std::string two;
      AppendValue(a.value, collation, &one);
      AppendValue(b.value, collation, &two);
      EXPECT_EQ(Sign(Slice(one).compare(two)), SqliteOrder(&connection, a, b, name))
          << a.literal << " and " << b.literal;
      // A part that is declared DESC turns the order around.
      std::string one_inverted = one;
      std::string two_inverted = two;
      Invert(0, &one_inverted);
      Invert(0, &two_inverted);
      EXPECT_EQ(Sign(Slice(one_inverted).compare(two_inverted)), Sign(Slice(two).compare(one)));
      // What follows decides only between equal values.
      const int order = Slice(one).compare(two);
      if (order == 0) continue;
      EXPECT_EQ(Sign(Slice(one + "\x40").compare(two + "\x10")), Sign(order)) << a.literal;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Collations, KeyEncodingTest,
                         testing::Values(std::pair(Collation::kBinary, "BINARY"),
                                         std::pair(Collation::kNoCase, "NOCASE"),
                                         std::pair(Collation::kRightTrim, "RTRIM")));

class KeyBytesTest : public testing::TestWithParam<bool> {
 protected:
  const bool descending = GetParam();

  std::string KeyOf(const Value& value) const {
    std::string key;
    AppendValue(value, Collation::kBinary, &key);
    if (descending) Invert(0, &key);
    return key;
  }
};

INSTANTIATE_TEST_SUITE_P(Directions, KeyBytesTest, testing::Bool());

TEST_P(KeyBytesTest, GivesExactValuesBack) {
  for (const Sample& sample : Samples()) {
    const std::string key = KeyOf(sample.value);
    Slice rest = key;
    std::string scratch;
    Value value;
    // A real number that is whole comes back as an integer, as a numeric column would keep it.
    ASSERT_TRUE(ReadValue(&rest, descending, Affinity::kNumeric, &scratch, &value))
        << sample.literal;
    EXPECT_TRUE(rest.empty()) << sample.literal;
    EXPECT_EQ(value.bytes, sample.value.bytes) << sample.literal;
    EXPECT_EQ(KeyOf(value), key) << sample.literal;
    if (sample.value.type == ValueType::kInteger) {
      EXPECT_EQ(value.type, ValueType::kInteger) << sample.literal;
      EXPECT_EQ(value.integer, sample.value.integer);
    }
  }
}

TEST_P(KeyBytesTest, RefusesKeysThatEndTooEarly) {
  for (const Sample& sample : Samples()) {
    const std::string key = KeyOf(sample.value);
    for (size_t size = 0; size < key.size(); ++size) {
      Slice skipped(key.data(), size);
      Slice read(key.data(), size);
      std::string scratch;
      Value value;
      EXPECT_FALSE(SkipValue(&skipped, descending)) << sample.literal << ' ' << size;
      EXPECT_FALSE(ReadValue(&read, descending, Affinity::kNumeric, &scratch, &value))
          << sample.literal;
    }
  }
}

// An escape, of which there must be a byte behind it: of three in a row the last one is open.
TEST(KeyEncodingTest, AnOpenEscapeIsMalformed) {
  for (const bool descending : {false, true}) {
    for (size_t escapes = 1; escapes <= 4; ++escapes) {
      std::string key = "\x40" + std::string(escapes, '\x01') + std::string(1, '\0');
      if (descending) Invert(0, &key);
      Slice skipped(key);
      EXPECT_EQ(SkipValue(&skipped, descending), escapes % 2 == 0) << escapes;
      Slice read(key);
      std::string scratch;
      Value value;
      EXPECT_EQ(ReadValue(&read, descending, Affinity::kBlob, &scratch, &value), escapes % 2 == 0)
          << escapes;
    }
  }
}

TEST(KeyPrefixTest, EndsPrefixes) {
  EXPECT_EQ(PrefixEnd("a"), "b");
  EXPECT_EQ(PrefixEnd("a\xff"), "b");
  EXPECT_EQ(PrefixEnd("\xff\xff"), "");
}

}  // namespace
}  // namespace nacre::sqlite
