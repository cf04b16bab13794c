// Goal: what is put into the queue comes out in order; beyond the bound the oldest of its weight is
// dropped and counted, and details never displace what is important.
// Method: random pushes and pops against a plain list.

#include "db/context/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <utility>

#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre {
namespace {

TEST(EventQueueTest, KeepsTheLatestOfEachWeightInOrder) {
  constexpr size_t kMost = 5;
  Random random(TestSeed(71));
  EventQueue<int> queue(kMost);
  std::list<std::pair<int, EventWeight>> model;
  uint64_t dropped = 0;
  for (size_t i = Scaled(20'000); i > 0; --i) {
    if (random.OneIn(2)) {
      const auto weight = random.OneIn(3) ? EventWeight::kImportant : EventWeight::kDetail;
      const auto alike = [&](const auto& each) { return each.second == weight; };
      if (std::count_if(model.begin(), model.end(), alike) == kMost) {
        model.erase(std::find_if(model.begin(), model.end(), alike));
        ++dropped;
      }
      model.emplace_back(static_cast<int>(i), weight);
      queue.Push(static_cast<int>(i), weight);
    } else if (!model.empty()) {
      ASSERT_FALSE(queue.empty());
      ASSERT_EQ(queue.Pop(), model.front().first);
      model.pop_front();
    }
    ASSERT_EQ(queue.empty(), model.empty());
    ASSERT_EQ(queue.dropped(), dropped);
  }
  EXPECT_GT(dropped, 0u);
}

}  // namespace
}  // namespace nacre
