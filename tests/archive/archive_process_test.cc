// Goal: whenever nacre-archive, all memory nodes and the owner die, what is restored is a state
// that the database had, with everything that was archived before. Method: the programs as
// processes, killed at random moments while an owner of this process writes; nacre-ctl lists and
// restores. The archiver's disk loses what was not synced (lossy_disk.cc), and the archive may be
// encrypted, with a new key each time. NACRE_ARCHIVE_ROUNDS says how often (4).

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nacre/archive.h"
#include "nacre/db.h"
#include "tests/support/key_file.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {
namespace {

using std::chrono::milliseconds;

constexpr int kPatienceSeconds = 60;
constexpr uint64_t kKeys = 100;

/// Batch number n, from 1, sets two keys to n; so the database shows which batches it has.
class Owner {
 public:
  explicit Owner(const std::string& uri)
      // It is closed when the nodes are gone.
      : pool_(ConnectTestPool(uri, {.operation_timeout = std::chrono::milliseconds(3000)})) {
    Options options = SmallTableOptions(pool_);
    options.redundancy = "rep(2)";
    options.write_buffer_size = 256 << 10;
    options.max_archive_lag_MB = 32;
    EXPECT_TRUE(IsOk(DB::Open(options, "orders", &db_)));
    thread_ = std::thread([this] {
      for (uint64_t n = 1; !stop_.load(); ++n) {
        WriteBatch batch;
        const std::string value = std::to_string(n) + " " + TestValue(n, 500);
        if (!batch.Put(FirstKey(n), value).ok() || !batch.Put(SecondKey(n), value).ok()) return;
        if (!db_->Write({}, &batch).ok()) return;  // The nodes are gone.
        written_.store(n);
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    });
  }
  ~Owner() {
    stop_.store(true);
    thread_.join();
  }

  static std::string FirstKey(uint64_t n) { return "a" + std::to_string(n % kKeys); }
  static std::string SecondKey(uint64_t n) { return "b" + std::to_string(n % kKeys); }
  uint64_t written() const { return written_.load(); }
  /// The last sequence that can be restored, as the owner has heard; looks once more.
  uint64_t Archived() {
    db_->WaitForArchive(db_->GetLatestSequenceNumber(), milliseconds(0)).IgnoreError();
    uint64_t archived = 0;
    EXPECT_TRUE(db_->GetIntProperty("nacre.archived-sequence", &archived));
    return archived;
  }

 private:
  std::shared_ptr<pool::PoolImpl> pool_;
  std::unique_ptr<DB> db_;
  std::atomic<uint64_t> written_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// The number of the last batch; fails the test unless exactly those up to it are there.
void CheckIsAState(DB* db, uint64_t* last) {
  const auto number = [&](const std::string& key) -> uint64_t {
    std::string value;
    const Status status = db->Get({}, key, &value);
    EXPECT_TRUE(status.ok() || status.IsNotFound()) << status.ToString();
    return status.ok() ? std::stoull(value) : 0;
  };
  *last = 0;
  for (uint64_t i = 0; i < kKeys; ++i) *last = std::max(*last, number("a" + std::to_string(i)));
  for (uint64_t i = 0; i < kKeys; ++i) {
    // The last batch up to `*last` with this remainder.
    const uint64_t behind = (*last % kKeys + kKeys - i) % kKeys;
    const uint64_t expected = behind >= *last ? 0 : *last - behind;
    EXPECT_EQ(number("a" + std::to_string(i)), expected) << "key " << i << ", last " << *last;
    EXPECT_EQ(number("b" + std::to_string(i)), expected) << "key " << i << ", last " << *last;
  }
}

class ArchiveProcessTest : public testing::Test {
 protected:
  std::unique_ptr<ChildProcess> StartArchive(const MemnodeProcesses& nodes, uint64_t seed = 0) {
    std::vector<std::string> arguments = {"--pool=" + nodes.pool_uri(), "--to=" + folder_.path()};
    if (!key_file_.empty()) arguments.push_back("--encryption_key_file=" + key_file_);
    arguments.push_back("orders");
    std::vector<std::string> environment = {"NACRE_LOSSY_DISK=" + folder_.path(),
                                            "NACRE_LOSSY_SEED=" + std::to_string(seed)};
    // Sanitizers want to be the first library that is loaded.
    const std::string disk = NACRE_TEST_BIN_DIR "/lossy_disk.so";
    if (std::filesystem::exists(disk)) environment.push_back("LD_PRELOAD=" + disk);
    return std::make_unique<ChildProcess>("nacre-archive", arguments, environment);
  }
  ProcessResult Ctl(std::vector<std::string> arguments) const {
    if (!key_file_.empty()) arguments.push_back("--encryption_key_file=" + key_file_);
    return RunBinary("nacre-ctl", arguments, kPatienceSeconds);
  }
  /// From now on the first of these keys encrypts.
  void UseKeys(const std::vector<std::string>& ids) {
    key_file_ = keys_folder_.File("keys");
    WriteKeyFile(key_file_, ids);
  }
  std::string dir() const { return folder_.File("orders"); }
  bool HasBase() const {
    ArchiveInfo info;
    return GetArchive(dir(), &info, key_file_).ok() && !info.bases.empty();
  }
  uint64_t LastArchived() const {
    ArchiveInfo info;
    return GetArchive(dir(), &info, key_file_).ok() && !info.log.empty() ? info.log.back().last : 0;
  }

  const TempFolder folder_;
  const TempFolder keys_folder_;  ///< Its disk loses nothing.
  std::string key_file_;          ///< Empty: the archive is not encrypted.
};

/// The parameter: whether the archive is encrypted, with keys that are replaced.
class ArchiveKillTest : public ArchiveProcessTest, public testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(Ways, ArchiveKillTest, testing::Bool(),
                         [](const auto& test) { return test.param ? "Encrypted" : "Plain"; });

TEST_P(ArchiveKillTest, WhateverIsKilledWhenever) {
  const char* const text = std::getenv("NACRE_ARCHIVE_ROUNDS");
  const uint64_t rounds = text == nullptr ? 4 : std::stoull(text);
  Random random(TestSeed(1));
  for (uint64_t round = 0; round < rounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    auto nodes = std::make_unique<MemnodeProcesses>(
        3, MemnodeProcessOptions{.size = "96MiB", .slab_size = "1MiB"});
    auto owner = std::make_unique<Owner>(nodes->pool_uri());
    ASSERT_TRUE(Eventually([&] { return owner->written() > 0; }));
    std::vector<std::string> keys = {"key-0"};
    if (GetParam()) UseKeys(keys);
    auto archive = StartArchive(*nodes, random.Next());
    // Before the owner knows of the archive there may be a gap, and then a new base is being made.
    ASSERT_TRUE(Eventually([&] { return HasBase() && owner->Archived() > 0; }));
    // The archiver dies and comes back a few times, at first.
    for (uint64_t kills = random.Uniform(3); kills > 0; --kills) {
      std::this_thread::sleep_for(milliseconds(random.Uniform(150)));
      archive->Kill();
      std::this_thread::sleep_for(milliseconds(random.Uniform(50)));
      keys.insert(keys.begin(), "key-" + std::to_string(keys.size()));
      if (GetParam()) UseKeys(keys);
      archive = StartArchive(*nodes, random.Next());
    }
    std::this_thread::sleep_for(milliseconds(random.Uniform(400)));
    const uint64_t archived = std::max(LastArchived(), owner->Archived());
    if (random.OneIn(2)) archive->Kill();
    nodes.reset();
    owner.reset();
    archive->Kill();

    MemnodeProcesses others(3, {.size = "96MiB", .slab_size = "1MiB"});
    const ProcessResult restored =
        Ctl({"restore", dir(), "copy", "--redundancy=rs(2,1)",
             round % 2 == 0 ? "--threads=4" : "--threads=1", "--pool=" + others.pool_uri()});
    ASSERT_EQ(restored.exit_code, 0) << restored.output;
    Options options = SmallTableOptions(ConnectTestPool(others.pool_uri()));
    options.create_if_missing = false;
    std::unique_ptr<DB> db;
    ASSERT_TRUE(IsOk(DB::Open(options, "copy", &db)));
    uint64_t last = 0;
    ASSERT_NO_FATAL_FAILURE(CheckIsAState(db.get(), &last));
    EXPECT_GE(2 * last, archived) << "less than was archived";
    db.reset();
    for (const char* const name : {"base", "log", "DATABASE", "LOCK"}) {
      std::filesystem::remove_all(dir() + "/" + name);
    }
  }
}

TEST_F(ArchiveProcessTest, ARestoreThatIsKilledGoesOn) {
  Random random(TestSeed(2));
  uint64_t archived = 0;
  {
    MemnodeProcesses nodes(3, {.size = "96MiB", .slab_size = "1MiB"});
    Owner owner(nodes.pool_uri());
    auto archive = StartArchive(nodes, random.Next());
    ASSERT_TRUE(Eventually([&] { return HasBase() && owner.Archived() > 0; }));
    const uint64_t begun = owner.written();
    ASSERT_TRUE(Eventually([&] { return owner.written() > begun + 8000; }));
    archived = owner.Archived();
    archive->Signal(SIGTERM);
    EXPECT_EQ(archive->AwaitExit(kPatienceSeconds), 0);
  }
  MemnodeProcesses others(3, {.size = "96MiB", .slab_size = "1MiB"});
  const std::string pool = "--pool=" + others.pool_uri();
  Options options = SmallTableOptions(ConnectTestPool(others.pool_uri()));
  options.create_if_missing = false;
  std::unique_ptr<DB> db;
  // Each lives a little longer: the first ones die before they have begun, whatever the machine,
  // and those after them within what they do.
  uint64_t killed_within = 0;
  for (double life_ms = 4; db == nullptr && life_ms < 2000; life_ms *= 1.2) {
    ChildProcess restore("nacre-ctl",
                         {"restore", dir(), "copy", "--redundancy=rs(2,1)", "--threads=4", pool});
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(life_ms));
    restore.Kill();
    // The owner that died is let go of after a while.
    Status opened;
    ASSERT_TRUE(Eventually([&] {
      opened = DB::Open(options, "copy", &db);
      return !opened.IsBusy();
    }));
    if (opened.IsIncomplete()) ++killed_within;
    EXPECT_TRUE(opened.ok() || opened.IsIncomplete() || opened.IsInvalidArgument())
        << opened.ToString();
  }
  EXPECT_GT(killed_within, 0u);
  std::cout << killed_within << " restores were killed within\n";
  if (db == nullptr) {
    const ProcessResult restored =
        Ctl({"restore", dir(), "copy", "--redundancy=rs(2,1)", "--threads=4", pool});
    ASSERT_EQ(restored.exit_code, 0) << restored.output;
    ASSERT_TRUE(IsOk(DB::Open(options, "copy", &db)));
  }
  uint64_t last = 0;
  ASSERT_NO_FATAL_FAILURE(CheckIsAState(db.get(), &last));
  EXPECT_GE(2 * last, archived) << "less than was archived";
  EXPECT_EQ(2 * last, db->GetLatestSequenceNumber());
}

TEST_F(ArchiveProcessTest, AnEncryptedOneIsListedWithItsKeys) {
  UseKeys({"2026-11"});
  MemnodeProcesses nodes(3, {.size = "96MiB", .slab_size = "1MiB"});
  {
    Owner owner(nodes.pool_uri());
    ASSERT_TRUE(Eventually([&] { return owner.written() > 100; }));
    auto archive = StartArchive(nodes);
    ASSERT_TRUE(Eventually([&] { return HasBase() && LastArchived() > 200; }));
    archive->Signal(SIGTERM);
    EXPECT_EQ(archive->AwaitExit(kPatienceSeconds), 0);
  }
  const ProcessResult listed = Ctl({"archives", dir()});
  EXPECT_EQ(listed.exit_code, 0) << listed.output;
  EXPECT_NE(listed.output.find("encrypted with key 2026-11: "), std::string::npos) << listed.output;
  EXPECT_EQ(listed.output.find("not encrypted"), std::string::npos) << listed.output;
  const ProcessResult json = Ctl({"archives", dir(), "--json"});
  EXPECT_NE(json.output.find("\"files_by_key\": {\"2026-11\": "), std::string::npos) << json.output;
  const ProcessResult verified = Ctl({"archives", dir(), "--verify"});
  EXPECT_EQ(verified.exit_code, 0) << verified.output;
  key_file_ = "";
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"archives", dir()},
        std::vector<std::string>{"restore", dir(), "copy", "--redundancy=none",
                                 "--pool=" + nodes.pool_uri()}}) {
    const ProcessResult refused = Ctl(command);
    EXPECT_EQ(refused.exit_code, 1) << refused.output;
    EXPECT_NE(refused.output.find("encrypted with key '2026-11'"), std::string::npos)
        << refused.output;
  }
  const ProcessResult no_file =
      RunBinary("nacre-archive", {"--pool=" + nodes.pool_uri(), "--to=" + folder_.path(),
                                  "--encryption_key_file=" + folder_.File("nowhere"), "orders"});
  EXPECT_EQ(no_file.exit_code, 1);
  EXPECT_NE(no_file.output.find("nowhere"), std::string::npos) << no_file.output;
}

