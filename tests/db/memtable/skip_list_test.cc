// Goal: the skip list is a sorted map under any mix of inserts, by one thread and by several, and
// readers see a sorted list at every moment that holds all inserts that returned before.
//
// Method: random entries against std::map, with keys made to be hard (short, with zero bytes,
// with common prefixes of all lengths, one a prefix of another) and in orders that the insert hint
// likes and hates. For threads: each writer publishes how far it is after each insert; readers take
// these numbers first and then must find every entry up to them. Run under ThreadSanitizer too.

#include "db/memtable/skip_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "table/format/key_order.h"
#include "tests/support/seed.h"
#include "util/coding.h"
#include "util/random.h"

namespace nacre {
namespace {

/// Key and tag, in the list's order.
using Entry = std::pair<std::string, uint64_t>;

struct EntryOrder {
  const Comparator* comparator;
  bool operator()(const Entry& a, const Entry& b) const {
    const int r = comparator->Compare(a.first, b.first);
    return r != 0 ? r < 0 : a.second > b.second;
  }
};
using ListModel = std::map<Entry, std::string, EntryOrder>;

BytewiseKeyOrder OrderOf(const Comparator* /*comparator*/, BytewiseKeyOrder* /*type*/) {
  return {};
}
CustomKeyOrder OrderOf(const Comparator* comparator, CustomKeyOrder* /*type*/) {
  return {comparator};
}

/// A key that is likely to be close to others.
std::string HardKey(Random* random) {
  std::string key;
  if (random->OneIn(3)) key.assign(random->Uniform(20), 'p');
  for (uint64_t left = random->Uniform(10); left > 0; --left) {
    key.push_back("\0\0\x01p\x7f\x80\xff"[random->Uniform(7)]);
  }
  return key;
}

template <typename Order>
void ExpectNode(const typename SkipList<Order>::Node* node, ListModel::const_iterator expected,
                const ListModel& model) {
  if (expected == model.end()) {
    ASSERT_EQ(nullptr, node);
    return;
  }
  ASSERT_NE(nullptr, node);
  ASSERT_EQ(expected->first.first, node->entry().key().ToString());
  ASSERT_EQ(expected->first.second, node->entry().tag());
  ASSERT_EQ(expected->second, node->entry().value().ToString());
}

template <typename Order>
void ExpectSearchesAgree(const SkipList<Order>& list, const ListModel& model, const Entry& target) {
  const auto at_or_after = model.lower_bound(target);
  ExpectNode<Order>(list.LowerBound(target.first, target.second), at_or_after, model);
  const auto before = at_or_after == model.begin() ? model.end() : std::prev(at_or_after);
  ExpectNode<Order>(list.Before(target.first, target.second), before, model);
  const bool at = at_or_after != model.end() && at_or_after->first == target;
  ExpectNode<Order>(list.AtOrBefore(target.first, target.second), at ? at_or_after : before, model);
}

template <typename Order>
void ExpectSameAs(const SkipList<Order>& list, const ListModel& model) {
  const auto* node = list.First();
  for (auto expected = model.begin(); expected != model.end(); ++expected) {
    ExpectNode<Order>(node, expected, model);
    node = node->Next();
  }
  ASSERT_EQ(nullptr, node);
  ExpectNode<Order>(list.Last(), model.empty() ? model.end() : std::prev(model.end()), model);
}

struct ListCase {
  const Comparator* comparator;
  bool bytewise_order;
};

class SkipListTest : public testing::TestWithParam<ListCase> {
 protected:
  /// Calls `test(list, model)` with an empty list of the order under test.
  template <typename Test>
  void WithList(const Test& test) {
    if (GetParam().bytewise_order) {
      Run<BytewiseKeyOrder>(test);
    } else {
      Run<CustomKeyOrder>(test);
    }
  }

