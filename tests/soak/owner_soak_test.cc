// Goal: however owners of a database end (kill -9, stopped and replaced, replaced while they are
// well), and whichever nodes die meanwhile and come back empty, or stand still for a while, the
// next owner finds what was acknowledged, no call fails, and in the end nothing is damaged, lost or
// leaked, as long as no more nodes are away than the redundancy allows before all is whole again.
// Method: owner processes (tests/support/process/owner_process.h) one after the other, and between
// them the test itself as the owner, which checks what they have written. nacre-ctl fsck tells when
// all is whole, and has the last word. NACRE_SOAK_SECONDS says for how long (30), divided among
// the tests that are run. NACRE_TEST_SEED replays the choices; not their timing. NACRE_SOAK_LOG
// names a file for what all owners say.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <map>
#include <memory>
#include <ostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "nacre/db.h"
#include "tests/soak/soak_time.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/process/node_harm.h"
#include "tests/support/process/owner_process.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/clock.h"
#include "util/random.h"

OWNER_PROCESS_CHILD()

namespace nacre {
namespace {

struct SoakedRedundancy {
  const char* name;
  const char* redundancy;
  size_t fragments;
  size_t spare;  ///< So many of them may be lost.
  int nodes;
  const char* scheme = "shm";
  bool stops = false;  ///< Nodes are stopped, too, one or two at a time.

  friend std::ostream& operator<<(std::ostream& out, const SoakedRedundancy& soaked) {
    return out << soaked.name;
  }
};

const SoakedRedundancy kRedundancies[] = {
    {"Rep2", "rep(2)", 2, 1, 4},
    {"Rs21", "rs(2,1)", 3, 1, 5},
    {"Rs42", "rs(4,2)", 6, 2, 8},
    {"Rep3Stops", "rep(3)", 3, 2, 8, "tcp", true},
    {"Rs42Stops", "rs(4,2)", 6, 2, 8, "tcp", true},
};

/// How many owners' keys stay in the database.
constexpr size_t kOwnersKept = 8;

class OwnerSoakTest : public testing::TestWithParam<SoakedRedundancy> {
 protected:
  void SetUp() override {
    nodes_ = std::make_unique<MemnodeProcesses>(
        GetParam().nodes,
        MemnodeProcessOptions{.scheme = GetParam().scheme,
                              .size = "256MiB",
                              .slab_size = "1MiB",
                              .region_folder = files_ == nullptr ? "" : files_->path()});
    // A takeover needs more than half of the nodes, so fewer would never be whole.
    const size_t least = std::max(GetParam().fragments, 2 * GetParam().spare + 1);
    harm_ = std::make_unique<NodeHarm>(
        nodes_.get(),
        NodeHarm::Limits{
            .spare = GetParam().spare, .least = least, .stops = GetParam().stops, .log = log_},
        random_.Next());
  }

  // ---- Nodes ----------------------------------------------------------------------------------

  void MaybeKillNode() {
    // What is lost may not stand still besides.
    if (random_.OneIn(GetParam().stops ? 5 : 2)) harm_->MaybeKill(&random_);
  }
  /// Perhaps, with nothing in it.
  void MaybeStartNodes() {
    for (const size_t dead : harm_->Running(false)) {
      if (random_.OneIn(2)) harm_->Start(dead);
    }
  }

