// Goal: what indexes take stays within the budget, the range indexes that were not used for longest
// go first, and a reader keeps the one that it holds. Method: slots with made-up range indexes of
// known sizes; several threads that use more of them than there is room for, with each index's
// number in its bytes.

#include "table/index/index_memory.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "table/index/range_index_slot.h"
#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre {
namespace {

constexpr size_t kSection = 10'000;

RangeIndexRef IndexOf(char number) {
  auto index = std::make_shared<LoadedRangeIndex>();
  index->section.assign(kSection, number);
  return index;
}

/// What one takes.
uint64_t Bytes() { return IndexOf('a')->MemoryUsage(); }

class Slots {
 public:
  Slots(IndexMemory* memory, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      slots_.push_back(std::make_unique<RangeIndexSlot>(memory, kSection));
    }
  }
  RangeIndexSlot& operator[](size_t i) { return *slots_[i]; }
  void Close(size_t i) { slots_[i].reset(); }
  void KeepAll() {
    for (size_t i = 0; i < slots_.size(); ++i) slots_[i]->Keep(IndexOf(static_cast<char>(i)));
  }
  /// Which of them have theirs. Not a use.
  std::vector<size_t> Here() {
    std::vector<size_t> here;
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i]->MemoryUsage() > 0) here.push_back(i);
    }
    return here;
  }

 private:
  std::vector<std::unique_ptr<RangeIndexSlot>> slots_;
};

using Numbers = std::vector<size_t>;

TEST(IndexMemoryTest, WithoutABudgetIndexesStay) {
  Slots slots(nullptr, 100);
  EXPECT_EQ(slots[7].Get(), nullptr);
  EXPECT_TRUE(slots[7].HasRoom());
  slots.KeepAll();
  EXPECT_EQ(slots.Here().size(), 100u);
  EXPECT_EQ(slots[7].Get()->section[0], 7);
}

TEST(IndexMemoryTest, TheOnesThatWereNotUsedForLongestGo) {
  IndexMemory memory(4 * Bytes());
  Slots slots(&memory, 8);
  slots.KeepAll();
  EXPECT_EQ(slots.Here(), (Numbers{4, 5, 6, 7}));
  EXPECT_EQ(memory.used(), 4 * Bytes());
  EXPECT_FALSE(slots[0].HasRoom());
  ASSERT_NE(slots[4].Get(), nullptr);
  ASSERT_NE(slots[6].Get(), nullptr);
  slots[0].Keep(IndexOf(0));
  EXPECT_EQ(slots.Here(), (Numbers{0, 4, 6, 7}));
  slots[1].Keep(IndexOf(1));
  EXPECT_EQ(slots.Here(), (Numbers{0, 1, 4, 6}));
  // A second use is as good as the first.
  ASSERT_NE(slots[4].Get(), nullptr);
  slots[2].Keep(IndexOf(2));
  slots[3].Keep(IndexOf(3));
  EXPECT_EQ(slots.Here(), (Numbers{1, 2, 3, 4}));
}

TEST(IndexMemoryTest, OneThatHadToGoLivesWhileItIsHeldAndComesBackUnread) {
  IndexMemory memory(2 * Bytes());
  Slots slots(&memory, 4);
  slots.KeepAll();
  slots[0].Keep(IndexOf(0));
  RangeIndexRef held = slots[0].Get();
  ASSERT_NE(held, nullptr);
  slots[1].Keep(IndexOf(1));
  slots[2].Keep(IndexOf(2));
  slots[1].Keep(IndexOf(1));
  ASSERT_EQ(slots[0].Get(), nullptr);
  EXPECT_EQ(held->section, std::string(kSection, 0));
  EXPECT_EQ(slots[0].Recall(), held);
  EXPECT_EQ(slots[0].Get(), held);
  EXPECT_EQ(memory.used(), 2 * Bytes());
  slots[2].Keep(IndexOf(2));
  slots[3].Keep(IndexOf(3));
  slots[2].Keep(IndexOf(2));
  slots[3].Keep(IndexOf(3));
  held.reset();
  EXPECT_EQ(slots[0].Recall(), nullptr);
}

