// Goal: the list of snapshots says which sequences are held, in whatever order they are given back.
// Method: random snapshots taken and given back, against a multiset.

#include "db/version/snapshot_list.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre {
namespace {

TEST(SnapshotListTest, HoldsWhatWasNotGivenBack) {
  Random random(TestSeed(72));
  SnapshotList list;
  std::vector<const Snapshot*> held;
  std::multiset<SequenceNumber> model;
  SequenceNumber sequence = 1;
  for (size_t i = Scaled(5'000); i > 0; --i) {
    if (held.empty() || random.OneIn(2)) {
      sequence += random.Uniform(3);
      // One that comes late has its place among the others.
      const SequenceNumber taken = random.OneIn(10) ? 1 + random.Uniform(sequence) : sequence;
      held.push_back(list.Add(taken));
      ASSERT_EQ(held.back()->GetSequenceNumber(), taken);
      model.insert(taken);
    } else {
      const size_t at = random.Uniform(held.size());
      model.erase(model.find(held[at]->GetSequenceNumber()));
      list.Remove(held[at]);
      held[at] = held.back();
      held.pop_back();
    }
    ASSERT_EQ(list.size(), model.size());
    ASSERT_EQ(list.Oldest(), model.empty() ? 0 : *model.begin());
    const std::set<SequenceNumber> distinct(model.begin(), model.end());
    ASSERT_EQ(list.Sequences(), std::vector<SequenceNumber>(distinct.begin(), distinct.end()));
  }
}

}  // namespace
}  // namespace nacre
