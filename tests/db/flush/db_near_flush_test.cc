// Goal: a flush that nodes make of the log leaves the same database as one that sends everything,
// and whatever stands against it (unlogged writes, another owner's log, lost nodes, damage, an
// order that nodes do not know) leaves the flush to the compute node, with nothing lost. Method:
// nacre-memnode processes under one database with near-data flushes; random writes, batches,
// deletions, snapshots and threads beside a model; properties tell where flushes ran.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "nacre/db.h"
#include "nacre/pool.h"
#include "nacre/write_batch.h"
#include "tests/support/comparators.h"
#include "tests/support/node_memory.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {
namespace {

using KeyValues = std::map<std::string, std::string>;

class DBNearFlushTest : public testing::Test {
 protected:
  void StartNodes(int count, const std::string& redundancy, const std::string& scheme = "shm",
                  const std::string& size = "128MiB") {
    db_.reset();
    nodes_ = std::make_unique<MemnodeProcesses>(
        count, MemnodeProcessOptions{.scheme = scheme, .size = size, .slab_size = "1MiB"});
    options_ = SmallTableOptions(nullptr);
    options_.pool_uri = nodes_->pool_uri();
    options_.redundancy = redundancy;
    options_.near_data_flush = NearDataFlush::kOn;
    options_.write_buffer_size = 64 << 20;  // Flushed when the test says so.
    options_.disable_auto_compactions = true;
  }
  void Open() { ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_))); }
  uint64_t NearData() { return GetNumber(db_.get(), "nacre.flush.near-data"); }
  uint64_t Fallbacks(const std::string& why = "") {
    return GetNumber(db_.get(),
                     why.empty() ? "nacre.flush.fallbacks" : "nacre.flush.fallback." + why);
  }

  void Put(const std::string& key, const std::string& value) {
    ASSERT_TRUE(IsOk(db_->Put({}, key, value)));
    model_[key] = value;
  }
  void Fill(int keys, size_t value_bytes, uint64_t seed) {
    for (int i = 0; i < keys; ++i) {
      const auto number = static_cast<uint64_t>(i);
      ASSERT_NO_FATAL_FAILURE(
          Put("key" + std::to_string(i * 7919 % 100'003), TestValue(seed + number, value_bytes)));
    }
  }

  void ExpectEqual(const KeyValues& model, const Snapshot* snapshot = nullptr) {
    ReadOptions read;
    read.snapshot = snapshot;
    const std::unique_ptr<Iterator> iterator(db_->NewIterator(read));
    auto expected = model.begin();
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++expected) {
      ASSERT_NE(expected, model.end()) << iterator->key().ToString();
      ASSERT_EQ(iterator->key().ToString(), expected->first);
      ASSERT_TRUE(iterator->value() == Slice(expected->second)) << expected->first;
    }
    ASSERT_TRUE(IsOk(iterator->status()));
    ASSERT_EQ(expected, model.end()) << expected->first;
    for (const auto& [key, value] : model) {
      std::string found;
      ASSERT_TRUE(IsOk(db_->Get(read, key, &found))) << key;
      ASSERT_EQ(found, value) << key;
    }
  }

  std::unique_ptr<MemnodeProcesses> nodes_;
  Options options_;
  std::unique_ptr<DB> db_;
  KeyValues model_;
};

/// Everything that a log may hold, from several threads; some of it overwritten, some seen by
/// snapshots only.
class RandomWrites {
 public:
  RandomWrites(DB* db, KeyValues* model, uint64_t seed) : db_(db), model_(model), random_(seed) {}

  void Run(int threads, int updates) {
    std::vector<KeyValues> models(static_cast<size_t>(threads));
    std::vector<std::thread> writers;
    for (int t = 0; t < threads; ++t) {
      writers.emplace_back(
          [this, t, updates, seed = random_.Next(), model = &models[static_cast<size_t>(t)]] {
            Random random(seed);
            const std::string prefix = "t" + std::to_string(t) + "/";
            for (int i = 0; i < updates && !testing::Test::HasFailure(); ++i) {
              Step(prefix, &random, model);
            }
          });
    }
    for (std::thread& writer : writers) writer.join();
    for (const KeyValues& written : models) {
      for (const auto& [key, value] : written) {
        if (value == kDeleted) {
          model_->erase(key);
        } else {
          (*model_)[key] = value;
        }
      }
    }
  }

 private:
  static constexpr const char* kDeleted = "deleted";

  std::string Value(Random* random) {
    // Now and then one that goes around the ring, and one longer than a chunk.
    const size_t most = random->OneIn(200) ? 300 << 10 : random->OneIn(20) ? 20'000 : 200;
    return TestValue(random->Next(), random->Uniform(most));
  }
  void Step(const std::string& prefix, Random* random, KeyValues* model) {
    const auto key = [&] { return prefix + std::to_string(random->Uniform(400)); };
    if (random->OneIn(5)) {
      WriteBatch batch;
      for (uint64_t n = random->Uniform(30); n > 0; --n) {
        const std::string at = key();
        if (random->OneIn(4)) {
          EXPECT_TRUE(IsOk(batch.Delete(at)));
          (*model)[at] = kDeleted;
        } else {
          const std::string value = Value(random);
          EXPECT_TRUE(IsOk(batch.Put(at, value)));
          (*model)[at] = value;
        }
      }
      EXPECT_TRUE(IsOk(db_->Write({}, &batch)));
      return;
    }
    const std::string at = key();
    if (random->OneIn(6)) {
      EXPECT_TRUE(IsOk(db_->Delete({}, at)));
      (*model)[at] = kDeleted;
    } else {
      const std::string value = Value(random);
      EXPECT_TRUE(IsOk(db_->Put({}, at, value)));
      (*model)[at] = value;
    }
  }

  DB* const db_;
  KeyValues* const model_;
  Random random_;
};

struct Kind {
  const char* redundancy;
  int nodes;
  const char* scheme;
};

class DBNearFlushModelTest : public DBNearFlushTest, public testing::WithParamInterface<Kind> {};

TEST_P(DBNearFlushModelTest, LeavesTheSameDatabase) {
  StartNodes(GetParam().nodes, GetParam().redundancy, GetParam().scheme);
  // A log that leaves a slow node is not flushed there, and this host may be busy.
  PoolOptions patient;
  patient.slow_node_patience_max = std::chrono::milliseconds(0);
  ASSERT_TRUE(IsOk(Pool::Open(options_.pool_uri, patient, &options_.pool)));
  options_.pool_uri.clear();
  options_.compaction = CompactionSite::kAuto;
  ASSERT_NO_FATAL_FAILURE(Open());
  RandomWrites writes(db_.get(), &model_, TestSeed(2103));
  std::vector<std::pair<const Snapshot*, KeyValues>> snapshots;
  constexpr uint64_t kFlushes = 4;
  for (uint64_t flush = 1; flush <= kFlushes; ++flush) {
    ASSERT_NO_FATAL_FAILURE(writes.Run(3, 1000));
    snapshots.emplace_back(db_->GetSnapshot(), model_);
    ASSERT_NO_FATAL_FAILURE(writes.Run(2, 200));
    ASSERT_TRUE(IsOk(db_->Flush({})));
    EXPECT_EQ(NearData(), flush);
    ASSERT_NO_FATAL_FAILURE(ExpectEqual(model_));
    for (const auto& [snapshot, model] : snapshots) {
      ASSERT_NO_FATAL_FAILURE(ExpectEqual(model, snapshot));
    }
    if (flush == 2) {
      ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
    }
  }
  EXPECT_EQ(Fallbacks(), 0u);
  ASSERT_TRUE(IsOk(db_->VerifyChecksum()));  // This checks all fragments, parity too.
  for (const auto& [snapshot, model] : snapshots) db_->ReleaseSnapshot(snapshot);
  // The next owner finds what nodes have made.
  ASSERT_TRUE(IsOk(db_->Close()));
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(ExpectEqual(model_));
}

INSTANTIATE_TEST_SUITE_P(Kinds, DBNearFlushModelTest,
                         testing::Values(Kind{"none", 3, "shm"}, Kind{"rep(2)", 3, "shm"},
                                         Kind{"rs(4,2)", 6, "shm"}, Kind{"rs(2,1)", 4, "tcp"}));

/// "level 0 table ... on node 3 at 4096 node ...": the nodes of each table.
std::vector<std::set<std::string>> NodesOfTables(DB* db) {
  std::vector<std::set<std::string>> nodes;
  std::istringstream text(GetTextProperty(db, "nacre.sstables"));
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line.substr(line.rfind("] on")));
    for (std::string word; words >> word;) {
      if (word == "on") nodes.emplace_back();
      if (word != "node") continue;
      words >> word;
      EXPECT_TRUE(nodes.back().insert(word).second) << "two fragments on node " << word;
    }
  }
  return nodes;
}

