// Goal: with one seed all engines see the same keys, and each finds exactly those that are there.
// Method: the tool runs as a process on every engine with MemTables so small that tables, levels
// and compactions are made; a model replays the random numbers and says what must be found.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/db_bench/tool_run.h"
#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre::bench {
namespace {

/// Which of the numbers below `num` are keys, replayed from the seeds that Runner gives its
/// threads: one after another over the whole run.
class KeyModel {
 public:
  KeyModel(uint64_t seed, uint64_t num, uint64_t threads)
      : next_seed_(seed), num_(num), threads_(threads), present_(num) {}

  void WriteRandom(uint64_t ops, bool value = true) {
    for (uint64_t thread = 0; thread < threads_; ++thread) {
      Random random(next_seed_++);
      for (uint64_t i = 0; i < ops; ++i) present_[random.Uniform(num_)] = value;
    }
  }
  void DeleteRandom(uint64_t ops) { WriteRandom(ops, false); }
  void WriteAll() {
    next_seed_ += threads_;
    present_.assign(num_, true);
  }
  uint64_t FoundRandom(uint64_t ops) {
    uint64_t found = 0;
    for (uint64_t thread = 0; thread < threads_; ++thread) {
      Random random(next_seed_++);
      for (uint64_t i = 0; i < ops; ++i) found += present_[random.Uniform(num_)] ? 1 : 0;
    }
    return found;
  }
  /// Benchmarks that draw nothing have threads all the same.
  void Skip() { next_seed_ += threads_; }
  uint64_t CountKeys() {
    Skip();
    uint64_t keys = 0;
    for (const bool present : present_) keys += present ? 1 : 0;
    return keys;
  }

 private:
  uint64_t next_seed_;
  uint64_t num_;
  uint64_t threads_;
  std::vector<bool> present_;
};

std::string FoundNote(uint64_t found, uint64_t lookups) {
  return "(" + std::to_string(found) + " of " + std::to_string(lookups) + " found)";
}

struct EngineCase {
  const char* name;
  std::vector<std::string> flags;
};

class FoundCountsTest : public testing::TestWithParam<EngineCase> {
 protected:
  static constexpr uint64_t kNum = 20000;
  static constexpr uint64_t kReads = 5000;

