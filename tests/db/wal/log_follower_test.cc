// Goal: a LogFollower is given all that was acknowledged, in order, and nothing that only some
// replicas have; and it says that this was all only where that is so. Method: a LogWriter and a
// LogFollower on embedded nodes, whose memory the test looks at and damages.

#include "db/wal/log_follower.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "table/format/log_format.h"
#include "tests/support/log_fixture.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "util/random.h"

namespace nacre {
namespace {

class LogFollowerTest : public LogFixture {
 protected:
  void Open(int nodes = 4, int copies = 2) {
    OpenPoolFor(nodes, copies);
    follower_ = std::make_unique<LogFollower>(client_, database_id_);
    LogWriterOptions options = Options();
    options.complete_through = [this] { return complete_through_; };
    OpenWriter(options);
  }
  void Append(size_t count, size_t largest) {
    for (size_t i = 0; i < count; ++i) {
      model_.push_back(MakeRecord(next_, random_.Uniform(largest)));
      next_ += model_.back().count;
      ASSERT_TRUE(IsOk(AppendAndAwait(model_.back())));
    }
  }
  void TellSegments() {
    std::map<uint64_t, LogSegment> segments;
    for (const LogSegment& segment : log_space_->segments()) segments[segment.number] = segment;
    follower_->SetSegments(std::move(segments));
  }
  Status Advance(LogFollower::End* end, LogFollower::Look look = LogFollower::Look::kSeals) {
    return follower_->Advance(
        look,
        [this](SequenceNumber first, uint32_t count, const Slice& updates) {
          if (first > followed_through_) {
            followed_.push_back({.first = first, .count = count, .payload = updates.ToString()});
            followed_through_ = first + count - 1;
          }
          return Status::OK();
        },
        [this](SequenceNumber last) {
          told_ = std::max(told_, last);
          return Status::OK();
        },
        end);
  }
  /// Where the records of the first segment end, as long as it is the only one.
  uint64_t End() const {
    uint64_t at = kLogHeaderBytes;
    for (const TestRecord& record : model_) at += LogRecordBytes(record.payload.size());
    return at;
  }
  /// Does what an owner of the manifest does.
  void ExpectAll() {
    LogFollower::End end = LogFollower::End::kUnknown;
    ASSERT_TRUE(IsOk(Advance(&end)));
    if (end == LogFollower::End::kUnknown) {
      TellSegments();
      ASSERT_TRUE(IsOk(Advance(&end)));
    }
    ASSERT_EQ(followed_.size(), model_.size());
    for (size_t i = 0; i < model_.size(); ++i) ASSERT_TRUE(followed_[i] == model_[i]) << i;
  }
  bool Sealed(const ExtentAddr& copy, uint64_t number) {
    LogSegmentHeader header;
    EXPECT_TRUE(IsOk(
        DecodeLogHeader(Slice(Byte(copy, 0), kLogHeaderBytes), database_id_, number, &header)));
    return header.sealed;
  }

