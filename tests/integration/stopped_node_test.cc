// Goal: a node that is stopped in the middle of compactions, for longer than its owner waits for
// anything, writes over nothing that was acknowledged when it goes on.
// Method: nacre-memnode processes over tcp and a database of small coded tables. While a thread
// writes, the nodes get SIGSTOP one after the other, and SIGCONT several operation timeouts later.
// Each round writes keys of its own, so what was written over stays so, and is read in the end.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "nacre/db.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

using std::chrono::milliseconds;

constexpr int kStoppedNodes = 4;
constexpr milliseconds kStoppedOperationTimeout{250};
constexpr milliseconds kStop{1200};
constexpr milliseconds kBetween{300};
constexpr milliseconds kPause{20};
constexpr size_t kKeysPerRound = 400;
constexpr size_t kStoppedValueBytes = 600;

std::string RoundKey(size_t i, size_t round) {
  return "key" + std::to_string(100'000 + i) + "-" + std::to_string(10'000 + round);
}

std::string Value(size_t i, size_t round) {
  return TestValue(i * 10'000 + round, kStoppedValueBytes);
}

/// Tables of at least 64 KiB are coded: a part that a job writes anew holds other bytes than the
/// one before it.
Options SmallCodedTables(const std::string& pool_uri) {
  Options options;
  options.create_if_missing = true;
  options.pool_uri = pool_uri;
  options.redundancy = "rs(2,1)";
  options.write_buffer_size = 512 << 10;
  options.max_write_buffer_number = 4;
  options.level0_file_num_compaction_trigger = 2;
  options.target_file_size_base = 160 << 10;
  options.max_bytes_for_level_base = 640 << 10;
  options.max_bytes_for_level_multiplier = 4;
  options.compaction = CompactionSite::kAuto;
  options.chunk_size = 4 << 10;
  options.slab_size = 1 << 20;
  options.operation_timeout = kStoppedOperationTimeout;
  return options;
}

/// Writes rounds until it is told to stop, each key until it is acknowledged. The pauses between
/// them keep the pool from getting full, where compactions would wait for room.
class Writer {
 public:
  explicit Writer(DB* db) : db_(db), thread_([this] { Run(); }) {}
  ~Writer() { Stop(); }

  void Stop() {
    stopping_.store(true);
    if (thread_.joinable()) thread_.join();
  }
  size_t rounds() const { return rounds_.load(); }

 private:
  void Run() {
    for (size_t round = 0; !stopping_.load(); ++round) {
      for (size_t i = 0; i < kKeysPerRound; ++i) {
        while (!db_->Put({}, RoundKey(i, round), Value(i, round)).ok()) {
          std::this_thread::sleep_for(milliseconds(1));
        }
      }
      rounds_.store(round + 1);
      std::this_thread::sleep_for(kPause);
    }
  }

  DB* const db_;
  std::atomic<bool> stopping_{false};
  std::atomic<size_t> rounds_{0};
  std::thread thread_;
};

TEST(StoppedNodeTest, WritesOverNothingWhenItGoesOn) {
  MemnodeProcesses nodes(kStoppedNodes, MemnodeProcessOptions{.scheme = "tcp", .size = "64MiB"});
  std::unique_ptr<DB> db;
  ASSERT_TRUE(IsOk(DB::Open(SmallCodedTables(nodes.pool_uri()), "db", &db)));
  size_t rounds = 0;
  {
    Writer writer(db.get());
    for (int node = 0; node < kStoppedNodes; ++node) {
      std::this_thread::sleep_for(kBetween);
      nodes[node].Pause();
      std::this_thread::sleep_for(kStop);
      if (node + 1 < kStoppedNodes) nodes[node].Resume();
    }
    writer.Stop();
    rounds = writer.rounds();
  }
  // What is there when the last one goes on is not written again, so damage would stay.
  ASSERT_TRUE(Eventually([&] { return db->WaitForCompact().ok(); }));
  nodes[kStoppedNodes - 1].Resume();
  std::this_thread::sleep_for(kStop);
  EXPECT_GT(rounds, 1u);
  ASSERT_TRUE(IsOk(db->VerifyChecksum()));
  uint64_t damaged = 0;
  ASSERT_TRUE(db->GetIntProperty("nacre.damage.reads", &damaged));
  EXPECT_EQ(damaged, 0u);
  for (size_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < kKeysPerRound; ++i) {
      std::string value;
      ASSERT_TRUE(IsOk(db->Get({}, RoundKey(i, round), &value))) << RoundKey(i, round);
      ASSERT_EQ(value, Value(i, round)) << RoundKey(i, round);
    }
  }
  ASSERT_TRUE(IsOk(db->Close()));
}

}  // namespace
}  // namespace nacre
