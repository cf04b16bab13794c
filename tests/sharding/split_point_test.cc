// Goal: no split divides keys that are to stay together, and one that is possible is found.
// Method: maps of a few shards, with prefixes at all edges.

#include "sharding/reshaping/split_point.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "nacre/comparator.h"

namespace nacre {
namespace {

using std::string_literals::operator""s;

/// Where the shard that has `middle` is split by it; "-" if it cannot be.
std::string SplitAt(const std::vector<std::string>& boundaries, std::string middle,
                    size_t prefix_bytes = 2) {
  ShardMap map;
  EXPECT_TRUE(ShardMap::Make(BytewiseComparator(), boundaries, &map).ok());
  map.SetMade();
  const uint32_t shard = map.shards()[map.Find(middle)].id;
  const Status moved = MoveToUndivided(map, shard, prefix_bytes, &middle);
  if (moved.IsNotFound()) return "-";
  EXPECT_TRUE(moved.ok()) << moved.ToString();
  ShardMap::Reshaping reshaping;
  const Status begun = map.BeginSplit(shard, middle, &reshaping);
  EXPECT_TRUE(begun.ok()) << begun.ToString();
  return middle;
}

TEST(SplitPointTest, ASplitIsBehindTheKeysThatBeginAsTheMiddleOneDoes) {
  EXPECT_EQ(SplitAt({"m\0"s}, "c4key"), "c5");
  EXPECT_EQ(SplitAt({"m\0"s}, "c\xffkey"), "d\0"s);
  EXPECT_EQ(SplitAt({"m\0"s}, "x\0key"s), "x\x01");
  EXPECT_EQ(SplitAt({"m\0"s}, "c4"), "c5");
}

TEST(SplitPointTest, ItIsBeforeThemWhereThereIsNothingBehind) {
  EXPECT_EQ(SplitAt({"c5", "m\0"s}, "c4key"), "c4");
  EXPECT_EQ(SplitAt({"m\0"s}, "\xff\xffkey"), "\xff\xff");
}

TEST(SplitPointTest, OneThatHoldsOnePrefixIsNotSplit) {
  EXPECT_EQ(SplitAt({"c4", "c5"}, "c4key"), "-");
  EXPECT_EQ(SplitAt({"\xff\xff"}, "\xff\xffkey"), "-");
}

TEST(SplitPointTest, WithoutPrefixesTheMiddleStays) {
  EXPECT_EQ(SplitAt({"m"}, "c4key", 0), "c4key");
  EXPECT_TRUE(CheckUndivided(0, "anything").ok());
}

TEST(SplitPointTest, AKeyThatIsGivenHasTheLengthOfAPrefix) {
  EXPECT_TRUE(CheckUndivided(2, "c4").ok());
  EXPECT_TRUE(CheckUndivided(2, "").ok());
  for (const char* key : {"c", "c4k"}) {
    const Status refused = CheckUndivided(2, key);
    EXPECT_TRUE(refused.IsInvalidArgument()) << refused.ToString();
    EXPECT_NE(refused.ToString().find("of 2 bytes"), std::string::npos);
  }
}

}  // namespace
}  // namespace nacre