  Random random_{TestSeed(772)};
  std::unique_ptr<LogFollower> follower_;
  SequenceNumber complete_through_ = 0;  ///< What the writer tells.
  SequenceNumber told_ = 0;
  SequenceNumber next_ = 1;
  SequenceNumber followed_through_ = 0;
  std::vector<TestRecord> model_;
  std::vector<TestRecord> followed_;
};

TEST_F(LogFollowerTest, FollowsThroughSegmentsAndRecordsOfAnySize) {
  Open();
  for (int round = 0; round < 60; ++round) {
    ASSERT_NO_FATAL_FAILURE(Append(random_.Uniform(20), random_.OneIn(5) ? 300'000 : 2000));
    ASSERT_NO_FATAL_FAILURE(ExpectAll());
  }
  EXPECT_GT(log_space_->last_number(), 3u);
}

TEST_F(LogFollowerTest, SaysThatItWasAllOnlyWhereItWas) {
  Open();
  TellSegments();
  LogFollower::End end = LogFollower::End::kUnknown;
  ASSERT_TRUE(IsOk(Advance(&end)));
  EXPECT_EQ(end, LogFollower::End::kReached);
  const uint64_t known = log_space_->last_number();
  while (log_space_->last_number() <= known + 2) {
    ASSERT_NO_FATAL_FAILURE(Append(1, 4000));
    // No record may be missing where it says so.
    ASSERT_TRUE(IsOk(Advance(&end)));
    if (end == LogFollower::End::kReached) {
      ASSERT_EQ(followed_.size(), model_.size());
    }
  }
  EXPECT_EQ(end, LogFollower::End::kUnknown);
  ASSERT_NO_FATAL_FAILURE(ExpectAll());
}

TEST_F(LogFollowerTest, TakesFromTheOpenSegmentWhatAllCopiesHave) {
  Open();
  ASSERT_NO_FATAL_FAILURE(Append(3, 500));
  ASSERT_NO_FATAL_FAILURE(ExpectAll());
  const LogSegment segment = log_space_->segments().front();
  for (const ExtentAddr& copy : segment.copies) {
    // The byte looks as if it were on its way there.
    char* const byte = Byte(copy, End() + kLogRecordHead);
    ASSERT_NO_FATAL_FAILURE(Append(1, 500));
    *byte ^= 1;
    LogFollower::End end = LogFollower::End::kUnknown;
    ASSERT_TRUE(IsOk(Advance(&end)));
    EXPECT_EQ(followed_.size(), model_.size() - 1);
    *byte ^= 1;
    ASSERT_NO_FATAL_FAILURE(ExpectAll());
  }
}

TEST_F(LogFollowerTest, WhatACopyGoesOnLackingCounts) {
  Open();
  ASSERT_NO_FATAL_FAILURE(Append(3, 500));
  ASSERT_NO_FATAL_FAILURE(ExpectAll());
  const LogSegment segment = log_space_->segments().front();
  for (const ExtentAddr& copy : segment.copies) {
    // Damaged, and so is a later record, in the same copy.
    char* const first = Byte(copy, End() + kLogRecordHead);
    ASSERT_NO_FATAL_FAILURE(Append(2, 500));
    char* const second = Byte(copy, End() + kLogRecordHead);
    ASSERT_NO_FATAL_FAILURE(Append(1, 500));
    *first ^= 1;
    *second ^= 1;
    LogFollower::End end = LogFollower::End::kUnknown;
    ASSERT_TRUE(IsOk(Advance(&end, LogFollower::Look::kHeads)));
    ASSERT_EQ(followed_.size(), model_.size());
    for (size_t i = 0; i < model_.size(); ++i) EXPECT_TRUE(followed_[i] == model_[i]) << i;
  }
}

TEST_F(LogFollowerTest, TakesFromAnEndedSegmentWhatAnyCopyHas) {
  Open();
  ASSERT_NO_FATAL_FAILURE(Append(3, 500));
  const LogSegment segment = log_space_->segments().front();
  *Byte(segment.copies[0], kLogHeaderBytes + kLogRecordHead) ^= 1;
  ASSERT_TRUE(IsOk(writer_->StartSegment()));
  ASSERT_NO_FATAL_FAILURE(Append(2, 500));
  ASSERT_NO_FATAL_FAILURE(ExpectAll());
}

TEST_F(LogFollowerTest, MemoryThatIsUsedAgainIsNoEnd) {
  Open();
  ASSERT_NO_FATAL_FAILURE(Append(3, 500));
  ASSERT_NO_FATAL_FAILURE(ExpectAll());
  const LogSegment segment = log_space_->segments().front();
  std::memset(Byte(segment.copies[1], 0), 'x', kLogHeaderBytes);
  LogFollower::End end = LogFollower::End::kReached;
  ASSERT_TRUE(IsOk(Advance(&end)));
  EXPECT_EQ(end, LogFollower::End::kUnknown);
}

TEST_F(LogFollowerTest, WhereNoCopyIsMarkedTheNextHeaderTells) {
  Open();
  ASSERT_NO_FATAL_FAILURE(Append(3, 500));
  const LogSegment segment = log_space_->segments().front();
  const std::string header(Byte(segment.copies[0], 0), kLogHeaderBytes);
  // The follower reads the segment before there is a next one.
  TellSegments();
  LogFollower::End end = LogFollower::End::kUnknown;
  ASSERT_TRUE(IsOk(Advance(&end)));
  ASSERT_TRUE(IsOk(writer_->StartSegment()));
  // It looks as if the owner had reached none of them.
  for (const ExtentAddr& copy : segment.copies) {
    std::memcpy(Byte(copy, 0), header.data(), kLogHeaderBytes);
  }
  TellSegments();
  ASSERT_NO_FATAL_FAILURE(Append(2, 500));
  ASSERT_TRUE(IsOk(Advance(&end)));
  EXPECT_EQ(end, LogFollower::End::kReached);
  EXPECT_EQ(followed_.size(), 3u);
  ASSERT_TRUE(IsOk(Advance(&end, LogFollower::Look::kHeads)));
  EXPECT_EQ(end, LogFollower::End::kUnknown);
  ASSERT_EQ(followed_.size(), model_.size());
  for (size_t i = 0; i < model_.size(); ++i) EXPECT_TRUE(followed_[i] == model_[i]) << i;
}

/// Whether the segment is gone by the time the follower meets what its successor has written.
class LogFollowerMeetsAnOwner : public LogFollowerTest, public testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(, LogFollowerMeetsAnOwner, testing::Bool(),
                         testing::PrintToStringParamName());

TEST_P(LogFollowerMeetsAnOwner, AndForgetsWhatThatHasNotFound) {
  Open();
  ASSERT_NO_FATAL_FAILURE(Append(3, 500));
  const uint64_t found = End();
  const SequenceNumber next = next_;
  ASSERT_NO_FATAL_FAILURE(Append(4, 500));
  const LogSegment segment = log_space_->segments().front();
  TellSegments();
  // The follower meets a new owner that has no segment yet.
  follower_->OwnerLeaves();
  follower_->OwnerChanged();
  LogFollower::End end = LogFollower::End::kReached;
  ASSERT_TRUE(IsOk(Advance(&end, LogFollower::Look::kHeads)));
  EXPECT_EQ(end, LogFollower::End::kUnknown);
  EXPECT_EQ(followed_.size(), model_.size());

  // That owner has found three records, and gives the sequences of the rest to others.
  writer_->Close();
  LogWriterOptions options = Options();
  options.previous_number = segment.number;
  options.previous_bytes = found;
  OpenWriter(options);
  model_.resize(3);
  next_ = next;
  ASSERT_NO_FATAL_FAILURE(Append(2, 700));
  if (GetParam()) log_space_->Drop({segment});
  TellSegments();
  ASSERT_TRUE(IsOk(Advance(&end)));
  EXPECT_EQ(end, LogFollower::End::kForeign);

  follower_->Reset();
  followed_.clear();
  followed_through_ = 0;
  ASSERT_TRUE(IsOk(Advance(&end, LogFollower::Look::kHeads)));
  EXPECT_EQ(end, LogFollower::End::kUnknown);
  if (GetParam()) model_.erase(model_.begin(), model_.begin() + 3);
  ASSERT_EQ(followed_.size(), model_.size());
  for (size_t i = 0; i < model_.size(); ++i) EXPECT_TRUE(followed_[i] == model_[i]) << i;
}

TEST_F(LogFollowerTest, WhatANewOwnerHasGivenUpIsPassedOver) {
  Open();
  ASSERT_NO_FATAL_FAILURE(Append(3, 500));
  const LogSegment first = log_space_->segments().front();
  const uint64_t found = End();
  const SequenceNumber next = next_;
  // All of a segment whose header the new owner has not met.
  ASSERT_TRUE(IsOk(writer_->StartSegment()));
  ASSERT_NO_FATAL_FAILURE(Append(2, 500));
  writer_->Close();
  LogWriterOptions options = Options();
  options.previous_number = first.number;
  options.previous_bytes = found;
  OpenWriter(options);
  model_.resize(3);
  next_ = next;
  ASSERT_NO_FATAL_FAILURE(Append(2, 700));
  TellSegments();
  follower_->OwnerChanged();
  LogFollower::End end = LogFollower::End::kReached;
  ASSERT_TRUE(IsOk(Advance(&end, LogFollower::Look::kHeads)));
  ASSERT_EQ(followed_.size(), model_.size());
  for (size_t i = 0; i < model_.size(); ++i) EXPECT_TRUE(followed_[i] == model_[i]) << i;
}

TEST_F(LogFollowerTest, ASegmentThatEndsIsMarkedWhereItCanBeReached) {
  Open();
  ASSERT_NO_FATAL_FAILURE(Append(2, 500));
  const LogSegment first = log_space_->segments().front();
  for (const ExtentAddr& copy : first.copies) EXPECT_FALSE(Sealed(copy, first.number));
  complete_through_ = 77;
  ASSERT_TRUE(IsOk(writer_->StartSegment()));
  for (const ExtentAddr& copy : first.copies) EXPECT_TRUE(Sealed(copy, first.number));
  ASSERT_NO_FATAL_FAILURE(Append(1, 500));
  ASSERT_NO_FATAL_FAILURE(ExpectAll());
  EXPECT_EQ(told_, 77u);

  // The next one ends since a node dies: the other copy says so.
  LogSegment second;
  for (const LogSegment& segment : log_space_->segments()) {
    LogSegmentHeader header;
    const Slice bytes(Byte(segment.copies[0], 0), kLogHeaderBytes);
    if (!DecodeLogHeader(bytes, database_id_, segment.number, &header).ok()) continue;
    if (!header.sealed) second = segment;
  }
  ASSERT_GT(second.number, first.number);
  pool_->KillEmbeddedNode(static_cast<NodeId>(second.copies[0].start.node));
  ASSERT_NO_FATAL_FAILURE(Append(3, 500));
  EXPECT_TRUE(Sealed(second.copies[1], second.number));
  ASSERT_NO_FATAL_FAILURE(ExpectAll());
}

}  // namespace
}  // namespace nacre
