// Goal: memory nodes that keep their memory in a file come back with it after any end of their
// processes: one, more than the redundancy allows for, or all of them with the owner; and nothing
// that is out of date or damaged there is ever taken for what the database holds. Method: real
// nacre-memnode processes, killed while an owner writes, and started again on their files, in
// memory. The owner is this process, whose writes are compared with a model, or one of its own,
// whose acknowledged writes are known. What lies in the files is changed while no node has them.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "nacre/db.h"
#include "pool/pool_client.h"
#include "pool/reports.h"
#include "pool/wire/node_stats.h"
#include "rdma/unique_fd.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/process/owner_process.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_db.h"
#include "util/random.h"

OWNER_PROCESS_CHILD()

namespace nacre {
namespace {

using Model = std::map<std::string, std::string>;

constexpr uint64_t kNodeBytes = 64 << 20;

class WarmNodesTest : public testing::TestWithParam<std::string> {
 protected:
  MemnodeProcessOptions NodeOptions() const {
    return {.scheme = GetParam(), .size = "64MiB", .region_folder = files_.path()};
  }
  void StartNodes(int count) { nodes_ = std::make_unique<MemnodeProcesses>(count, NodeOptions()); }
  MemnodeProcess& Process(size_t i) { return (*nodes_)[i]; }

  Options OptionsFor(const std::string& redundancy) const {
    Options options = SmallTableOptions(nullptr);
    options.pool_uri = nodes_->pool_uri();
    options.redundancy = redundancy;
    options.allow_degraded_writes = true;
    return options;
  }
  /// The nodes may be about to notice that the last owner is gone.
  void Open(const Options& options) {
    Status status;
    ASSERT_TRUE(Eventually([&] {
      status = DB::Open(options, "db", &db_);
      return !status.IsBusy();
    }));
    ASSERT_TRUE(IsOk(status));
  }
  void Close() {
    ASSERT_TRUE(IsOk(db_->Close()));
    db_.reset();
  }

  /// Some hundred kilobytes, over what there is and besides.
  void Write(int keys) {
    for (int i = 0; i < keys; ++i) {
      const std::string key = "key" + std::to_string(random_.Uniform(4000));
      const std::string value = TestValue(random_.Next(), random_.Uniform(1000));
      ASSERT_TRUE(IsOk(db_->Put({}, key, value)));
      model_[key] = value;
    }
  }
  /// In turns with what nodes that are on their way back cannot answer yet.
  void ExpectModel() {
    Status status;
    Model found;
    ASSERT_TRUE(Eventually([&] {
      found.clear();
      const std::unique_ptr<Iterator> iterator(db_->NewIterator({}));
      for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
        found[iterator->key().ToString()] = iterator->value().ToString();
      }
      status = iterator->status();
      return !status.IsUnavailable();
    })) << status.ToString();
    ASSERT_TRUE(IsOk(status));
    ASSERT_EQ(found.size(), model_.size());
    ASSERT_TRUE(found == model_);
    std::string value;
    for (int i = 0; i < 200; ++i) {
      const std::string key = "key" + std::to_string(random_.Uniform(4000));
      Status got;
      ASSERT_TRUE(Eventually([&] {
        got = db_->Get({}, key, &value);
        return !got.IsUnavailable();
      })) << got.ToString();
      const auto expected = model_.find(key);
      ASSERT_EQ(got.ok(), expected != model_.end()) << key << ": " << got.ToString();
      if (got.ok()) {
        ASSERT_TRUE(value == expected->second) << key;
      }
    }
  }

