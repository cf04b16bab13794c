// Goal: redundancy is read as users write it, and refused by name where it is not.

#include "table/placement.h"

#include <gtest/gtest.h>

#include <string>

namespace nacre {
namespace {

TEST(PlacementTest, RedundancyRoundTrips) {
  for (const char* text : {"none", "rep(2)", "rep(16)"}) {
    Redundancy redundancy;
    ASSERT_TRUE(ParseRedundancy(text, &redundancy).ok()) << text;
    EXPECT_EQ(redundancy.ToString(), text);
  }
  Redundancy one;
  ASSERT_TRUE(ParseRedundancy("rep(1)", &one).ok());
  EXPECT_EQ(one, Redundancy());
  EXPECT_EQ(one.fragments(), 1);
}

TEST(PlacementTest, BadRedundancyIsNamed) {
  for (const char* text :
       {"", "non", "none ", "rep", "rep()", "rep(0)", "rep(17)", "rep(-1)", "rep(2", "rep(2))",
        "rep(2)x", "rep( 2)", "rep(99999999999)", "Rep(2)"}) {
    Redundancy redundancy;
    const Status status = ParseRedundancy(text, &redundancy);
    EXPECT_TRUE(status.IsInvalidArgument()) << text;
    EXPECT_NE(status.ToString().find("\"" + std::string(text) + "\""), std::string::npos);
  }
}

TEST(PlacementTest, ErasureCodingIsNotThereYet) {
  Redundancy redundancy;
  const Status status = ParseRedundancy("rs(4,2)", &redundancy);
  EXPECT_TRUE(status.IsNotSupported());
  EXPECT_NE(status.ToString().find("rs(4,2)"), std::string::npos);
}

}  // namespace
}  // namespace nacre
