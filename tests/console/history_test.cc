// Goal: the console keeps the last values of its figures and no others, and tells unknown ones.

#include "console/history.h"

#include <gtest/gtest.h>

#include <cmath>

namespace nacre::console {
namespace {

TEST(HistoryTest, KeepsTheLastPoints) {
  History history({"a", "b"}, /*capacity=*/3);
  EXPECT_EQ(history.Json(), "{\"names\": [\"a\", \"b\"],\n\"points\": []}\n");
  for (int i = 1; i <= 5; ++i) history.Add(1'000'000'000'000 + i, {i * 1.0, i * 0.5});
  EXPECT_EQ(history.size(), 3u);
  EXPECT_EQ(history.Json(),
            "{\"names\": [\"a\", \"b\"],\n\"points\": [[1000000000003,3,1.5],\n"
            "[1000000000004,4,2],\n[1000000000005,5,2.5]]}\n");
}

TEST(HistoryTest, WhatIsNotKnownIsNull) {
  History history({"a", "b"}, /*capacity=*/3);
  history.Add(1, {NAN, INFINITY});
  EXPECT_NE(history.Json().find("[1,null,null]"), std::string::npos) << history.Json();
}

}  // namespace
}  // namespace nacre::console
