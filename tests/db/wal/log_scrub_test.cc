// Goal: a look at a log segment finds each damaged copy and no other, healing makes it what the
// whole ones are, and a segment that is healed is kept until then.
// Method: logs of three copies on embedded nodes, of which bits are flipped, one after the other
// and at random; the copies' bytes are compared with what was written.

#include "db/wal/log_scrub.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/log_fixture.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "util/random.h"

namespace nacre {
namespace {

constexpr size_t kCopies = 3;

class LogScrubTest : public LogFixture {
 protected:
  /// A log of one sealed segment with so many records.
  void MakeLog(int records, size_t most_bytes) {
    ASSERT_NO_FATAL_FAILURE(WriteLog(kCopies, records, most_bytes, &random_, &records_));
    ASSERT_TRUE(IsOk(writer_->StartSegment()));
    const std::vector<WrittenSegment> written = writer_->SegmentsOf(0, UINT64_MAX);
    ASSERT_EQ(written.size(), 1u);
    written_ = written.front();
    before_.assign(Byte(copy(0), 0), written_.bytes);
    ASSERT_TRUE(IsOk(pool::PoolReader::Open(client_->fabric(), &reader_)));
  }
  const ExtentAddr& copy(size_t number) const { return written_.segment.copies[number]; }
  void Flip(size_t number, uint64_t offset) {
    *Byte(copy(number), offset) ^= static_cast<char>(1 << random_.Uniform(8));
  }
  LogSegmentReplicas Look() {
    LogSegmentReplicas copies;
    uint64_t bytes = 0;
    const PassBytes pass = [&bytes](uint64_t n) {
      bytes += n;
      return Status::OK();
    };
    EXPECT_TRUE(
        IsOk(CheckLogCopies(client_, reader_.get(), database_id_, written_, pass, &copies)));
    EXPECT_GT(bytes, 0u);
    return copies;
  }
  Status Heal(size_t whole, size_t damaged) {
    return HealLogCopy(client_, reader_.get(), database_id_, written_, copy(whole), copy(damaged));
  }
  void ExpectAllWhole() {
    const LogSegmentReplicas copies = Look();
    EXPECT_EQ(copies.whole, written_.segment.copies);
    EXPECT_TRUE(copies.damaged.empty());
    for (size_t i = 0; i < kCopies; ++i) {
      EXPECT_EQ(std::memcmp(Byte(copy(i), 0), before_.data(), before_.size()), 0) << "copy " << i;
    }
  }
  /// Whether a checksum covers the byte: the zeros behind a record mean nothing.
  bool Covered(uint64_t offset) const {
    uint64_t at = kLogHeaderBytes;
    if (offset < at) return true;
    for (const TestRecord& record : records_) {
      const uint64_t end = at + LogRecordBytes(record.payload.size());
      if (offset < end) return offset < at + kLogRecordHead + record.payload.size();
      at = end;
    }
    return false;
  }

