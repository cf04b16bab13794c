// Goal: listeners are told of flushes, compactions, tables, sealed MemTables, stalls, failures,
// lost and joined nodes, dropped handles and the end of ownership as they are, each once and in
// order, and may call the database.
// Method: a listener that writes down what it hears, databases on embedded nodes, one of which dies
// in one test, and on nacre-memnode processes, one of which is killed and started anew, or which
// another owner takes over; what was heard is compared with the tables that there are.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "nacre/listener.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/process/test_nodes.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/mutex.h"

namespace nacre {
namespace {

class Recorder final : public EventListener {
 public:
  void OnFlushBegin(DB*, const FlushJobInfo& info) override {
    Note("flush begins " + info.cf_name);
  }
  void OnFlushCompleted(DB* db, const FlushJobInfo& info) override {
    // As long as nothing has closed it, it can be asked.
    uint64_t tables = 0;
    EXPECT_TRUE(db->GetIntProperty("nacre.num-live-tables", &tables));
    EXPECT_FALSE(info.file_numbers.empty());
    EXPECT_GT(info.num_entries, 0u);
    EXPECT_LE(info.smallest_seqno, info.largest_seqno);
    Note("flush completed " + info.cf_name);
  }
  void OnCompactionBegin(DB*, const CompactionJobInfo& info) override {
    Note("compaction begins " + std::to_string(info.base_input_level));
  }
  void OnCompactionCompleted(DB*, const CompactionJobInfo& info) override {
    EXPECT_TRUE(IsOk(info.status));
    EXPECT_EQ(info.stats.num_input_files, info.input_file_infos.size());
    EXPECT_EQ(info.stats.num_output_files, info.output_file_infos.size());
    EXPECT_GT(info.stats.total_input_bytes, 0u);
    Note("compaction completed " + std::to_string(info.output_level));
  }
  void OnTableFileCreated(const TableFileCreationInfo& info) override {
    EXPECT_EQ(info.db_name, "db");
    EXPECT_GT(info.file_size, 0u);
    MutexLock lock(&mutex_);
    EXPECT_TRUE(live_.insert(info.file_number).second) << "told twice: " << info.file_number;
  }
  void OnTableFileDeleted(const TableFileDeletionInfo& info) override {
    MutexLock lock(&mutex_);
    EXPECT_EQ(live_.erase(info.file_number), 1u) << "there was no table " << info.file_number;
  }
  void OnMemTableSealed(const MemTableInfo& info) override {
    EXPECT_GT(info.num_entries, 0u);
    Note("sealed " + info.cf_name);
  }
  void OnColumnFamilyHandleDeletionStarted(ColumnFamilyHandle* handle) override {
    Note("handle " + handle->GetName());
  }
  void OnBackgroundError(BackgroundErrorReason reason, Status* error) override {
    EXPECT_FALSE(error->ok());
    *error = Status::OK();
    Note(reason == BackgroundErrorReason::kFlush ? "flush failed" : "compaction failed");
  }
  void OnStallConditionsChanged(const WriteStallInfo& info) override {
    EXPECT_NE(info.condition.cur, info.condition.prev);
    Note("stall " + std::to_string(static_cast<int>(info.condition.cur)));
  }
  void OnNodeLost(DB*, const NodeInfo& info) override { Note("lost " + info.address); }
  void OnNodeJoined(DB*, const NodeInfo& info) override { Note("joined " + info.address); }
  void OnFenced(DB*, const Status& status) override {
    EXPECT_TRUE(status.IsFenced()) << status.ToString();
    Note("fenced");
  }
  void OnRebuildCompleted(DB*, const NodeRebuildInfo& info) override {
    EXPECT_GT(info.tables, 0u);
    EXPECT_GT(info.bytes, 0u);
    Note("rebuilt");
  }

  std::vector<std::string> events() const {
    MutexLock lock(&mutex_);
    return events_;
  }
  size_t Count(const std::string& event) const {
    const std::vector<std::string> all = events();
    return static_cast<size_t>(std::count(all.begin(), all.end(), event));
  }
  std::set<uint64_t> live() const {
    MutexLock lock(&mutex_);
    return live_;
  }

 private:
  void Note(std::string event) {
    MutexLock lock(&mutex_);
    events_.push_back(std::move(event));
  }

  mutable Mutex mutex_;
  std::vector<std::string> events_ GUARDED_BY(mutex_);
  std::set<uint64_t> live_ GUARDED_BY(mutex_);
};

class DBListenerTest : public testing::Test {
 protected:
  void Open() { ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_))); }
  void SetUp() override {
    options_ = SmallTableOptions(OpenTestPool());
    options_.listeners = {heard_};
  }
  static std::string Key(size_t i) { return "key" + std::to_string(100'000 + i); }
  void Fill(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      ASSERT_TRUE(IsOk(db_->Put(NoLog(), Key(i), TestValue(i, 300))));
    }
  }
  std::set<uint64_t> LiveTables() {
    std::vector<LiveTableMetaData> tables;
    db_->GetLiveTablesMetaData(&tables);
    std::set<uint64_t> numbers;
    for (const LiveTableMetaData& table : tables) numbers.insert(table.file_number);
    return numbers;
  }

  const std::shared_ptr<Recorder> heard_ = std::make_shared<Recorder>();
  Options options_;
  std::unique_ptr<DB> db_;
};

