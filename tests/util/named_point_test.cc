// Goal: points are listed whether or not anybody reaches them, each thread that reaches one tells
// the handler that is set at that time, and without a handler nothing happens.
// Method: points of this file, which is linked with others' points.

#include "util/named_point.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace nacre {
namespace {

std::atomic<int> reached{0};
std::atomic<const NamedPoint*> last_reached{nullptr};

void CountReach(const NamedPoint& point) {
  last_reached = &point;
  ++reached;
}

void Never() { NACRE_POINT("test.never"); }
void Reach() { NACRE_POINT("test.reached"); }

const NamedPoint* Find(const std::string& name) {
  const NamedPoint* found = nullptr;
  for (const NamedPoint* point : AllPoints()) {
    if (name != point->name) continue;
    EXPECT_EQ(found, nullptr) << "listed twice";
    found = point;
  }
  return found;
}

class NamedPointTest : public testing::Test {
 protected:
  void SetUp() override {
    reached = 0;
    last_reached = nullptr;
  }
  void TearDown() override { SetPointHandler(nullptr); }
};

TEST_F(NamedPointTest, AreListedUnreached) {
  const NamedPoint* const never = Find("test.never");
  ASSERT_NE(never, nullptr);
  EXPECT_NE(std::string(never->file).find("named_point_test.cc"), std::string::npos);
  ASSERT_NE(Find("test.reached"), nullptr);
  EXPECT_EQ(Find("test.reached")->line, never->line + 1);
  EXPECT_EQ(Find("test.nowhere"), nullptr);
  const std::vector<const NamedPoint*> points = AllPoints();
  EXPECT_TRUE(std::is_sorted(points.begin(), points.end(), [](const auto* a, const auto* b) {
    return std::string(a->name) < std::string(b->name);
  }));
}

TEST_F(NamedPointTest, TellTheHandlerThatIsSet) {
  Reach();
  EXPECT_EQ(reached, 0);
  SetPointHandler(&CountReach);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(Reach);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(reached, 4);
  EXPECT_EQ(last_reached, Find("test.reached"));
  Never();
  EXPECT_EQ(reached, 5);
  EXPECT_EQ(last_reached, Find("test.never"));
  SetPointHandler(nullptr);
  Reach();
  EXPECT_EQ(reached, 5);
}

}  // namespace
}  // namespace nacre