  Random random_{TestSeed(911)};
  std::vector<TestRecord> records_;
  WrittenSegment written_;
  std::string before_;
  std::unique_ptr<pool::PoolReader> reader_;
};

TEST_F(LogScrubTest, EachByteOfACopyIsLookedAt) {
  ASSERT_NO_FATAL_FAILURE(MakeLog(20, 100));
  ASSERT_NO_FATAL_FAILURE(ExpectAllWhole());
  for (uint64_t at = 0; at < written_.bytes; ++at) {
    SCOPED_TRACE(at);
    const size_t damaged = at % kCopies;
    Flip(damaged, at);
    const LogSegmentReplicas copies = Look();
    if (Covered(at)) {
      ASSERT_EQ(copies.damaged, std::vector<ExtentAddr>{copy(damaged)});
      ASSERT_EQ(copies.whole.size(), kCopies - 1);
    } else {
      ASSERT_EQ(copies.whole.size(), kCopies);
    }
    ASSERT_TRUE(IsOk(Heal((damaged + 1) % kCopies, damaged)));
    ASSERT_NO_FATAL_FAILURE(ExpectAllWhole());
  }
}

TEST_F(LogScrubTest, LongRecordsAreLookedAtInPieces) {
  ASSERT_NO_FATAL_FAILURE(MakeLog(8, 400 << 10));
  ASSERT_GT(written_.bytes, uint64_t{512} << 10);
  for (int round = 0; round < 50; ++round) {
    for (int flips = 0; flips < 5; ++flips) Flip(1, random_.Uniform(written_.bytes));
    const LogSegmentReplicas copies = Look();
    ASSERT_TRUE(copies.damaged.empty() || copies.damaged == std::vector<ExtentAddr>{copy(1)});
    ASSERT_TRUE(IsOk(Heal(round % 2 == 0 ? 0 : 2, 1)));
    ASSERT_NO_FATAL_FAILURE(ExpectAllWhole());
  }
}

TEST_F(LogScrubTest, ADamagedCopyHealsNoOther) {
  ASSERT_NO_FATAL_FAILURE(MakeLog(20, 100));
  Flip(0, kLogHeaderBytes + kLogRecordHead);
  Flip(1, 9);
  EXPECT_TRUE(IsFailure(Heal(0, 1), Status::Code::kCorruption));
  EXPECT_EQ(Look().damaged.size(), 2u);
}

TEST_F(LogScrubTest, AMarkIsNotTakenAway) {
  ASSERT_NO_FATAL_FAILURE(MakeLog(20, 100));
  // One that could not be reached when the segment ended.
  std::memset(Byte(copy(0), kLogSealAt), 0, kLogSealBytes);
  EXPECT_EQ(Look().whole.size(), kCopies);
  Flip(1, written_.bytes / 2);  // Its header is whole.
  Flip(2, 9);
  ASSERT_TRUE(IsOk(Heal(0, 1)));
  ASSERT_TRUE(IsOk(Heal(0, 2)));
  for (const size_t number : {size_t{1}, size_t{2}}) {
    EXPECT_EQ(std::memcmp(Byte(copy(number), 0), before_.data(), before_.size()), 0);
  }
}

TEST_F(LogScrubTest, LostNodesAreLeftOut) {
  ASSERT_NO_FATAL_FAILURE(MakeLog(20, 100));
  Flip(0, kLogHeaderBytes + kLogRecordHead);
  pool_->KillEmbeddedNode(copy(1).start.node);
  const LogSegmentReplicas copies = Look();
  EXPECT_EQ(copies.damaged, std::vector<ExtentAddr>{copy(0)});
  EXPECT_EQ(copies.whole, std::vector<ExtentAddr>{copy(2)});
}

TEST_F(LogScrubTest, ASegmentIsKeptWhileItIsHealed) {
  ASSERT_NO_FATAL_FAILURE(MakeLog(20, 100));
  const TestRecord record = MakeRecord(1000, 50);
  ASSERT_TRUE(IsOk(AppendAndAwait(record, /*generation=*/2)));
  const uint64_t open = writer_->SegmentsOf(2, 2).front().segment.number;
  std::vector<LogSegment> unneeded;
  const bool there = writer_->WithSealed(written_.segment.number, [&](const WrittenSegment& kept) {
    EXPECT_EQ(kept.segment, written_.segment);
    EXPECT_EQ(kept.bytes, written_.bytes);
    unneeded = writer_->TakeUnneeded(/*flushed=*/2, /*close_open=*/true);
  });
  EXPECT_TRUE(there);
  EXPECT_TRUE(unneeded.empty());
  // Nor is anything written any more to one that was open.
  const TestRecord another = MakeRecord(2000, 50);
  ASSERT_TRUE(IsOk(AppendAndAwait(another, 3)));
  const uint64_t last = writer_->SegmentsOf(3, 3).front().segment.number;
  ASSERT_TRUE(writer_->WithSealed(last, [&](const WrittenSegment& kept) {
    const uint64_t end = kept.bytes;
    ASSERT_TRUE(IsOk(AppendAndAwait(MakeRecord(3000, 50), 4)));
    EXPECT_EQ(writer_->SegmentsOf(3, 3).front().bytes, end);
    EXPECT_NE(writer_->SegmentsOf(4, 4).front().segment.number, last);
  }));
  unneeded = writer_->TakeUnneeded(2);
  ASSERT_EQ(unneeded.size(), 2u);
  EXPECT_EQ(unneeded.back().number, open);
  EXPECT_FALSE(writer_->WithSealed(open, [](const WrittenSegment&) { FAIL(); }));
}

}  // namespace
}  // namespace nacre