  /// Waits until the owner has taken in all nodes that run, and as many as the redundancy allows
  /// for may be lost. A table that was just made may show up a moment later.
  void AwaitWhole() {
    const NodeHarm::Calm calm(harm_.get());
    std::string seen;
    for (int in_a_row = 0; in_a_row < 3; ++in_a_row) {
      ASSERT_TRUE(Eventually([&] {
        if (IsWhole(&seen)) return true;
        in_a_row = 0;
        return false;
      })) << seen;
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
    harm_->Whole();
  }
  /// Looks at it from outside.
  bool IsWhole(std::string* seen) {
    const std::string spare = "\"spare_nodes\": " + std::to_string(GetParam().spare) + ",";
    *seen = Fsck({"--json"}).output;
    if (seen->find(spare) == std::string::npos) return false;
    *seen = RunBinary("nacre-ctl", {"manifest", "db", "--pool=" + nodes_->pool_uri()}).output;
    const std::string scheme = " " + std::string(GetParam().scheme) + ":";
    size_t members = 0;
    std::istringstream lines(*seen);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("  member ") && line.find(scheme) != std::string::npos) ++members;
    }
    return members == harm_->Running(true).size();
  }
  ProcessResult Fsck(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"fsck", "db", "--pool=" + nodes_->pool_uri()});
    return RunBinary("nacre-ctl", arguments, /*seconds=*/60);
  }

  // ---- Owners ---------------------------------------------------------------------------------

  OwnerProcess* StartOwner() {
    const OwnerPlan plan{.pool_uri = nodes_->pool_uri(),
                         .redundancy = GetParam().redundancy,
                         .prefix = "r" + std::to_string(++owners_started_) + "-",
                         .seed = random_.Next() % 1'000'000,
                         .threads = 3,
                         .keys_per_thread = 20 + random_.Uniform(400),
                         .take_over = db_ != nullptr,
                         .log_path = SoakLogPath()};
    owners_.push_back(std::make_unique<OwnerProcess>("soak_tests", plan));
    return owners_.back().get();
  }

  /// The test is the owner. The nodes may be about to notice that the last one is gone.
  void Open(bool take_over) {
    Options options = SmallTableOptions(nullptr);
    options.pool_uri = nodes_->pool_uri();
    options.info_log = log_;
    options.redundancy = GetParam().redundancy;
    options.take_over = take_over;
    const NodeHarm::Opening opening(harm_.get());
    Status status;
    ASSERT_TRUE(Eventually([&] {
      status = DB::Open(options, "db", &db_);
      return !status.IsBusy();
    }));
    ASSERT_TRUE(IsOk(status));
  }

  /// What all owners that are kept had acknowledged, what the test itself has written, and nothing
  /// besides.
  void CheckAll() {
    for (const auto& owner : owners_) ASSERT_NO_FATAL_FAILURE(owner->Check(db_.get()));
    const std::unique_ptr<Iterator> iterator(db_->NewIterator({}));
    auto expected = model_.begin();
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      const std::string key = iterator->key().ToString();
      const bool of_owner = std::any_of(owners_.begin(), owners_.end(), [&](const auto& owner) {
        return key.starts_with(owner->plan().prefix);
      });
      if (of_owner) continue;
      ASSERT_NE(expected, model_.end()) << key << " is nobody's";
      ASSERT_EQ(key, expected->first);
      ASSERT_TRUE(iterator->value() == Slice(expected->second)) << key;
      ++expected;
    }
    ASSERT_TRUE(IsOk(iterator->status()));
    ASSERT_EQ(expected, model_.end());
  }

  /// Keys of its own, and takes away those of owners that were long ago.
  void WriteALittle() {
    for (int i = 0; i < 20; ++i) {
      const std::string key = "mine" + std::to_string(random_.Uniform(500));
      model_[key] = TestValue(random_.Next(), random_.Uniform(5000));
      ASSERT_TRUE(IsOk(db_->Put({}, key, model_[key])));
    }
    while (owners_.size() > kOwnersKept) {
      const std::string prefix = owners_.front()->plan().prefix;
      std::vector<std::string> keys;
      const std::unique_ptr<Iterator> iterator(db_->NewIterator({}));
      for (iterator->Seek(prefix); iterator->Valid() && iterator->key().starts_with(prefix);
           iterator->Next()) {
        keys.push_back(iterator->key().ToString());
      }
      ASSERT_TRUE(IsOk(iterator->status()));
      for (const std::string& key : keys) ASSERT_TRUE(IsOk(db_->Delete({}, key)));
      owners_.pop_front();
    }
  }

  /// The test has been replaced.
  void LeaveFenced() {
    EXPECT_TRUE(db_->Put({}, "mine0", "too late").IsFenced());
    std::string value;
    EXPECT_TRUE(db_->Get({}, "mine0", &value).IsFenced());
    db_->Close().IgnoreError();
    db_.reset();
  }

  // ---- What happens ---------------------------------------------------------------------------

  /// An owner writes, while nodes may die.
  void LiveOwner(OwnerProcess* owner) {
    if (db_ != nullptr) {
      ASSERT_NO_FATAL_FAILURE(LeaveFenced());
    }
    for (uint64_t phases = random_.Uniform(4); phases > 0; --phases) {
      MaybeKillNode();
      ASSERT_TRUE(owner->AwaitProgress(1 + random_.Uniform(500)));
      MaybeStartNodes();
      if (random_.OneIn(3)) {
        ASSERT_NO_FATAL_FAILURE(AwaitWhole());
      }
    }
    MaybeKillNode();  // The loss may be unnoticed when the owner ends.
  }

  /// The owner ends in one way or another, and the test is the next.
  void ReplaceOwner(OwnerProcess* owner) {
    const bool killed = random_.OneIn(2);
    const bool stopped = !killed && random_.OneIn(2);
    if (killed) {
      owner->Kill();
      ++owner_kills_;
    }
    if (stopped) owner->Stop();
    MaybeKillNode();
    MaybeStartNodes();
    ASSERT_NO_FATAL_FAILURE(Open(/*take_over=*/!killed));
    if (stopped) {
      ASSERT_NO_FATAL_FAILURE(owner->Check(db_.get()));
      owner->Continue();
    }
    if (killed) return;
    ++takeovers_;
    for (const int64_t failure : owner->AwaitFailures()) {
      // One that was stopped inside a write to shared memory is not let go on.
      EXPECT_TRUE((stopped && owner->died()) ||
                  failure == static_cast<int64_t>(Status::Code::kFenced))
          << failure;
    }
  }

  void Round() {
    SCOPED_TRACE("owner " + std::to_string(owners_started_ + 1));
    OwnerProcess* owner = nullptr;
    {
      const NodeHarm::Opening opening(harm_.get());
      owner = StartOwner();
      ASSERT_TRUE(owner->AwaitProgress(1 + random_.Uniform(500)));
    }
    ASSERT_NO_FATAL_FAILURE(LiveOwner(owner));
    if (random_.OneIn(4)) {
      // The next owner process is the first to see what is left.
      owner->Kill();
      ++owner_kills_;
      return;
    }
    ASSERT_NO_FATAL_FAILURE(ReplaceOwner(owner));
    ASSERT_NO_FATAL_FAILURE(CheckAll());
    ASSERT_NO_FATAL_FAILURE(WriteALittle());
    MaybeKillNode();  // What was written is moved to other nodes even without further writes.
    MaybeStartNodes();
    if (!random_.OneIn(3)) {
      ASSERT_NO_FATAL_FAILURE(AwaitWhole());
    }
    if (random_.OneIn(2)) return;  // Handed over.
    ASSERT_TRUE(IsOk(db_->Close()));
    db_.reset();
  }

  /// All nodes are there, and nothing is wrong any more.
  void Finish() {
    for (const size_t dead : harm_->Running(false)) harm_->Start(dead);
    if (db_ == nullptr) {
      ASSERT_NO_FATAL_FAILURE(Open(/*take_over=*/false));
    }
    ASSERT_NO_FATAL_FAILURE(CheckAll());
    const NodeHarm::Calm calm(harm_.get());
    ASSERT_NO_FATAL_FAILURE(AwaitWhole());
    ASSERT_TRUE(IsOk(db_->Close()));
    db_.reset();
    ProcessResult found;
    EXPECT_TRUE(Eventually([&] {
      found = Fsck({"--full"});
      return found.output.find("database db: open") == std::string::npos;
    }));
    EXPECT_EQ(found.exit_code, 0) << found.output;
  }

  Random random_{TestSeed(711)};
  const std::shared_ptr<Logger> log_ = SoakLog();
  const std::unique_ptr<TempFolder> files_ = SoakRegionFolder();
  std::unique_ptr<MemnodeProcesses> nodes_;
  std::unique_ptr<NodeHarm> harm_;
  std::deque<std::unique_ptr<OwnerProcess>> owners_;
  std::map<std::string, std::string> model_;  ///< What the test has written itself.
  std::unique_ptr<DB> db_;                    ///< Open while the test is the owner.
  uint64_t owners_started_ = 0;
  uint64_t owner_kills_ = 0;
  uint64_t takeovers_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Soak, OwnerSoakTest, testing::ValuesIn(kRedundancies),
                         [](const auto& soaked) { return std::string(soaked.param.name); });

TEST_P(OwnerSoakTest, NextOwnersFindWhatWasAcknowledged) {
  if (GetParam().stops && std::getenv("NACRE_SOAK_SECONDS") == nullptr) {
    GTEST_SKIP() << "on a busy host a node may seem to stand still besides: ./run soak --stops";
  }
  const Deadline deadline =
      Deadline::After(Clock::System(), SoakTimeOfOne(static_cast<int>(std::size(kRedundancies))));
  while (!deadline.Expired() && !HasFailure()) Round();
  std::cout << "soak: " << owners_started_ << " owners, " << owner_kills_ << " killed, "
            << takeovers_ << " replaced; " << harm_->kills() << " nodes killed, " << harm_->starts()
            << " started again, " << harm_->stops() << " stopped for a while\n";
  if (!HasFailure()) Finish();
}

}  // namespace
}  // namespace nacre
