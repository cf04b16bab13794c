// Goal: a node makes of a log exactly the table that the MemTable's owner asks for, whichever
// copies it has itself, and answers in words where the log is not what the job says.
// Method: batches in a log on embedded nodes; what a job answers is compared with a model, for
// ranges, snapshots, large records and neighbours in the log; then bytes, numbers and bounds are
// changed.

#include "jobs/flush_job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "jobs/job_client.h"
#include "pool/reports.h"
#include "pool/wire/node_stats.h"
#include "table/format/write_batch_format.h"
#include "tests/support/comparators.h"
#include "tests/support/log_fixture.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/table/test_table.h"
#include "tests/support/test_db.h"
#include "util/named_point.h"
#include "util/random.h"

namespace nacre {
namespace {

class FlushJobTest : public LogFixture {
 protected:
  void OpenLog(int nodes, int copies) {
    OpenPoolFor(nodes, copies);
    OpenWriter(Options());
  }

  /// A record of `updates` random updates, in the model if it is of the MemTable at hand.
  void AppendBatch(int updates, size_t most_bytes, bool in_model) {
    std::string payload;
    const SequenceNumber first = next_;
    for (int i = 0; i < updates; ++i, ++next_) {
      const bool deletion = random_.OneIn(6);
      TestEntry entry;
      entry.user_key = "key" + std::to_string(random_.Uniform(3000));
      entry.tag = PackTag(next_, deletion ? ValueType::kDeletion : ValueType::kValue);
      if (!deletion) entry.value = pool::RandomBytes(next_, random_.Uniform(most_bytes));
      const EncodedUpdate encoded(TagType(entry.tag), kDefaultFamily, entry.user_key, entry.value);
      for (const Slice& part : encoded.parts()) payload.append(part.data(), part.size());
      if (in_model) model_.push_back(std::move(entry));
    }
    const Slice part(payload);
    uint64_t position = 0;
    ASSERT_TRUE(IsOk(
        writer_->Append(next_ - 1, first, static_cast<uint32_t>(updates), {&part, 1}, &position)));
  }

  /// Batches of three MemTables in turns; that in the middle is the one at hand.
  void FillLog() {
    for (int i = 0; i < 60; ++i) AppendBatch(1 + static_cast<int>(random_.Uniform(20)), 300, false);
    first_ = next_;
    for (int i = 0; i < 300; ++i) {
      AppendBatch(1 + static_cast<int>(random_.Uniform(20)), 300, true);
      // Around the ring.
      if (i == 150) AppendBatch(3, 60'000, true);
    }
    last_ = next_ - 1;
    for (int i = 0; i < 60; ++i) AppendBatch(1 + static_cast<int>(random_.Uniform(20)), 300, false);
    ASSERT_TRUE(IsOk(writer_->Sync()));
  }

  pool::FlushJob MakeFlush(int outputs = 1) {
    pool::FlushJob job;
    job.merge = MakeJob({}, 2, outputs, 4 << 20);
    job.merge.target_table_bytes = UINT64_MAX;
    job.merge.output_level = 0;
    job.first = first_;
    job.last = last_;
    for (const WrittenSegment& written : writer_->SegmentsOf(first_, last_)) {
      job.log.push_back({.number = written.segment.number,
                         .bytes = written.bytes,
                         .copies = written.segment.copies});
    }
    return job;
  }

  void FreeOutputs(const pool::FlushJob& job) {
    for (const pool::ReservedTable& output : job.merge.outputs) space_->Free(output.placement);
  }

  /// What is to be there, with levels below in which anything may be.
  std::vector<TestEntry> Expected(const pool::FlushJob& job) const {
    std::vector<TestEntry> sorted = model_;
    SortEntries(InternalKeyComparator(BytewiseComparator()), &sorted);
    std::vector<TestEntry> expected;
    for (const TestEntry& entry : sorted) {
      const auto& [begin, end] = std::pair{job.merge.begin, job.merge.end};
      if (begin.has_value() && entry.user_key < *begin) continue;
      if (end.has_value() && entry.user_key >= *end) continue;
      const auto stripe = [&](const TestEntry& of) {
        return std::lower_bound(job.merge.snapshots.begin(), job.merge.snapshots.end(),
                                TagSequence(of.tag));
      };
      const bool shadowed = !expected.empty() && expected.back().user_key == entry.user_key &&
                            stripe(expected.back()) == stripe(entry);
      if (!shadowed) expected.push_back(entry);
    }
    return expected;
  }

  void ExpectFlushed(const pool::FlushJob& job, NodeId node) {
    pool::CompactionResult result;
    ASSERT_TRUE(IsOk(pool::RunOnNode(client_, node, job, nullptr, &result)));
    ASSERT_EQ(result.tables.size(), 1u);
    std::vector<TestEntry> found;
    ASSERT_TRUE(IsOk(ReadTable(std::make_shared<TableMeta>(result.tables[0]), &found)));
    const std::vector<TestEntry> expected = Expected(job);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_TRUE(found[i] == expected[i]) << "entry " << i << ": " << found[i].user_key;
    }
    FreeOutputs(job);
  }