TEST_F(DBNearFlushTest, RangesAreSpreadOverNodes) {
  StartNodes(6, "rs(4,2)");
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill(20'000, 700, 1));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_EQ(NearData(), 1u);
  const auto tables = NodesOfTables(db_.get());
  EXPECT_GT(tables.size(), 1u);
  for (const auto& nodes : tables) EXPECT_EQ(nodes.size(), 6u);
  ASSERT_NO_FATAL_FAILURE(ExpectEqual(model_));
  ASSERT_TRUE(IsOk(db_->VerifyChecksum()));
}

TEST_F(DBNearFlushTest, WhatTheOptionSays) {
  StartNodes(3, "rep(2)");
  options_.near_data_flush = NearDataFlush::kOff;
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill(1000, 100, 1));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_EQ(NearData(), 0u);
  EXPECT_EQ(Fallbacks(), 0u);
  ASSERT_TRUE(IsOk(db_->Close()));

  options_.near_data_flush = NearDataFlush::kAuto;
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Put("little", "1"));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_EQ(NearData(), 0u);
  EXPECT_EQ(Fallbacks("small"), 1u);
  ASSERT_NO_FATAL_FAILURE(Fill(1000, 100, 2));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_EQ(NearData(), 1u);
  ASSERT_NO_FATAL_FAILURE(ExpectEqual(model_));
}

