// Goal: redundancy is read as users write it, and refused by name where it is not; each byte of a
// striped table has one place, and fragments are as long as the places in them say.

#include "table/format/placement.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>

namespace nacre {
namespace {

TEST(RedundancyTest, RoundTrips) {
  for (const char* text :
       {"none", "rep(2)", "rep(16)", "rs(2,1)", "rs(4,2)", "rs(16,4)", "rs(3,0)"}) {
    Redundancy redundancy;
    ASSERT_TRUE(ParseRedundancy(text, &redundancy).ok()) << text;
    EXPECT_EQ(redundancy.ToString(), text);
    EXPECT_TRUE(IsValid(redundancy));
  }
  Redundancy one;
  ASSERT_TRUE(ParseRedundancy("rep(1)", &one).ok());
  EXPECT_EQ(one, Redundancy());
  EXPECT_EQ(one.fragments(), 1);
}

TEST(RedundancyTest, ASingleDataFragmentIsACopy) {
  Redundancy redundancy;
  ASSERT_TRUE(ParseRedundancy("rs(1,2)", &redundancy).ok());
  EXPECT_EQ(redundancy, Redundancy::Copies(3));
  ASSERT_TRUE(ParseRedundancy("rs(1,0)", &redundancy).ok());
  EXPECT_EQ(redundancy.ToString(), "none");
}

TEST(RedundancyTest, BadTextIsNamed) {
  for (
      const char* text :
      {"",         "non",     "none ",    "rep",     "rep()",     "rep(0)",           "rep(17)",
       "rep(-1)",  "rep(2",   "rep(2))",  "rep(2)x", "rep( 2)",   "rep(99999999999)", "Rep(2)",
       "rs",       "rs()",    "rs(4)",    "rs(,)",   "rs(4,)",    "rs(,2)",           "rs(0,2)",
       "rs(17,1)", "rs(4,5)", "rs(4,-1)", "rs(4,2",  "rs(4,2,1)", "rs(4 ,2)",         "rs(4,2)x"}) {
    Redundancy redundancy;
    const Status status = ParseRedundancy(text, &redundancy);
    EXPECT_TRUE(status.IsInvalidArgument()) << text;
    EXPECT_NE(status.ToString().find("\"" + std::string(text) + "\""), std::string::npos);
  }
}

TEST(RedundancyTest, FewerNodesKeepAsManyLossesAsTheyCan) {
  const auto on = [](const char* text, int nodes) {
    Redundancy redundancy;
    EXPECT_TRUE(ParseRedundancy(text, &redundancy).ok());
    return redundancy.OnNodes(nodes).ToString();
  };
  EXPECT_EQ(on("rs(4,2)", 5), "rs(3,2)");
  EXPECT_EQ(on("rs(4,2)", 4), "rs(2,2)");
  EXPECT_EQ(on("rs(4,2)", 3), "rep(3)");
  EXPECT_EQ(on("rs(4,2)", 2), "rep(2)");
  EXPECT_EQ(on("rs(4,2)", 1), "none");
  EXPECT_EQ(on("rep(3)", 2), "rep(2)");
}

TEST(RedundancyPolicyTest, TheFirstRuleThatFitsALevelHolds) {
  RedundancyPolicy policy;
  EXPECT_EQ(policy.For(3).ToString(), "none");
  ASSERT_TRUE(RedundancyPolicy::Parse("rs(4,2)", &policy).ok());
  EXPECT_EQ(policy.For(0).ToString(), "rs(4,2)");
  EXPECT_EQ(policy.ToString(), "rs(4,2)");
  const char* const text = "L0:rep(3),L1:rs(6,3),*:rs(4,2)";
  ASSERT_TRUE(RedundancyPolicy::Parse(text, &policy).ok());
  EXPECT_EQ(policy.For(0).ToString(), "rep(3)");
  EXPECT_EQ(policy.For(1).ToString(), "rs(6,3)");
  EXPECT_EQ(policy.For(2).ToString(), "rs(4,2)");
  EXPECT_EQ(policy.Widest().ToString(), "rs(6,3)");
  EXPECT_EQ(policy.ToString(), text);
}

TEST(RedundancyPolicyTest, BadRulesAreNamed) {
  for (const char* text : {"L0:rep(3)", "*:rs(4,2),L0:rep(3)", "*:none,*:none", "L:none,*:none",
                           "Lx:none,*:none", "L-1:none,*:none", "L0:,*:none", "rs(4,2),L0:none",
                           "L0:rep(3),,*:none", "L0:rs(4,2,*:none", ":none"}) {
    RedundancyPolicy policy;
    const Status status = RedundancyPolicy::Parse(text, &policy);
    EXPECT_TRUE(status.IsInvalidArgument()) << text;
  }
}

TEST(StripingTest, EachByteHasOnePlaceInFragmentsOfTheirLengths) {
  for (const int data : {2, 3, 4, 16}) {
    constexpr uint64_t kChunk = 8;
    const Striping striping(data, kChunk);
    for (uint64_t size = 1; size < 3 * kChunk * static_cast<uint64_t>(data) + 3; ++size) {
      std::map<uint32_t, std::set<uint64_t>> offsets;
      for (uint64_t at = 0; at < size; ++at) {
        const Striping::Place place = striping.Locate(at);
        ASSERT_LT(place.fragment, static_cast<uint32_t>(data));
        ASSERT_TRUE(offsets[place.fragment].insert(place.offset).second);
      }
      for (int fragment = 0; fragment < data; ++fragment) {
        const uint64_t bytes = striping.FragmentBytes(fragment, size);
        const auto& there = offsets[static_cast<uint32_t>(fragment)];
        ASSERT_EQ(there.size(), bytes) << size << " bytes in " << data;
        if (bytes > 0) {
          ASSERT_EQ(*there.rbegin(), bytes - 1);
        }
        uint64_t sum = 0;
        for (uint64_t row = 0; row < 4; ++row) sum += striping.ChunkBytes(row, fragment, size);
        ASSERT_EQ(sum, bytes);
      }
      // Parity is as long as the longest data fragment.
      ASSERT_EQ(striping.FragmentBytes(data, size), striping.FragmentBytes(0, size));
    }
  }
}

}  // namespace
}  // namespace nacre