  void ExpectRefused(const pool::FlushJob& job, Status::Code code, std::string_view what) {
    pool::CompactionResult result;
    EXPECT_TRUE(IsFailure(pool::RunOnNode(client_, 0, job, nullptr, &result), code, what));
    EXPECT_TRUE(result.tables.empty());
  }

  Random random_{TestSeed(2102)};
  SequenceNumber next_ = 1;
  SequenceNumber first_ = 0;
  SequenceNumber last_ = 0;
  std::vector<TestEntry> model_;
};

/// So that nothing is dropped for being at the bottom.
const std::vector<KeyRange> kEverythingDeeper = {{.smallest = "", .largest = "z"}};

TEST_F(FlushJobTest, OnEachNodeFromWhicheverCopies) {
  OpenLog(3, 1);  // So that each node has some segments, and misses others.
  ASSERT_NO_FATAL_FAILURE(FillLog());
  for (NodeId node = 0; node < 3; ++node) {
    pool::FlushJob job = MakeFlush();
    EXPECT_GT(job.log.size(), 2u);
    job.merge.deeper = kEverythingDeeper;
    ASSERT_NO_FATAL_FAILURE(ExpectFlushed(job, node));
    pool::NodeStats stats;
    ASSERT_TRUE(IsOk(pool::GetStats(client_, node, &stats)));
    EXPECT_EQ(stats.flushes, 1u);
    EXPECT_GT(stats.flush_bytes_written, 0u);
    EXPECT_GT(stats.flush_cpu_nanos, 0u);
  }
}

TEST_F(FlushJobTest, RangesAndSnapshots) {
  OpenLog(3, 2);
  ASSERT_NO_FATAL_FAILURE(FillLog());
  const std::vector<std::string> cuts = {"key1500", "key2"};
  uint64_t entries = 0;
  uint64_t bytes = 0;
  for (size_t i = 0; i <= cuts.size(); ++i) {
    pool::FlushJob job = MakeFlush();
    job.merge.deeper = kEverythingDeeper;
    job.merge.snapshots = {first_ + 100, first_ + 101, first_ + 1500};
    if (i > 0) job.merge.begin = cuts[i - 1];
    if (i < cuts.size()) job.merge.end = cuts[i];
    ASSERT_NO_FATAL_FAILURE(ExpectFlushed(job, static_cast<NodeId>(i)));
    // What the owner compares with its MemTable.
    job = MakeFlush();
    if (i > 0) job.merge.begin = cuts[i - 1];
    if (i < cuts.size()) job.merge.end = cuts[i];
    pool::CompactionResult result;
    ASSERT_TRUE(IsOk(pool::RunOnNode(client_, 0, job, nullptr, &result)));
    entries += result.stats.entries_read;
    bytes += result.stats.bytes_read;
    FreeOutputs(job);
  }
  EXPECT_EQ(entries, model_.size());
  uint64_t expected = 0;
  for (const TestEntry& entry : model_) expected += entry.user_key.size() + entry.value.size();
  EXPECT_EQ(bytes, expected);
}

TEST_F(FlushJobTest, SegmentsOfTheMemTableAndNoOthers) {
  OpenLog(3, 2);
  ASSERT_NO_FATAL_FAILURE(FillLog());
  const std::vector<LogSegment> all = log_space_->segments();
  const auto of_all = writer_->SegmentsOf(1, next_ - 1);
  const auto of_first = writer_->SegmentsOf(1, 20);  // The first batch is no longer.
  const auto of_last = writer_->SegmentsOf(next_ - 1, next_ - 1);
  ASSERT_EQ(of_first.size(), 1u);
  ASSERT_EQ(of_last.size(), 1u);
  EXPECT_EQ(of_first[0].segment.number, of_all.front().segment.number);
  EXPECT_EQ(of_last[0].segment.number, of_all.back().segment.number);
  EXPECT_TRUE(writer_->SegmentsOf(next_, next_ + 100).empty());
  for (const WrittenSegment& written : of_all) {
    EXPECT_NE(std::find(all.begin(), all.end(), written.segment), all.end());
    EXPECT_LE(written.bytes, written.segment.copies.front().length);
  }
}

TEST_F(FlushJobTest, DamageIsSaid) {
  OpenLog(3, 3);
  ASSERT_NO_FATAL_FAILURE(FillLog());
  pool::FlushJob job = MakeFlush();
  job.merge.deeper = kEverythingDeeper;
  const pool::LogPart& part = job.log[1];
  const auto copy = std::find_if(part.copies.begin(), part.copies.end(),
                                 [](const ExtentAddr& one) { return one.start.node == 0; });
  ASSERT_NE(copy, part.copies.end());
  const std::string segment = "log segment " + std::to_string(part.number);
  for (const uint64_t at : {uint64_t{20}, kLogHeaderBytes + 1, part.bytes / 2, part.bytes - 40}) {
    char* const byte = Byte(*copy, at);
    *byte = static_cast<char>(*byte ^ 0x10);
    ExpectRefused(job, Status::Code::kCorruption, segment);
    *byte = static_cast<char>(*byte ^ 0x10);
  }
  ASSERT_NO_FATAL_FAILURE(ExpectFlushed(job, 0));
}

TEST_F(FlushJobTest, EachRangeChecksItsOwnRecords) {
  OpenLog(3, 3);
  first_ = next_;
  // Lengths of one byte and of two, keys that reach beyond what is looked at, no value.
  for (const size_t key_bytes : {1, 300, 61, 62, 63, 64, 65, 126, 127, 128, 129, 20}) {
    for (const char* prefix : {"a", "y"}) {
      TestEntry entry;
      entry.user_key = prefix + std::string(key_bytes - 1, 'k');
      entry.tag = PackTag(next_, ValueType::kValue);
      entry.value = pool::RandomBytes(next_, key_bytes == 62 ? 0 : 400);
      const EncodedUpdate update(ValueType::kValue, kDefaultFamily, entry.user_key, entry.value);
      uint64_t position = 0;
      ASSERT_TRUE(IsOk(writer_->Append(next_, next_, 1, update.parts(), &position)));
      model_.push_back(std::move(entry));
      ++next_;
    }
  }
  ASSERT_TRUE(IsOk(writer_->Sync()));
  last_ = next_ - 1;
  pool::FlushJob low = MakeFlush();
  low.merge.deeper = kEverythingDeeper;
  low.merge.end = "m";
  ASSERT_NO_FATAL_FAILURE(ExpectFlushed(low, 0));
  pool::FlushJob high = MakeFlush();
  high.merge.deeper = kEverythingDeeper;
  high.merge.begin = "m";
  ASSERT_NO_FATAL_FAILURE(ExpectFlushed(high, 0));
  // The last record is one of the upper range.
  const pool::LogPart& part = high.log.back();
  const auto copy = std::find_if(part.copies.begin(), part.copies.end(),
                                 [](const ExtentAddr& one) { return one.start.node == 0; });
  ASSERT_NE(copy, part.copies.end());
  char* const byte = Byte(*copy, part.bytes - 40);
  *byte = static_cast<char>(*byte ^ 0x10);
  low = MakeFlush();
  low.merge.deeper = kEverythingDeeper;
  low.merge.end = "m";
  ASSERT_NO_FATAL_FAILURE(ExpectFlushed(low, 0));
  high = MakeFlush();
  high.merge.begin = "m";
  ExpectRefused(high, Status::Code::kCorruption, "log segment");
  *byte = static_cast<char>(*byte ^ 0x10);
}

TEST_F(FlushJobTest, JobsThatDoNotFitTheLogAreRefused) {
  OpenLog(3, 2);
  ASSERT_NO_FATAL_FAILURE(FillLog());
  const pool::FlushJob good = MakeFlush();
  pool::FlushJob job = good;
  ++job.log[0].number;
  ExpectRefused(job, Status::Code::kCorruption, "header of another segment");
  for (const uint64_t more : {uint64_t{8}, uint64_t{0} - 8}) {
    job = good;
    // A segment with room behind its records.
    const auto part = std::find_if(job.log.begin(), job.log.end(), [](const auto& one) {
      return one.bytes + 8 <= one.copies[0].length;
    });
    ASSERT_NE(part, job.log.end());
    part->bytes += more;
    ExpectRefused(job, Status::Code::kCorruption, "log segment");
  }
  job = good;
  job.log[0].bytes = job.log[0].copies[0].length + 1;
  ExpectRefused(job, Status::Code::kInvalidArgument, "flush job");
  job = good;
  job.log[0].bytes = kLogHeaderBytes - 1;
  ExpectRefused(job, Status::Code::kInvalidArgument, "flush job");
  job = good;
  job.log[0].copies.clear();
  ExpectRefused(job, Status::Code::kInvalidArgument, "without a copy");
  job = good;
  job.log.clear();
  ExpectRefused(job, Status::Code::kInvalidArgument, "no log");
  job = good;
  std::swap(job.first, job.last);
  ExpectRefused(job, Status::Code::kInvalidArgument, "sequences");
  job = good;
  job.log[0].copies = {{.start = {.offset = 0, .node = 0}, .length = 1 << 20}};
  ExpectRefused(job, Status::Code::kInvalidArgument, "not leased");
  job = good;
  job.merge.comparator_name = BackwardsComparator().Name();
  ExpectRefused(job, Status::Code::kNotSupported, "BackwardsComparator");
  job = good;
  FreeOutputs(job);
  job.merge.outputs.clear();
  ExpectRefused(job, Status::Code::kNoSpace, "0 tables");
}

std::atomic<int> jobs_begun{0};
std::atomic<bool> jobs_go_on{false};

/// Keeps the jobs of nodes from going on.
void HoldJobs(const NamedPoint& point) {
  if (std::string_view(point.name) != "node.job-begun") return;
  ++jobs_begun;
  while (!jobs_go_on) std::this_thread::yield();
}

TEST_F(FlushJobTest, ANodeTakesWhatItHasAThreadFor) {
  OpenLog(3, 2);
  ASSERT_NO_FATAL_FAILURE(FillLog());
  pool::FlushJob first = MakeFlush();
  first.merge.deeper = kEverythingDeeper;
  const pool::FlushJob second = MakeFlush();
  jobs_begun = 0;
  jobs_go_on = false;
  SetPointHandler(HoldJobs);
  std::thread runs([&] { ExpectFlushed(first, 0); });
  const bool begun = Eventually([] { return jobs_begun > 0; });
  EXPECT_TRUE(begun);
  if (begun) ExpectRefused(second, Status::Code::kBusy, "1 jobs run");
  jobs_go_on = true;
  runs.join();
  SetPointHandler(nullptr);
  // There is room again, once the first has been answered.
  pool::CompactionResult result;
  EXPECT_TRUE(IsOk(pool::RunOnNode(client_, 0, second, nullptr, &result)));
}

TEST_F(FlushJobTest, EndsWhenItIsCancelled) {
  OpenLog(3, 2);
  ASSERT_NO_FATAL_FAILURE(FillLog());
  const pool::FlushJob job = MakeFlush();
  const std::atomic<bool> cancelled{true};
  pool::CompactionResult result;
  const Status status = pool::RunOnNode(client_, 0, job, &cancelled, &result);
  // It is told at the next look, and may have ended before.
  EXPECT_TRUE(status.IsAborted() || status.ok()) << status.ToString();
  pool::JobPlugins plugins;
  plugins.comparator = BytewiseComparator();
  EXPECT_TRUE(pool::RunFlush(job, plugins, store_.get(), &cancelled, /*blocks=*/nullptr, &result)
                  .IsAborted());
}

}  // namespace
}  // namespace nacre
