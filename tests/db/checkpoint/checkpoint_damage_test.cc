// Goal: a checkpoint that is damaged in any of its files is refused, with the file named, and so is
// one that the disk has no room for; damage and lost nodes of the pool are read around, or named.
// Nothing that is wrong is ever written as if it were right.
// Method: one bit at a time in each kind of place of each kind of file; a limit to the size of
// files; fragments that are damaged in their nodes' memory; nodes that die in the middle.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "nacre/checkpoint.h"
#include "pool/wire/node_stats.h"
#include "table/format/fragment_checksums.h"
#include "tests/support/checkpoint_fixture.h"
#include "tests/support/scale.h"
#include "tests/support/status_assert.h"
#include "tests/support/table/stored_tables.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

using Code = Status::Code;

class DBCheckpointDamageTest : public CheckpointFixture {
 protected:
  void OpenFilled(const std::string& redundancy, int nodes) {
    options_.disable_auto_compactions = true;
    pause_repair_ = true;
    ASSERT_NO_FATAL_FAILURE(Open(redundancy, nodes));
    ASSERT_NO_FATAL_FAILURE(Fill(3000));
    ASSERT_TRUE(IsOk(db_->Flush({})));
  }

  /// What is wrong with `file` is found, and named, and it is right again afterwards.
  void ExpectNamed(const std::string& file) {
    EXPECT_TRUE(IsFailure(VerifyCheckpoint(dir(), 0, {}), Code::kCorruption, file));
    EXPECT_TRUE(IsFailure(Restore("copy"), Code::kCorruption, file));
    std::unique_ptr<DB> half;
    Options options = options_;
    options.create_if_missing = false;
    EXPECT_FALSE(DB::Open(options, "copy", &half).ok());
    // Or the next restore would go on with the tables that are there, and not look at their files.
    ASSERT_TRUE(IsOk(DestroyDB("copy", options_)));
  }

  /// With one bit of the byte at `offset` changed.
  void Damage(const std::string& file, uint64_t offset) {
    SCOPED_TRACE(file + " at " + std::to_string(offset));
    const std::string right = ReadAll(file);
    ASSERT_LT(offset, right.size());
    std::string wrong = right;
    wrong[offset] = static_cast<char>(wrong[offset] ^ 1 << random_.Uniform(8));
    WriteAll(file, wrong);
    ExpectNamed(file);
    WriteAll(file, right);
  }

  void ExpectWhole() {
    ASSERT_TRUE(IsOk(VerifyCheckpoint(dir(), 0, {})));
    ASSERT_TRUE(IsOk(Restore("copy")));
    ASSERT_NO_FATAL_FAILURE(TurnTo("copy"));
    ASSERT_NO_FATAL_FAILURE(Check());
  }
};

TEST_F(DBCheckpointDamageTest, OfTablesIsNamed) {
  ASSERT_NO_FATAL_FAILURE(OpenFilled("none", 2));
  ASSERT_TRUE(IsOk(MakeCheckpoint()));
  const std::vector<std::string> files = Files(".table");
  ASSERT_GT(files.size(), 1u);
  const std::vector<TableMeta> tables = StoredTables(db_.get(), pool_.get());
  ASSERT_EQ(tables.size(), files.size());
  db_.reset();
  for (const TableMeta& meta : tables) {
    std::string file;
    for (const std::string& each : files) {
      if (each.ends_with("-" + std::string(6 - std::to_string(meta.id).size(), '0') +
                         std::to_string(meta.id) + ".table")) {
        file = each;
      }
    }
    ASSERT_FALSE(file.empty()) << meta.id;
    const uint64_t begin = kFragmentHeadBytes;
    const uint64_t tail = begin + meta.size;
    const uint64_t size = tail + FragmentTailBytes(meta.size, meta.chunk_size);
    ASSERT_EQ(std::filesystem::file_size(file), size);
    std::vector<uint64_t> places = {0, 7, 60, 300, begin - 1, tail, tail + 33, size - 1};
    for (const TableSection& section :
         {meta.records, meta.point_index, meta.range_index, meta.lineage}) {
      ASSERT_GT(section.length, 0u);
      places.push_back(begin + section.offset);
      places.push_back(begin + section.offset + random_.Uniform(section.length));
      places.push_back(begin + section.offset + section.length - 1);
    }
    places.push_back(begin + meta.lineage.offset + meta.lineage.length + 50);  // The footer.
    places.push_back(begin + meta.size - 1);
    for (const uint64_t place : places) ASSERT_NO_FATAL_FAILURE(Damage(file, place));

    const std::string right = ReadAll(file);
    WriteAll(file, right.substr(0, right.size() - 1));
    ExpectNamed(file);
    WriteAll(file, right + "x");
    ExpectNamed(file);
    WriteAll(file, "");
    ExpectNamed(file);
    std::filesystem::remove(file);
    ExpectNamed(file);
    WriteAll(file, right);
  }
  // One that is whole, and another table's.
  const std::string first = ReadAll(files[0]);
  WriteAll(files[0], ReadAll(files[1]));
  ExpectNamed(files[0]);
  WriteAll(files[0], first);
  ASSERT_NO_FATAL_FAILURE(ExpectWhole());
}