TEST_F(DBNearFlushTest, UnloggedWritesAreFlushedHere) {
  StartNodes(3, "rep(2)");
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill(500, 100, 1));
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "unlogged", "1")));
  model_["unlogged"] = "1";
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_EQ(NearData(), 0u);
  EXPECT_EQ(Fallbacks("unlogged"), 1u);
  WriteBatch batch;
  ASSERT_TRUE(IsOk(batch.Put("unlogged", "2")));
  ASSERT_TRUE(IsOk(db_->Write(NoLog(), &batch)));
  model_["unlogged"] = "2";
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_EQ(Fallbacks("unlogged"), 2u);
  // The next MemTable has none of them.
  ASSERT_NO_FATAL_FAILURE(Fill(500, 100, 2));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_EQ(NearData(), 1u);
  ASSERT_NO_FATAL_FAILURE(ExpectEqual(model_));
}

TEST_F(DBNearFlushTest, WritesThatNobodyAwaited) {
  StartNodes(3, "rep(2)");
  options_.manual_wal_flush = true;
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill(500, 100, 1));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_EQ(NearData(), 1u);
  EXPECT_EQ(Fallbacks(), 0u);
  ASSERT_NO_FATAL_FAILURE(ExpectEqual(model_));
}

TEST_F(DBNearFlushTest, WhatTheNextOwnerReplaysIsFlushedThere) {
  StartNodes(3, "rep(2)");
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill(500, 100, 1));
  const std::unique_ptr<DB> old = std::move(db_);
  options_.take_over = true;
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_FALSE(old->Close().ok());
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_EQ(NearData(), 0u);
  EXPECT_EQ(Fallbacks("unlogged"), 1u);
  ASSERT_NO_FATAL_FAILURE(Fill(700, 100, 2));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_EQ(NearData(), 1u);
  ASSERT_NO_FATAL_FAILURE(ExpectEqual(model_));
}