  /// What the node that now serves at the address says of itself.
  pool::NodeStats StatsOf(size_t i) {
    pool::NodeStats stats;
    const auto pool = ConnectTestPool(Process(i).address());
    if (pool == nullptr) return stats;
    EXPECT_TRUE(IsOk(pool::GetStats(pool->client(), 0, &stats)));
    return stats;
  }
  void ExpectWarm(size_t i, uint64_t instance_id) {
    const pool::NodeStats stats = StatsOf(i);
    EXPECT_EQ(stats.keeping, pool::Keeping::kWarm);
    EXPECT_EQ(stats.instance_id, instance_id);
  }
  ProcessResult Ctl(const std::string& command) {
    return RunBinary("nacre-ctl", {command, "--pool=" + nodes_->pool_uri()}, 60);
  }
  /// Checks that no fault is found, and that as many nodes may be lost as the redundancy says.
  void ExpectWhole(int spare) {
    const std::string wanted = "\"spare_nodes\": " + std::to_string(spare) + ",";
    std::string seen;
    ASSERT_TRUE(Eventually([&] {
      seen = RunBinary("nacre-ctl", {"fsck", "db", "--json", "--pool=" + nodes_->pool_uri()}, 60)
                 .output;
      return seen.find(wanted) != std::string::npos &&
             seen.find("\"findings\": []") != std::string::npos;
    })) << seen;
  }