TEST_F(DBCheckpointDamageTest, OfADescriptionIsNamedAndCostsNothingElse) {
  ASSERT_NO_FATAL_FAILURE(OpenFilled("none", 2));
  ASSERT_TRUE(IsOk(MakeCheckpoint()));
  ASSERT_NO_FATAL_FAILURE(Fill(200));
  ASSERT_TRUE(IsOk(MakeCheckpoint()));
  const std::string file = dir() + "/CHECKPOINT-000002";
  const std::string right = ReadAll(file);
  for (uint64_t offset = 0; offset < right.size(); offset += 1 + random_.Uniform(60)) {
    ASSERT_NO_FATAL_FAILURE(Damage(file, offset));
  }
  ASSERT_NO_FATAL_FAILURE(Damage(file, right.size() - 1));
  for (const std::string& wrong : {std::string(), right.substr(0, right.size() / 2), right + "x"}) {
    WriteAll(file, wrong);
    ExpectNamed(file);
  }
  // The other one is there, and what the damaged one may need stays.
  std::vector<CheckpointInfo> all;
  EXPECT_TRUE(IsFailure(GetCheckpoints(dir(), &all), Code::kCorruption, file));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_TRUE(IsOk(VerifyCheckpoint(dir(), 1, {})));
  EXPECT_TRUE(IsFailure(DeleteCheckpoint(dir(), 1), Code::kCorruption, file));
  const size_t tables = Files(".table").size();
  CheckpointInfo third;
  ASSERT_TRUE(IsOk(MakeCheckpoint(&third)));
  EXPECT_EQ(third.number, 3u);
  EXPECT_EQ(Files(".table").size(), tables);
  ASSERT_TRUE(IsOk(DeleteCheckpoint(dir(), 2)));
  ASSERT_TRUE(IsOk(GetCheckpoints(dir(), &all)));
  EXPECT_EQ(all.size(), 2u);
  db_.reset();
  ASSERT_NO_FATAL_FAILURE(ExpectWhole());
}

TEST_F(DBCheckpointDamageTest, OfWhatAKilledRunHasLeftIsMendedByTheNext) {
  ASSERT_NO_FATAL_FAILURE(OpenFilled("none", 2));
  CheckpointOptions options;
  options.threads = 1;
  // Ended when some tables are there.
  options.progress = [](const CheckpointProgress& progress) { return progress.tables_done < 2; };
  ASSERT_TRUE(IsFailure(MakeCheckpoint(nullptr, options), Code::kAborted));
  const std::vector<std::string> files = Files(".table");
  ASSERT_EQ(files.size(), 2u);
  std::string bytes = ReadAll(files[0]);
  bytes[bytes.size() / 2] ^= 1;
  WriteAll(files[0], bytes);
  WriteAll(dir() + "/CHECKPOINT-000009.tmp", "half");
  WriteAll(dir() + "/0123456789abcdef-000001.table", "of a database that is gone");
  CheckpointInfo info;
  ASSERT_TRUE(IsOk(MakeCheckpoint(&info)));
  EXPECT_LT(info.bytes_new, info.bytes);
  EXPECT_EQ(Files(".table").size(), info.tables);
  EXPECT_TRUE(Files(".tmp").empty());
  // A file that a checkpoint names is mended where its ends tell, or its absence does.
  std::filesystem::remove(files[0]);
  std::filesystem::resize_file(files[1], 5000);
  ASSERT_TRUE(IsFailure(VerifyCheckpoint(dir(), 0, {}), Code::kCorruption));
  ASSERT_TRUE(IsOk(MakeCheckpoint(&info)));
  EXPECT_GT(info.bytes_new, 0u);
  db_.reset();
  ASSERT_TRUE(IsOk(VerifyCheckpoint(dir(), 1, {})));
  ASSERT_NO_FATAL_FAILURE(ExpectWhole());
}

