// Goal: rows and keys that memory damaged are refused, or read as some value, without harm; and a
// row is read in whichever order. Method: bytes by hand (tests/fuzz/sql_row_fuzz.cc has the rest).

#include "sqlite/row/row_encoding.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "sqlite/row/key_encoding.h"

namespace nacre::sqlite {
namespace {

TEST(RowEncodingTest, ReadsInAnyOrder) {
  RowWriter writer;
  writer.Clear();
  writer.Add(Value::Integer(-5));
  writer.Add(Value::Text("text"));
  writer.Add(Value());
  const std::string row = writer.Finish().ToString();
  RowReader reader;
  reader.Reset(row, 3);
  Value value;
  for (const int slot : {2, 0, 1, 0, 2}) {
    ASSERT_TRUE(reader.Read(slot, &value)) << slot;
    EXPECT_EQ(value.IsNull(), slot == 2);
    EXPECT_EQ(value.integer, slot == 0 ? -5 : 0);
    EXPECT_EQ(value.bytes, Slice(slot == 1 ? "text" : ""));
  }
  EXPECT_FALSE(reader.Read(3, &value));
}

TEST(RowEncodingTest, ReadsOnWhereTheRowIsWholeAfterAValueThatIsNot) {
  RowWriter writer;
  writer.Clear();
  writer.Add(Value::Integer(-5));
  writer.Add(Value::Text("cut off"));
  std::string row = writer.Finish().ToString();
  row.pop_back();
  RowReader reader;
  reader.Reset(row, 2);
  Value value;
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(reader.Read(1, &value)) << i;
  }
  ASSERT_TRUE(reader.Read(0, &value));
  EXPECT_EQ(value.integer, -5);
}

TEST(RowEncodingTest, AKeyBeyondTheLargestIntegerIsRead) {
  std::string key;
  AppendValue(Value::Integer(std::numeric_limits<int64_t>::max()), Collation::kBinary, &key);
  key.replace(key.size() - 2, 2, "\xff\xff");
  Slice input = key;
  std::string scratch;
  Value value;
  EXPECT_TRUE(ReadValue(&input, /*descending=*/false, Affinity::kInteger, &scratch, &value));
  EXPECT_TRUE(input.empty());
  EXPECT_EQ(value.type, ValueType::kInteger);
}

}  // namespace
}  // namespace nacre::sqlite
