// Goal: what is damaged in one copy of a log is taken from another; what is damaged in all copies
// ends or fails the replay as the recovery mode has it, and is never passed on; lost nodes,
// segments that are missing and any bytes at all do no harm.
// Method: a small log whose every byte is flipped, whose last record is cut everywhere, in one copy
// and in all of them, in the memory of embedded nodes, replayed in each mode against the model.

#include "db/wal/log_reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "table/format/log_format.h"
#include "tests/support/log_fixture.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "util/random.h"

namespace nacre {
namespace {

using Mode = WALRecoveryMode;
constexpr Mode kModes[] = {Mode::kTolerateCorruptedTailRecords, Mode::kAbsoluteConsistency,
                           Mode::kPointInTimeRecovery, Mode::kSkipAnyCorruptedRecords};

class LogReaderTest : public LogFixture {
 protected:
  static constexpr uint64_t kSegmentBytes = 320;

  struct Place {
    size_t segment = 0;  ///< Index into segments_.
    uint64_t offset = 0;
  };

  /// A log of `records` records of up to `most_bytes` in segments of `segment_bytes`, closed
  /// without notice. Memory that it does not cover is random.
  void MakeLog(int copies, int records, size_t most_bytes, uint64_t segment_bytes) {
    OpenPoolFor(copies, copies);
    LogWriterOptions options = Options();
    options.segment_bytes = segment_bytes;
    OpenWriter(options);
    SequenceNumber next = 1000;
    for (int i = 0; i < records; ++i) {
      model_.push_back(MakeRecord(next, 2 + i * 37 % most_bytes));
      next += model_.back().count;
      ASSERT_TRUE(IsOk(AppendAndAwait(model_.back())));
    }
    writer_.reset();
    std::vector<TestRecord> found;
    ASSERT_TRUE(IsOk(Read(Mode::kAbsoluteConsistency, &found)));
    ASSERT_TRUE(found == model_);
    segments_ = log_space_->segments();
    // The spare is left out.
    while (segments_.back().number > result_.end_number) segments_.pop_back();
    FindPlaces(segment_bytes);
    for (size_t i = 0; i < segments_.size(); ++i) {
      const uint64_t used = i + 1 < segments_.size() ? segment_bytes : result_.end_bytes;
      const std::string rest = pool::RandomBytes(i + 7, segment_bytes - used);
      for (const ExtentAddr& copy : segments_[i].copies) {
        if (!rest.empty()) std::memcpy(Byte(copy, used), rest.data(), rest.size());
      }
    }
  }
  void FindPlaces(uint64_t segment_bytes) {
    Place place{.segment = 0, .offset = kLogHeaderBytes};
    for (const TestRecord& record : model_) {
      const uint64_t bytes = LogRecordBytes(record.payload.size());
      if (place.offset + bytes > segment_bytes) {
        place = {.segment = place.segment + 1, .offset = kLogHeaderBytes};
      }
      places_.push_back(place);
      place.offset += bytes;
    }
  }
  /// The record that a byte of a log is part of, or the one after the header.
  size_t RecordAt(size_t segment, uint64_t offset) const {
    size_t i = places_.size() - 1;
    while (i > 0 && (places_[i].segment > segment ||
                     (places_[i].segment == segment && places_[i].offset > offset))) {
      --i;
    }
    return places_[i].segment < segment || offset < kLogHeaderBytes ? FirstOf(segment) : i;
  }
  size_t FirstOf(size_t segment) const {
    size_t i = 0;
    while (places_[i].segment < segment) ++i;
    return i;
  }
  uint64_t EndOf(size_t record) const {
    return places_[record].offset + LogRecordBytes(model_[record].payload.size());
  }
  void Flip(size_t segment, size_t copy, uint64_t offset) {
    *Byte(segments_[segment].copies[copy], offset) ^= 0x11;
  }
  std::vector<TestRecord> Prefix(size_t records) const {
    return {model_.begin(), model_.begin() + static_cast<ptrdiff_t>(records)};
  }
  /// The replay in `mode` when no copy has the record; `header`: nor the header before it, but the
  /// record.
  void ExpectDamaged(Mode mode, size_t record, bool header) {
    std::vector<TestRecord> found;
    const Status s = Read(mode, &found);
    const bool tail = record + 1 == model_.size() && !header;
    std::vector<TestRecord> rest = model_;
    if (!header) rest.erase(rest.begin() + static_cast<ptrdiff_t>(record));
    if (mode == Mode::kAbsoluteConsistency ||
        (mode == Mode::kTolerateCorruptedTailRecords && !tail)) {
      const std::string segment = std::to_string(segments_[places_[record].segment].number);
      EXPECT_TRUE(IsFailure(s, Status::Code::kCorruption, "log segment " + segment));
      EXPECT_TRUE(IsFailure(s, Status::Code::kCorruption, client_->node_address(0)));
    } else if (mode == Mode::kSkipAnyCorruptedRecords) {
      ASSERT_TRUE(IsOk(s));
      EXPECT_TRUE(found == rest);
      EXPECT_FALSE(result_.notes.empty());
    } else {
      ASSERT_TRUE(IsOk(s));
      EXPECT_TRUE(found == Prefix(record));
      EXPECT_FALSE(result_.notes.empty());
    }
  }

