// Goal: db_bench reads RocksDB's flags, prints RocksDB's lines, writes the JSON that scripts rely
// on, and says in one line what is wrong with a command line.
// Method: the tool runs as a process with small numbers.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "db_bench/benchmark_list.h"
#include "tests/db_bench/tool_run.h"

namespace nacre::bench {
namespace {

class EveryEngineTest : public testing::TestWithParam<const char*> {
 protected:
  static std::string Engine() { return std::string("--engine=") + GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Engines, EveryEngineTest,
                         testing::Values("nacre", "rocksdb", "leveldb", "lmdb"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(EveryEngineTest, EveryBenchmarkPrintsItsLine) {
  const std::vector<std::string> names = {"fillseq",
                                          "fillbatch",
                                          "fillrandom",
                                          "overwrite",
                                          "readrandom",
                                          "readmissing",
                                          "multireadrandom",
                                          "readseq",
                                          "readreverse",
                                          "seekrandom",
                                          "seekrandomwhilewriting",
                                          "readwhilewriting",
                                          "readrandomwriterandom",
                                          "deleterandom",
                                          "flush",
                                          "compact",
                                          "waitforcompaction"};
  std::string list = "levelstats,stats,space";
  for (const std::string& name : names) list += "," + name;
  const ToolRun run = RunToolOk({Engine(), "--num=2000", "--seed=3", "--benchmarks=" + list});
  ASSERT_EQ(run.lines.size(), names.size()) << run.output;
  for (size_t i = 0; i < names.size(); ++i) {
    const ResultLine& line = run.lines[i];
    const bool meta = FindBenchmark(names[i])->workload == nullptr;
    EXPECT_EQ(line.name, names[i]);
    EXPECT_EQ(line.ops, meta ? 1u
                        : line.name.starts_with("readseq") || line.name.starts_with("readreverse")
                            ? line.ops
                            : 2000u)
        << run.output;
    EXPECT_GT(line.ops, 0u);
    const bool has_rate = line.name.starts_with("fill") || line.name == "overwrite" ||
                          line.name == "readrandom" || line.name == "multireadrandom" ||
                          line.name == "readseq" || line.name == "readreverse" ||
                          line.name == "readwhilewriting";
    EXPECT_EQ(line.has_rate, has_rate) << line.name;
  }
  EXPECT_NE(run.output.find("Level Files Size(MB)"), std::string::npos);
  EXPECT_NE(run.output.find("user-bytes"), std::string::npos);
  for (const char* head : {"Keys:       16 bytes each\n", "Values:     100 bytes each\n",
                           "Entries:    2000\n", "RawSize:    0.2 MB (estimated)\n"}) {
    EXPECT_NE(run.output.find(head), std::string::npos) << head << run.output;
  }
  // Progress is for terminals.
  EXPECT_EQ(run.output.find('\r'), std::string::npos);
  EXPECT_NE(run.output.find("\nbenchmark "), std::string::npos) << "no summary";
}

TEST_P(EveryEngineTest, HistogramsCountEveryOperation) {
  const ToolRun run = RunToolOk({Engine(), "--num=2000", "--seed=3", "--histogram", "--threads=2",
                                 "--benchmarks=fillrandom,readrandomwriterandom,seekrandom"});
  for (const char* expected :
       {"Microseconds per write:\nCount: 4000 Average: ", "Microseconds per read:\nCount: 3600 ",
        "Microseconds per write:\nCount: 400 ", "Microseconds per seek:\nCount: 4000 "}) {
    EXPECT_NE(run.output.find(expected), std::string::npos) << expected << run.output;
  }
}

TEST_P(EveryEngineTest, YcsbFindsAllItsRecords) {
  const ToolRun run =
      RunToolOk({Engine(), "--num=3000", "--readwrites=4000", "--seed=3", "--threads=2",
                 "--key_dist=zipf",  // It has distributions of its own.
                 "--benchmarks=ycsbload,ycsba,ycsbb,ycsbc,ycsbf,ycsbd,ycsbe,readseq"});
  // Per mille of the operations that look a record up.
  const std::vector<std::pair<std::string, uint64_t>> lookups = {{"ycsba", 500},  {"ycsbb", 950},
                                                                 {"ycsbc", 1000}, {"ycsbf", 1000},
                                                                 {"ycsbd", 950},  {"ycsbe", 950}};
  ASSERT_EQ(run.lines.size(), lookups.size() + 2) << run.output;
  EXPECT_EQ(run.lines[0].name, "ycsbload");
  EXPECT_EQ(run.lines[0].ops, 3000u);
  for (size_t i = 0; i < lookups.size(); ++i) {
    const ResultLine& line = run.lines[i + 1];
    EXPECT_EQ(line.name, lookups[i].first);
    EXPECT_EQ(line.ops, 8000u);
    uint64_t found = 0;
    uint64_t of = 0;
    ASSERT_EQ(std::sscanf(line.note.c_str(), "(%lu of %lu found)", &found, &of), 2) << line.note;
    EXPECT_EQ(found, of) << line.name;
    EXPECT_NEAR(static_cast<double>(of), static_cast<double>(lookups[i].second) * 8, 300)
        << line.name;
  }
  // D and E have inserted.
  EXPECT_GT(run.lines.back().ops, 3000u);
}

TEST_P(EveryEngineTest, SkewedKeysAreFoundAsTheyAreWritten) {
  for (const char* distribution : {"zipf", "latest", "hotspot"}) {
    const ToolRun run = RunToolOk({Engine(), "--num=3000", "--seed=3", "--zipf_theta=1.1",
                                   std::string("--key_dist=") + distribution,
                                   "--benchmarks=fillseq,readrandom,deleterandom,readrandom"});
    ASSERT_EQ(run.lines.size(), 4u) << run.output;
    EXPECT_EQ(run.lines[1].note, "(3000 of 3000 found)");
    // Most of what is drawn again was deleted: more than the 63 % of a uniform distribution.
    uint64_t found = 0;
    ASSERT_EQ(std::sscanf(run.lines[3].note.c_str(), "(%lu of 3000 found)", &found), 1);
    EXPECT_LT(found, 900u) << distribution;
  }
}

TEST_P(EveryEngineTest, DurationDecidesForRandomWorkloads) {
  const ToolRun run =
      RunToolOk({Engine(), "--num=1000", "--seed=3", "--duration=1", "--value_size=8",
                 "--ops_between_duration_checks=100", "--benchmarks=fillseq,readrandom,readseq"});
  ASSERT_EQ(run.lines.size(), 3u) << run.output;
  EXPECT_EQ(run.lines[0].ops, 1000u);
  EXPECT_GE(run.lines[1].seconds, 1.0);
  EXPECT_EQ(run.lines[1].ops % 100, 0u);
  const std::string ops = std::to_string(run.lines[1].ops);
  EXPECT_EQ(run.lines[1].note, "(" + ops + " of " + ops + " found)");
  EXPECT_EQ(run.lines[2].ops, 1000u);
}

TEST_P(EveryEngineTest, JsonHasTheDocumentedMembers) {
  const TemporaryPath file(std::string("json.") + GetParam());
  const ToolRun run =
      RunToolOk({Engine(), "--num=5000", "--seed=3", "--json=" + file.str(),
                 "--benchmarks=fillrandom,readrandom,compact,waitforcompaction,levelstats"});
  ASSERT_EQ(run.exit_code, 0);
  const JsonValue report = ReadJson(file.str());

  const JsonValue& config = report["config"];
  EXPECT_EQ(config["num"].number(), 5000);
  EXPECT_EQ(config["seed"].number(), 3);
  EXPECT_EQ(config["engine"].string(), GetParam());
  EXPECT_EQ(config["use_existing_db"].kind(), JsonValue::Kind::kBool);

  const std::vector<JsonValue>& benchmarks = report["benchmarks"].array();
  ASSERT_EQ(benchmarks.size(), 4u);
  for (const JsonValue& result : benchmarks) {
    EXPECT_GT(result["ops"].number(), 0);
    EXPECT_GT(result["seconds"].number(), 0);
    EXPECT_NEAR(result["ops_per_sec"].number() * result["seconds"].number(), result["ops"].number(),
                1);
    EXPECT_GE(result["mb_per_sec"].number(), 0);
    EXPECT_GT(result["latency_samples"].number(), 0);
    EXPECT_GE(result["process_cpu_seconds"].number(), result["cpu_seconds"].number());
    EXPECT_GE(result["p99_us"].number(), result["p50_us"].number());
    EXPECT_GE(result["p999_us"].number(), result["p99_us"].number());
    EXPECT_GE(result["network"]["compute_read"].number(), 0);
    EXPECT_GE(result["compaction"]["bytes_read"].number(), 0);
  }
  EXPECT_EQ(benchmarks[1]["name"].string(), "readrandom");
  EXPECT_EQ(benchmarks[1]["lookups"].number(), 5000);
  EXPECT_GT(benchmarks[1]["found"].number(), 2500);

  for (const char* name : {"user_bytes", "stored_bytes", "compute_bytes"}) {
    EXPECT_GT(report["space"][name].number(), 0) << name;
  }
  const JsonValue& network = report["network"];
  const bool remote = std::string(GetParam()) == "nacre";
  EXPECT_EQ(network["compute_written"].number() > 0, remote);
  const JsonValue& parts = report["space"]["parts"];
  if (remote) {
    EXPECT_GT(parts["leased-bytes"].number(), parts["user-bytes"].number());
  }
  for (const char* name : {"compute_read", "memnode_read", "memnode_written"}) {
    EXPECT_GE(network[name].number(), 0) << name;
  }
}

TEST_P(EveryEngineTest, RawWritesAreWhatAPutSendsToItsLog) {
  const TemporaryPath file(std::string("json.raw.") + GetParam());
  const std::vector<std::string> flags = {
      Engine(),           "--num=1000",          "--threads=2",          "--key_size=20",
      "--value_size=400", "--redundancy=rep(3)", "--json=" + file.str(), "--benchmarks=rawwrite"};
  if (std::string(GetParam()) != "nacre") {
    const ToolRun run = RunTool(flags);
    EXPECT_NE(run.exit_code, 0);
    EXPECT_NE(run.output.find("rawwrite"), std::string::npos) << run.output;
    return;
  }
  RunToolOk(flags);
  const JsonValue report = ReadJson(file.str());
  const JsonValue& result = report["benchmarks"].array().at(0);
  EXPECT_EQ(result["ops"].number(), 2000);
  EXPECT_GT(result["p50_us"].number(), 0);
  EXPECT_GE(result["durability"]["manifest.edits"].number(), 0);
  // Key, value, and the head of a record, on three nodes.
  EXPECT_GE(result["network"]["compute_written"].number(), 3.0 * 2000 * 448);
}

TEST_P(EveryEngineTest, JsonTellsBackgroundWork) {
  const TemporaryPath file(std::string("json.writer.") + GetParam());
  RunToolOk({Engine(), "--num=5000", "--seed=3", "--seeks=70", "--readwrites=90",
             "--json=" + file.str(), "--latency_sample_period=1", "--write_buffer_size=65536",
             "--benchmarks=fillseq,readwhilewriting,seekrandom,readrandomwriterandom,compact"});
  const JsonValue report = ReadJson(file.str());
  const JsonValue& result = report["benchmarks"].array().at(1);
  EXPECT_EQ(result["latency_samples"].number(), 5000);
  EXPECT_GT(result["background_ops"].number(), 0);
  EXPECT_EQ(result["background_latency_samples"].number(), result["background_ops"].number());
  EXPECT_GE(result["background_p99_us"].number(), result["background_p50_us"].number());
  EXPECT_GE(result["background_p999_us"].number(), result["background_p99_us"].number());
  EXPECT_EQ(report["benchmarks"].array().at(2)["ops"].number(), 70);
  EXPECT_EQ(report["benchmarks"].array().at(3)["ops"].number(), 90);

  // LevelDB tells neither the processor time of its compactions nor the memory of its indexes, and
  // LMDB has no compactions.
  const std::string engine = GetParam();
  EXPECT_EQ(report["compaction"]["cpu_seconds"].number() > 0,
            engine == "nacre" || engine == "rocksdb");
  EXPECT_EQ(report["space"]["index_bytes"].number() > 0, engine != "leveldb");
  EXPECT_GE(report["space"]["compute_bytes"].number(), report["space"]["index_bytes"].number());
}

TEST_P(EveryEngineTest, UniformValueSizes) {
  const ToolRun run =
      RunToolOk({Engine(), "--num=2000", "--seed=3", "--value_size_distribution_type=uniform",
                 "--value_size_min=0", "--value_size_max=1000", "--benchmarks=fillseq,readrandom"});
  EXPECT_NE(run.output.find("Values:     0 to 1000 bytes each\n"), std::string::npos) << run.output;
  ASSERT_EQ(run.lines.size(), 2u);
  EXPECT_EQ(run.lines[1].note, "(2000 of 2000 found)");
}

class FolderEngineTest : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Engines, FolderEngineTest, testing::Values("rocksdb", "leveldb", "lmdb"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(FolderEngineTest, ExistingDatabaseIsReadAndNotFilledAnew) {
  const std::string engine = std::string("--engine=") + GetParam();
  const TemporaryPath folder(std::string("db.") + GetParam());
  RunToolOk({engine, "--num=3000", "--seed=3", "--db=" + folder.str(), "--benchmarks=fillseq"});
  const ToolRun run = RunToolOk({engine, "--num=3000", "--seed=4", "--db=" + folder.str(),
                                 "--use_existing_db", "--benchmarks=readrandom,fillseq,readseq"});
  ASSERT_EQ(run.lines.size(), 2u) << run.output;
  EXPECT_EQ(run.lines[0].note, "(3000 of 3000 found)");
  EXPECT_NE(run.output.find("fillseq      : skipped (--use_existing_db is true)\n"),
            std::string::npos);
  EXPECT_EQ(run.lines[1].ops, 3000u);
  // The database is removed without the flag.
  const ToolRun fresh = RunToolOk(
      {engine, "--num=3000", "--seed=4", "--db=" + folder.str(), "--benchmarks=readrandom"});
  ASSERT_EQ(fresh.lines.size(), 1u);
  EXPECT_EQ(fresh.lines[0].note, "(0 of 3000 found)");
}

TEST(NacreToolTest, NodesKeepTheDatabaseBetweenRuns) {
  MemnodeProcesses nodes(2, {.size = "128MiB", .slab_size = "64MiB"});
  const std::string pool = "--pool=" + nodes.pool_uri();
  RunToolOk({pool, "--num=3000", "--seed=3", "--benchmarks=fillseq"});
  const ToolRun run = RunToolOk(
      {pool, "--num=3000", "--seed=4", "--use_existing_db", "--benchmarks=readrandom,readseq"});
  ASSERT_EQ(run.lines.size(), 2u) << run.output;
  EXPECT_EQ(run.lines[0].note, "(3000 of 3000 found)");
  EXPECT_EQ(run.lines[1].ops, 3000u);
  const ToolRun fresh =
      RunToolOk({pool, "--num=3000", "--seed=4", "--benchmarks=readrandom,fillbatch,readrandom"});
  ASSERT_EQ(fresh.lines.size(), 3u) << fresh.output;
  EXPECT_EQ(fresh.lines[0].note, "(0 of 3000 found)");
  EXPECT_EQ(fresh.lines[2].note, "(3000 of 3000 found)");
}

TEST(NacreToolTest, FollowersRead) {
  MemnodeProcesses nodes(2, {.size = "256MiB", .slab_size = "64MiB"});
  const std::string pool = "--pool=" + nodes.pool_uri();
  // Beside an owner: what they see is what it has written.
  const ToolRun beside =
      RunToolOk({pool, "--num=3000", "--seed=3", "--threads=3", "--reads=1000", "--followers=2",
                 "--linearizable", "--writes=1000", "--batch_size=10",
                 "--benchmarks=fillseq,readrandom,readwhilewriting,multireadrandom,seekrandom"});
  ASSERT_EQ(beside.lines.size(), 5u) << beside.output;
  EXPECT_EQ(beside.lines[1].ops, 3000u);
  EXPECT_FALSE(beside.lines[1].note.starts_with("(0 of")) << beside.output;
  // The nodes are processes of their own.
  RunToolOk({pool, "--num=3000", "--seed=4", "--benchmarks=fillseq"});
  const TemporaryPath json("follower.json");
  for (const char* mode : {"--readonly", "--use_secondary_db"}) {
    const ToolRun run = RunToolOk({pool, mode, "--num=3000", "--seed=4", "--use_existing_db",
                                   "--secondary_update_interval=0.01", "--json=" + json.str(),
                                   "--benchmarks=readrandom,fillseq,readseq"});
    ASSERT_EQ(run.lines.size(), 2u) << run.output;
    EXPECT_EQ(run.lines[0].note, "(3000 of 3000 found)");
    EXPECT_EQ(run.lines[1].ops, 3000u);
    EXPECT_EQ(ReadJson(json.str())["durability"]["follower.catch-ups"].kind(),
              JsonValue::Kind::kNumber);
    for (const char* writes : {"overwrite", "readwhilewriting"}) {
      const ToolRun refused = RunTool(
          {pool, mode, "--num=3000", "--use_existing_db", std::string("--benchmarks=") + writes});
      EXPECT_EQ(refused.exit_code, 1);
      EXPECT_NE(refused.output.find(std::string(writes) + ": "), std::string::npos)
          << refused.output;
    }
  }
}

TEST(NacreToolTest, CheckpointsAndRestores) {
  const TemporaryPath folder("checkpoints");
  const TemporaryPath json("checkpoint.json");
  const ToolRun run =
      RunToolOk({"--num=20000", "--seed=3", "--checkpoint_dir=" + folder.str(),
                 "--json=" + json.str(), "--benchmarks=fillrandom,checkpoint,restore,readrandom"});
  ASSERT_EQ(run.lines.size(), 4u) << run.output;
  EXPECT_TRUE(run.lines[1].has_rate);
  EXPECT_TRUE(run.lines[1].note.starts_with("(plain writing: ")) << run.output;
  EXPECT_TRUE(run.lines[2].has_rate);
  const JsonValue report = ReadJson(json.str());
  EXPECT_GT(report["benchmarks"].array().at(1)["plain_mb_per_sec"].number(), 0);
  EXPECT_GT(report["benchmarks"].array().at(2)["mb_per_sec"].number(), 0);
  const ToolRun without = RunTool({"--num=100", "--benchmarks=fillrandom,checkpoint"});
  EXPECT_NE(without.exit_code, 0);
  EXPECT_NE(without.output.find("needs --checkpoint_dir"), std::string::npos) << without.output;
  const ToolRun others = RunTool({"--engine=leveldb", "--num=100", "--benchmarks=checkpoint",
                                  "--checkpoint_dir=" + folder.str()});
  EXPECT_NE(others.exit_code, 0);
  EXPECT_NE(others.output.find("checkpoint"), std::string::npos) << others.output;
}

TEST(ToolTest, WriteRateIsLimited) {
  // 300 KB at 200 KB a second; the limiter lets a tenth of a second's worth pass at once.
  const ToolRun run =
      RunToolOk({"--engine=leveldb", "--num=300", "--key_size=16", "--value_size=984", "--seed=1",
                 "--benchmark_write_rate_limit=200000", "--benchmarks=fillrandom"});
  ASSERT_EQ(run.lines.size(), 1u) << run.output;
  EXPECT_GT(run.lines[0].seconds, 1.0);
}

TEST(ToolTest, OpenLoopTellsLatenciesFromTheIntendedStart) {
  const TemporaryPath file("json.open");
  const ToolRun run = RunToolOk({"--engine=rocksdb", "--num=1000", "--readwrites=300",
                                 "--threads=2", "--seed=1", "--target_ops_per_second=3000",
                                 "--arrivals=constant", "--benchmarks=ycsbload,ycsba",
                                 "--json=" + file.str(), "--latency_files=" + file.str() + "-"});
  ASSERT_EQ(run.lines.size(), 2u) << run.output;
  // The last of 300 operations of a thread was to start 199 ms after the first.
  EXPECT_GE(run.lines[1].seconds, 0.195);
  EXPECT_NE(run.output.find("microseconds from the intended start: p50 "), std::string::npos);
  const JsonValue report = ReadJson(file.str());
  EXPECT_FALSE(report["benchmarks"].array().at(0)["open_loop"].boolean());
  const JsonValue& result = report["benchmarks"].array().at(1);
  EXPECT_TRUE(result["open_loop"].boolean());
  double samples = 0;
  for (const char* type : {"read", "write"}) {
    const JsonValue& latencies = result["latencies"][type];
    samples += latencies["samples"].number();
    EXPECT_GE(latencies["max_us"].number(), latencies["p50_us"].number() * 0.99);
    const std::string path = file.str() + "-2-ycsba-" + type + ".hgrm";
    EXPECT_TRUE(std::filesystem::remove(path)) << path;
  }
  EXPECT_EQ(samples, 600);
  EXPECT_TRUE(std::filesystem::remove(file.str() + "-1-ycsbload-write.hgrm"));
}

TEST(ToolTest, RemoteReadsAreCountedForEachOperation) {
  // From the MemTable first, then from tables; and not counted without the flag.
  for (const bool counted : {true, false}) {
    const TemporaryPath file("json.reads");
    RunToolOk({"--engine=nacre", "--num=500", "--seed=1", "--latency_sample_period=1",
               std::string("--count_remote_reads=") + (counted ? "true" : "false"),
               "--benchmarks=fillseq,readrandom,compact,readrandom", "--json=" + file.str()});
    const JsonValue report = ReadJson(file.str());
    for (const auto& [benchmark, reads] : {std::pair(1, 0), std::pair(3, 1)}) {
      const JsonValue& counts =
          report["benchmarks"].array().at(benchmark)["latencies"]["read"]["remote_reads"];
      ASSERT_EQ(counts.array().size(), 9u);
      double sum = 0;
      for (const JsonValue& count : counts.array()) sum += count.number();
      EXPECT_EQ(sum, counted ? 500 : 0);
      // A fingerprint that two keys of a table share costs one of them a second read.
      EXPECT_GE(counts.array()[reads].number(), counted ? 490 : 0);
      EXPECT_EQ(counts.array()[1 - reads].number(), 0);
    }
  }
}

TEST(ToolTest, OptionsOfTablesAndManifestReachTheDatabase) {
  RunToolOk({"--num=500", "--chunk_size=16384", "--manifest_image_interval=20",
             "--benchmarks=fillseq,compact,readrandom"});
  const ToolRun run = RunTool({"--num=500", "--chunk_size=5000", "--benchmarks=fillseq"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_NE(run.output.find("chunk_size"), std::string::npos) << run.output;
  const ToolRun slabs = RunTool({"--num=500", "--slab_size=1000", "--benchmarks=fillseq"});
  EXPECT_EQ(slabs.exit_code, 1);
  EXPECT_NE(slabs.output.find("slab_size"), std::string::npos) << slabs.output;
}

TEST(ToolTest, IntervalReportsAreAskedFor) {
  const ToolRun run = RunToolOk({"--engine=leveldb", "--num=2000", "--seed=1",
                                 "--stats_interval=500", "--benchmarks=fillrandom"});
  const std::regex line(R"(\.\.\. thread 0: \(500,(500|1000|1500|2000)\) ops and \()");
  EXPECT_EQ(std::distance(std::sregex_iterator(run.output.begin(), run.output.end(), line),
                          std::sregex_iterator()),
            4)
      << run.output;
}

TEST(ToolTest, HelpListsFlagsAndBenchmarks) {
  const ToolRun run = RunToolOk({"--help"});
  for (const char* word : {"--write_buffer_size (int64, default 67108864)", "--rocksdb_profile",
                           "seekrandomwhilewriting"}) {
    EXPECT_NE(run.output.find(word), std::string::npos) << word;
  }
}

/// What is wrong, and a word that the message must have.
struct BadCommandLine {
  std::vector<std::string> flags;
  std::string culprit;
};

TEST(ToolTest, BadCommandLinesAreNamedInOneLine) {
  const std::vector<BadCommandLine> cases = {
      {{"--benchmarks=fillseq,nosuch"}, "'nosuch'"},
      {{"--benchmarks="}, "--benchmarks"},
      {{"--nosuchflag=1"}, "'nosuchflag'"},
      {{"--threads=many"}, "'threads'"},
      {{"fillseq"}, "'fillseq'"},
      {{"--engine=nosuch"}, "--engine=nosuch"},
      {{"--rocksdb_profile=nosuch"}, "--rocksdb_profile=nosuch"},
      {{"--compaction=nosuch"}, "--compaction=nosuch"},
      {{"--compression_type=snappy"}, "--compression_type=snappy"},
      {{"--value_size_distribution_type=odd"}, "--value_size_distribution_type=odd"},
      {{"--key_size=0"}, "--key_size=0"},
      {{"--key_size=-1"}, "--key_size=-1"},
      {{"--key_size=2", "--num=65537"}, "--key_size=2"},
      {{"--value_size=-1"}, "--value_size=-1"},
      {{"--key_dist=nosuch"}, "--key_dist=nosuch"},
      {{"--zipf_theta=0"}, "--zipf_theta"},
      {{"--hotspot_set_fraction=1.1"}, "--hotspot_set_fraction"},
      {{"--hotspot_op_fraction=-1"}, "--hotspot_op_fraction"},
      {{"--value_size_distribution_type=pareto", "--value_k=1"}, "--value_k"},
      {{"--value_sigma=0"}, "--value_sigma"},
      {{"--benchmarks=twitter"}, "--twitter_cluster=0"},
      {{"--benchmarks=twitter", "--twitter_cluster=5"}, "--twitter_cluster=5"},
      {{"--key_size=7", "--benchmarks=ycsba"}, "--key_size=7"},
      {{"--target_ops_per_second=-1"}, "--target_ops_per_second"},
      {{"--arrivals=nosuch"}, "--arrivals=nosuch"},
      {{"--latency_files=/nosuchfolder/file"}, "/nosuchfolder/file"},
      {{"--target_ops_per_second=1", "--benchmarks=asyncreadrandom"}, "asyncreadrandom"},
      {{"--num=0"}, "--num=0"},
      {{"--num=9223372036854775807"}, "--num=9223372036854775807"},
      {{"--threads=0"}, "--threads=0"},
      {{"--threads=1000000"}, "--threads=1000000"},
      {{"--batch_size=0"}, "--batch_size=0"},
      {{"--duration=-1"}, "--duration=-1"},
      {{"--readwritepercent=101"}, "--readwritepercent=101"},
      {{"--write_buffer_size=0"}, "--write_buffer_size=0"},
      {{"--max_background_jobs=0"}, "--max_background_jobs=0"},
      {{"--level0_stop_writes_trigger=1"}, "--level0_stop_writes_trigger=1"},
      {{"--compression_ratio=2"}, "--compression_ratio"},
      {{"--value_size_distribution_type=uniform", "--value_size_min=2", "--value_size_max=1"},
       "--value_size_min=2"},
      {{"--json=/nosuchfolder/file"}, "/nosuchfolder/file"},
      {{"--engine=rocksdb", "--use_existing_db"}, "--db"},
      {{"--engine=rocksdb", "--readonly"}, "--readonly"},
      {{"--engine=rocksdb", "--block_size=1"}, "--block_size=1"},
      {{"--engine=rocksdb", "--pool=embedded:", "--rocksdb_profile=inmemory"}, "inmemory"},
      {{"--engine=rocksdb", "--pool=embedded:", "--use_existing_db", "--db=/d"},
       "--use_existing_db"},
      {{"--engine=rocksdb", "--pool=embedded:", "--redundancy=rs(2,1)"}, "rs(2,1)"},
      {{"--engine=rocksdb", "--pool=shm:/nosuchfolder/n.sock"}, "/nosuchfolder/n.sock"},
      {{"--readonly", "--use_existing_db"}, "--pool"},
      {{"--followers=2"}, "--pool"},
      {{"--sharded=2", "--engine=rocksdb"}, "--sharded"},
      {{"--sharded=2", "--use_existing_db", "--readonly"}, "--readonly"},
      {{"--sharded=1025"}, "--sharded=1025"},
      {{"--pool=shm:/n.sock", "--use_secondary_db"}, "--use_existing_db"},
      {{"--pool=shm:/n.sock", "--use_existing_db", "--use_secondary_db", "--readonly"},
       "--readonly"},
      {{"--pool=shm:/n.sock", "--use_existing_db", "--readonly", "--followers=1"}, "--followers"},
      {{"--pool=shm:/n.sock", "--use_existing_db", "--readonly", "--linearizable"},
       "--linearizable"},
      {{"--linearizable"}, "--linearizable"},
      {{"--secondary_update_interval=-1"}, "--secondary_update_interval"},
      {{"--followers=65"}, "--followers=65"},
      {{"--engine=leveldb", "--count_remote_reads"}, "--count_remote_reads"},
      {{"--manifest_image_interval=0"}, "--manifest_image_interval=0"},
      {{"--engine=rocksdb", "--use_existing_db", "--db=/nosuchfolder/db", "--benchmarks=compact"},
       "/nosuchfolder/db"},
      {{"--engine=leveldb", "--use_existing_db", "--db=/nosuchfolder/db", "--benchmarks=compact"},
       "/nosuchfolder/db"},
      {{"--engine=lmdb", "--use_existing_db", "--db=/nosuchfolder/db", "--benchmarks=compact"},
       "/nosuchfolder/db"},
      {{"--engine=lmdb", "--key_size=511"}, "--key_size=511"},
      {{"--pool=nosuch:?nodes=1"}, "nosuch"},
      {{"--pool=embedded:?nodes=0"}, "nodes"},
      {{"--pool=shm:/nosuchfolder/node.sock"}, "/nosuchfolder/node.sock"},
      {{"--redundancy=rep(99)"}, "rep(99)"},
  };
  for (const BadCommandLine& bad : cases) {
    const ToolRun run = RunTool(bad.flags);
    EXPECT_EQ(run.exit_code, 1) << bad.flags[0] << "\n" << run.output;
    // The line that says it; a run that was begun has its head before that.
    std::string message = run.output;
    if (const size_t head = message.rfind("----\n"); head != std::string::npos) {
      message = message.substr(head + 5);
    }
    EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 1) << bad.flags[0] << message;
    EXPECT_NE(message.find(bad.culprit), std::string::npos) << bad.flags[0] << ": " << message;
  }
}

/// A folder in memory that stays behind would fill the machine.
TEST(ToolTest, InterruptEndsTheRunAndRemovesItsFolder) {
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  const std::string binary = NACRE_TEST_BIN_DIR "/db_bench";
  if (pid == 0) {
    execl(binary.c_str(), binary.c_str(), "--engine=leveldb", "--num=100000000",
          "--benchmarks=fillrandom", "--benchmark_write_rate_limit=1000000", nullptr);
    _exit(127);
  }
  const std::string prefix = "nacre_db_bench." + std::to_string(pid) + ".";
  const auto folder_exists = [&] {
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
      if (entry.path().filename().string().starts_with(prefix)) return true;
    }
    return false;
  };
  int status = 0;
  bool ended = false;
  for (int i = 0; i < 3000 && !ended && !folder_exists(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ended = waitpid(pid, &status, WNOHANG) != 0;
  }
  ASSERT_FALSE(ended) << status;
  EXPECT_TRUE(folder_exists());
  kill(pid, SIGINT);
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
  EXPECT_FALSE(folder_exists());
}

}  // namespace
}  // namespace nacre::bench