TEST_F(DBNearFlushTest, AnOrderThatNodesDoNotKnow) {
  StartNodes(3, "rep(2)");
  const BackwardsComparator backwards;
  options_.comparator = &backwards;
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill(500, 100, 1));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_EQ(NearData(), 0u);
  EXPECT_EQ(Fallbacks("comparator"), 1u);
  for (const auto& [key, value] : model_) {
    std::string found;
    ASSERT_TRUE(IsOk(db_->Get({}, key, &found)));
    ASSERT_EQ(found, value);
  }
  ASSERT_TRUE(IsOk(db_->Close()));  // Its order must not go before.
}

TEST_F(DBNearFlushTest, ALostCopyOfTheLog) {
  StartNodes(4, "rep(3)");
  options_.allow_degraded_writes = true;
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill(2000, 300, 1));
  // Three of four nodes have copies of each segment. What has lost one is flushed by itself.
  (*nodes_)[0].Kill();
  (*nodes_)[1].Kill();
  EXPECT_TRUE(Eventually([&] { return Fallbacks("lost-copy") > 0; }));
  ASSERT_NO_FATAL_FAILURE(Fill(2000, 300, 2));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  ASSERT_NO_FATAL_FAILURE(ExpectEqual(model_));
}

TEST_F(DBNearFlushTest, NodesThatDieUnderAFlush) {
  StartNodes(4, "rep(2)");
  ASSERT_NO_FATAL_FAILURE(Open());
  Random random(TestSeed(2104));
  for (int round = 0; round < 4; ++round) {
    ASSERT_NO_FATAL_FAILURE(Fill(8000, 600, random.Next()));
    MemnodeProcess& node = (*nodes_)[random.Uniform(nodes_->size())];
    std::thread flusher([&] { EXPECT_TRUE(IsOk(db_->Flush({}))); });
    if (random.OneIn(2)) {
      // This is in the middle, if nodes are slower than this.
      ASSERT_NO_FATAL_FAILURE(Fill(static_cast<int>(random.Uniform(2000)), 50, random.Next()));
    }
    node.Kill();
    flusher.join();
    ASSERT_NO_FATAL_FAILURE(Fill(500, 100, random.Next()));
    ASSERT_NO_FATAL_FAILURE(ExpectEqual(model_));
    node.Start();
    // The next loss is one at a time.
    ASSERT_TRUE(IsOk(db_->Flush({})));
    EXPECT_TRUE(Eventually([&] { return GetNumber(db_.get(), "nacre.repair.tables-left") == 0; }));
  }
  ASSERT_NO_FATAL_FAILURE(ExpectEqual(model_));
}

/// Changes a bit in each place of a node's memory where `bytes` are, behind its back; answers how
/// many there were.
int DamageAll(pid_t pid, const std::string& bytes) {
  NodeMemory region(pid, 8 << 20);
  std::string memory;
  EXPECT_TRUE(region.Read(0, region.size(), &memory));
  int places = 0;
  for (size_t at = memory.find(bytes); at != std::string::npos; at = memory.find(bytes, at + 1)) {
    EXPECT_TRUE(region.FlipBit(at, 0));
    ++places;
  }
  return places;
}

TEST_F(DBNearFlushTest, DamageInTheLog) {
  StartNodes(3, "rep(2)", "shm", "16MiB");
  options_.write_buffer_size = 1 << 20;
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill(500, 300, 1));
  const std::string damaged = TestValue(4711, 200);
  ASSERT_NO_FATAL_FAILURE(Put("damaged", damaged));
  int places = 0;
  for (size_t i = 0; i < nodes_->size(); ++i) places += DamageAll((*nodes_)[i].pid(), damaged);
  ASSERT_EQ(places, 2);  // The copies of the log.
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_EQ(NearData(), 0u);
  EXPECT_EQ(Fallbacks("failed"), 1u);
  ASSERT_NO_FATAL_FAILURE(ExpectEqual(model_));
  // The damaged segment may have records of the next MemTable, but not of that after it.
  ASSERT_NO_FATAL_FAILURE(Fill(2000, 300, 2));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  const uint64_t before = NearData();
  ASSERT_NO_FATAL_FAILURE(Fill(500, 300, 3));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_EQ(NearData(), before + 1);
  ASSERT_NO_FATAL_FAILURE(ExpectEqual(model_));
}

}  // namespace
}  // namespace nacre
