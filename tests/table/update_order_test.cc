// Goal: UpdateOrder sorts as a comparison sort does, whatever the keys have in common.
//
// Method: random keys of several shapes (long common beginnings, zero bytes, keys that begin with
// others, many versions of few keys), in both kinds of order, beside std::stable_sort.

#include "table/merge/update_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/comparators.h"
#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre {
namespace {

void ExpectSorted(const Comparator* comparator, const std::vector<std::string>& keys) {
  const UpdateOrder order(comparator);
  std::vector<UpdateRef> updates;
  for (size_t i = 0; i < keys.size(); ++i) {
    updates.push_back(order.Ref(PackTag(i + 1, ValueType::kValue), keys[i], Slice()));
  }
  std::vector<UpdateItem> items;
  std::vector<const UpdateRef*> expected;
  for (const UpdateRef& update : updates) {
    items.push_back({.prefix = update.prefix, .update = &update});
    expected.push_back(&update);
  }
  order.Sort(&items);
  std::stable_sort(expected.begin(), expected.end(), [&](const UpdateRef* a, const UpdateRef* b) {
    const int r = comparator->Compare(a->key(), b->key());
    return r != 0 ? r < 0 : a->tag > b->tag;
  });
  ASSERT_EQ(items.size(), expected.size());
  for (size_t i = 0; i < items.size(); ++i) {
    ASSERT_EQ(items[i].update, expected[i]) << "at " << i << " of " << items.size();
  }
}

TEST(UpdateOrderTest, SortsAsComparisonsDo) {
  Random random(TestSeed(2101));
  const BackwardsComparator backwards;
  const std::string shared(100, 's');
  for (const size_t count : {size_t{0}, size_t{1}, size_t{2}, size_t{300}, size_t{20'000}}) {
    for (int shape = 0; shape < 6; ++shape) {
      std::vector<std::string> keys;
      for (size_t i = 0; i < count; ++i) {
        const std::string number = std::to_string(random.Uniform(count * 2));
        std::string bytes;
        for (uint64_t n = random.Uniform(12); n > 0; --n) {
          bytes += static_cast<char>(random.OneIn(2) ? 0 : random.Uniform(256));
        }
        switch (shape) {
          case 0:
            keys.push_back(bytes);
            break;
          case 1:
            keys.push_back("user" + std::string(12 - std::min<size_t>(12, number.size()), '0') +
                           number);
            break;
          case 2:  // Keys that begin with others, by zero bytes only.
            keys.push_back(shared + std::string(random.Uniform(30), '\0'));
            break;
          case 3:  // Several levels of common beginnings.
            keys.push_back(shared.substr(0, 40 * random.Uniform(3)) + "/" +
                           std::to_string(random.Uniform(3)) + shared + number);
            break;
          case 4:  // Versions of one key, or of few.
            keys.push_back(shared + std::string(random.Uniform(2), 'x'));
            break;
          default:
            keys.push_back(number + bytes);
        }
      }
      SCOPED_TRACE("shape " + std::to_string(shape));
      ASSERT_NO_FATAL_FAILURE(ExpectSorted(BytewiseComparator(), keys));
      ASSERT_NO_FATAL_FAILURE(ExpectSorted(&backwards, keys));
    }
  }
}

}  // namespace
}  // namespace nacre
