// Goal: what a LogWriter acknowledges is read back, all of it and in order, through ends of
// segments, laps of the ring, large records, many threads, lost nodes and failures of the space;
// segments are reused when they are not needed any more, and not before. Method: logs on embedded
// nodes, read back with the strictest mode and compared with a model.

#include "db/wal/log_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "db/wal/log_seal.h"
#include "tests/support/log_fixture.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "util/clock.h"
#include "util/random.h"

namespace nacre {
namespace {

class LogWriterTest : public LogFixture {
 protected:
  void OpenLog(int nodes, int copies) {
    OpenPoolFor(nodes, copies);
    OpenWriter(Options());
  }
  /// Appends records of sequences from `*next` on, awaiting some of them.
  void AppendSome(int records, size_t most_bytes, Random* random, SequenceNumber* next,
                  std::vector<TestRecord>* model) {
    for (int i = 0; i < records; ++i) {
      model->push_back(MakeRecord(*next, 2 + random->Uniform(most_bytes)));
      *next += model->back().count;
      uint64_t position = 0;
      ASSERT_TRUE(IsOk(Append(model->back(), 1, &position)));
      if (random->OneIn(5)) {
        ASSERT_TRUE(IsOk(writer_->Await(position)));
      }
    }
    ASSERT_TRUE(IsOk(writer_->Sync()));
  }

