// Goal: a DB iterator shows, for each user key, the newest version that its snapshot sees, unless
// that is a tombstone, within its bounds, in both directions and through any change of direction.
// Method: random entries over few keys (many versions, many tombstones, equal prefixes, empty keys)
// in a vector; a random walk of the iterator beside one over the answer computed key by key.

#include "db/read/db_iterator.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/comparators.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/table/vector_iterator.h"
#include "util/random.h"

namespace nacre {
namespace {

std::unique_ptr<Iterator> IteratorOver(const InternalKeyComparator& comparator,
                                       const std::vector<TestEntry>& entries,
                                       SequenceNumber snapshot, const ReadOptions& options,
                                       size_t run_length = 1) {
  return NewDBIterator(comparator, ReadRules(),
                       std::make_unique<VectorIterator>(comparator, entries, run_length),
                       RangeCover(comparator, snapshot), snapshot, options, nullptr);
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

/// What an iterator has to show, in order.
Pairs Visible(const InternalKeyComparator& comparator, const std::vector<TestEntry>& sorted,
              SequenceNumber snapshot, const std::optional<std::string>& lower,
              const std::optional<std::string>& upper) {
  Pairs pairs;
  for (size_t i = 0; i < sorted.size();) {
    const std::string& key = sorted[i].user_key;
    const TestEntry* newest = nullptr;
    for (; i < sorted.size() && sorted[i].user_key == key; ++i) {
      if (newest == nullptr && TagSequence(sorted[i].tag) <= snapshot) newest = &sorted[i];
    }
    if (newest == nullptr || TagType(newest->tag) == ValueType::kDeletion) continue;
    if (lower && comparator.CompareUserKeys(key, *lower) < 0) continue;
    if (upper && comparator.CompareUserKeys(key, *upper) >= 0) continue;
    pairs.emplace_back(key, newest->value);
  }
  return pairs;
}

class Walk {
 public:
  Walk(const Comparator* user, uint64_t seed) : comparator_(user), random_(seed) {}

  void Run(int steps) {
    const SequenceNumber last = MakeEntries();
    // Some snapshots are older than everything, some newer.
    const SequenceNumber snapshot = random_.Uniform(last + 3);
    const std::optional<std::string> lower = MaybeBound();
    const std::optional<std::string> upper = MaybeBound();
    pairs_ = Visible(comparator_, entries_, snapshot, lower, upper);

    Slice lower_slice;
    Slice upper_slice;
    ReadOptions options;
    if (lower) options.iterate_lower_bound = &(lower_slice = *lower);
    if (upper) options.iterate_upper_bound = &(upper_slice = *upper);
    const auto iterator =
        IteratorOver(comparator_, entries_, snapshot, options, 1 + random_.Skewed(4));
    EXPECT_FALSE(iterator->Valid()) << "valid before any seek";
    for (int i = 0; i < steps; ++i) {
      Step(iterator.get());
      ASSERT_TRUE(iterator->status().ok());
      ASSERT_EQ(iterator->Valid(), at_ < pairs_.size()) << trace_;
      if (!iterator->Valid()) continue;
      ASSERT_EQ(iterator->key().ToString(true), Slice(pairs_[at_].first).ToString(true)) << trace_;
      ASSERT_EQ(iterator->value().ToString(), pairs_[at_].second) << trace_;
    }
  }

 private:
  /// Few different bytes and lengths, so that keys meet and share prefixes.
  std::string Key() {
    static constexpr char kBytes[] = {'\0', '\x01', 'a', '\x7f', '\x80', '\xff'};
    std::string key = random_.OneIn(3) ? "prefix__" : "";
    const uint64_t length = random_.Uniform(4);
    for (uint64_t i = 0; i < length; ++i) key += kBytes[random_.Uniform(sizeof(kBytes))];
    return key;
  }

  std::optional<std::string> MaybeBound() {
    if (random_.OneIn(2)) return std::nullopt;
    return Key();
  }

  SequenceNumber MakeEntries() {
    SequenceNumber sequence = 0;
    const uint64_t keys = random_.Uniform(12);
    for (uint64_t i = 0; i < keys; ++i) {
      const std::string key = Key();
      const uint64_t versions = 1 + random_.Skewed(5);
      for (uint64_t v = 0; v < versions; ++v) {
        ++sequence;
        if (random_.OneIn(3)) {
          entries_.push_back({key, PackTag(sequence, ValueType::kDeletion), ""});
        } else {
          const std::string value = random_.OneIn(5) ? "" : std::to_string(sequence);
          entries_.push_back({key, PackTag(sequence, ValueType::kValue), value});
        }
      }
    }
    SortEntries(comparator_, &entries_);
    return sequence;
  }

  void Step(Iterator* iterator) {
    const bool valid = at_ < pairs_.size();
    const uint64_t what = random_.Uniform(valid ? 16 : 4);
    if (what == 0) {
      trace_ += " first";
      iterator->SeekToFirst();
      at_ = 0;
    } else if (what == 1) {
      trace_ += " last";
      iterator->SeekToLast();
      at_ = pairs_.size() - 1;
    } else if (what == 2 || what == 3) {
      Seek(iterator, what == 2);
    } else if (what < 10) {
      trace_ += " next";
      iterator->Next();
      ++at_;
    } else {
      trace_ += " prev";
      iterator->Prev();
      --at_;
    }
  }

  void Seek(Iterator* iterator, bool forward) {
    const std::string target =
        pairs_.empty() || random_.OneIn(2) ? Key() : pairs_[random_.Uniform(pairs_.size())].first;
    trace_ += (forward ? " seek " : " seekforprev ") + Slice(target).ToString(true);
    size_t before = 0;  // Keys before the target.
    size_t equal = 0;
    for (const auto& [key, value] : pairs_) {
      const int r = comparator_.CompareUserKeys(key, target);
      before += r < 0;
      equal += r == 0;
    }
    if (forward) {
      iterator->Seek(target);
      at_ = before;
    } else {
      iterator->SeekForPrev(target);
      at_ = before + equal - 1;
    }
  }

  const InternalKeyComparator comparator_;
  Random random_;
  std::vector<TestEntry> entries_;
  Pairs pairs_;
  size_t at_ = SIZE_MAX;  ///< Index into pairs_; anything past its end: not valid.
  std::string trace_;
};

void RunWalks(const Comparator* comparator, uint64_t seed) {
  const size_t rounds = Scaled(20'000);
  for (size_t i = 0; i < rounds && !testing::Test::HasFatalFailure(); ++i) {
    SCOPED_TRACE("round " + std::to_string(i));
    Walk(comparator, seed + i).Run(60);
  }
}

TEST(DBIteratorTest, RandomWalkBytewise) { RunWalks(BytewiseComparator(), TestSeed(11)); }

TEST(DBIteratorTest, RandomWalkReverse) { RunWalks(ReverseBytewiseComparator(), TestSeed(12)); }

TEST(DBIteratorTest, RandomWalkCustom) {
  const BackwardsComparator comparator;
  RunWalks(&comparator, TestSeed(13));
}

TEST(DBIteratorTest, SkipsAnyNumberOfHiddenVersions) {
  const InternalKeyComparator comparator(BytewiseComparator());
  std::vector<TestEntry> entries;
  for (SequenceNumber s = 1; s <= 1000; ++s) {
    entries.push_back({"middle", PackTag(s, s % 2 ? ValueType::kValue : ValueType::kDeletion),
                       std::to_string(s)});
  }
  entries.push_back({"first", PackTag(1001, ValueType::kValue), "f"});
  entries.push_back({"zlast", PackTag(1002, ValueType::kValue), "l"});
  SortEntries(comparator, &entries);
  for (const SequenceNumber snapshot : {1, 2, 500, 501, 999, 1000, 1002}) {
    SCOPED_TRACE(snapshot);
    const auto iterator = IteratorOver(comparator, entries, snapshot, {});
    const Pairs expected = Visible(comparator, entries, snapshot, {}, {});
    Pairs forward;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      forward.emplace_back(iterator->key().ToString(), iterator->value().ToString());
    }
    EXPECT_EQ(forward, expected);
    Pairs backward;
    for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) {
      backward.emplace(backward.begin(), iterator->key().ToString(), iterator->value().ToString());
    }
    EXPECT_EQ(backward, expected);
  }
}

TEST(DBIteratorTest, TakesItsBoundsAnewWithEachSeek) {
  const InternalKeyComparator comparator(BytewiseComparator());
  std::vector<TestEntry> entries;
  for (const char* key : {"a", "b", "c", "d", "e"}) {
    entries.push_back({key, PackTag(1, ValueType::kValue), key});
  }
  Slice lower("b");
  Slice upper("d");
  ReadOptions options;
  options.iterate_lower_bound = &lower;
  options.iterate_upper_bound = &upper;
  const std::unique_ptr<Iterator> iterator = IteratorOver(comparator, entries, 9, options);
  const auto expect = [&](const char* first, const char* last) {
    iterator->SeekToFirst();
    ASSERT_TRUE(iterator->Valid());
    EXPECT_EQ(iterator->key().ToString(), first);
    iterator->SeekForPrev("z");
    ASSERT_TRUE(iterator->Valid());
    EXPECT_EQ(iterator->key().ToString(), last);
    iterator->SeekToLast();
    ASSERT_TRUE(iterator->Valid());
    EXPECT_EQ(iterator->key().ToString(), last);
    iterator->Seek("a");
    ASSERT_TRUE(iterator->Valid());
    EXPECT_EQ(iterator->key().ToString(), first);
  };
  expect("b", "c");
  // It stays within those of its last seek.
  lower = "a";
  upper = "e";
  iterator->Next();
  iterator->Next();
  EXPECT_FALSE(iterator->Valid());
  expect("a", "d");
  lower = "c";
  expect("c", "d");
}

TEST(DBIteratorTest, FailureShowsAsStatusNeverAsAnEnd) {
  // An iterator below that fails after n moves, for every n until the walk gets through: what was
  // shown before is right, and the end that it comes to is marked as a failure.
  const InternalKeyComparator comparator(BytewiseComparator());
  std::vector<TestEntry> entries;
  for (SequenceNumber s = 1; s <= 30; ++s) {
    entries.push_back({"k" + std::to_string(s % 7),
                       PackTag(s, s % 5 == 0 ? ValueType::kDeletion : ValueType::kValue),
                       std::to_string(s)});
  }
  SortEntries(comparator, &entries);
  const Pairs expected = Visible(comparator, entries, 30, {}, {});
  for (const bool forward : {true, false}) {
    bool through = false;
    for (size_t moves = 0; !through; ++moves) {
      SCOPED_TRACE(moves);
      ASSERT_LT(moves, 100u);
      auto internal = std::make_unique<VectorIterator>(comparator, entries);
      internal->FailAfter(moves, Status::Unavailable("node 3"));
      const auto iterator = NewDBIterator(comparator, ReadRules(), std::move(internal),
                                          RangeCover(comparator, 30), 30, {}, nullptr);
      forward ? iterator->SeekToFirst() : iterator->SeekToLast();
      size_t shown = 0;
      while (iterator->Valid()) {
        ASSERT_LT(shown, expected.size());
        const auto& [key, value] = expected[forward ? shown : expected.size() - 1 - shown];
        ASSERT_EQ(iterator->key().ToString(), key);
        ASSERT_EQ(iterator->value().ToString(), value);
        ++shown;
        forward ? iterator->Next() : iterator->Prev();
      }
      through = iterator->status().ok();
      if (through) {
        EXPECT_EQ(shown, expected.size());
      } else {
        EXPECT_TRUE(iterator->status().IsUnavailable());
      }
    }
  }
}

TEST(DBIteratorTest, ErrorIterator) {
  const auto iterator = NewErrorIterator(Status::Corruption("table 7"));
  iterator->SeekToFirst();
  EXPECT_FALSE(iterator->Valid());
  iterator->SeekForPrev("x");
  EXPECT_FALSE(iterator->Valid());
  EXPECT_TRUE(iterator->status().IsCorruption());
}

}  // namespace
}  // namespace nacre