TEST_F(DBListenerTest, AFlushAndACompaction) {
  options_.disable_auto_compactions = true;
  ASSERT_NO_FATAL_FAILURE(Open());
  for (const char* value : {"1", "2"}) {
    ASSERT_TRUE(IsOk(db_->Put(NoLog(), "a", value)));
    ASSERT_TRUE(IsOk(db_->Flush({})));
  }
  const std::set<uint64_t> flushed = LiveTables();
  EXPECT_EQ(flushed.size(), 2u);
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  const std::set<uint64_t> compacted = LiveTables();
  EXPECT_EQ(compacted.size(), 1u);
  ASSERT_TRUE(IsOk(db_->Close()));
  const std::vector<std::string> expected = {
      "sealed default",      "flush begins default",   "flush completed default",
      "sealed default",      "flush begins default",   "flush completed default",
      "compaction begins 0", "compaction completed 1",
  };
  EXPECT_EQ(heard_->events(), expected);
  EXPECT_EQ(heard_->live(), compacted);
}

TEST_F(DBListenerTest, KnowsTheTablesThatThereAre) {
  ASSERT_NO_FATAL_FAILURE(Open());
  for (int round = 0; round < 3; ++round) ASSERT_NO_FATAL_FAILURE(Fill(0, 5000));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  ASSERT_TRUE(IsOk(db_->WaitForCompact()));
  ASSERT_TRUE(IsOk(db_->PauseBackgroundWork()));
  const std::set<uint64_t> tables = LiveTables();
  ASSERT_TRUE(IsOk(db_->Close()));
  EXPECT_GT(heard_->Count("compaction completed 1"), 0u);
  EXPECT_EQ(heard_->live(), tables);
}

TEST_F(DBListenerTest, AFamilyThatGoesTakesItsTables) {
  options_.create_if_missing = true;
  ASSERT_NO_FATAL_FAILURE(Open());
  ColumnFamilyHandle* family = nullptr;
  ASSERT_TRUE(IsOk(db_->CreateColumnFamily(options_, "other", &family)));
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), family, "a", "1")));
  ASSERT_TRUE(IsOk(db_->Flush({}, family)));
  ASSERT_TRUE(IsOk(db_->DropColumnFamily(family)));
  ASSERT_TRUE(IsOk(db_->DestroyColumnFamilyHandle(family)));
  EXPECT_EQ(heard_->Count("handle other"), 1u);
  EXPECT_EQ(heard_->Count("handle default"), 0u);
  ASSERT_TRUE(IsOk(db_->Close()));
  EXPECT_EQ(heard_->Count("flush completed other"), 1u);
  EXPECT_TRUE(heard_->live().empty());
}

/// Does in its turn what waits for work in the background.
class Flusher final : public EventListener {
 public:
  void OnFlushCompleted(DB* db, const FlushJobInfo&) override {
    if (done_) return;
    done_ = true;
    EXPECT_TRUE(IsOk(db->Put(NoLog(), "from the listener", "1")));
    EXPECT_TRUE(IsOk(db->Flush({})));
    flushed_.store(true);
  }
  std::atomic<bool> flushed_{false};

 private:
  bool done_ = false;
};

TEST_F(DBListenerTest, AListenerMayWaitForAFlush) {
  const auto flusher = std::make_shared<Flusher>();
  options_.listeners = {flusher, heard_};
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "a", "1")));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  ASSERT_TRUE(Eventually([&] { return flusher->flushed_.load(); }));
  std::string value;
  EXPECT_TRUE(IsOk(db_->Get({}, "from the listener", &value)));
  ASSERT_TRUE(IsOk(db_->Close()));
  EXPECT_EQ(heard_->Count("flush completed default"), 2u);
}

TEST_F(DBListenerTest, StallsAreTold) {
  options_.disable_auto_compactions = true;
  options_.level0_slowdown_writes_trigger = options_.level0_file_num_compaction_trigger = 2;
  options_.level0_stop_writes_trigger = 100;
  ASSERT_NO_FATAL_FAILURE(Open());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(IsOk(db_->Put(NoLog(), "a", "1")));
    ASSERT_TRUE(IsOk(db_->Flush({})));
  }
  EXPECT_EQ(heard_->Count("stall 1"), 0u) << "without compactions nothing stalls";
  ASSERT_TRUE(IsOk(db_->PauseBackgroundWork()));
  ASSERT_TRUE(IsOk(db_->EnableAutoCompaction({db_->DefaultColumnFamily()})));
  ASSERT_TRUE(Eventually([&] { return heard_->Count("stall 1") == 1; }));
  ASSERT_TRUE(IsOk(db_->ContinueBackgroundWork()));
  ASSERT_TRUE(IsOk(db_->WaitForCompact()));
  ASSERT_TRUE(IsOk(db_->Close()));
  EXPECT_EQ(heard_->Count("stall 1"), 1u);
  EXPECT_EQ(heard_->Count("stall 0"), 1u);
}