  std::vector<TestRecord> model_;
  std::vector<Place> places_;
  std::vector<LogSegment> segments_;
};

TEST_F(LogReaderTest, AByteThatIsWrongInOneCopyIsTakenFromAnother) {
  MakeLog(2, 8, 70, kSegmentBytes);
  ASSERT_GE(segments_.size(), 2u);
  for (size_t segment = 0; segment < segments_.size(); ++segment) {
    const bool last = segment + 1 == segments_.size();
    const uint64_t end = last ? EndOf(model_.size() - 1) : kSegmentBytes;
    for (uint64_t offset = 0; offset < end; ++offset) {
      SCOPED_TRACE("segment " + std::to_string(segment) + " byte " + std::to_string(offset));
      for (const size_t copy : {size_t{0}, size_t{1}}) {
        Flip(segment, copy, offset);
        std::vector<TestRecord> found;
        ASSERT_TRUE(IsOk(Read(Mode::kAbsoluteConsistency, &found)));
        ASSERT_TRUE(found == model_);
        Flip(segment, copy, offset);
      }
    }
  }
  Flip(0, 0, kLogHeaderBytes + 4);
  ExpectLog(model_);
  EXPECT_TRUE(result_.healed);
  Flip(0, 0, kLogHeaderBytes + 4);
  Flip(0, 0, 20);
  ExpectLog(model_);
  EXPECT_TRUE(result_.healed);
}

TEST_F(LogReaderTest, AByteThatIsWrongInAllCopiesIsDealtWithByMode) {
  MakeLog(2, 8, 70, kSegmentBytes);
  for (size_t segment = 0; segment < segments_.size(); ++segment) {
    for (uint64_t offset = 0; offset < kSegmentBytes; ++offset) {
      SCOPED_TRACE("segment " + std::to_string(segment) + " byte " + std::to_string(offset));
      const bool header = offset < kLogHeaderBytes;
      const size_t record = RecordAt(segment, offset);
      // Padding, and what lies behind the records, is covered by nothing.
      if (!header &&
          offset >= places_[record].offset + kLogRecordHead + model_[record].payload.size()) {
        continue;
      }
      for (const size_t copy : {size_t{0}, size_t{1}}) Flip(segment, copy, offset);
      for (const Mode mode : kModes) {
        SCOPED_TRACE("mode " + std::to_string(static_cast<int>(mode)));
        ExpectDamaged(mode, record, header);
      }
      for (const size_t copy : {size_t{0}, size_t{1}}) Flip(segment, copy, offset);
    }
  }
  ExpectLog(model_);
}

TEST_F(LogReaderTest, ATornTailIsLeftOut) {
  MakeLog(2, 5, 70, kSegmentBytes);
  const size_t last = model_.size() - 1;
  const uint64_t from = places_[last].offset;
  const uint64_t length = kLogRecordHead + model_[last].payload.size();
  const LogSegment segment = segments_[places_[last].segment];
  const std::string whole(Byte(segment.copies[0], from), length);
  const std::string old = pool::RandomBytes(11, length);
  for (uint64_t cut = 0; cut < length; ++cut) {
    SCOPED_TRACE("cut at " + std::to_string(cut));
    const auto tear = [&](size_t copy) {
      std::memcpy(Byte(segment.copies[copy], from + cut), old.data() + cut, length - cut);
    };
    tear(0);
    ExpectLog(model_);
    tear(1);
    for (const Mode mode : kModes) {
      if (mode == Mode::kAbsoluteConsistency) continue;
      std::vector<TestRecord> found;
      ASSERT_TRUE(IsOk(Read(mode, &found)));
      EXPECT_TRUE(found == Prefix(last));
      EXPECT_EQ(result_.end_bytes, from);
    }
    std::vector<TestRecord> found;
    const Status s = Read(Mode::kAbsoluteConsistency, &found);
    // Less than a stamp is no sign of a record.
    if (cut >= 4) {
      EXPECT_TRUE(s.IsCorruption()) << s.ToString();
    }
    for (const ExtentAddr& copy : segment.copies) {
      std::memcpy(Byte(copy, from), whole.data(), length);
    }
  }
}

TEST_F(LogReaderTest, ASegmentThatIsMissingIsNoticed) {
  MakeLog(1, 12, 70, kSegmentBytes);
  ASSERT_GE(segments_.size(), 3u);
  std::vector<LogSegment> all = segments_;
  all.erase(all.begin() + 1);
  for (const Mode mode : kModes) {
    std::vector<SequenceNumber> found;
    const Status s = ReadLog(
        client_, database_id_, all, mode,
        [&](SequenceNumber first, uint32_t, const Slice&) {
          found.push_back(first);
          return Status::OK();
        },
        &result_);
    size_t expected = FirstOf(1);
    if (mode == Mode::kSkipAnyCorruptedRecords) expected += model_.size() - FirstOf(2);
    if (mode == Mode::kPointInTimeRecovery || mode == Mode::kSkipAnyCorruptedRecords) {
      EXPECT_TRUE(IsOk(s));
      EXPECT_EQ(found.size(), expected);
    } else {
      EXPECT_TRUE(IsFailure(s, Status::Code::kCorruption, "segment 2"));
    }
  }
  // Segments may be dropped from the beginning on.
  segments_.erase(segments_.begin());
  std::vector<SequenceNumber> found;
  EXPECT_TRUE(IsOk(ReadLog(
      client_, database_id_, segments_, Mode::kAbsoluteConsistency,
      [&](SequenceNumber first, uint32_t, const Slice&) {
        found.push_back(first);
        return Status::OK();
      },
      &result_)));
  EXPECT_EQ(found.size(), model_.size() - FirstOf(1));
}

TEST_F(LogReaderTest, LostNodesAreDoneWithoutUntilAllAre) {
  MakeLog(3, 40, 300, 4096);
  for (const NodeId victim : {NodeId{0}, NodeId{2}}) {
    pool_->KillEmbeddedNode(victim);
    ExpectLog(model_);
    EXPECT_FALSE(result_.healed);
    EXPECT_FALSE(result_.notes.empty());
  }
  pool_->KillEmbeddedNode(1);
  for (const Mode mode : kModes) {
    std::vector<TestRecord> found;
    EXPECT_TRUE(
        IsFailure(Read(mode, &found), Status::Code::kUnavailable, client_->node_address(1)));
    EXPECT_TRUE(found.empty());
  }
}

TEST_F(LogReaderTest, AFailureOfTheVisitorEndsTheReplay) {
  MakeLog(1, 8, 70, kSegmentBytes);
  int visits = 0;
  const Status s = ReadLog(
      client_, database_id_, log_space_->segments(), Mode::kSkipAnyCorruptedRecords,
      [&](SequenceNumber, uint32_t, const Slice&) {
        return ++visits == 3 ? Status::NoSpace("enough") : Status::OK();
      },
      &result_);
  EXPECT_TRUE(s.IsNoSpace());
  EXPECT_EQ(visits, 3);
  EXPECT_EQ(result_.records, 2u);
}

TEST_F(LogReaderTest, AnyDamageLeavesAPrefixAndOnlyRecordsThatWereWritten) {
  Random random(TestSeed(521));
  MakeLog(2, 60, 200, 2048);
  std::vector<std::string> kept;
  for (const LogSegment& segment : segments_) {
    kept.emplace_back(Byte(segment.copies[0], 0), 2048);
  }
  for (size_t round = 0; round < Scaled(150); ++round) {
    // The same in both copies, some of the time.
    const bool all = random.OneIn(2);
    for (int i = 0; i < 1 + static_cast<int>(random.Uniform(4)); ++i) {
      const auto& segment = segments_[random.Uniform(segments_.size())];
      const uint64_t offset = random.Uniform(2048);
      const std::string bytes = pool::RandomBytes(random.Next(), 1 + random.Uniform(2048 - offset));
      std::memcpy(Byte(segment.copies[0], offset), bytes.data(), bytes.size());
      if (all) std::memcpy(Byte(segment.copies[1], offset), bytes.data(), bytes.size());
    }
    std::vector<TestRecord> found;
    ASSERT_TRUE(IsOk(Read(Mode::kPointInTimeRecovery, &found)));
    EXPECT_TRUE(found == Prefix(found.size()));
    if (!all) {
      EXPECT_EQ(found.size(), model_.size());
    }
    found.clear();
    ASSERT_TRUE(IsOk(Read(Mode::kSkipAnyCorruptedRecords, &found)));
    size_t at = 0;
    for (const TestRecord& record : found) {
      while (at < model_.size() && !(model_[at] == record)) ++at;
      ASSERT_LT(at, model_.size());
    }
    for (size_t i = 0; i < segments_.size(); ++i) {
      for (const ExtentAddr& copy : segments_[i].copies) {
        std::memcpy(Byte(copy, 0), kept[i].data(), kept[i].size());
      }
    }
  }
}

}  // namespace
}  // namespace nacre
