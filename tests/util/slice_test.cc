// Goal: Slice compares as unsigned bytes, and PinnableSlice releases what it pins exactly once,
// whatever moves happen.
// Method: comparisons against std::string; a release function that counts.

#include "nacre/slice.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace nacre {
namespace {

int SignOf(int n) { return (n > 0) - (n < 0); }

TEST(SliceTest, ComparesLikeUnsignedBytes) {
  using std::string_literals::operator""s;
  const std::string all[] = {"", "\0"s, "\0a"s, "a", "a\0"s, "aa", "b", "\x7f", "\x80", "\xff"};
  for (const std::string& a : all) {
    for (const std::string& b : all) {
      EXPECT_EQ(SignOf(a.compare(b)), SignOf(Slice(a).compare(b)));
      EXPECT_EQ(a == b, Slice(a) == Slice(b));
      EXPECT_EQ(a.starts_with(b), Slice(a).starts_with(b));
    }
  }
  EXPECT_EQ(0, Slice().compare(Slice("")));
  EXPECT_TRUE(Slice() == Slice(""));
}

TEST(SliceTest, ToString) {
  EXPECT_EQ("00FF1A", Slice("\0\xff\x1a", 3).ToString(true));
  EXPECT_EQ(std::string("\0x", 2), Slice("\0x", 2).ToString());
  EXPECT_EQ("", Slice().ToString());
  EXPECT_EQ("", Slice().ToString(true));
}

TEST(SliceTest, RemovesFromBothEnds) {
  Slice slice("abcdef");
  slice.remove_prefix(2);
  slice.remove_suffix(1);
  EXPECT_EQ("cde", slice.ToString());
  slice.remove_prefix(3);
  EXPECT_TRUE(slice.empty());
}

void CountRelease(void* count, void* /*unused*/) { ++*static_cast<int*>(count); }

TEST(PinnableSliceTest, ReleasesExactlyOnce) {
  int released = 0;
  {
    PinnableSlice slice;
    slice.PinSlice("one", CountRelease, &released, nullptr);
    EXPECT_TRUE(slice.IsPinned());
    EXPECT_EQ("one", slice.ToString());
    slice.PinSlice("two", CountRelease, &released, nullptr);
    EXPECT_EQ(1, released);
    slice.PinSelf("three");
    EXPECT_EQ(2, released);
    EXPECT_FALSE(slice.IsPinned());
    slice.PinSlice("four", CountRelease, &released, nullptr);
    slice.Reset();
    EXPECT_EQ(3, released);
    EXPECT_TRUE(slice.empty());
    slice.PinSlice("five", CountRelease, &released, nullptr);
  }
  EXPECT_EQ(4, released);
}

TEST(PinnableSliceTest, MovesHandOverThePin) {
  int released = 0;
  {
    PinnableSlice from;
    from.PinSlice("pinned", CountRelease, &released, nullptr);
    PinnableSlice to(std::move(from));
    EXPECT_EQ("pinned", to.ToString());
    EXPECT_TRUE(from.empty());  // NOLINT: a moved-from slice is promised to be empty.
    EXPECT_FALSE(from.IsPinned());
    PinnableSlice third;
    third.PinSlice("given up", CountRelease, &released, nullptr);
    third = std::move(to);
    EXPECT_EQ(1, released);
    EXPECT_EQ("pinned", third.ToString());
    PinnableSlice& alias = third;
    third = std::move(alias);
    EXPECT_EQ("pinned", third.ToString());
  }
  EXPECT_EQ(2, released);
}

TEST(PinnableSliceTest, OwnedBytesSurviveMoves) {
  // Short ones live inside the string object, long ones on the heap.
  for (const size_t size : {0, 1, 15, 16, 1000}) {
    const std::string bytes(size, 'x');
    PinnableSlice from;
    from.PinSelf(bytes);
    PinnableSlice to(std::move(from));
    from.PinSelf("other bytes in the same place");  // NOLINT: may be used again.
    EXPECT_EQ(bytes, to.ToString());
    std::vector<PinnableSlice> many;
    many.push_back(std::move(to));
    many.resize(10);
    EXPECT_EQ(bytes, many[0].ToString());
  }
}

}  // namespace
}  // namespace nacre