 private:
  template <typename Order, typename Test>
  void Run(const Test& test) {
    ConcurrentArena arena;
    SkipList<Order> list(OrderOf(GetParam().comparator, static_cast<Order*>(nullptr)), &arena);
    ListModel model(EntryOrder{GetParam().comparator});
    typename SkipList<Order>::Hint hint = {};
    test(&list, &model, &hint, &arena);
  }
};

template <typename List, typename Hint>
void Insert(List* list, Hint* hint, ConcurrentArena* arena, const std::string& key, uint64_t tag,
            const std::string& value) {
  bool new_chunk = false;
  auto* const node = list->NewNode(hint, &new_chunk);
  list->Insert(node, MemTableEntry::New(arena, key, tag, value, ValuePlace::kCopied, &new_chunk),
               hint);
}

template <typename List, typename Hint>
void InsertBoth(List* list, ListModel* model, Hint* hint, ConcurrentArena* arena,
                const Entry& entry, const std::string& value) {
  if (!model->emplace(entry, value).second) return;
  Insert(list, hint, arena, entry.first, entry.second, value);
}

TEST_P(SkipListTest, EmptyList) {
  WithList([](auto* list, ListModel* model, auto* /*hint*/, ConcurrentArena* /*arena*/) {
    EXPECT_EQ(nullptr, list->First());
    EXPECT_EQ(nullptr, list->Last());
    for (const uint64_t tag : {uint64_t{0}, uint64_t{7}, UINT64_MAX}) {
      ExpectSearchesAgree(*list, *model, {"", tag});
      ExpectSearchesAgree(*list, *model, {"key", tag});
    }
  });
}

TEST_P(SkipListTest, RandomEntriesLikeAMap) {
  WithList([](auto* list, ListModel* model, auto* hint, ConcurrentArena* arena) {
    Random random(TestSeed(501));
    for (int i = 0; i < 5000; ++i) {
      const Entry entry{HardKey(&random), random.Skewed(6)};
      InsertBoth(list, model, hint, arena, entry, std::string(random.Skewed(8), 'v'));
      ExpectSearchesAgree(*list, *model, {HardKey(&random), random.Skewed(6)});
      if (testing::Test::HasFatalFailure()) return;
    }
    for (const auto& [entry, value] : *model) {
      ExpectSearchesAgree(*list, *model, entry);
      if (entry.second > 0) ExpectSearchesAgree(*list, *model, {entry.first, entry.second - 1});
      ExpectSearchesAgree(*list, *model, {entry.first, entry.second + 1});
    }
    ExpectSearchesAgree(*list, *model, {HardKey(&random), UINT64_MAX});
    ExpectSameAs(*list, *model);
  });
}

TEST_P(SkipListTest, RunsUpAndDownAndBetween) {
  // Ascending runs use the hint, others must notice that they cannot.
  WithList([](auto* list, ListModel* model, auto* hint, ConcurrentArena* arena) {
    Random random(TestSeed(502));
    for (int run = 0; run < 300; ++run) {
      const auto step = static_cast<int64_t>(random.Uniform(5)) - 2;
      auto number = static_cast<int64_t>(random.Uniform(100'000));
      for (uint64_t left = random.Uniform(40); left > 0; --left, number += step) {
        char key[12];
        std::snprintf(key, sizeof(key), "%08lld", static_cast<long long>(number & 0xfffff));
        InsertBoth(list, model, hint, arena, {key, random.Uniform(1000)}, "v");
      }
      ExpectSearchesAgree(*list, *model, {std::to_string(random.Uniform(100'000)), 1});
    }
    ExpectSameAs(*list, *model);
  });
}

TEST_P(SkipListTest, HintsOfSeveralWritersCrossOneAnother) {
  // Without threads, so that every interleaving of two hints is an exact, repeatable one.
  WithList([](auto* list, ListModel* model, auto* hint, ConcurrentArena* arena) {
    Random random(TestSeed(503));
    std::vector<std::remove_pointer_t<decltype(hint)>> hints(3);
    std::vector<uint64_t> at = {0, 50'000, 10};
    for (int i = 0; i < 20'000; ++i) {
      const size_t writer = random.Uniform(hints.size());
      if (random.OneIn(200)) at[writer] = random.Uniform(100'000);
      at[writer] += random.Uniform(4);
      char key[12];
      std::snprintf(key, sizeof(key), "%08llu", static_cast<unsigned long long>(at[writer]));
      InsertBoth(list, model, &hints[writer], arena, {key, static_cast<uint64_t>(i)}, "v");
    }
    ExpectSameAs(*list, *model);
  });
}

INSTANTIATE_TEST_SUITE_P(Orders, SkipListTest,
                         testing::Values(ListCase{BytewiseComparator(), true},
                                         ListCase{BytewiseComparator(), false},
                                         ListCase{ReverseBytewiseComparator(), false}));

// ---- Threads
// -------------------------------------------------------------------------------------

enum class Pattern { kRandom, kOwnRange, kInterleaved, kDescending };

class ConcurrentSkipListTest : public testing::TestWithParam<Pattern> {
 protected:
  using List = SkipList<BytewiseKeyOrder>;
  static constexpr uint64_t kWriters = 3;
  static constexpr uint64_t kPerWriter = 5000;

  /// The key of a writer's i-th insert; the writer is its last byte.
  static std::string KeyOf(uint64_t seed, uint64_t writer, uint64_t i) {
    uint64_t number = 0;
    switch (GetParam()) {
      case Pattern::kRandom:
        number = Random(seed ^ (writer << 32 | i)).Next();
        break;
      case Pattern::kOwnRange:
        number = writer << 32 | i;
        break;
      case Pattern::kInterleaved:
        number = i;
        break;
      case Pattern::kDescending:
        number = kPerWriter - i;
        break;
    }
    std::string key(9, static_cast<char>(writer));
    EncodeFixed64(key.data(), __builtin_bswap64(number));
    return key;
  }

  /// Value and tag follow from the key, so that a torn entry shows.
  static std::string ValueOf(const std::string& key) { return key + key; }
  static uint64_t TagOf(const std::string& key) { return DecodeFixed64(key.data()) ^ 0x5a5a; }

  static void ExpectWhole(const List::Node* node) {
    const std::string key = node->entry().key().ToString();
    ASSERT_EQ(9U, key.size());
    ASSERT_EQ(TagOf(key), node->entry().tag());
    ASSERT_EQ(ValueOf(key), node->entry().value().ToString());
  }
};

TEST_P(ConcurrentSkipListTest, ReadersSeeEachReturnedInsertInASortedList) {
  const uint64_t seed = TestSeed(504);
  ConcurrentArena arena;
  List list(BytewiseKeyOrder(), &arena);
  std::atomic<uint64_t> done[kWriters] = {};
  std::barrier start(kWriters + 2);
  std::vector<std::thread> threads;
  for (uint64_t writer = 0; writer < kWriters; ++writer) {
    threads.emplace_back([&, writer] {
      List::Hint hint = {};
      start.arrive_and_wait();
      for (uint64_t i = 0; i < kPerWriter; ++i) {
        const std::string key = KeyOf(seed, writer, i);
        Insert(&list, &hint, &arena, key, TagOf(key), ValueOf(key));
        done[writer].store(i + 1, std::memory_order_release);
      }
    });
  }
  const auto all_done = [&done] {
    return std::all_of(std::begin(done), std::end(done),
                       [](const auto& count) { return count.load() == kPerWriter; });
  };
  // One reader looks keys up.
  threads.emplace_back([&] {
    Random random(seed + 1);
    start.arrive_and_wait();
    // One more round after all is done.
    for (bool last_round = false; !last_round;) {
      last_round = all_done();
      for (int i = 0; i < 100; ++i) {
        const uint64_t writer = random.Uniform(kWriters);
        const uint64_t known = done[writer].load(std::memory_order_acquire);
        if (known == 0) continue;
        const std::string key = KeyOf(seed, writer, random.Uniform(known));
        const List::Node* node = list.LowerBound(key, TagOf(key));
        ASSERT_NE(nullptr, node);
        ASSERT_EQ(key, node->entry().key().ToString());
        ExpectWhole(node);
        const List::Node* before = list.Before(key, TagOf(key));
        if (before != nullptr) {
          ASSERT_LT(before->entry().key().compare(key), 0);
          ExpectWhole(before);
        }
      }
    }
  });
  // One walks the list.
  threads.emplace_back([&] {
    start.arrive_and_wait();
    // One more round after all is done.
    for (bool last_round = false; !last_round;) {
      last_round = all_done();
      uint64_t known = 0;
      for (const auto& count : done) known += count.load(std::memory_order_acquire);
      uint64_t seen = 0;
      std::string last;
      for (const List::Node* node = list.First(); node != nullptr; node = node->Next()) {
        ExpectWhole(node);
        ASSERT_TRUE(seen == 0 || node->entry().key().compare(last) > 0);
        last = node->entry().key().ToString();
        ++seen;
      }
      ASSERT_GE(seen, known);
    }
  });
  for (std::thread& thread : threads) thread.join();

  uint64_t entries = 0;
  for (const List::Node* node = list.First(); node != nullptr; node = node->Next()) ++entries;
  EXPECT_EQ(kWriters * kPerWriter, entries);
  for (uint64_t writer = 0; writer < kWriters; ++writer) {
    for (uint64_t i = 0; i < kPerWriter; ++i) {
      const std::string key = KeyOf(seed, writer, i);
      const List::Node* node = list.LowerBound(key, TagOf(key));
      ASSERT_TRUE(node != nullptr && node->entry().key() == Slice(key));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Patterns, ConcurrentSkipListTest,
                         testing::Values(Pattern::kRandom, Pattern::kOwnRange,
                                         Pattern::kInterleaved, Pattern::kDescending));

}  // namespace
}  // namespace nacre
