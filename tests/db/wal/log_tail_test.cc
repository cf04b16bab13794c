// Goal: what a log's writer had under way when it died is in all copies once CompleteLogTail has
// returned, whichever part of it a copy lacked, so that any one of them is enough afterwards.
// Method: logs of three copies on embedded nodes, of which the end is taken away or damaged, record
// by record, so that one copy still has each; then all copies are compared with what was written.

#include "db/wal/log_tail.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/log_fixture.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "util/random.h"

namespace nacre {
namespace {

using Mode = WALRecoveryMode;

class LogTailTest : public LogFixture {
 protected:
  static constexpr size_t kCopies = 3;

  void MakeLog(int records, size_t most_bytes, Random* random) {
    ASSERT_NO_FATAL_FAILURE(WriteLog(kCopies, records, most_bytes, random, &model_));
    segment_ = log_space_->segments().front();
    Remember();
  }
  /// What there is now is what ExpectAllWhole expects.
  void Remember() {
    ExpectLog(model_);
    ASSERT_EQ(result_.end_number, segment_.number);
    end_ = result_.end_bytes;
    before_.resize(end_);
    std::memcpy(before_.data(), Byte(segment_.copies[0], 0), end_);
  }
  /// The begin of the record; end_ for one more than there are.
  uint64_t BeginOf(size_t record) const {
    uint64_t at = kLogHeaderBytes;
    for (size_t i = 0; i < record; ++i) at += LogRecordBytes(model_[i].payload.size());
    return at;
  }
  void Take(size_t copy, uint64_t from, uint64_t to) {
    std::memset(Byte(segment_.copies[copy], from), 0, to - from);
  }
  Status Complete() {
    std::vector<TestRecord> found;
    NACRE_RETURN_IF_ERROR(Read(Mode::kPointInTimeRecovery, &found));
    return CompleteLogTail(client_, database_id_, segment_, result_.tail_begin, result_.end_bytes,
                           &result_.notes);
  }
  void ExpectAllWhole() {
    for (size_t copy = 0; copy < kCopies; ++copy) {
      if (!client_->alive(segment_.copies[copy].start.node)) continue;
      EXPECT_EQ(std::memcmp(Byte(segment_.copies[copy], kLogHeaderBytes),
                            before_.data() + kLogHeaderBytes, end_ - kLogHeaderBytes),
                0)
          << "copy " << copy;
    }
  }

  std::vector<TestRecord> model_;
  LogSegment segment_;
  std::string before_;
  uint64_t end_ = 0;
};

TEST_F(LogTailTest, WhatOneCopyHasAllGet) {
  Random random(TestSeed(901));
  MakeLog(30, 400, &random);
  for (size_t keeper = 0; keeper < kCopies; ++keeper) {
    for (size_t lacked = 0; lacked < model_.size(); ++lacked) {
      for (size_t copy = 0; copy < kCopies; ++copy) {
        if (copy != keeper) Take(copy, BeginOf(lacked), end_);
      }
      ASSERT_TRUE(IsOk(Complete()));
      EXPECT_EQ(result_.end_bytes, end_);
      ExpectAllWhole();
    }
  }
}

TEST_F(LogTailTest, EachRecordIsTakenFromACopyThatHasIt) {
  Random random(TestSeed(902));
  MakeLog(30, 400, &random);
  for (int round = 0; round < 200; ++round) {
    for (size_t record = 0; record < model_.size(); ++record) {
      const size_t keeper = random.Uniform(kCopies);
      for (size_t copy = 0; copy < kCopies; ++copy) {
        if (copy == keeper || !random.OneIn(3)) continue;
        const size_t bytes = kLogRecordHead + model_[record].payload.size();
        *Byte(segment_.copies[copy], BeginOf(record) + random.Uniform(bytes)) ^= 0x21;
      }
    }
    ASSERT_TRUE(IsOk(Complete()));
    ExpectAllWhole();
  }
}

TEST_F(LogTailTest, AllThatMayHaveBeenUnderWayIsLookedAt) {
  Random random(TestSeed(903));
  MakeLog(2000, 1500, &random);
  ASSERT_GT(end_, 4 * kLogRingBytes);
  // The ring can have so much; not much more of a long log is read for it.
  size_t first = model_.size();
  while (end_ - BeginOf(first - 1) <= kLogRingBytes) --first;
  Take(1, BeginOf(first), end_);
  Take(2, BeginOf(first + 1), end_);
  ASSERT_TRUE(IsOk(Complete()));
  EXPECT_LE(result_.tail_begin, BeginOf(first));
  EXPECT_LE(end_ - result_.tail_begin, 3 * kLogRingBytes);
  ExpectAllWhole();
}

TEST_F(LogTailTest, ALargeRecordThatWasUnderWayIsWhole) {
  Random random(TestSeed(904));
  MakeLog(600, 1500, &random);
  const SequenceNumber next = model_.back().first + model_.back().count;
  model_.push_back(MakeRecord(next, 3 * kLogRingBytes));
  ASSERT_TRUE(IsOk(AppendAndAwait(model_.back())));
  Remember();
  for (size_t copy = 0; copy + 1 < kCopies; ++copy) Take(copy, BeginOf(model_.size() - 1), end_);
  ASSERT_TRUE(IsOk(Complete()));
  ExpectAllWhole();
}

TEST_F(LogTailTest, ALostNodeHoldsNothingUp) {
  Random random(TestSeed(905));
  MakeLog(30, 400, &random);
  Take(1, BeginOf(20), end_);
  const NodeId lost = segment_.copies[2].start.node;
  pool_->KillEmbeddedNode(lost);
  ASSERT_TRUE(IsOk(Complete()));
  ExpectAllWhole();
}

TEST_F(LogTailTest, OfASealedSegmentNothingWasUnderWay) {
  Random random(TestSeed(906));
  MakeLog(30, 400, &random);
  ASSERT_TRUE(IsOk(writer_->StartSegment()));
  ExpectLog(model_);
  EXPECT_EQ(result_.end_number, segment_.number);
  EXPECT_EQ(result_.tail_begin, 0u);
}

}  // namespace
}  // namespace nacre
