// Goal: compactions run by memory nodes answer with the right tables, for inputs and outputs on any
// nodes, and end cleanly when they are cancelled, malformed, or lose a node or their owner.
// Method: random tables with many versions on three embedded nodes; the result is compared with a
// map, and with the same job run by this process.

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "jobs/compaction_job.h"
#include "jobs/job_client.h"
#include "jobs/scrub_job.h"
#include "pool/reports.h"
#include "pool/wire/node_stats.h"
#include "tests/support/pool_fixture.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/table/test_table.h"
#include "util/random.h"

namespace nacre::pool {
namespace {

using Runs = std::vector<std::vector<std::shared_ptr<const TableMeta>>>;

class CompactionTest : public PoolFixture {
 protected:
  void SetUp() override {
    OpenPoolAt("embedded:?nodes=3&size=64MiB");
    CreateDatabase();
  }

  /// `count` runs, newest first, over the same keys; `*model` is what their merge must give when
  /// no snapshot is held and nothing lies deeper.
  Runs WriteRuns(uint64_t seed, int count, int copies, std::map<std::string, TestEntry>* model) {
    Random random(seed);
    Runs runs;
    for (int r = 0; r < count; ++r) {
      const uint64_t sequence = 1000 + static_cast<uint64_t>(count - r) * 100'000;
      std::map<std::string, TestEntry> entries;
      for (int i = 0; i < 3000; ++i) {
        TestEntry entry;
        entry.user_key = "key" + std::to_string(random.Uniform(6000));
        const bool deletion = random.OneIn(5);
        entry.tag = PackTag(sequence + static_cast<uint64_t>(i),
                            deletion ? ValueType::kDeletion : ValueType::kValue);
        if (!deletion) entry.value = RandomBytes(random.Next(), random.Uniform(300));
        entries[entry.user_key] = entry;
      }
      for (const auto& [key, entry] : entries) model->try_emplace(key, entry);
      // Two tables a run, each anywhere.
      std::vector<TestEntry> sorted;
      for (const auto& [key, entry] : entries) sorted.push_back(entry);
      auto& run = runs.emplace_back();
      const auto middle = sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2);
      for (const auto& part : {std::vector<TestEntry>(sorted.begin(), middle),
                               std::vector<TestEntry>(middle, sorted.end())}) {
        std::shared_ptr<const TableMeta> table;
        const Status s = WriteTable(part, copies, static_cast<NodeId>(random.Uniform(3)), &table);
        EXPECT_TRUE(s.ok()) << s.ToString();
        run.push_back(table);
      }
    }
    return runs;
  }