  static std::vector<std::string> Flags(uint64_t seed, uint64_t threads,
                                        const std::string& benchmarks) {
    std::vector<std::string> flags = {"--seed=" + std::to_string(seed),
                                      "--num=" + std::to_string(kNum),
                                      "--reads=" + std::to_string(kReads),
                                      "--threads=" + std::to_string(threads),
                                      "--benchmarks=" + benchmarks,
                                      "--key_size=20",
                                      "--value_size=300",
                                      "--write_buffer_size=1048576",
                                      "--target_file_size_base=262144",
                                      "--max_bytes_for_level_base=1048576"};
    flags.insert(flags.end(), GetParam().flags.begin(), GetParam().flags.end());
    return flags;
  }
};

TEST_P(FoundCountsTest, ExactAfterEachKindOfWrite) {
  const uint64_t seed = TestSeed(7);
  const ToolRun run = RunToolOk(
      Flags(seed, 1,
            "fillrandom,readrandom,readmissing,multireadrandom,seekrandom,readseq,readreverse,"
            "overwrite,waitforcompaction,readrandom,deleterandom,readrandom,compact,readrandom,"
            "seekrandom,readreverse,fillseq,readrandom,fillbatch,multireadrandom"));
  KeyModel model(seed, kNum, 1);
  ASSERT_EQ(run.lines.size(), 20u) << run.output;
  size_t line = 0;
  const auto note = [&](const char* name) {
    EXPECT_EQ(run.lines[line].name, name);
    return run.lines[line++].note;
  };
  const auto ops = [&](const char* name) {
    EXPECT_EQ(run.lines[line].name, name);
    return run.lines[line++].ops;
  };
  EXPECT_EQ(ops("fillrandom"), kNum);
  model.WriteRandom(kNum);
  EXPECT_EQ(note("readrandom"), FoundNote(model.FoundRandom(kReads), kReads));
  EXPECT_EQ(note("readmissing"), FoundNote(0, kReads));
  model.Skip();
  EXPECT_EQ(note("multireadrandom"), FoundNote(model.FoundRandom(kReads), kReads));
  EXPECT_EQ(note("seekrandom"), FoundNote(model.FoundRandom(kReads), kReads));
  EXPECT_EQ(ops("readseq"), std::min(kReads, model.CountKeys()));
  EXPECT_EQ(ops("readreverse"), std::min(kReads, model.CountKeys()));
  EXPECT_EQ(ops("overwrite"), kNum);
  model.WriteRandom(kNum);
  EXPECT_EQ(ops("waitforcompaction"), 1u);
  EXPECT_EQ(note("readrandom"), FoundNote(model.FoundRandom(kReads), kReads));
  EXPECT_EQ(ops("deleterandom"), kNum);
  model.DeleteRandom(kNum);
  EXPECT_EQ(note("readrandom"), FoundNote(model.FoundRandom(kReads), kReads));
  EXPECT_EQ(ops("compact"), 1u);
  EXPECT_EQ(note("readrandom"), FoundNote(model.FoundRandom(kReads), kReads));
  EXPECT_EQ(note("seekrandom"), FoundNote(model.FoundRandom(kReads), kReads));
  EXPECT_EQ(ops("readreverse"), std::min(kReads, model.CountKeys()));
  EXPECT_EQ(ops("fillseq"), kNum);
  model.WriteAll();
  EXPECT_EQ(note("readrandom"), FoundNote(kReads, kReads));
  EXPECT_EQ(ops("fillbatch"), kNum);
  EXPECT_EQ(note("multireadrandom"), FoundNote(kReads, kReads));
}

TEST_P(FoundCountsTest, ExactWithThreadsAndBatches) {
  constexpr uint64_t kThreads = 3;
  constexpr uint64_t kWrites = 5000;
  const uint64_t seed = TestSeed(11);
  for (const char* batched : {"--multiread_batched=0", "--multiread_batched=1"}) {
    std::vector<std::string> flags =
        Flags(seed, kThreads, "fillrandom,multireadrandom,deleterandom,readrandom,readseq");
    flags.insert(flags.end(), {batched, "--batch_size=7", "--writes=5000", "--deletes=1000"});
    const ToolRun run = RunToolOk(flags);
    KeyModel model(seed, kNum, kThreads);
    model.WriteRandom(kWrites);
    ASSERT_EQ(run.lines.size(), 5u) << run.output;
    EXPECT_EQ(run.lines[0].ops, kThreads * kWrites);
    EXPECT_EQ(run.lines[1].note, FoundNote(model.FoundRandom(kReads), kThreads * kReads));
    EXPECT_EQ(run.lines[2].ops, kThreads * 1000);
    model.DeleteRandom(1000);
    EXPECT_EQ(run.lines[3].note, FoundNote(model.FoundRandom(kReads), kThreads * kReads));
    EXPECT_EQ(run.lines[4].ops, kThreads * std::min(kReads, model.CountKeys()));
  }
}

TEST_P(FoundCountsTest, AllKeysAreFoundBesideAWriter) {
  const ToolRun run = RunToolOk(Flags(
      TestSeed(13), 2, "fillseq,readwhilewriting,seekrandomwhilewriting,readrandomwriterandom"));
  ASSERT_EQ(run.lines.size(), 4u) << run.output;
  EXPECT_EQ(run.lines[1].note, FoundNote(2 * kReads, 2 * kReads));
  EXPECT_EQ(run.lines[2].note, FoundNote(2 * kReads, 2 * kReads));
  EXPECT_EQ(run.lines[3].note, "( reads:9000 writes:1000 total:10000 found:9000)");
}

INSTANTIATE_TEST_SUITE_P(
    Engines, FoundCountsTest,
    testing::Values(EngineCase{"nacre", {"--engine=nacre"}},
                    EngineCase{"nacre_compute", {"--engine=nacre", "--compaction=compute"}},
                    EngineCase{"rocksdb", {"--engine=rocksdb"}},
                    EngineCase{"rocksdb_inmemory",
                               {"--engine=rocksdb", "--rocksdb_profile=inmemory"}},
                    EngineCase{"leveldb", {"--engine=leveldb"}},
                    EngineCase{"lmdb", {"--engine=lmdb"}}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace nacre::bench
