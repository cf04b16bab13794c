#include "tests/support/log_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "pool/connect/lane.h"
#include "tests/support/status_assert.h"
#include "util/memory/arena.h"

namespace nacre {

Status TestLogSpace::NewSegment(uint64_t number, uint64_t bytes, LogSegment* segment) {
  MutexLock lock(&mutex_);
  EXPECT_GT(number, last_number_);
  last_number_ = number;
  NACRE_RETURN_IF_ERROR(failure_);
  Placement placement;
  NACRE_RETURN_IF_ERROR(space_->Reserve(pool::Copies(copies_), bytes, kNoNode, &placement));
  segment->number = number;
  segment->copies = placement.fragments;
  // Space comes in larger steps.
  for (ExtentAddr& copy : segment->copies) copy.length = bytes;
  segments_[number] = {.segment = *segment, .placement = placement};
  return Status::OK();
}

void TestLogSpace::FailWith(const Status& status) {
  MutexLock lock(&mutex_);
  failure_ = status;
}

void TestLogSpace::Drop(const std::vector<LogSegment>& segments) {
  MutexLock lock(&mutex_);
  for (const LogSegment& segment : segments) {
    const auto it = segments_.find(segment.number);
    ASSERT_TRUE(it != segments_.end()) << "segment " << segment.number;
    EXPECT_TRUE(segment == it->second.segment);
    space_->Free(it->second.placement);
    segments_.erase(it);
  }
}

std::vector<LogSegment> TestLogSpace::segments() const {
  MutexLock lock(&mutex_);
  std::vector<LogSegment> segments;
  for (const auto& [number, recorded] : segments_) segments.push_back(recorded.segment);
  return segments;
}

uint64_t TestLogSpace::last_number() const {
  MutexLock lock(&mutex_);
  return last_number_;
}

TestRecord MakeRecord(SequenceNumber first, size_t bytes) {
  TestRecord record;
  record.first = first;
  record.payload = pool::RandomBytes(first * 31 + bytes, std::max<size_t>(bytes, 2));
  record.count = 1 + static_cast<uint32_t>(first % (record.payload.size() / 2));
  return record;
}

void LogFixture::OpenPoolFor(int nodes, int copies, const std::string& parameters) {
  OpenPoolAt("embedded:?size=64MiB&nodes=" + std::to_string(nodes) + parameters);
  CreateDatabase();
  log_space_ = std::make_unique<TestLogSpace>(space_.get(), copies);
}

LogWriterOptions LogFixture::Options() const {
  return {.client = client_,
          .clock = Clock::System(),
          .database_id = database_id_,
          .segment_bytes = 256 << 10,
          .ring_bytes = 32 << 10,
          .next_number = log_space_->last_number() + 1};
}

void LogFixture::OpenWriter(const LogWriterOptions& options) {
  ASSERT_TRUE(IsOk(LogWriter::Open(options, log_space_.get(), &writer_)));
}

Status LogFixture::Append(const TestRecord& record, uint64_t generation, uint64_t* position) {
  // In parts, as a batch and what goes before it.
  const size_t cut = record.payload.size() / 3;
  const Slice parts[] = {Slice(record.payload.data(), cut), Slice(),
                         Slice(record.payload.data() + cut, record.payload.size() - cut)};
  return writer_->Append(generation, record.first, record.count, parts, position);
}

Status LogFixture::AppendAndAwait(const TestRecord& record, uint64_t generation) {
  uint64_t position = 0;
  NACRE_RETURN_IF_ERROR(Append(record, generation, &position));
  return writer_->Await(position);
}

void LogFixture::WriteLog(int nodes, int records, size_t most_bytes, Random* random,
                          std::vector<TestRecord>* written) {
  OpenPoolFor(nodes, nodes);
  LogWriterOptions options = Options();
  options.segment_bytes = 4 << 20;
  options.ring_bytes = kLogRingBytes;
  OpenWriter(options);
  SequenceNumber next = 1;
  for (int i = 0; i < records; ++i) {
    written->push_back(MakeRecord(next, 2 + random->Uniform(most_bytes)));
    next += written->back().count;
    ASSERT_TRUE(IsOk(AppendAndAwait(written->back())));
  }
}

Status LogFixture::Read(WALRecoveryMode mode, std::vector<TestRecord>* records) {
  const Status s = ReadLog(
      client_, database_id_, log_space_->segments(), mode,
      [&](SequenceNumber first, uint32_t count, const Slice& payload) {
        records->push_back({.first = first, .count = count, .payload = payload.ToString()});
        return Status::OK();
      },
      &result_);
  ExpectSameInParts(mode, s, *records);
  return s;
}

void LogFixture::ExpectSameInParts(WALRecoveryMode mode, const Status& expected,
                                   const std::vector<TestRecord>& records) {
  constexpr size_t kThreads = 3;
  const std::vector<LogSegment> segments = log_space_->segments();
  std::vector<std::vector<std::pair<TestRecord, Slice>>> found(segments.size());
  ConcurrentArena kept;
  LogReadResult result;
  size_t parts = 0;
  const Status s = ReadLogInParts(
      client_, database_id_, segments, mode, kThreads, &kept,
      [&](size_t part, SequenceNumber first, uint32_t count, const Slice& payload) {
        found[part].emplace_back(
            TestRecord{.first = first, .count = count, .payload = payload.ToString()}, payload);
        return Status::OK();
      },
      &result, &parts);
  EXPECT_EQ(s.ToString(), expected.ToString());
  if (!s.ok()) return;
  EXPECT_EQ(result.records, result_.records);
  EXPECT_EQ(result.bytes, result_.bytes);
  EXPECT_EQ(result.last_sequence, result_.last_sequence);
  EXPECT_EQ(result.end_number, result_.end_number);
  EXPECT_EQ(result.end_bytes, result_.end_bytes);
  EXPECT_EQ(result.tail_begin, result_.tail_begin);
  EXPECT_EQ(result.healed, result_.healed);
  EXPECT_EQ(result.notes.size(), result_.notes.size());
  std::vector<TestRecord> together;
  for (size_t part = 0; part < parts; ++part) {
    for (const auto& [record, payload] : found[part]) {
      EXPECT_EQ(record.payload, payload.ToString());  // It is kept.
      together.push_back(record);
    }
  }
  EXPECT_TRUE(together == records);
}

void LogFixture::ExpectLog(const std::vector<TestRecord>& records) {
  std::vector<TestRecord> found;
  ASSERT_TRUE(IsOk(Read(WALRecoveryMode::kAbsoluteConsistency, &found)));
  ASSERT_EQ(found.size(), records.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_TRUE(found[i] == records[i]) << "record " << i << " of " << found.size();
  }
}

char* LogFixture::Byte(const ExtentAddr& copy, uint64_t offset) {
  uint64_t contiguous = 0;
  const rdma::RemoteBuffer at =
      client_->fabric()->link(copy.start.node)->Translate(copy.start.offset + offset, &contiguous);
  return reinterpret_cast<char*>(at.address);
}

LogFixture::~LogFixture() {
  writer_.reset();
  log_space_.reset();
}

}  // namespace nacre