  void CheckResult(const CompactionJob& job, const CompactionResult& result,
                   const std::map<std::string, TestEntry>& model) {
    std::vector<TestEntry> entries;
    for (size_t i = 0; i < result.tables.size(); ++i) {
      const TableMeta& table = result.tables[i];
      EXPECT_EQ(table.id, job.outputs[i].id);
      EXPECT_EQ(table.placement.fragments, job.outputs[i].placement.fragments);
      EXPECT_EQ(table.level, job.output_level);
      const Status s = ReadTable(std::make_shared<TableMeta>(table), &entries);
      ASSERT_TRUE(s.ok()) << s.ToString();
    }
    std::vector<TestEntry> expected;
    for (const auto& [key, entry] : model) {
      if (TagType(entry.tag) == ValueType::kValue) expected.push_back(entry);
    }
    ASSERT_EQ(entries.size(), expected.size());
    for (size_t i = 0; i < entries.size(); ++i) {
      ASSERT_EQ(entries[i].user_key, expected[i].user_key);
      ASSERT_EQ(entries[i].value, expected[i].value);
    }
  }
};

TEST_F(CompactionTest, OnEachNodeAndHere) {
  const uint64_t seed = TestSeed(401);
  for (const int copies : {1, 2}) {
    std::map<std::string, TestEntry> model;
    const Runs runs = WriteRuns(seed, 4, copies, &model);
    for (int site = -1; site < 3; ++site) {
      const CompactionJob job = MakeJob(runs, copies, 12, 600'000);
      CompactionResult result;
      JobPlugins plugins;
      plugins.comparator = BytewiseComparator();
      const Status s =
          site < 0 ? RunCompaction(job, plugins, store_.get(), nullptr, &result)
                   : pool::RunOnNode(client_, static_cast<NodeId>(site), job, nullptr, &result);
      ASSERT_TRUE(s.ok()) << s.ToString();
      EXPECT_GT(result.tables.size(), 1u);
      EXPECT_GT(result.stats.tombstones_dropped, 0u);
      EXPECT_GT(result.cpu_nanos, 0u);
      CheckResult(job, result, model);
      for (const ReservedTable& output : job.outputs) space_->Free(output.placement);
    }
    for (const auto& run : runs) {
      for (const auto& table : run) space_->Free(table->placement);
    }
  }
  NodeStats stats;
  ASSERT_TRUE(pool::GetStats(client_, 1, &stats).ok());
  EXPECT_EQ(stats.compactions, 2u);
  EXPECT_GT(stats.compaction_bytes_written, 0u);
}

TEST_F(CompactionTest, InRangesAtTheSameTime) {
  const uint64_t seed = TestSeed(402);
  std::map<std::string, TestEntry> model;
  const Runs runs = WriteRuns(seed, 3, 2, &model);
  const std::vector<std::string> bounds = {"key2", "key4"};
  std::vector<CompactionJob> jobs;
  std::vector<CompactionResult> results(3);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 3; ++i) {
    jobs.push_back(MakeJob(runs, 2, 8, 600'000));
    if (i > 0) jobs[i].begin = bounds[i - 1];
    if (i < 2) jobs[i].end = bounds[i];
  }
  for (size_t i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      const Status s =
          pool::RunOnNode(client_, static_cast<NodeId>(i), jobs[i], nullptr, &results[i]);
      EXPECT_TRUE(s.ok()) << s.ToString();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < 3; ++i) {
    std::map<std::string, TestEntry> part;
    for (const auto& [key, entry] : model) {
      if ((i == 0 || key >= bounds[i - 1]) && (i == 2 || key < bounds[i])) part[key] = entry;
    }
    CheckResult(jobs[i], results[i], part);
  }
}

TEST_F(CompactionTest, MoreTablesThanOneReplyHolds) {
  // Tables of one entry each: their descriptions do not fit the 64 KiB of a reply buffer.
  std::vector<TestEntry> entries;
  const size_t count = Scaled(400);
  for (size_t i = 0; i < count; ++i) {
    std::string key(200, 'k');
    key += std::to_string(100'000 + i);
    entries.push_back({.user_key = key, .tag = PackTag(i + 1, ValueType::kValue), .value = "v"});
  }
  std::shared_ptr<const TableMeta> table;
  ASSERT_TRUE(WriteTable(entries, 1, 0, &table).ok());
  CompactionJob job = MakeJob({{table}}, 1, static_cast<int>(count), 40'000);
  job.target_table_bytes = 1;
  CompactionResult result;
  const Status s = pool::RunOnNode(client_, 2, job, nullptr, &result);
  ASSERT_TRUE(s.ok()) << s.ToString();
  EXPECT_EQ(result.tables.size(), count);
}

TEST_F(CompactionTest, OutputsRunOut) {
  const uint64_t seed = TestSeed(403);
  std::map<std::string, TestEntry> model;
  const Runs runs = WriteRuns(seed, 2, 1, &model);
  const CompactionJob job = MakeJob(runs, 1, 1, 400'000);
  CompactionResult result;
  const Status s = pool::RunOnNode(client_, 0, job, nullptr, &result);
  EXPECT_TRUE(s.IsNoSpace()) << s.ToString();
  EXPECT_TRUE(result.tables.empty());
}

TEST_F(CompactionTest, Cancelled) {
  const uint64_t seed = TestSeed(404);
  std::map<std::string, TestEntry> model;
  const Runs runs = WriteRuns(seed, 4, 2, &model);
  const CompactionJob job = MakeJob(runs, 2, 12, 600'000);
  // Before it starts, and somewhere in the middle (where it may also have ended already).
  for (const int after_us : {0, 500, 2000, 5000}) {
    std::atomic<bool> cancelled{after_us == 0};
    std::thread canceller([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(after_us));
      cancelled = true;
    });
    CompactionResult result;
    const Status s = pool::RunOnNode(client_, 1, job, &cancelled, &result);
    canceller.join();
    EXPECT_TRUE(s.IsAborted() || s.ok()) << s.ToString();
    if (s.ok()) CheckResult(job, result, model);
  }
}

TEST_F(CompactionTest, OneThatWaitsForItsTurnIsCancelledAtOnce) {
  // One scrub at a time runs on a node, and this one takes days.
  std::map<std::string, TestEntry> model;
  const Runs runs = WriteRuns(TestSeed(405), 1, 1, &model);
  const TableMeta& table = *runs[0][0];
  const ExtentAddr& fragment = table.placement.fragments[0];
  ScrubJob job;
  job.database_id = database_id_;
  job.bytes_per_second = 1;
  job.fragments.push_back(
      {.table_id = table.id, .fragment = 0, .extent = fragment, .bytes = table.size});
  const NodeId node = fragment.start.node;
  std::atomic<bool> first_cancelled{false};
  std::thread first([&] {
    ScrubResult result;
    const Status status = pool::RunOnNode(client_, node, job, &first_cancelled, &result);
    EXPECT_TRUE(status.IsAborted()) << status.ToString();
  });
  for (int i = 0; i < 5; ++i) {
    std::atomic<bool> cancelled{false};
    std::thread canceller([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      cancelled = true;
    });
    ScrubResult result;
    const Status status = pool::RunOnNode(client_, node, job, &cancelled, &result);
    canceller.join();
    EXPECT_TRUE(status.IsAborted()) << status.ToString();
  }
  first_cancelled = true;
  first.join();
}

TEST_F(CompactionTest, MalformedJobsAreRefused) {
  const uint64_t seed = TestSeed(405);
  std::map<std::string, TestEntry> model;
  const Runs runs = WriteRuns(seed, 2, 1, &model);
  const CompactionJob good = MakeJob(runs, 1, 6, 600'000);
  CompactionResult result;

  CompactionJob job = good;
  job.comparator_name = "by.colour";
  Status s = pool::RunOnNode(client_, 0, job, nullptr, &result);
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  EXPECT_NE(s.ToString().find("by.colour"), std::string::npos);

  job = good;
  job.database_id ^= 1;
  s = pool::RunOnNode(client_, 0, job, nullptr, &result);
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();

  job = good;
  job.runs.clear();
  EXPECT_TRUE(pool::RunOnNode(client_, 0, job, nullptr, &result).IsInvalidArgument());

  job = good;
  job.chunk_size = 0;
  EXPECT_TRUE(pool::RunOnNode(client_, 0, job, nullptr, &result).IsInvalidArgument());

  // Output where the database has no slab: on the executor, and on another node.
  for (const NodeId node : {0, 1}) {
    job = good;
    ASSERT_EQ(job.outputs[0].placement.fragments.size(), 1u);
    job.outputs[0].placement.fragments[0].start.node = node;
    job.outputs[0].placement.fragments[0].start.offset = 60 << 20;
    s = pool::RunOnNode(client_, 0, job, nullptr, &result);
    EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  }

  // Input that lies nowhere, and input that is no table.
  for (const uint64_t offset : {uint64_t{1} << 40, uint64_t{50} << 20}) {
    job = good;
    auto table = std::make_shared<TableMeta>(*job.runs[0][0]);
    table->placement.fragments[0].start.offset = offset;
    job.runs[0][0] = table;
    s = pool::RunOnNode(client_, 0, job, nullptr, &result);
    EXPECT_TRUE(s.IsCorruption()) << s.ToString();
  }
  s = pool::RunOnNode(client_, 0, good, nullptr, &result);
  EXPECT_TRUE(s.ok()) << s.ToString();
  CheckResult(good, result, model);
  EXPECT_TRUE(pool::RunOnNode(client_, 9, good, nullptr, &result).IsInvalidArgument());
}

TEST_F(CompactionTest, NodesDieMeanwhile) {
  const uint64_t seed = TestSeed(406);
  std::map<std::string, TestEntry> model;
  const Runs runs = WriteRuns(seed, 4, 2, &model);
  const CompactionJob job = MakeJob(runs, 2, 12, 600'000);
  // First a node that holds copies of input and output, then the executor itself.
  for (const NodeId victim : {2, 0}) {
    std::thread killer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      pool_->KillEmbeddedNode(victim);
    });
    CompactionResult result;
    const Status s = pool::RunOnNode(client_, 0, job, nullptr, &result);
    killer.join();
    // It may have been quicker than the killer.
    EXPECT_TRUE(s.ok() || s.IsUnavailable()) << s.ToString();
    if (!s.ok()) {
      EXPECT_NE(s.ToString().find(client_->node_address(victim)), std::string::npos)
          << s.ToString();
    }
  }
  CompactionResult result;
  EXPECT_TRUE(pool::RunOnNode(client_, 0, job, nullptr, &result).IsUnavailable());
}

}  // namespace
}  // namespace nacre::pool