TEST_F(ArchiveProcessTest, IsListedAndEndsWhenAsked) {
  MemnodeProcesses nodes(3, {.size = "96MiB", .slab_size = "1MiB"});
  {
    Owner owner(nodes.pool_uri());
    ASSERT_TRUE(Eventually([&] { return owner.written() > 100; }));
    auto archive = StartArchive(nodes);
    ASSERT_TRUE(Eventually([&] { return HasBase() && LastArchived() > 200; }));
    archive->Signal(SIGTERM);
    EXPECT_EQ(archive->AwaitExit(kPatienceSeconds), 0);
  }
  const ProcessResult checked = Ctl({"fsck", "--full", "--pool=" + nodes.pool_uri()});
  EXPECT_EQ(checked.exit_code, 0) << "what the log keeps: " << checked.output;
  const ProcessResult listed = Ctl({"archives", dir()});
  EXPECT_EQ(listed.exit_code, 0) << listed.output;
  EXPECT_NE(listed.output.find("checkpoint 1 of"), std::string::npos) << listed.output;
  EXPECT_NE(listed.output.find("log of sequences"), std::string::npos) << listed.output;
  const ProcessResult json = Ctl({"archives", dir(), "--json"});
  EXPECT_NE(json.output.find("\"database\": \"orders\""), std::string::npos) << json.output;
  const ProcessResult beyond = Ctl({"restore", dir(), "copy", "--redundancy=none",
                                    "--to_sequence=999999999", "--pool=" + nodes.pool_uri()});
  EXPECT_EQ(beyond.exit_code, 1) << beyond.output;
  EXPECT_NE(beyond.output.find("it covers sequences"), std::string::npos) << beyond.output;
  const ProcessResult no_time = Ctl({"restore", dir(), "copy", "--redundancy=none",
                                     "--to_time=yesterday", "--pool=" + nodes.pool_uri()});
  EXPECT_NE(no_time.output.find("--to_time"), std::string::npos) << no_time.output;
  const ProcessResult unnamed = RunBinary("nacre-archive", {"--pool=" + nodes.pool_uri()});
  EXPECT_EQ(unnamed.exit_code, 1);
  EXPECT_NE(unnamed.output.find("--to is missing"), std::string::npos) << unnamed.output;
}

}  // namespace
}  // namespace nacre
