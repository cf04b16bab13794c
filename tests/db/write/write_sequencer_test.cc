// Goal: a sequence number belongs to exactly one ticket and one generation, and what is published
// is always a whole prefix of the tickets, whose writers' stores are visible (ThreadSanitizer
// checks that through plain, unsynchronised payloads).
// Method: threads take ranges of random lengths, leave their mark in an array and publish, while
// one thread ends generations and another one reads everything that is published. Then the
// corners: finishing out of order, ranges longer than the ring, waits that are given up, numbers
// that run out, generations that wrap around.

#include "db/write/write_sequencer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "util/random.h"

namespace nacre {
namespace {

constexpr uint64_t kRing = 1 << 14;  // WriteSequencer::kSlots, which is private.

using Ticket = WriteSequencer::Ticket;

TEST(WriteSequencerTest, HandsOutWhatFollowsTheLastPublished) {
  WriteSequencer sequencer(41);
  EXPECT_EQ(sequencer.LastPublished(), 41u);
  const Ticket one = sequencer.Begin(1);
  EXPECT_EQ(one.first, 42u);
  EXPECT_EQ(one.generation, 0u);
  EXPECT_EQ(sequencer.LastPublished(), 41u) << "published before its writer was done";
  sequencer.Publish(one);
  EXPECT_EQ(sequencer.LastPublished(), 42u);
  const Ticket many = sequencer.Begin(1000);
  EXPECT_EQ(many.first, 43u);
  EXPECT_EQ(many.count, 1000u);
  sequencer.Publish(many);
  EXPECT_EQ(sequencer.LastPublished(), 1042u);
}

TEST(WriteSequencerTest, LargeStart) {
  constexpr SequenceNumber kStart = kMaxSequenceNumber / 2;
  WriteSequencer sequencer(kStart);
  const Ticket ticket = sequencer.Begin(3);
  EXPECT_EQ(ticket.first, kStart + 1);
  EXPECT_EQ(ticket.generation, 0u);
  sequencer.Publish(ticket);
  EXPECT_EQ(sequencer.LastPublished(), kStart + 3);
}

TEST(WriteSequencerTest, FinishedOutOfOrderIsPublishedInOrder) {
  WriteSequencer sequencer(0);
  const Ticket first = sequencer.Begin(2);
  const Ticket second = sequencer.Begin(3);
  const Ticket third = sequencer.Begin(1);
  std::atomic<int> returned{0};
  std::thread third_writer([&] {
    sequencer.Publish(third);
    EXPECT_GE(sequencer.LastPublished(), 6u);
    ++returned;
  });
  std::thread second_writer([&] {
    sequencer.Publish(second);
    EXPECT_GE(sequencer.LastPublished(), 5u);
    ++returned;
  });
  // However long they are given, neither may get ahead of the first.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(sequencer.LastPublished(), 0u);
  EXPECT_EQ(returned, 0);
  sequencer.Publish(first);
  EXPECT_GE(sequencer.LastPublished(), 2u);
  EXPECT_TRUE(IsOk(sequencer.AwaitPublished(7, [] { return Status::OK(); })));
  second_writer.join();
  third_writer.join();
  EXPECT_EQ(sequencer.LastPublished(), 6u);
}

TEST(WriteSequencerTest, RangesLongerThanTheRing) {
  WriteSequencer sequencer(0);
  const Ticket held = sequencer.Begin(1);
  const Ticket longer = sequencer.Begin(3 * kRing + 7);
  const Ticket beyond = sequencer.Begin(1);  // Its slot is more than a lap ahead.
  const Ticket exact = sequencer.Begin(kRing);
  std::vector<std::thread> writers;
  for (const Ticket& ticket : {exact, beyond, longer}) {
    writers.emplace_back([&sequencer, ticket] {
      sequencer.Publish(ticket);
      EXPECT_GE(sequencer.LastPublished(), ticket.first + ticket.count - 1);
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(sequencer.LastPublished(), 0u);
  sequencer.Publish(held);
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(sequencer.LastPublished(), 4 * kRing + 9);
}

TEST(WriteSequencerTest, AWaitThatIsGivenUpAnswersWhatItWasGivenUpFor) {
  WriteSequencer sequencer(0);
  const Ticket held = sequencer.Begin(1);
  const Ticket near = sequencer.Begin(kRing);
  const Ticket beyond = sequencer.Begin(1);
  // The reason is gone by the time that it could be asked for again.
  int asked = 0;
  const auto once = [&asked] { return ++asked == 1 ? Status::TimedOut("once") : Status::OK(); };
  EXPECT_TRUE(sequencer.Finish(beyond, once).IsTimedOut()) << "its slot is a lap ahead";
  asked = 0;
  ASSERT_TRUE(IsOk(sequencer.Finish(near, once)));
  EXPECT_TRUE(sequencer.AwaitPublished(near.first + near.count, once).IsTimedOut());
  EXPECT_EQ(sequencer.LastPublished(), 0u);
  ASSERT_TRUE(IsOk(sequencer.Finish(held, once)));
  EXPECT_EQ(sequencer.LastPublished(), kRing + 1);
  ASSERT_TRUE(IsOk(sequencer.Finish(beyond, once)));
  EXPECT_EQ(sequencer.LastPublished(), kRing + 2);
}

TEST(WriteSequencerTest, NumbersRunOutBeforeTheyReachTheGeneration) {
  WriteSequencer sequencer(WriteSequencer::kLastGiven - 1);
  const Ticket last = sequencer.Begin(1);
  EXPECT_TRUE(WriteSequencer::HasNumbers(last));
  sequencer.Publish(last);
  constexpr uint64_t kLargest = uint64_t{1} << 32;  // A batch has no more updates.
  for (int i = 0; i < 200; ++i) {
    const Ticket refused = sequencer.Begin(kLargest);
    EXPECT_FALSE(WriteSequencer::HasNumbers(refused));
    EXPECT_EQ(refused.generation, 0u);
    sequencer.Publish(refused);
  }
  EXPECT_EQ(sequencer.NextGeneration(), sequencer.LastPublished() + 1);
  EXPECT_EQ(sequencer.generation(), 1u);
}

TEST(WriteSequencerTest, GenerationsWrapAroundWithoutTouchingTheSequence) {
  WriteSequencer sequencer(0);
  for (uint32_t i = 0; i < 65536 + 3; ++i) {
    EXPECT_EQ(sequencer.generation(), static_cast<uint16_t>(i));
    if (i % 1000 == 0) {
      const Ticket ticket = sequencer.Begin(1);
      ASSERT_EQ(ticket.generation, static_cast<uint16_t>(i));
      ASSERT_EQ(ticket.first, i / 1000 + 1);
      sequencer.Publish(ticket);
    }
    ASSERT_EQ(sequencer.NextGeneration(), i / 1000 + 2) << "generation " << i;
  }
}

/// What the writer of a sequence number leaves there, without any synchronisation of its own.
struct Mark {
  SequenceNumber end = 0;  ///< End of the range; 0: not written.
  uint64_t check = 0;
};

uint64_t CheckOf(SequenceNumber sequence) { return sequence * 0x9e3779b97f4a7c15; }

struct ConcurrentRun {
  int writers = 4;
  uint64_t sequences = 0;  ///< To hand out, at least.
  uint64_t max_count = 1;
  uint64_t seed = 0;
};

/// Runs writers, a generation switcher and a reader, then checks every ticket.
void RunConcurrently(const ConcurrentRun& run) {
  WriteSequencer sequencer(0);
  const uint64_t room = run.sequences + static_cast<uint64_t>(run.writers) * run.max_count + 1;
  std::vector<Mark> marks(room);
  std::vector<std::vector<Ticket>> tickets(static_cast<size_t>(run.writers));
  std::vector<SequenceNumber> boundaries;  // The boundaries of generation 0, 1, ...
  std::atomic<bool> done{false};

  const auto write = [&](size_t writer) {
    Random random(run.seed + writer);
    SequenceNumber last_end = 0;
    while (last_end < run.sequences) {
      const uint64_t count = 1 + random.Uniform(run.max_count);
      const Ticket ticket = sequencer.Begin(count);
      last_end = ticket.first + count;
      for (SequenceNumber s = ticket.first; s < last_end; ++s) {
        marks[s] = {last_end, CheckOf(s)};
      }
      sequencer.Publish(ticket);
      ASSERT_GE(sequencer.LastPublished() + 1, last_end) << "returned before it was published";
      tickets[writer].push_back(ticket);
    }
  };
  const auto switch_generations = [&] {
    Random random(run.seed + 1000);
    while (!done.load()) {
      boundaries.push_back(sequencer.NextGeneration());
      EXPECT_TRUE(IsOk(sequencer.AwaitPublished(boundaries.back(), [] { return Status::OK(); })));
      ASSERT_GE(sequencer.LastPublished() + 1, boundaries.back());
      std::this_thread::sleep_for(std::chrono::microseconds(random.Uniform(200)));
    }
  };
  const auto read = [&] {
    SequenceNumber checked = 0;
    while (!done.load()) {
      const SequenceNumber last = sequencer.LastPublished();
      ASSERT_GE(last, checked) << "published went back";
      for (SequenceNumber s = checked + 1; s <= last; ++s) {
        ASSERT_EQ(marks[s].check, CheckOf(s)) << "published, not written: " << s;
      }
      if (last > 0) {
        ASSERT_EQ(marks[last].end, last + 1) << "published half a range";
      }
      checked = last;
    }
  };

  std::vector<std::thread> writers;
  for (size_t i = 0; i < static_cast<size_t>(run.writers); ++i) writers.emplace_back(write, i);
  std::thread switcher(switch_generations);
  std::thread reader(read);
  for (std::thread& writer : writers) writer.join();
  done.store(true);
  switcher.join();
  reader.join();

  // All ranges, in order, leave no gap and no overlap; generations never go back among them.
  std::vector<Ticket> all;
  for (const auto& some : tickets) all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end(),
            [](const Ticket& a, const Ticket& b) { return a.first < b.first; });
  SequenceNumber next = 1;
  for (const Ticket& ticket : all) {
    ASSERT_EQ(ticket.first, next);
    next += ticket.count;
    // Generation g holds the sequences from boundary g-1 up to boundary g.
    const size_t g = ticket.generation;
    ASSERT_LE(g, boundaries.size());
    ASSERT_GE(ticket.first, g > 0 ? boundaries[g - 1] : 0);
    ASSERT_LE(ticket.first + ticket.count, g < boundaries.size() ? boundaries[g] : next);
  }
  EXPECT_EQ(sequencer.LastPublished() + 1, next);
  EXPECT_LT(boundaries.size(), 65536u) << "the check above needs generations that do not wrap";
}

TEST(WriteSequencerTest, ManyWritersOfSingleNumbers) {
  const uint64_t seed = TestSeed(1);
  RunConcurrently({.writers = 4, .sequences = Scaled(1'000'000), .max_count = 1, .seed = seed});
}

TEST(WriteSequencerTest, ManyWritersOfBatches) {
  const uint64_t seed = TestSeed(2);
  RunConcurrently({.writers = 8, .sequences = Scaled(5'000'000), .max_count = 100, .seed = seed});
}

TEST(WriteSequencerTest, ManyWritersOfRangesAroundTheRing) {
  const uint64_t seed = TestSeed(3);
  RunConcurrently(
      {.writers = 4, .sequences = Scaled(200 * kRing), .max_count = 2 * kRing, .seed = seed});
}

}  // namespace
}  // namespace nacre