TEST_F(DBListenerTest, ANodeIsLostAndWhatItHadIsRebuilt) {
  TestNodes nodes(AllNodeKinds().front());
  options_.pool = nodes.pool();
  options_.redundancy = "rep(2)";
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill(0, 3000));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  std::vector<LiveTableMetaData> tables;
  db_->GetLiveTablesMetaData(&tables);
  ASSERT_FALSE(tables.empty());
  ASSERT_EQ(tables[0].nodes.size(), 2u);
  NodeId dead = 0;
  while (nodes.pool()->client()->node_address(dead) != tables[0].nodes[0]) ++dead;
  // What it heard before is not of a loss.
  ASSERT_TRUE(Eventually([&] { return GetNumber(db_.get(), "nacre.repair.tables-left") == 0; }));
  nodes.Kill(dead);
  EXPECT_TRUE(Eventually([&] { return heard_->Count("lost " + tables[0].nodes[0]) == 1; }));
  EXPECT_TRUE(Eventually([&] { return heard_->Count("rebuilt") > 0; }));
  ASSERT_TRUE(IsOk(db_->Close()));
  EXPECT_EQ(heard_->Count("lost " + tables[0].nodes[0]), 1u);
}

TEST_F(DBListenerTest, ANodeThatWasStartedAnewHasJoined) {
  MemnodeProcesses nodes(3);
  options_.pool = ConnectTestPool(nodes.pool_uri());
  options_.redundancy = "rep(2)";
  options_.allow_degraded_writes = true;
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill(0, 100));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  const std::string address = nodes[1].address();
  nodes[1].Kill();
  EXPECT_TRUE(Eventually([&] { return heard_->Count("lost " + address) > 0; }));
  nodes[1].Start();
  EXPECT_TRUE(Eventually([&] { return heard_->Count("joined " + address) > 0; }));
  ASSERT_TRUE(IsOk(db_->Close()));
  // In turns, however often a slow machine had it look lost.
  std::string expected = "lost " + address;
  for (const std::string& event : heard_->events()) {
    if (!event.ends_with(address)) continue;
    EXPECT_EQ(event, expected);
    expected = (event.starts_with("lost") ? "joined " : "lost ") + address;
  }
}

TEST_F(DBListenerTest, WhoIsFencedIsToldOnce) {
  MemnodeProcesses nodes(3);
  options_.pool = ConnectTestPool(nodes.pool_uri());
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_TRUE(IsOk(db_->Put({}, "a", "1")));
  EXPECT_EQ(heard_->Count("fenced"), 0u);

  Options theirs = options_;
  theirs.pool = ConnectTestPool(nodes.pool_uri());
  theirs.listeners.clear();
  theirs.take_over = true;
  std::unique_ptr<DB> successor;
  ASSERT_TRUE(IsOk(DB::Open(theirs, "db", &successor)));
  Status status;
  ASSERT_TRUE(Eventually([&] {
    status = db_->Put({}, "b", "1");
    return !status.ok();
  }));
  EXPECT_TRUE(status.IsFenced()) << status.ToString();
  EXPECT_TRUE(Eventually([&] { return heard_->Count("fenced") > 0; }));
  EXPECT_TRUE(db_->Put({}, "b", "1").IsFenced());
  EXPECT_TRUE(db_->Flush({}).IsFenced());
  EXPECT_TRUE(db_->Close().IsFenced());
  EXPECT_EQ(heard_->Count("fenced"), 1u);
  std::string value;
  EXPECT_TRUE(IsOk(successor->Get({}, "a", &value)));
}

TEST_F(DBListenerTest, AFailureIsTold) {
  TestNodes nodes(AllNodeKinds().front());
  options_.pool = nodes.pool();
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "a", "1")));
  for (int node = nodes.pool()->client()->node_count(); node-- > 0;) {
    nodes.Kill(static_cast<NodeId>(node));
  }
  EXPECT_FALSE(db_->Flush({}).ok());
  EXPECT_TRUE(Eventually([&] { return heard_->Count("flush failed") > 0; }));
  EXPECT_FALSE(db_->Resume().ok()) << "nothing has come back";
  EXPECT_FALSE(db_->Close().ok());
}

}  // namespace
}  // namespace nacre
