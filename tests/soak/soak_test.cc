// Goal: whatever happens to the nodes (killed, started again with nothing, drained, bits flipped in
// their memory), no answer is ever wrong and no acknowledged write is lost, as long as no table
// lacks more than m fragments at a time.
// Method: threads with keys of their own do random operations, each beside a model of what it has
// written, while another thread does harm to nacre-memnode processes. NACRE_SOAK_SECONDS says for
// how long (60). NACRE_TEST_SEED replays the operations and the choice of harm; not their timing.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "nacre/db.h"
#include "pool/reports.h"
#include "pool/wire/database_report.h"
#include "pool/wire/node_stats.h"
#include "tests/soak/soak_time.h"
#include "tests/support/node_memory.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/random.h"

namespace nacre {
namespace {

constexpr int kNodes = 8;
constexpr int kFragments = 6;  // rs(4,2)
constexpr int kSpare = 2;
constexpr int kThreads = 3;
constexpr uint64_t kNodeBytes = 128 << 20;

/// One thread's keys, what they should be, and the operations on them.
class Worker {
 public:
  Worker(DB* db, int number, uint64_t seed)
      : db_(db), prefix_("t" + std::to_string(number) + "/"), random_(seed) {}

  void Run(const std::atomic<bool>& stop) {
    while (!stop.load() && !testing::Test::HasFailure()) {
      for (int i = 0; i < 50; ++i) Step();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  /// Every key, in order.
  void CheckAll(DB* db) {
    const std::unique_ptr<Iterator> iterator(db->NewIterator({}));
    auto expected = model_.begin();
    for (iterator->Seek(prefix_); iterator->Valid() && iterator->key().starts_with(prefix_);
         iterator->Next(), ++expected) {
      ASSERT_NE(expected, model_.end());
      ASSERT_EQ(iterator->key().ToString(), expected->first);
      ASSERT_TRUE(iterator->value() == Slice(expected->second)) << expected->first;
    }
    ASSERT_TRUE(IsOk(iterator->status()));
    ASSERT_EQ(expected, model_.end());
  }

  uint64_t operations() const { return operations_; }

 private:
  static constexpr uint64_t kKeys = 4000;

  std::string Key() { return prefix_ + std::to_string(random_.Uniform(kKeys)); }
  bool Matches(const std::string& key, const Status& status, const Slice& value) const {
    const auto expected = model_.find(key);
    if (expected == model_.end()) return status.IsNotFound();
    return status.ok() && value == Slice(expected->second);
  }

  void Step() {
    ++operations_;
    const uint64_t choice = random_.Uniform(100);
    if (choice < 40) {
      Put();
    } else if (choice < 48) {
      const std::string key = Key();
      ASSERT_TRUE(IsOk(db_->Delete(NoLog(), key)));
      model_.erase(key);
    } else if (choice < 92) {
      const std::string key = Key();
      std::string value;
      const Status status = db_->Get({}, key, &value);
      ASSERT_TRUE(Matches(key, status, value)) << key << ": " << status.ToString();
    } else if (choice < 97) {
      MultiGet();
    } else {
      Scan(choice == 97);
    }
  }

  void Put() {
    const std::string key = Key();
    const size_t size = random_.OneIn(500) ? random_.Uniform(100'000) : random_.Uniform(1000);
    std::string value = TestValue(random_.Next(), size);
    ASSERT_TRUE(IsOk(db_->Put(NoLog(), key, value)));
    model_[key] = std::move(value);
  }

  void MultiGet() {
    std::vector<std::string> names(1 + random_.Uniform(16));
    for (std::string& name : names) name = Key();
    const std::vector<Slice> keys(names.begin(), names.end());
    std::vector<std::string> values;
    const std::vector<Status> statuses = db_->MultiGet({}, keys, &values);
    for (size_t i = 0; i < names.size(); ++i) {
      ASSERT_TRUE(Matches(names[i], statuses[i], values[i]))
          << names[i] << ": " << statuses[i].ToString();
    }
  }

  void Scan(bool backward) {
    const std::string from = Key();
    const std::unique_ptr<Iterator> iterator(db_->NewIterator({}));
    size_t left = 1 + random_.Uniform(100);
    if (!backward) {
      auto expected = model_.lower_bound(from);
      for (iterator->Seek(from); left > 0 && expected != model_.end(); --left) {
        ASSERT_TRUE(iterator->Valid()) << iterator->status().ToString();
        ASSERT_EQ(iterator->key().ToString(), expected->first);
        ASSERT_TRUE(iterator->value() == Slice(expected->second)) << expected->first;
        iterator->Next();
        ++expected;
      }
    } else {
      auto expected = std::make_reverse_iterator(model_.upper_bound(from));
      for (iterator->SeekForPrev(from); left > 0 && expected != model_.rend(); --left) {
        ASSERT_TRUE(iterator->Valid()) << iterator->status().ToString();
        ASSERT_EQ(iterator->key().ToString(), expected->first);
        iterator->Prev();
        ++expected;
      }
    }
    ASSERT_TRUE(IsOk(iterator->status()));
  }

  DB* const db_;
  const std::string prefix_;
  Random random_;
  std::map<std::string, std::string> model_;
  uint64_t operations_ = 0;
};

class SoakTest : public testing::Test {
 protected:
  void SetUp() override {
    nodes_ = std::make_unique<MemnodeProcesses>(
        kNodes, MemnodeProcessOptions{.size = std::to_string(kNodeBytes),
                                      .region_folder = files_ == nullptr ? "" : files_->path()});
    pool_ = ConnectTestPool(nodes_->pool_uri(), {.log = log_});
    ASSERT_NE(pool_, nullptr);
    options_ = SmallTableOptions(pool_);
    options_.info_log = log_;
    options_.redundancy = "rs(4,2)";
    options_.scrub_bytes_per_second = 16 << 20;
    options_.chunk_size = 16 << 10;
    options_.write_buffer_size = 1 << 20;
    options_.target_file_size_base = 1 << 20;
    options_.max_bytes_for_level_base = 4 << 20;
    ASSERT_TRUE(IsOk(DB::Open(options_, "soak", &db_)));
  }

  MemnodeProcess& Process(size_t i) { return (*nodes_)[i]; }
  std::vector<size_t> Running(bool running) {
    std::vector<size_t> found;
    for (size_t i = 0; i < nodes_->size(); ++i) {
      if (Process(i).running() == running) found.push_back(i);
    }
    return found;
  }
  /// The node that the process is to the client now.
  NodeId NodeOf(size_t process) {
    for (int i = pool_->node_count(); i-- > 0;) {
      const auto node = static_cast<NodeId>(i);
      if (pool_->client()->alive(node) &&
          pool_->client()->node_address(node) == Process(process).address()) {
        return node;
      }
    }
    return kNoNode;
  }
  size_t Any(const std::vector<size_t>& from) { return from[random_.Uniform(from.size())]; }

  /// Until every table is whole again. (One that was just made may show up a moment later.)
  void AwaitRepair() {
    for (int in_a_row = 0; in_a_row < 3;) {
      ASSERT_TRUE(Eventually([&] {
        return GetNumber(db_.get(), "nacre.repair.tables-left") == 0 || HasFailure();
      })) << GetTextProperty(db_.get(), "nacre.sstables");
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      const bool whole = GetNumber(db_.get(), "nacre.repair.tables-left") == 0;
      in_a_row = whole ? in_a_row + 1 : 0;
    }
    Log(log_, LogLevel::kInfo, "soak: all is whole");
  }

  /// Kills one node or two, and starts some of those again that are not there.
  void KillSome() {
    const size_t most = std::min<size_t>(kSpare, Running(true).size() - kFragments);
    for (size_t n = most == 0 ? 0 : 1 + random_.Uniform(most); n > 0; --n) {
      const size_t victim = Any(Running(true));
      const NodeId node = NodeOf(victim);
      Log(log_, LogLevel::kInfo, "soak: kills {}", Process(victim).address());
      Process(victim).Kill();
      ++kills_;
      ASSERT_TRUE(Eventually([&] { return node == kNoNode || !pool_->client()->alive(node); }));
      std::this_thread::sleep_for(std::chrono::milliseconds(random_.Uniform(300)));
    }
    if (random_.OneIn(3)) AwaitRepair();
    for (const size_t dead : Running(false)) {
      if (Running(true).size() > kFragments && random_.OneIn(4)) continue;
      Log(log_, LogLevel::kInfo, "soak: starts {}", Process(dead).address());
      Process(dead).Start();
      ++restarts_;
      ASSERT_TRUE(Eventually([&] { return NodeOf(dead) != kNoNode; })) << Process(dead).address();
    }
    AwaitRepair();
  }

  void FlipSome() {
    // "node 3 at 4096": where a fragment lies.
    const std::string tables = GetTextProperty(db_.get(), "nacre.sstables");
    std::vector<std::string> lines;
    std::istringstream text(tables);
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    if (lines.empty()) return;
    std::istringstream line(lines[random_.Uniform(lines.size())]);
    std::vector<std::pair<NodeId, uint64_t>> fragments;
    uint64_t bytes = 0;
    for (std::string word; line >> word;) {
      if (word == "bytes") line >> bytes;
      if (word != "node") continue;
      NodeId node = 0;
      std::string at;
      uint64_t offset = 0;
      line >> node >> at >> offset;
      fragments.emplace_back(node, offset);
    }
    const uint64_t fragment_bytes = fragments.size() == kFragments ? bytes / 4 : bytes;
    for (int n = 1 + static_cast<int>(random_.Uniform(kSpare)); n > 0; --n) {
      const auto [node, offset] = fragments[random_.Uniform(fragments.size())];
      for (const size_t process : Running(true)) {
        if (NodeOf(process) != node) continue;
        const uint64_t at = offset + random_.Uniform(kFragmentHeadBytes + fragment_bytes);
        NodeMemory memory(Process(process).pid(), kNodeBytes);
        ASSERT_TRUE(memory.FlipBit(at, static_cast<int>(random_.Uniform(8))));
        ++flips_;
      }
    }
    ASSERT_TRUE(IsOk(db_->VerifyChecksum()));
    AwaitRepair();
  }

  void DrainOne() {
    if (Running(true).size() <= kFragments) return;
    const size_t victim = Any(Running(true));
    NodeId node = kNoNode;
    ASSERT_TRUE(Eventually([&] {
      node = NodeOf(victim);
      return node != kNoNode;
    }));
    Direct({pool_->client()->instance_id(node)});
    ++drains_;
    ASSERT_TRUE(Eventually([&] {
      pool::NodeStats stats;
      return HasFailure() ||
             (pool::GetStats(pool_->client(), node, &stats).ok() && stats.slabs_leased == 0);
    }));
    Direct({});
  }

  void Direct(std::vector<uint64_t> draining) {
    const pool::Directions wanted{.version = ++directions_version_,
                                  .draining = std::move(draining)};
    pool::Directions now;
    for (const size_t process : Running(true)) {
      // One that is back is doubted for a moment when a connection of before is looked at.
      ASSERT_TRUE(Eventually([&] {
        const NodeId node = NodeOf(process);
        return node != kNoNode && pool::SetDirections(pool_->client(), node, wanted, &now).ok();
      }));
    }
  }

  void DoHarm() {
    switch (random_.Uniform(4)) {
      case 0:
      case 1:
        return KillSome();
      case 2:
        return FlipSome();
      case 3:
        return DrainOne();
    }
  }

  const std::shared_ptr<Logger> log_ = SoakLog();
  const std::unique_ptr<TempFolder> files_ = SoakRegionFolder();
  std::unique_ptr<MemnodeProcesses> nodes_;
  std::shared_ptr<pool::PoolImpl> pool_;
  Options options_;
  std::unique_ptr<DB> db_;
  Random random_{TestSeed(701)};
  uint64_t directions_version_ = 0;
  uint64_t kills_ = 0;
  uint64_t restarts_ = 0;
  uint64_t flips_ = 0;
  uint64_t drains_ = 0;
};

TEST_F(SoakTest, NothingIsLostAndNoAnswerIsWrong) {
  std::vector<std::unique_ptr<Worker>> workers;
  for (int i = 0; i < kThreads; ++i) {
    workers.push_back(std::make_unique<Worker>(db_.get(), i, random_.Next()));
  }
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (const auto& worker : workers) {
    threads.emplace_back([&stop, &worker] { worker->Run(stop); });
  }
  const Deadline deadline = Deadline::After(Clock::System(), SoakTime());
  // At least one of each kind of harm happens.
  const auto harm = [&] {
    if (drains_ == 0) return DrainOne();
    if (flips_ == 0) return FlipSome();
    if (kills_ == 0) return KillSome();
    DoHarm();
  };
  std::this_thread::sleep_for(std::chrono::seconds(1));
  while (!deadline.Expired() && !HasFailure()) harm();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  uint64_t operations = 0;
  for (const auto& worker : workers) operations += worker->operations();
  std::cout << "soak: " << operations << " operations, " << kills_ << " nodes killed, " << restarts_
            << " started again, " << flips_ << " bits flipped, " << drains_ << " nodes drained, "
            << GetNumber(db_.get(), "nacre.repair.bytes-done") << " bytes repaired\n";
  if (HasFailure()) return;
  for (const auto& worker : workers) ASSERT_NO_FATAL_FAILURE(worker->CheckAll(db_.get()));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ASSERT_TRUE(IsOk(db_->Close()));
  db_.reset();
  ASSERT_TRUE(IsOk(DB::Open(options_, "soak", &db_)));
  for (const auto& worker : workers) ASSERT_NO_FATAL_FAILURE(worker->CheckAll(db_.get()));
}

}  // namespace
}  // namespace nacre