TEST(IndexMemoryTest, OneThatDoesNotFitIsNotKeptAndThrowsNoOtherOut) {
  IndexMemory memory(Bytes());
  Slots slots(&memory, 2);
  slots[0].Keep(IndexOf(0));
  auto large = std::make_shared<LoadedRangeIndex>();
  large->section.assign(2 * kSection, 'x');
  slots[1].Keep(large);
  EXPECT_EQ(slots.Here(), Numbers{0});
  EXPECT_EQ(slots[1].Recall(), large);  // It stays while it is held.
  EXPECT_EQ(memory.used(), Bytes());
}

TEST(IndexMemoryTest, PointIndexesLeaveAQuarterOrWhatRangeIndexesNeed) {
  IndexMemory memory(100 * Bytes());
  EXPECT_EQ(memory.PointShare(), 100 * Bytes());
  {
    Slots few(&memory, 8);
    EXPECT_LE(memory.PointShare(), 92 * Bytes());
    EXPECT_GE(memory.PointShare(), 88 * Bytes());
    Slots many(&memory, 100);
    EXPECT_EQ(memory.PointShare(), 75 * Bytes());
    memory.AddRangeTombstones(Bytes());
    EXPECT_EQ(memory.PointShare(), 74 * Bytes());
    memory.RemoveRangeTombstones(Bytes());
  }
  EXPECT_EQ(memory.PointShare(), 100 * Bytes());
  EXPECT_TRUE(memory.HasRoomForPointIndex(100 * Bytes()));
  EXPECT_FALSE(memory.HasRoomForPointIndex(100 * Bytes() + 1));
}

TEST(IndexMemoryTest, RangeIndexesMakeRoomForWhatHasToBeThere) {
  IndexMemory memory(10 * Bytes());
  Slots slots(&memory, 10);
  slots.KeepAll();
  EXPECT_EQ(slots.Here().size(), 10u);
  memory.ReplacePointTier(0, 4 * Bytes());
  EXPECT_EQ(slots.Here().size(), 6u);
  memory.AddRangeTombstones(2 * Bytes());
  EXPECT_EQ(slots.Here(), (Numbers{6, 7, 8, 9}));
  EXPECT_EQ(memory.used(), 10 * Bytes());
  // Filters of more than the budget.
  memory.ReplacePointTier(4 * Bytes(), 11 * Bytes());
  EXPECT_TRUE(slots.Here().empty());
  EXPECT_EQ(memory.used(), 13 * Bytes());
  slots[0].Keep(IndexOf(0));
  EXPECT_TRUE(slots.Here().empty());
  memory.ReplacePointTier(11 * Bytes(), 0);
  slots.KeepAll();
  EXPECT_EQ(slots.Here().size(), 8u);
}

TEST(IndexMemoryTest, TablesThatAreClosedGiveBackWhatTheyHave) {
  IndexMemory memory(4 * Bytes());
  Slots slots(&memory, 4);
  slots.KeepAll();
  slots.Close(1);
  slots.Close(3);
  EXPECT_EQ(memory.used(), 2 * Bytes());
  EXPECT_TRUE(slots[0].Get() != nullptr && slots[2].Get() != nullptr);
}

TEST(IndexMemoryTest, ReadersAndEvictionsAtOnce) {
  constexpr size_t kSlots = 24;
  IndexMemory memory(5 * Bytes());
  Slots slots(&memory, kSlots);
  const uint64_t seed = TestSeed(83);
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      Random random(seed + thread);
      std::vector<std::pair<size_t, RangeIndexRef>> held;
      for (int i = 0; i < 4'000; ++i) {
        const size_t number = random.Uniform(kSlots);
        RangeIndexRef index = slots[number].Get();
        if (index == nullptr) index = slots[number].Recall();
        if (index == nullptr) {
          index = IndexOf(static_cast<char>(number));
          slots[number].Keep(index);
        }
        held.emplace_back(number, std::move(index));
        if (held.size() > 3) held.erase(held.begin());
        if (thread == 0 && i % 16 == 0)
          memory.ReplacePointTier(i % 32 == 0 ? 0 : Bytes(), i % 32 == 0 ? Bytes() : 0);
        ASSERT_LE(memory.used(), 5 * Bytes());
        for (const auto& [of, each] : held) {
          ASSERT_EQ(each->section, std::string(kSection, static_cast<char>(of)));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(slots.Here().empty());
}

}  // namespace
}  // namespace nacre