  std::vector<TestRecord> model_;
  SequenceNumber next_ = 1;
};

TEST_F(LogWriterTest, AnEmptyLogHasNoRecords) {
  OpenLog(3, 2);
  ExpectLog({});
  EXPECT_EQ(result_.end_number, 0u);
}

TEST_F(LogWriterTest, ReadsBackThroughSegmentsAndLapsOfTheRing) {
  Random random(TestSeed(501));
  for (const int copies : {1, 3}) {
    OpenLog(3, copies);
    model_.clear();
    for (int round = 0; round < 20; ++round) {
      AppendSome(100, 600, &random, &next_, &model_);
      if (round % 5 == 0) ExpectLog(model_);
    }
    ExpectLog(model_);
    EXPECT_EQ(result_.records, model_.size());
    EXPECT_EQ(result_.last_sequence, next_ - 1);
    EXPECT_FALSE(result_.healed);
    EXPECT_TRUE(result_.notes.empty());
    const LogWriterStats stats = writer_->stats();
    EXPECT_EQ(stats.bytes_appended, result_.bytes);
    EXPECT_GT(stats.segments, 2u);
    EXPECT_EQ(stats.ensemble_changes, 0u);
    writer_.reset();
    ExpectLog(model_);
    log_space_.reset();
    ClosePool();
  }
}

TEST_F(LogWriterTest, RecordsOfAnySize) {
  Random random(TestSeed(502));
  OpenLog(3, 2);
  for (const size_t bytes : {2, 7, 8, 9, 40, 8000, 9000, 31 << 10, 33 << 10, 255 << 10, 256 << 10,
                             257 << 10, 1 << 20, 5 << 20}) {
    model_.push_back(MakeRecord(next_, bytes));
    next_ += model_.back().count;
    ASSERT_TRUE(IsOk(AppendAndAwait(model_.back()))) << bytes;
    AppendSome(10, 100, &random, &next_, &model_);
  }
  ExpectLog(model_);
}

TEST_F(LogWriterTest, ARecordWithoutUpdatesIsRefused) {
  OpenLog(1, 1);
  uint64_t position = 0;
  const Slice part("abcd");
  EXPECT_TRUE(writer_->Append(1, 1, 0, {&part, 1}, &position).IsInvalidArgument());
}

TEST_F(LogWriterTest, ThreadsKeepTheirOrderAndGetWhatTheyAwait) {
  OpenLog(4, 3);
  constexpr int kThreads = 4;
  const int records = static_cast<int>(Scaled(3000));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < records; ++i) {
        // Sequences tell thread and number.
        const SequenceNumber first =
            static_cast<SequenceNumber>(t) << 32 | static_cast<unsigned>(i);
        const TestRecord record = MakeRecord(first, 20 + first % 300);
        uint64_t position = 0;
        ASSERT_TRUE(IsOk(Append(record, 1, &position)));
        if (i % 4 != t) {
          if (i % 3 != 0) writer_->Start();
          ASSERT_TRUE(IsOk(writer_->Await(position)));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(IsOk(writer_->Sync()));
  std::vector<TestRecord> found;
  ASSERT_TRUE(IsOk(Read(WALRecoveryMode::kAbsoluteConsistency, &found)));
  ASSERT_EQ(found.size(), static_cast<size_t>(kThreads * records));
  std::map<SequenceNumber, SequenceNumber> next;
  for (const TestRecord& record : found) {
    const SequenceNumber thread = record.first >> 32;
    ASSERT_EQ(record.first, thread << 32 | next[thread]++);
    ASSERT_TRUE(record == MakeRecord(record.first, 20 + record.first % 300));
  }
}

TEST_F(LogWriterTest, NothingAcknowledgedIsLostWhenANodeIs) {
  Random random(TestSeed(503));
  for (const int copies : {2, 3}) {
    for (const bool of_the_segment : {true, false}) {
      OpenLog(5, copies);
      model_.clear();
      AppendSome(100, 900, &random, &next_, &model_);
      NodeId victim = 0;
      if (of_the_segment) {
        victim = log_space_->segments()[0].copies[0].start.node;
      } else {
        while (!client_->alive(victim)) ++victim;
      }
      pool_->KillEmbeddedNode(victim);
      AppendSome(600, 900, &random, &next_, &model_);
      ExpectLog(model_);
      if (of_the_segment) {
        EXPECT_GE(writer_->stats().ensemble_changes, 1u);
      }
      EXPECT_TRUE(IsOk(writer_->status()));
      writer_.reset();
      log_space_.reset();
      ClosePool();
    }
  }
}

TEST_F(LogWriterTest, ThreadsWriteOnWhileNodesAreLost) {
  OpenLog(6, 3);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  std::vector<SequenceNumber> acknowledged(3);
  for (size_t t = 0; t < acknowledged.size(); ++t) {
    threads.emplace_back([&, t] {
      for (SequenceNumber i = 0; !stop.load(); ++i) {
        const SequenceNumber first = static_cast<SequenceNumber>(t) << 32 | i;
        uint64_t position = 0;
        ASSERT_TRUE(IsOk(Append(MakeRecord(first, 20 + first % 300), 1, &position)));
        writer_->Start();
        ASSERT_TRUE(IsOk(writer_->Await(position)));
        acknowledged[t] = i + 1;
      }
    });
  }
  // Turns are counted in records written, not in time.
  for (const NodeId victim : {NodeId{1}, NodeId{4}}) {
    const uint64_t before = writer_->stats().bytes_appended;
    while (writer_->stats().bytes_appended < before + (300 << 10)) std::this_thread::yield();
    pool_->KillEmbeddedNode(victim);
  }
  const uint64_t before = writer_->stats().bytes_appended;
  while (writer_->stats().bytes_appended < before + (600 << 10)) std::this_thread::yield();
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  std::vector<TestRecord> found;
  ASSERT_TRUE(IsOk(Read(WALRecoveryMode::kAbsoluteConsistency, &found)));
  std::map<SequenceNumber, SequenceNumber> next;
  for (const TestRecord& record : found) {
    const SequenceNumber thread = record.first >> 32;
    ASSERT_EQ(record.first, thread << 32 | next[thread]++);
    ASSERT_TRUE(record == MakeRecord(record.first, 20 + record.first % 300));
  }
  for (size_t t = 0; t < acknowledged.size(); ++t) EXPECT_EQ(next[t], acknowledged[t]);
}

/// Counts the pauses after a segment that could not be marked, and does not make them.
class PauseClock final : public Clock {
 public:
  uint64_t NowNanos() override { return Clock::System()->NowNanos(); }
  void SleepFor(std::chrono::nanoseconds duration) override {
    if (duration != kUnmarkedPause) return Clock::System()->SleepFor(duration);
    ++pauses;
    if (const auto then = std::exchange(in_next, nullptr)) then();
  }

  int pauses = 0;
  std::function<void()> in_next;
};

TEST_F(LogWriterTest, PausesAgainIfTheSegmentAfterAnUnmarkedOneIsLeftWithoutRecords) {
  PauseClock clock;
  OpenPoolFor(7, 2);
  LogWriterOptions options = Options();
  options.clock = &clock;
  OpenWriter(options);
  Random random(TestSeed(509));
  AppendSome(10, 900, &random, &next_, &model_);
  const LogSegment unmarked = log_space_->segments()[0];
  // The one after it, which has been announced, has one node left, where it is marked.
  clock.in_next = [&] {
    for (const LogSegment& segment : log_space_->segments()) {
      const bool usable =
          std::all_of(segment.copies.begin(), segment.copies.end(),
                      [&](const ExtentAddr& copy) { return client_->alive(copy.start.node); });
      if (!usable) continue;
      pool_->KillEmbeddedNode(segment.copies[0].start.node);
      return;
    }
    ADD_FAILURE() << "no segment is in use";
  };
  for (const ExtentAddr& copy : unmarked.copies) pool_->KillEmbeddedNode(copy.start.node);
  AppendSome(10, 900, &random, &next_, &model_);
  EXPECT_EQ(clock.pauses, 2);
  AppendSome(600, 900, &random, &next_, &model_);
  EXPECT_EQ(clock.pauses, 2);
  EXPECT_GE(writer_->stats().segments, 3u);
  writer_.reset();
}

TEST_F(LogWriterTest, WhatWasStartedIsMetByWhoeverLeadsNext) {
  // A caller while a group is in flight; with `lost`, to a node that is lost, so that it fails.
  struct Caller {
    const char* name;
    std::function<void()> call;
  };
  const std::vector<Caller> callers = {
      {"Await", [] {}},
      {"Start", [this] { writer_->Start(); }},
      {"Sync", [this] { EXPECT_TRUE(IsOk(writer_->Sync())); }},
      {"TakeUnneeded", [this] { EXPECT_TRUE(writer_->TakeUnneeded(0, true).empty()); }},
      {"LeaveNodes", [this] { EXPECT_FALSE(writer_->LeaveNodes([](NodeId) { return false; })); }},
      {"LeaveNodes that ends the segment",
       [this] {
         const NodeId left = log_space_->segments().front().copies[0].start.node;
         EXPECT_TRUE(writer_->LeaveNodes([&](NodeId node) { return node == left; }));
       }},
      {"Append into a full ring",
       [this] {
         uint64_t position = 0;
         for (uint64_t bytes = 0; bytes <= Options().ring_bytes; bytes += 1000) {
           model_.push_back(MakeRecord(next_, 1000));
           next_ += model_.back().count;
           ASSERT_TRUE(IsOk(Append(model_.back(), 1, &position)));
         }
       }},
  };
  Random random(TestSeed(508));
  for (const bool lost : {false, true}) {
    for (const size_t bytes : {size_t{300}, size_t{20} << 10}) {
      for (const Caller& caller : callers) {
        SCOPED_TRACE(std::string(caller.name) + (lost ? ", a node lost, " : ", ") +
                     std::to_string(bytes) + " bytes");
        OpenPoolFor(5, 3, "&rtt_us=200");
        OpenWriter(Options());
        model_.clear();
        AppendSome(20, 600, &random, &next_, &model_);
        if (lost) pool_->KillEmbeddedNode(log_space_->segments()[0].copies[1].start.node);
        model_.push_back(MakeRecord(next_, bytes));
        next_ += model_.back().count;
        uint64_t position = 0;
        ASSERT_TRUE(IsOk(Append(model_.back(), 1, &position)));
        const uint64_t posted = writer_->stats().writes_posted;
        writer_->Start();
        EXPECT_GT(writer_->stats().writes_posted, posted);
        caller.call();
        ASSERT_TRUE(IsOk(writer_->Await(position)));
        ASSERT_TRUE(IsOk(writer_->Sync()));
        EXPECT_EQ(writer_->stats().ensemble_changes, lost ? 1u : 0u);
        ExpectLog(model_);
        writer_.reset();
        log_space_.reset();
        ClosePool();
      }
    }
  }
}

TEST_F(LogWriterTest, ASegmentIsKeptForWhatIsOnItsWayThere) {
  OpenPoolFor(3, 2, "&rtt_us=200");
  OpenWriter(Options());
  for (const uint64_t generation : {1, 2}) {
    model_.push_back(MakeRecord(next_, 300));
    next_ += model_.back().count;
    uint64_t position = 0;
    ASSERT_TRUE(IsOk(Append(model_.back(), generation, &position)));
    writer_->Start();
    EXPECT_TRUE(writer_->TakeUnneeded(generation - 1, /*close_open=*/true).empty());
    ASSERT_TRUE(IsOk(writer_->Await(position)));
  }
  ExpectLog(model_);
  log_space_->Drop(writer_->TakeUnneeded(2, /*close_open=*/true));
  ExpectLog({});
}

TEST_F(LogWriterTest, CloseAwaitsWhatIsOnItsWay) {
  for (const bool lost : {false, true}) {
    OpenPoolFor(4, 2, "&rtt_us=200");
    OpenWriter(Options());
    const TestRecord first = MakeRecord(1, 300);
    ASSERT_TRUE(IsOk(AppendAndAwait(first)));
    if (lost) pool_->KillEmbeddedNode(log_space_->segments()[0].copies[0].start.node);
    const TestRecord second = MakeRecord(2, 300);
    uint64_t position = 0;
    ASSERT_TRUE(IsOk(Append(second, 1, &position)));
    writer_->Start();
    writer_->Close();
    if (lost) {
      EXPECT_TRUE(writer_->Await(position).IsShutdownInProgress());
      EXPECT_EQ(writer_->stats().ensemble_changes, 1u);
    } else {
      EXPECT_TRUE(IsOk(writer_->Await(position)));
      ExpectLog({first, second});
    }
    writer_.reset();
    log_space_.reset();
    ClosePool();
  }
}

TEST_F(LogWriterTest, NothingIsStartedWithoutASegment) {
  OpenLog(2, 1);
  log_space_->FailWith(Status::NoSpace("the pool is full"));
  Status s;
  while (s.ok()) {
    const TestRecord record = MakeRecord(next_, 600);
    uint64_t position = 0;
    s = Append(record, 1, &position);
    if (!s.ok()) break;
    model_.push_back(record);
    next_ += record.count;
    writer_->Start();
    s = writer_->Await(position);
  }
  EXPECT_TRUE(s.IsNoSpace()) << s.ToString();
  const uint64_t posted = writer_->stats().writes_posted;
  writer_->Start();
  EXPECT_EQ(writer_->stats().writes_posted, posted);
  log_space_->FailWith(Status::OK());
  ASSERT_TRUE(IsOk(writer_->Sync()));
  ExpectLog(model_);
}

TEST_F(LogWriterTest, AFullPoolFailsWritersUntilThereIsRoom) {
  Random random(TestSeed(504));
  OpenLog(2, 1);
  AppendSome(10, 100, &random, &next_, &model_);
  log_space_->FailWith(Status::NoSpace("the pool is full"));
  // Ends in the spare at the latest.
  Status s;
  for (int i = 0; s.ok() && i < 2000; ++i) {
    const TestRecord record = MakeRecord(next_, 600);
    s = AppendAndAwait(record);
    // What the ring has taken is written later.
    model_.push_back(record);
    next_ += record.count;
  }
  EXPECT_TRUE(s.IsNoSpace()) << s.ToString();
  EXPECT_TRUE(writer_->status().IsNoSpace());
  uint64_t position = 0;
  EXPECT_TRUE(Append(MakeRecord(next_, 50), 1, &position).IsNoSpace());
  log_space_->FailWith(Status::OK());
  AppendSome(10, 100, &random, &next_, &model_);
  EXPECT_TRUE(IsOk(writer_->status()));
  ExpectLog(model_);
}

TEST_F(LogWriterTest, AFencedLogIsAtItsEnd) {
  OpenLog(2, 1);
  log_space_->FailWith(Status::Fenced("another owner"));
  Status s;
  for (int i = 0; s.ok() && i < 2000; ++i) s = AppendAndAwait(MakeRecord(next_++, 600));
  EXPECT_TRUE(s.IsFenced()) << s.ToString();
  log_space_->FailWith(Status::OK());
  EXPECT_TRUE(AppendAndAwait(MakeRecord(next_, 600)).IsFenced());
  writer_->Close();
  EXPECT_TRUE(writer_->status().IsFenced());
}

TEST_F(LogWriterTest, SegmentsAreGivenOutByGeneration) {
  OpenLog(3, 2);
  std::vector<size_t> records_of(5);
  for (uint64_t generation = 1; generation <= 4; ++generation) {
    while (writer_->stats().bytes_appended < generation * (512 << 10)) {
      model_.push_back(MakeRecord(next_, 1000));
      next_ += model_.back().count;
      ASSERT_TRUE(IsOk(AppendAndAwait(model_.back(), generation)));
      ++records_of[generation];
    }
  }
  EXPECT_TRUE(writer_->TakeUnneeded(0).empty());
  for (uint64_t flushed = 1; flushed <= 4; ++flushed) {
    const std::vector<LogSegment> unneeded = writer_->TakeUnneeded(flushed);
    EXPECT_FALSE(unneeded.empty());
    log_space_->Drop(unneeded);
    std::vector<TestRecord> found;
    ASSERT_TRUE(IsOk(Read(WALRecoveryMode::kAbsoluteConsistency, &found)));
    size_t needed = 0;
    for (uint64_t later = flushed + 1; later <= 4; ++later) needed += records_of[later];
    ASSERT_GE(found.size(), needed);
    ASSERT_LE(found.size(), model_.size());
    for (size_t i = 1; i <= found.size(); ++i) {
      ASSERT_TRUE(found[found.size() - i] == model_[model_.size() - i]);
    }
  }
  log_space_->Drop(writer_->TakeUnneeded(4, /*close_open=*/true));
  ExpectLog({});
  // Life goes on.
  const TestRecord record = MakeRecord(next_, 1000);
  ASSERT_TRUE(IsOk(AppendAndAwait(record, 5)));
  ExpectLog({record});
  EXPECT_TRUE(writer_->TakeUnneeded(4, true).empty());
}

TEST_F(LogWriterTest, AShortSegmentIsBegunInTheMiddleOfLongOnes) {
  Random random(TestSeed(506));
  OpenPoolFor(3, 2);
  LogWriterOptions options = Options();
  options.segment_bytes = 4 << 20;
  OpenWriter(options);
  AppendSome(100, 900, &random, &next_, &model_);
  const auto open_bytes = [&] {
    return writer_->SegmentsOf(0, UINT64_MAX).back().segment.copies.front().length;
  };
  EXPECT_GE(open_bytes(), 4u << 20);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(IsOk(writer_->StartShortSegment()));
    AppendSome(100, 900, &random, &next_, &model_);
    EXPECT_LT(open_bytes(), 2u << 20);
  }
  ExpectLog(model_);
  // Those behind it grow again.
  while (open_bytes() < 4u << 20) AppendSome(100, 9000, &random, &next_, &model_);
  ExpectLog(model_);
  writer_->Close();
  EXPECT_TRUE(writer_->StartShortSegment().IsShutdownInProgress());
}

TEST_F(LogWriterTest, AClosedLogGivesEverythingOut) {
  Random random(TestSeed(505));
  OpenLog(3, 2);
  AppendSome(500, 900, &random, &next_, &model_);
  writer_->Close();
  EXPECT_TRUE(AppendAndAwait(MakeRecord(next_, 10)).IsShutdownInProgress());
  EXPECT_TRUE(writer_->status().IsShutdownInProgress());
  log_space_->Drop(writer_->TakeUnneeded(UINT64_MAX));
  EXPECT_TRUE(log_space_->segments().empty());
}

TEST_F(LogWriterTest, ALogThatGoesOnAfterAnotherIsReadWithIt) {
  Random random(TestSeed(506));
  OpenLog(3, 2);
  for (int round = 0; round < 4; ++round) {
    AppendSome(round == 2 ? 0 : 300, 900, &random, &next_, &model_);
    // This one is not awaited, and need not be found; but what was read stays.
    writer_.reset();
    ExpectLog(model_);
    LogWriterOptions options = Options();
    options.previous_number = result_.end_number;
    options.previous_bytes = result_.end_bytes;
    OpenWriter(options);
    ExpectLog(model_);
  }
}

// A takeover compares as much of a log's end as a ring of the usual size can have on its way.
TEST_F(LogWriterTest, ALargerRingThanATakeoverKnowsIsRefused) {
  OpenLog(1, 1);
  writer_->Close();  // Before the options: they are to be above all numbers that it gave.
  LogWriterOptions options = Options();
  options.ring_bytes = kLogRingBytes;
  OpenWriter(options);
  options = Options();
  options.ring_bytes = kLogRingBytes + 1;
  std::unique_ptr<LogWriter> writer;
  const Status status = LogWriter::Open(options, log_space_.get(), &writer);
  EXPECT_TRUE(IsFailure(status, Status::Code::kInvalidArgument, "ring"));
}

TEST_F(LogWriterTest, OldBytesOfAnExtentAreNeverRecords) {
  Random random(TestSeed(507));
  OpenLog(1, 1);
  // All memory there is has been a log before, in segments that began at the same places.
  for (int round = 0; round < 30; ++round) {
    std::vector<TestRecord> records;
    AppendSome(static_cast<int>(random.Uniform(600)), 900, &random, &next_, &records);
    ExpectLog(records);
    writer_->Close();
    log_space_->Drop(writer_->TakeUnneeded(UINT64_MAX));
    OpenWriter(Options());
    ExpectLog({});
  }
}

}  // namespace
}  // namespace nacre