  const TempFolder files_{MemoryFolder()};
  std::unique_ptr<MemnodeProcesses> nodes_;
  Random random_{TestSeed(960)};
  Model model_;
  std::unique_ptr<DB> db_;
};

TEST_P(WarmNodesTest, ANodeThatWasKilledComesBackWithWhatItHad) {
  ASSERT_NO_FATAL_FAILURE(StartNodes(3));
  const pool::NodeStats before = StatsOf(1);
  EXPECT_EQ(before.keeping, pool::Keeping::kEmpty);
  // No node is left that could take what one loses: only what comes back makes it whole.
  ASSERT_NO_FATAL_FAILURE(Open(OptionsFor("rep(3)")));
  for (int round = 0; round < 4; ++round) {
    SCOPED_TRACE(round);
    ASSERT_NO_FATAL_FAILURE(Write(500));
    if (round % 2 == 0) {
      ASSERT_TRUE(IsOk(db_->Flush({})));
    }
    if (round == 3) {
      EXPECT_EQ(Process(1).Terminate(), 0);
    } else {
      Process(1).Kill();
    }
    ASSERT_NO_FATAL_FAILURE(Write(100));
    Process(1).Start();
    ExpectWarm(1, before.instance_id);
    ASSERT_NO_FATAL_FAILURE(ExpectModel());
    ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
    ASSERT_NO_FATAL_FAILURE(ExpectModel());
  }
  // With two of them the third could not tell which owns it.
  ASSERT_NO_FATAL_FAILURE(ExpectWhole(1));
  const ProcessResult listed = Ctl("nodes");
  EXPECT_NE(listed.output.find("warm"), std::string::npos) << listed.output;
  EXPECT_NE(listed.output.find("kept"), std::string::npos) << listed.output;
  ASSERT_NO_FATAL_FAILURE(Close());
}

TEST_P(WarmNodesTest, MoreNodesThanMayBeLostComeBackUnderTheirOwner) {
  ASSERT_NO_FATAL_FAILURE(StartNodes(4));
  ASSERT_NO_FATAL_FAILURE(Open(OptionsFor("rs(2,1)")));
  std::vector<uint64_t> instances;
  for (size_t i = 0; i < 4; ++i) instances.push_back(StatsOf(i).instance_id);
  ASSERT_NO_FATAL_FAILURE(Write(1500));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  ASSERT_NO_FATAL_FAILURE(Write(100));
  const std::set<size_t> killed = {1, 3};
  for (const size_t i : killed) Process(i).Kill();
  for (const size_t i : killed) Process(i).Start();
  for (const size_t i : killed) ExpectWarm(i, instances[i]);
  ASSERT_NO_FATAL_FAILURE(ExpectModel());
  // A write that failed meanwhile may take place later: these wait until they are taken.
  Status written;
  ASSERT_TRUE(Eventually([&] {
    written = db_->Put({}, "after", "all");
    return written.ok();
  })) << written.ToString();
  model_["after"] = "all";
  ASSERT_NO_FATAL_FAILURE(Write(500));
  ASSERT_NO_FATAL_FAILURE(ExpectModel());
  ASSERT_NO_FATAL_FAILURE(ExpectWhole(1));
  ASSERT_NO_FATAL_FAILURE(Close());
}

TEST_P(WarmNodesTest, AllNodesAndTheOwnerDieAtOnce) {
  ASSERT_NO_FATAL_FAILURE(StartNodes(4));
  for (int round = 0; round < 2; ++round) {
    SCOPED_TRACE(round);
    const OwnerPlan plan{.pool_uri = nodes_->pool_uri(),
                         .redundancy = round % 2 == 0 ? "rep(2)" : "rs(2,1)",
                         .prefix = "r" + std::to_string(round) + "-",
                         .seed = random_.Next() % 1'000'000,
                         .threads = 3,
                         .keys_per_thread = 300};
    OwnerProcess owner("warm_tests", plan);
    ASSERT_TRUE(owner.AwaitProgress(100 + random_.Uniform(500)));
    if (random_.OneIn(2)) owner.Kill();
    // All at once, so that each is in the middle of something.
    std::vector<std::thread> kills;
    for (size_t i = 0; i < 4; ++i) kills.emplace_back([this, i] { Process(i).Kill(); });
    for (std::thread& kill : kills) kill.join();
    owner.Kill();
    for (size_t i = 0; i < 4; ++i) Process(i).Start();
    ASSERT_NO_FATAL_FAILURE(Open(OptionsFor(plan.redundancy)));
    ASSERT_NO_FATAL_FAILURE(owner.Check(db_.get()));
    ASSERT_TRUE(IsOk(db_->Flush({})));
    ASSERT_NO_FATAL_FAILURE(owner.Check(db_.get()));
    ASSERT_NO_FATAL_FAILURE(Close());
    ASSERT_NO_FATAL_FAILURE(ExpectWhole(1));
  }
}

TEST_P(WarmNodesTest, ANodeThatMissedMuchIsNotBelieved) {
  ASSERT_NO_FATAL_FAILURE(StartNodes(4));
  const Options options = OptionsFor("rep(2)");
  ASSERT_NO_FATAL_FAILURE(Open(options));
  ASSERT_NO_FATAL_FAILURE(Write(1500));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  const uint64_t instance_id = StatsOf(0).instance_id;
  Process(0).Kill();
  // Everything is written anew: tables, log, manifest, and the root, which names others now.
  ASSERT_NO_FATAL_FAILURE(Write(3000));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ASSERT_NO_FATAL_FAILURE(Write(500));
  ASSERT_NO_FATAL_FAILURE(Close());
  ASSERT_NO_FATAL_FAILURE(Open(options));
  ASSERT_NO_FATAL_FAILURE(Write(500));
  ASSERT_NO_FATAL_FAILURE(Close());
  Process(0).Start();
  ExpectWarm(0, instance_id);
  ASSERT_NO_FATAL_FAILURE(Open(options));
  ASSERT_NO_FATAL_FAILURE(ExpectModel());
  ASSERT_NO_FATAL_FAILURE(Write(500));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ASSERT_NO_FATAL_FAILURE(ExpectModel());
  ASSERT_NO_FATAL_FAILURE(ExpectWhole(1));
  ASSERT_NO_FATAL_FAILURE(Close());
}

TEST_P(WarmNodesTest, ADatabaseThatWasDestroyedMeanwhileStaysSo) {
  ASSERT_NO_FATAL_FAILURE(StartNodes(4));
  const Options options = OptionsFor("rep(2)");
  ASSERT_NO_FATAL_FAILURE(Open(options));
  ASSERT_NO_FATAL_FAILURE(Write(500));
  ASSERT_NO_FATAL_FAILURE(Close());
  Process(3).Kill();
  ASSERT_TRUE(IsOk(DestroyDB("db", options)));
  Process(3).Start();
  Options existing = options;
  existing.create_if_missing = false;
  EXPECT_TRUE(DB::Open(existing, "db", &db_).IsInvalidArgument());
  model_.clear();
  ASSERT_NO_FATAL_FAILURE(Open(options));
  ASSERT_NO_FATAL_FAILURE(Write(500));
  ASSERT_NO_FATAL_FAILURE(ExpectModel());
  ASSERT_NO_FATAL_FAILURE(Close());
  ASSERT_NO_FATAL_FAILURE(ExpectWhole(1));
}

TEST_P(WarmNodesTest, AnotherDatabaseOfTheNameLosesNothingToTheFirst) {
  ASSERT_NO_FATAL_FAILURE(StartNodes(4));
  const Options options = OptionsFor("rep(2)");
  for (int owners = 0; owners < 4; ++owners) {  // Its epoch is beyond that of the second.
    ASSERT_NO_FATAL_FAILURE(Open(options));
    ASSERT_NO_FATAL_FAILURE(Write(200));
    ASSERT_NO_FATAL_FAILURE(Close());
  }
  Process(3).Kill();
  ASSERT_TRUE(IsOk(DestroyDB("db", options)));
  model_.clear();
  ASSERT_NO_FATAL_FAILURE(Open(options));
  ASSERT_NO_FATAL_FAILURE(Write(1000));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  Process(3).Start();
  ASSERT_NO_FATAL_FAILURE(Write(1000));
  ASSERT_NO_FATAL_FAILURE(ExpectModel());
  ASSERT_NO_FATAL_FAILURE(Close());
  ASSERT_NO_FATAL_FAILURE(Open(options));
  ASSERT_NO_FATAL_FAILURE(ExpectModel());
  ASSERT_NO_FATAL_FAILURE(Write(500));
  ASSERT_NO_FATAL_FAILURE(ExpectModel());
  ASSERT_NO_FATAL_FAILURE(Close());
  ASSERT_NO_FATAL_FAILURE(ExpectWhole(1));
}

TEST_P(WarmNodesTest, FlippedBitsAreFoundAndRepaired) {
  ASSERT_NO_FATAL_FAILURE(StartNodes(4));
  const Options options = OptionsFor("rs(2,1)");
  ASSERT_NO_FATAL_FAILURE(Open(options));
  ASSERT_NO_FATAL_FAILURE(Write(3000));
  ASSERT_NO_FATAL_FAILURE(Close());
  Process(2).Kill();
  {
    // Everywhere in the slabs, whatever lies there.
    const rdma::UniqueFd fd(::open(Process(2).region_file().c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_TRUE(fd.valid());
    for (int i = 0; i < 3000; ++i) {
      const auto at = static_cast<off_t>((1 << 20) + random_.Uniform(kNodeBytes - (1 << 20)));
      char byte = 0;
      ASSERT_EQ(::pread(fd.get(), &byte, 1, at), 1);
      byte = static_cast<char>(byte ^ 1 << random_.Uniform(8));
      ASSERT_EQ(::pwrite(fd.get(), &byte, 1, at), 1);
    }
  }
  Process(2).Start();
  ASSERT_NO_FATAL_FAILURE(Open(options));
  ASSERT_NO_FATAL_FAILURE(ExpectModel());
  db_->VerifyChecksum().IgnoreError();  // It finds what reads have not met.
  ASSERT_TRUE(Eventually([&] { return db_->VerifyChecksum().ok(); }));
  ASSERT_NO_FATAL_FAILURE(ExpectModel());
  ASSERT_NO_FATAL_FAILURE(Close());
}

TEST_P(WarmNodesTest, TheFileOfAnotherPoolIsOfNoUse) {
  ASSERT_NO_FATAL_FAILURE(StartNodes(4));
  // Another pool has a database of the same name.
  MemnodeProcesses others(3, NodeOptions());
  {
    Options options = OptionsFor("rep(2)");
    options.pool_uri = others.pool_uri();
    ASSERT_NO_FATAL_FAILURE(Open(options));
    for (int i = 0; i < 200; ++i) {
      ASSERT_TRUE(IsOk(db_->Put({}, "key" + std::to_string(i), "of another pool")));
    }
    ASSERT_TRUE(IsOk(db_->Flush({})));
    ASSERT_NO_FATAL_FAILURE(Close());
  }
  const std::string other_file = others[0].region_file();
  others[0].Kill();
  const Options options = OptionsFor("rep(2)");
  ASSERT_NO_FATAL_FAILURE(Open(options));
  ASSERT_NO_FATAL_FAILURE(Write(1000));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  Process(1).Kill();
  const std::string own_file = Process(1).region_file();
  Process(1).set_region_file(other_file);
  Process(1).Start();
  ASSERT_NO_FATAL_FAILURE(Write(500));
  ASSERT_NO_FATAL_FAILURE(ExpectModel());
  ASSERT_NO_FATAL_FAILURE(Close());
  ASSERT_NO_FATAL_FAILURE(Open(options));
  ASSERT_NO_FATAL_FAILURE(ExpectModel());
  ASSERT_NO_FATAL_FAILURE(Close());
  // With its own again it is as it was: too late for this owner, and right for the next.
  Process(1).Kill();
  Process(1).set_region_file(own_file);
  Process(1).Start();
  ASSERT_NO_FATAL_FAILURE(Open(options));
  ASSERT_NO_FATAL_FAILURE(ExpectModel());
  ASSERT_NO_FATAL_FAILURE(Close());
}

TEST_P(WarmNodesTest, SaysWhyAFileCannotBeUsed) {
  ASSERT_NO_FATAL_FAILURE(StartNodes(1));
  const std::string file = Process(0).region_file();
  const std::string flag = GetParam() == "cxl" ? "--memory=dax:" : "--region_file=";
  const auto start = [&](const std::string& size, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--listen=" + Process(0).address(), "--size=" + size,
                                          "--slab_size=1MiB", flag + file};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  const auto expect = [&](const std::vector<std::string>& arguments, const std::string& why) {
    const ProcessResult result = RunBinary("nacre-memnode", arguments, 60);
    EXPECT_EQ(result.exit_code, 1) << result.output;
    EXPECT_NE(result.output.find(why), std::string::npos) << result.output;
    EXPECT_NE(result.output.find(file), std::string::npos) << result.output;
  };
  expect(start("64MiB", {}), "another process has it");
  EXPECT_EQ(Process(0).Terminate(), 0);
  expect(start("32MiB", {}), "are asked for");
  {
    const rdma::UniqueFd fd(::open(file.c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::pwrite(fd.get(), "damage", 6, 2048 + 20), 6);
  }
  expect(start("64MiB", {}), "--region_reset");
  ChildProcess anew("nacre-memnode", start("64MiB", {"--region_reset"}));
  const std::string output = anew.AwaitOutput(" with ", 60);
  EXPECT_NE(output.find("ready"), std::string::npos) << output;
}

TEST(WarmMemoryTest, ANodeOverTcpLendsADevice) {
  const TempFolder files{MemoryFolder()};
  const std::string memory = files.File("memory");
  const rdma::UniqueFd fd(::open(memory.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::ftruncate(fd.get(), 80 << 20), 0);
  for (const std::string said : {"of 1.0 MiB\n", "of 1.0 MiB, warm"}) {
    ChildProcess node("nacre-memnode", {"--listen=tcp:127.0.0.1:0", "--size=64MiB",
                                        "--slab_size=1MiB", "--memory=dax:" + memory});
    const std::string output = node.AwaitOutput("\n", 60);
    EXPECT_NE(output.find(said), std::string::npos) << output;
    node.Kill();
  }
}

INSTANTIATE_TEST_SUITE_P(, WarmNodesTest, testing::Values("shm", "tcp", "cxl"),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace nacre
