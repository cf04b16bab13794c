// Goal: the built-in orders are orders, and their shortened keys lie where the header says.
// Method: all pairs of short keys over a small alphabet with extreme bytes, against std::string.

#include "nacre/comparator.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace nacre {
namespace {

std::vector<std::string> ShortKeys() {
  const std::string alphabet("\x00\x01\x61\x62\xfe\xff", 6);
  std::vector<std::string> keys = {""};
  size_t begin = 0;
  for (int length = 1; length <= 3; ++length) {
    const size_t end = keys.size();
    for (size_t i = begin; i < end; ++i) {
      for (const char c : alphabet) keys.push_back(keys[i] + c);
    }
    begin = end;
  }
  return keys;
}

int Sign(int n) { return (n > 0) - (n < 0); }

class ComparatorTest : public testing::TestWithParam<const Comparator*> {};

TEST_P(ComparatorTest, IsTheOrderOfUnsignedBytesOrItsOpposite) {
  const bool reverse = GetParam() == ReverseBytewiseComparator();
  for (const std::string& a : ShortKeys()) {
    for (const std::string& b : ShortKeys()) {
      const int expected = reverse ? Sign(b.compare(a)) : Sign(a.compare(b));
      ASSERT_EQ(expected, Sign(GetParam()->Compare(a, b)));
    }
  }
}

TEST_P(ComparatorTest, SeparatorLiesBetween) {
  size_t shortened = 0;
  for (const std::string& start : ShortKeys()) {
    for (const std::string& limit : ShortKeys()) {
      std::string separator = start;
      GetParam()->FindShortestSeparator(&separator, limit);
      ASSERT_LE(separator.size(), start.size());
      if (GetParam()->Compare(start, limit) < 0) {
        ASSERT_LE(GetParam()->Compare(start, separator), 0)
            << Slice(start).ToString(true) << " " << Slice(limit).ToString(true);
        ASSERT_LT(GetParam()->Compare(separator, limit), 0)
            << Slice(start).ToString(true) << " " << Slice(limit).ToString(true);
        shortened += separator.size() < start.size();
      } else {
        ASSERT_EQ(start, separator);
      }
    }
  }
  EXPECT_GT(shortened, 0U);
}

TEST_P(ComparatorTest, SuccessorIsNotBefore) {
  for (const std::string& key : ShortKeys()) {
    std::string successor = key;
    GetParam()->FindShortSuccessor(&successor);
    ASSERT_LE(GetParam()->Compare(key, successor), 0) << Slice(key).ToString(true);
    ASSERT_LE(successor.size(), key.size());
  }
}

INSTANTIATE_TEST_SUITE_P(BuiltIn, ComparatorTest,
                         testing::Values(BytewiseComparator(), ReverseBytewiseComparator()));

TEST(ComparatorNameTest, NamesDiffer) {
  EXPECT_STRNE(BytewiseComparator()->Name(), ReverseBytewiseComparator()->Name());
  EXPECT_EQ(BytewiseComparator(), BytewiseComparator());
}

}  // namespace
}  // namespace nacre