/// While it lives, no file of this process grows beyond so many bytes: as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(uint64_t bytes) {
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() {
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before_), 0);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  sighandler_t handler_ = nullptr;
};

TEST_F(DBCheckpointDamageTest, AFullDiskIsNamedAndTheNextRunGoesOn) {
  ASSERT_NO_FATAL_FAILURE(OpenFilled("none", 2));
  {
    const FileSizeLimit limit(20'000);
    EXPECT_TRUE(IsFailure(MakeCheckpoint(), Code::kIOError, ".table.tmp"));
  }
  std::vector<CheckpointInfo> all;
  ASSERT_TRUE(IsOk(GetCheckpoints(dir(), &all)));
  EXPECT_TRUE(all.empty());
  {
    // Enough for the tables that are there in the end, not for the description.
    CheckpointInfo info;
    ASSERT_TRUE(IsOk(MakeCheckpoint(&info)));
    ASSERT_TRUE(IsOk(DeleteCheckpoint(dir(), info.number)));
    const FileSizeLimit limit(0);
    EXPECT_TRUE(IsFailure(MakeCheckpoint(), Code::kIOError, ".tmp"));
  }
  ASSERT_TRUE(IsOk(GetCheckpoints(dir(), &all)));
  EXPECT_TRUE(all.empty());
  // The database is none the worse.
  ASSERT_NO_FATAL_FAILURE(Fill(500));
  ASSERT_NO_FATAL_FAILURE(Check());
  ASSERT_TRUE(IsOk(MakeCheckpoint()));
  db_.reset();
  ASSERT_NO_FATAL_FAILURE(ExpectWhole());
}

TEST_F(DBCheckpointDamageTest, OfFragmentsIsReadAroundOrNamed) {
  ASSERT_NO_FATAL_FAILURE(OpenFilled("rs(2,1)", 3));
  const std::vector<TableMeta> tables = StoredTables(db_.get(), pool_.get());
  const auto flip = [&](const TableMeta& table, size_t fragment) {
    const uint64_t bytes = FragmentBytes(table.placement, static_cast<int>(fragment), table.size);
    for (uint64_t at = random_.Uniform(500); at < bytes; at += 1 + random_.Uniform(2000)) {
      char* const byte = StoredByte(pool_.get(), table, fragment, static_cast<int64_t>(at));
      *byte = static_cast<char>(*byte ^ 1 << random_.Uniform(8));
    }
  };
  for (const TableMeta& table : tables) {
    flip(table, random_.Uniform(table.placement.fragments.size()));
  }
  CheckpointInfo info;
  ASSERT_TRUE(IsOk(MakeCheckpoint(&info)));
  EXPECT_EQ(info.bytes_new, info.bytes);
  ASSERT_TRUE(IsOk(VerifyCheckpoint(dir(), 0, {})));
  // More than can be read around. (What is there of the table already is kept.)
  ASSERT_TRUE(IsOk(DeleteCheckpoint(dir(), info.number)));
  for (size_t i = 0; i < tables[0].placement.fragments.size(); ++i) flip(tables[0], i);
  EXPECT_TRUE(IsFailure(MakeCheckpoint(), Code::kCorruption,
                        "table " + std::to_string(tables[0].id) + " "));
  std::vector<CheckpointInfo> all;
  ASSERT_TRUE(IsOk(GetCheckpoints(dir(), &all)));
  EXPECT_TRUE(all.empty());
}

TEST_F(DBCheckpointDamageTest, NodesThatDieWhileItIsMade) {
  ASSERT_NO_FATAL_FAILURE(OpenFilled("rs(3,2)", 5));
  int dead = 0;
  uint64_t calls = 0;
  CheckpointOptions options;
  options.progress = [&](const CheckpointProgress&) {
    if (++calls % 3 == 1 && dead < 2) pool_->KillEmbeddedNode(static_cast<NodeId>(dead++));
    return true;
  };
  ASSERT_TRUE(IsOk(MakeCheckpoint(nullptr, options)));
  EXPECT_EQ(dead, 2);
  ASSERT_TRUE(IsOk(VerifyCheckpoint(dir(), 0, {})));
  pool_->KillEmbeddedNode(2);
  ASSERT_TRUE(Eventually([&] { return pool_->client()->alive_count() == 2; }));
  const std::vector<std::string> files = Files(".table");
  std::filesystem::remove(files[0]);
  EXPECT_TRUE(IsFailure(MakeCheckpoint(), Code::kUnavailable));
  // What is in the folder is restored into what is left.
  EXPECT_TRUE(IsFailure(Restore("copy"), Code::kCorruption, files[0]));
}

TEST_F(DBCheckpointDamageTest, NodesThatDieWhileItIsRestored) {
  ASSERT_NO_FATAL_FAILURE(OpenFilled("rep(2)", 5));
  ASSERT_TRUE(IsOk(MakeCheckpoint()));
  db_.reset();
  ASSERT_TRUE(IsOk(DestroyDB("db", options_)));
  options_.redundancy = "rs(2,1)";
  std::atomic<bool> dead{false};
  uint64_t calls = 0;
  RestoreOptions restore;
  restore.progress = [&](const CheckpointProgress&) {
    if (++calls == 30) {
      pool_->KillEmbeddedNode(1);
      dead.store(true);
    }
    return true;
  };
  ASSERT_TRUE(IsOk(Restore("copy", restore)));
  EXPECT_TRUE(dead.load());
  ASSERT_NO_FATAL_FAILURE(TurnTo("copy"));
  ASSERT_NO_FATAL_FAILURE(Check());
  db_.reset();
  ASSERT_TRUE(IsOk(DestroyDB("copy", options_)));

  // Too few for the redundancy: that is said, unless less is allowed.
  options_.redundancy = "rs(4,1)";
  options_.allow_narrow_writes = false;
  EXPECT_TRUE(IsFailure(Restore("again"), Code::kUnavailable, "rs(4,1) needs 5 nodes"));
  options_.allow_degraded_writes = true;
  ASSERT_TRUE(IsOk(Restore("again")));
  ASSERT_NO_FATAL_FAILURE(TurnTo("again"));
  ASSERT_NO_FATAL_FAILURE(Check());
}

TEST_F(DBCheckpointDamageTest, APoolWithoutRoomIsSaidAndTheRestoreGoesOnElsewhere) {
  ASSERT_NO_FATAL_FAILURE(OpenFilled("none", 2));
  for (int i = 0; i < 60; ++i) {
    const std::string key = "key" + std::to_string(i);
    model_[key] = TestValue(static_cast<uint64_t>(i), 100'000);
    ASSERT_TRUE(IsOk(db_->Put(NoLog(), key, model_[key])));
  }
  ASSERT_TRUE(IsOk(MakeCheckpoint()));
  db_.reset();
  pool_ = OpenTestPool({.nodes = 2, .node_bytes = 3 << 20});
  options_.pool = pool_;
  EXPECT_TRUE(IsFailure(Restore("copy"), Code::kNoSpace));
  std::unique_ptr<DB> half;
  EXPECT_TRUE(IsFailure(DB::Open(options_, "copy", &half), Code::kIncomplete));
  ASSERT_TRUE(IsOk(DestroyDB("copy", options_)));
  EXPECT_EQ(SumOverNodes(pool_.get(), &pool::NodeStats::slabs_leased), 0u);
  pool_ = OpenTestPool({.nodes = 3, .node_bytes = 64 << 20});
  options_.pool = pool_;
  ASSERT_NO_FATAL_FAILURE(ExpectWhole());
}

}  // namespace
}  // namespace nacre
