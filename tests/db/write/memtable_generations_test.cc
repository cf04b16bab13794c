// Goal: a generation of MemTables that is full ends once, for all families, and where writers find
// the next one; where no more may wait, writers stall until some may.
// Method: the parts of a database whose background work is paused, so that no flush comes between.

#include "db/write/memtable_generations.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/parts_fixture.h"
#include "tests/support/status_assert.h"

namespace nacre {
namespace {

class MemTableGenerationsTest : public PartsFixture {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Open());
    ASSERT_TRUE(IsOk(parts_->state.PauseWork()));
  }

  uint16_t generation() { return generations().sequencer()->generation(); }
  MemTableGenerations& generations() { return parts_->generations; }
  void HandleFull(uint16_t generation) {
    generations().MakeRoom(WrittenMemory::kMemTableFull, generation, /*waits=*/true);
  }
};

TEST_F(MemTableGenerationsTest, AFullOneEndsOnceAndTheNextOneIsThere) {
  ASSERT_TRUE(IsOk(Put("a", "1")));
  ASSERT_TRUE(IsOk(Put("b", "2")));
  const uint16_t full = generation();
  HandleFull(full);
  EXPECT_EQ(generation(), full + 1);
  EXPECT_NE(family()->FindMemTable(static_cast<uint16_t>(full + 1)), nullptr);
  HandleFull(full);  // Another writer found it full, too.
  EXPECT_EQ(generation(), full + 1);
  {
    MutexLock lock(&parts_->state.mutex);
    ASSERT_EQ(parts_->state.work.ended_generations.size(), 1u);
    EXPECT_EQ(parts_->state.work.ended_generations[0].generation, full);
    EXPECT_EQ(parts_->state.work.ended_generations[0].boundary, 3u)
        << "sequence numbers 1 and 2 are in it";
  }
  ASSERT_TRUE(IsOk(Put("a", "3")));
  EXPECT_EQ(family()->FindMemTable(full)->entries(), 2u);
  EXPECT_EQ(family()->FindMemTable(static_cast<uint16_t>(full + 1))->entries(), 1u);
  EXPECT_EQ(Get("a"), "3");
  EXPECT_EQ(Get("b"), "2");
}

TEST_F(MemTableGenerationsTest, AFamilyThatIsNotWrittenHasNoMemTable) {
  const uint16_t unwritten = generation();
  {
    MutexLock lock(&parts_->state.mutex);
    EXPECT_FALSE(generations().HasEntries(/*only=*/nullptr));
    generations().Switch();
  }
  EXPECT_EQ(family()->FindMemTable(unwritten), nullptr);
  EXPECT_EQ(family()->FindMemTable(generation()), nullptr);
  MemTable* const made = generations().MakeMemTable(family(), generation());
  EXPECT_EQ(generations().MakeMemTable(family(), generation()), made) << "two threads may ask";
  MutexLock lock(&parts_->state.mutex);
  EXPECT_FALSE(generations().HasEntries(/*only=*/nullptr)) << "it is empty";
}

TEST_F(MemTableGenerationsTest, StallsWritersUntilOneMoreMayWait) {
  for (int full = 1; full < options_.max_write_buffer_number; ++full) {
    ASSERT_TRUE(IsOk(Put("a", "1")));
    HandleFull(generation());
    ASSERT_EQ(ended_generations(), static_cast<size_t>(full));
  }
  ASSERT_TRUE(IsOk(Put("a", "2")));
  const uint16_t last = generation();
  HandleFull(last);
  EXPECT_EQ(generation(), last);
  EXPECT_EQ(parts_->write_controller.stall(), Stall::kStop);
  MutexLock lock(&parts_->state.mutex);
  generations().SwitchIfThereIsRoom();
  EXPECT_EQ(generation(), last) << "there is none";
  ColumnFamilyOptions more = options_;
  ++more.max_write_buffer_number;
  family()->SetOptions(more);
  generations().SwitchIfThereIsRoom();
  EXPECT_EQ(generation(), last + 1);
  EXPECT_EQ(parts_->write_controller.stall(), Stall::kNone);
  EXPECT_FALSE(parts_->state.work.memtable_full);
}

TEST_F(MemTableGenerationsTest, EntriesOfADroppedFamilyAreFlushedWithTheirGeneration) {
  const auto dropped =
      std::make_shared<ColumnFamily>(7, "dropped", options_, options_.num_levels, nullptr);
  MutexLock lock(&parts_->state.mutex);
  parts_->state.InstallView(dropped.get(), {},
                            std::make_shared<Version>(&dropped->comparator(), options_.num_levels));
  generations().NoteDropped(*dropped);
  EXPECT_FALSE(generations().HasEntries(nullptr)) << "it was not written";
  {
    MutexUnlock unlock(&parts_->state.mutex);
    generations().MakeMemTable(dropped.get(), generation());
  }
  generations().NoteDropped(*dropped);
  EXPECT_TRUE(generations().HasEntries(nullptr));
  EXPECT_FALSE(generations().HasEntries(family()));
  generations().Switch();
  EXPECT_FALSE(generations().HasEntries(nullptr)) << "of the next generation";
}

}  // namespace
}  // namespace nacre
