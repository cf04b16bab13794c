// Goal: SortedInserts puts into a MemTable what was added, whatever the order and the threads.
//
// Method: random keys with several versions and deletions each are added; the MemTable's entries
// are compared with a sorted model, for orders with and without prefixes.

#include "db/write/sorted_inserts.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "nacre/comparator.h"
#include "table/iterator/internal_iterator.h"
#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre {
namespace {

/// The bytewise order under another name.
class PlainComparator : public Comparator {
 public:
  const char* Name() const override { return "plain"; }
  int Compare(const Slice& a, const Slice& b) const override { return a.compare(b); }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
};

void Check(const Comparator* comparator, uint64_t updates, size_t threads) {
  Random random(TestSeed(2026));
  std::map<std::pair<std::string, SequenceNumber>, std::string> model;
  MemTable memtable(comparator, 0, 4096);
  constexpr size_t kParts = 3;
  SortedInserts inserts(comparator, kParts + 1);
  uint64_t deletions = 0;
  for (SequenceNumber sequence = 1; sequence <= updates; ++sequence) {
    const bool deletion = random.Uniform(8) == 0;
    const std::string key = "k" + std::to_string(random.Uniform(updates / 2 + 1));
    const auto [at, added] = model.try_emplace(
        {key, kMaxSequenceNumber - sequence},
        deletion ? std::string() : std::string(random.Uniform(700), static_cast<char>(sequence)));
    ASSERT_TRUE(added);
    deletions += deletion ? 1 : 0;
    inserts.Add(random.Uniform(kParts), sequence,
                deletion ? ValueType::kDeletion : ValueType::kValue, at->first.first, at->second);
  }
  inserts.Add(kParts, updates + 1, ValueType::kValue, "k", "not to be there");
  inserts.DropFrom(kParts);
  inserts.InsertInto(&memtable, threads);
  EXPECT_EQ(memtable.entries(), updates);
  EXPECT_EQ(memtable.deletions(), deletions);
  const std::unique_ptr<InternalIterator> found = memtable.NewIterator();
  found->SeekToFirst();
  for (const auto& [place, value] : model) {
    ASSERT_TRUE(found->Valid());
    ASSERT_EQ(found->user_key().ToString(), place.first);
    ASSERT_EQ(TagSequence(found->tag()), kMaxSequenceNumber - place.second);
    ASSERT_EQ(found->value().ToString(), value);
    found->Next();
  }
  EXPECT_FALSE(found->Valid());
}

TEST(SortedInsertsTest, TheMemTableHasAllInOrder) {
  const PlainComparator plain;
  const Comparator* const comparators[] = {BytewiseComparator(), &plain};
  for (const Comparator* comparator : comparators) {
    for (const uint64_t updates : {0, 1, 5000, 20'000}) {
      for (const size_t threads : {1, 2, 5}) Check(comparator, updates, threads);
    }
  }
}

}  // namespace
}  // namespace nacre
