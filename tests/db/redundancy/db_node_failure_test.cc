// Goal: a node that dies takes with it what only it held, and nothing else: reads of the rest go
// on, what is lost answers Unavailable and names the node, no call hangs, and with copies nothing
// is lost at all and everything goes on. Method: nodes, embedded ones and real processes, killed at
// rest, and under readers, writers, flushes and compactions.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nacre/db.h"
#include "tests/support/process/test_nodes.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {
namespace {

/// What the option promises, and room for a slow machine.
constexpr auto kMostPatience = std::chrono::seconds(15);

class DBNodeFailureTest : public testing::TestWithParam<NodeKind> {
 protected:
  void Open(
      const char* redundancy, const std::function<void(Options*)>& change = [](Options*) {}) {
    db_.reset();
    nodes_ = std::make_unique<TestNodes>(GetParam());
    ASSERT_NE(nodes_->pool(), nullptr);
    options_ = SmallTableOptions(nodes_->pool());
    options_.redundancy = redundancy;
    change(&options_);
    ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_)));
  }

  static std::string Key(size_t i) { return "key" + std::to_string(i * 7919 % 100'003); }

  Status Fill(size_t begin, size_t end, uint64_t seed) {
    for (size_t i = begin; i < end; ++i) {
      NACRE_RETURN_IF_ERROR(db_->Put(NoLog(), Key(i), TestValue(seed + i, 300)));
    }
    return Status::OK();
  }

  /// Waits until the pool has noticed: memory that is shared outlives its process, so that until
  /// then some of it may still be read.
  void Kill(NodeId node) {
    nodes_->Kill(node);
    const auto start = std::chrono::steady_clock::now();
    while (nodes_->pool()->client()->alive(node)) {
      ASSERT_LT(std::chrono::steady_clock::now() - start, kMostPatience);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  /// How a status names it.
  std::string NameOf(NodeId node) const { return nodes_->pool()->client()->node_address(node); }

  /// Runs `call`, which must return in time.
  Status Timely(const std::function<Status()>& call) {
    const auto start = std::chrono::steady_clock::now();
    Status status = call();
    EXPECT_LT(std::chrono::steady_clock::now() - start, kMostPatience);
    return status;
  }

  std::unique_ptr<TestNodes> nodes_;
  Options options_;
  std::unique_ptr<DB> db_;
};

std::string NameOfKind(const testing::TestParamInfo<NodeKind>& kind) {
  return nacre::NameOf(kind.param);
}

INSTANTIATE_TEST_SUITE_P(Nodes, DBNodeFailureTest, testing::ValuesIn(AllNodeKinds()), NameOfKind);

TEST_P(DBNodeFailureTest, WithOneCopyTheRestStaysReadable) {
  ASSERT_NO_FATAL_FAILURE(Open("none"));
  constexpr size_t kKeys = 20'000;
  ASSERT_TRUE(IsOk(Fill(0, kKeys, 1)));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ASSERT_TRUE(IsOk(db_->WaitForCompact()));
  Kill(2);
  size_t found = 0;
  size_t lost = 0;
  std::string value;
  for (size_t i = 0; i < kKeys; ++i) {
    const Status status = Timely([&] { return db_->Get({}, Key(i), &value); });
    if (status.ok()) {
      ASSERT_EQ(value, TestValue(1 + i, 300));
      ++found;
    } else {
      ASSERT_TRUE(IsFailure(status, Status::Code::kUnavailable, NameOf(2)));
      ++lost;
    }
  }
  EXPECT_GT(found, kKeys / 2);
  EXPECT_GT(lost, 0u);

  // MultiGet answers key by key; an iterator stops at what is lost and says so.
  std::vector<std::string> names;
  std::vector<std::string> values;
  for (size_t i = 0; i < 500; ++i) names.push_back(Key(i));
  const std::vector<Status> statuses =
      db_->MultiGet({}, std::vector<Slice>(names.begin(), names.end()), &values);
  for (size_t i = 0; i < 500; ++i) {
    if (statuses[i].ok()) {
      ASSERT_EQ(values[i], TestValue(1 + i, 300));
    } else {
      ASSERT_TRUE(IsFailure(statuses[i], Status::Code::kUnavailable, NameOf(2)));
    }
  }
  for (const bool forward : {true, false}) {
    const auto iterator = db_->NewIterator({});
    forward ? iterator->SeekToFirst() : iterator->SeekToLast();
    while (iterator->Valid()) forward ? iterator->Next() : iterator->Prev();
    EXPECT_TRUE(IsFailure(iterator->status(), Status::Code::kUnavailable, NameOf(2)));
  }

  // New data, in between the old, goes to the nodes that are left.
  for (size_t i = 0; i < 2'000; ++i) {
    ASSERT_TRUE(IsOk(db_->Put(NoLog(), Key(i) + "new", TestValue(i, 300))));
  }
  ASSERT_TRUE(IsOk(Timely([&] { return db_->Flush({}); })));
  for (size_t i = 0; i < 2'000; ++i) {
    ASSERT_TRUE(IsOk(db_->Get({}, Key(i) + "new", &value)));
  }
  // What a compaction cannot read it must not drop either.
  Status status = Timely([&] { return db_->CompactRange({}, nullptr, nullptr); });
  EXPECT_TRUE(IsFailure(status, Status::Code::kUnavailable, NameOf(2)));
  size_t found_again = 0;
  for (size_t i = 0; i < kKeys; ++i) found_again += db_->Get({}, Key(i), &value).ok();
  EXPECT_GE(found_again, found);
  status = Timely([&] { return db_->Close(); });
  EXPECT_TRUE(IsOk(status)) << "all that was left is kept";
}

TEST_P(DBNodeFailureTest, WithTwoCopiesNothingIsLost) {
  for (const CompactionSite site : {CompactionSite::kAuto, CompactionSite::kCompute}) {
    ASSERT_NO_FATAL_FAILURE(Open("rep(2)", [&](Options* options) { options->compaction = site; }));
    constexpr size_t kKeys = 10'000;
    ASSERT_TRUE(IsOk(Fill(0, kKeys, 1)));
    ASSERT_TRUE(IsOk(db_->WaitForCompact()));
    Kill(1);
    const auto check = [&](uint64_t seed) {
      std::string value;
      for (size_t i = 0; i < kKeys; i += 3) {
        const Status status = Timely([&] { return db_->Get({}, Key(i), &value); });
        ASSERT_TRUE(IsOk(status)) << i;
        ASSERT_EQ(value, TestValue(seed + i, 300));
      }
      for (const bool forward : {true, false}) {
        const auto iterator = db_->NewIterator({});
        size_t seen = 0;
        forward ? iterator->SeekToFirst() : iterator->SeekToLast();
        for (; iterator->Valid(); forward ? iterator->Next() : iterator->Prev()) ++seen;
        ASSERT_TRUE(IsOk(iterator->status()));
        ASSERT_EQ(seen, kKeys);
      }
    };
    ASSERT_NO_FATAL_FAILURE(check(1));
    // Writes, flushes and compactions go on, over the three nodes that are left.
    ASSERT_TRUE(IsOk(Timely([&] { return Fill(0, kKeys, 2); })));
    ASSERT_NO_FATAL_FAILURE(check(2));
    ASSERT_TRUE(IsOk(Timely([&] { return db_->CompactRange({}, nullptr, nullptr); })));
    ASSERT_TRUE(IsOk(Timely([&] { return db_->WaitForCompact(); })));
    ASSERT_NO_FATAL_FAILURE(check(2));
    // What was written since has two copies again: another node may go.
    Kill(3);
    ASSERT_NO_FATAL_FAILURE(check(2));
    ASSERT_TRUE(IsOk(Timely([&] { return Fill(0, kKeys, 3); })));
    ASSERT_TRUE(IsOk(Timely([&] { return db_->Flush({}); })));
    ASSERT_NO_FATAL_FAILURE(check(3));

    // It comes back from the nodes that are left.
    ASSERT_TRUE(IsOk(Timely([&] { return db_->Close(); })));
    db_.reset();
    ASSERT_TRUE(IsOk(Timely([&] { return DB::Open(options_, "db", &db_); })));
    ASSERT_NO_FATAL_FAILURE(check(3));
    ASSERT_TRUE(IsOk(db_->Close()));
    db_.reset();
  }
}

TEST_P(DBNodeFailureTest, TooFewNodesForAllCopies) {
  ASSERT_NO_FATAL_FAILURE(Open("rep(3)"));
  ASSERT_TRUE(IsOk(Fill(0, 2'000, 1)));
  ASSERT_TRUE(IsOk(db_->WaitForCompact()));
  Kill(0);
  Kill(1);
  // Two nodes are left for three copies: nothing new can be kept as it should, and that is said.
  Status status;
  for (size_t i = 0; i < 100'000 && status.ok(); ++i) {
    status = Timely([&] { return db_->Put(NoLog(), Key(i), TestValue(i, 300)); });
  }
  EXPECT_TRUE(IsFailure(status, Status::Code::kUnavailable, NameOf(0)));
  EXPECT_TRUE(IsFailure(status, Status::Code::kUnavailable, NameOf(1)));
  std::string value;
  for (size_t i = 0; i < 2'000; i += 7) ASSERT_TRUE(IsOk(db_->Get({}, Key(i), &value)));
}

TEST_P(DBNodeFailureTest, AllNodesGone) {
  ASSERT_NO_FATAL_FAILURE(Open("rep(2)"));
  ASSERT_TRUE(IsOk(Fill(0, 3'000, 1)));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  for (NodeId node = 0; node < 4; ++node) Kill(node);
  std::string value;
  for (size_t i = 0; i < 50; ++i) {
    const Status status = Timely([&] { return db_->Get({}, Key(i), &value); });
    ASSERT_TRUE(IsFailure(status, Status::Code::kUnavailable));
  }
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "k", "v"))) << "there is room in memory";
  const Status there = Timely([&] { return db_->Get({}, "k", &value); });
  if (GetParam() == NodeKind::kEmbedded) {
    EXPECT_TRUE(IsOk(there));
  } else {
    // It cannot be excluded that another owner has written it meanwhile.
    EXPECT_TRUE(IsFailure(there, Status::Code::kUnavailable));
  }
  EXPECT_TRUE(IsFailure(Timely([&] { return db_->Flush({}); }), Status::Code::kUnavailable));
  EXPECT_TRUE(IsFailure(Timely([&] { return db_->WaitForCompact(); }), Status::Code::kUnavailable));
  EXPECT_TRUE(IsFailure(Timely([&] { return db_->Close(); }), Status::Code::kUnavailable));
}

/// Kills node 1 at some moment of what background threads do, again and again.
class KillUnderLoadTest : public DBNodeFailureTest {
 protected:
  /// `redundancy` decides what may be answered meanwhile.
  void Run(const char* redundancy, CompactionSite site, uint64_t seed) {
    const bool lossless = std::string(redundancy) != "none";
    Random moments(seed);
    for (size_t round = 0; round < Scaled(4); ++round) {
      SCOPED_TRACE(round);
      ASSERT_NO_FATAL_FAILURE(
          Open(redundancy, [&](Options* options) { options->compaction = site; }));
      constexpr size_t kKeys = 3'000;
      std::vector<std::atomic<uint64_t>> begun(kKeys);
      std::vector<std::atomic<uint64_t>> acknowledged(kKeys);
      std::atomic<bool> done{false};
      const auto may_fail = [&](const Status& status) {
        return !lossless && status.IsUnavailable();
      };
      std::thread writer([&] {
        for (uint64_t version = 1; !done.load(); ++version) {
          for (size_t i = 0; i < kKeys && !done.load(); ++i) {
            begun[i].store(version);
            const Status status = Timely(
                [&] { return db_->Put(NoLog(), Key(i), TestValue(version * kKeys + i, 300)); });
            if (may_fail(status)) continue;
            ASSERT_TRUE(IsOk(status));
            acknowledged[i].store(version);
          }
        }
      });
      std::thread reader([&] {
        Random random(seed + round);
        std::string value;
        while (!done.load()) {
          const size_t i = random.Uniform(kKeys);
          const uint64_t before = acknowledged[i].load();
          const Status status = Timely([&] { return db_->Get({}, Key(i), &value); });
          if (may_fail(status) || (before == 0 && status.IsNotFound())) continue;
          ASSERT_TRUE(IsOk(status));
          // The version is at least what was acknowledged before, and no other key's.
          const uint64_t last = begun[i].load();
          uint64_t version = before;
          while (version <= last && value != TestValue(version * kKeys + i, 300)) ++version;
          ASSERT_LE(version, last) << "key " << i << " after version " << before;
        }
      });
      std::thread scanner([&] {
        while (!done.load()) {
          const auto iterator = db_->NewIterator({});
          for (iterator->SeekToFirst(); iterator->Valid() && !done.load(); iterator->Next()) {
          }
          ASSERT_TRUE(iterator->status().ok() || may_fail(iterator->status()))
              << iterator->status().ToString();
        }
      });
      std::this_thread::sleep_for(std::chrono::microseconds(moments.Uniform(120'000)));
      nodes_->Kill(1);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      done.store(true);
      writer.join();
      reader.join();
      scanner.join();

      const Status flushed = Timely([&] { return db_->Flush({}); });
      EXPECT_TRUE(IsOk(flushed)) << "three nodes are left";
      const Status compacted = Timely([&] { return db_->CompactRange({}, nullptr, nullptr); });
      EXPECT_TRUE(compacted.ok() || may_fail(compacted)) << compacted.ToString();
      // All that other nodes hold is right.
      std::string value;
      for (size_t i = 0; i < kKeys; ++i) {
        const Status status = db_->Get({}, Key(i), &value);
        const uint64_t version = acknowledged[i].load();
        if (may_fail(status) || (version == 0 && status.IsNotFound())) continue;
        ASSERT_TRUE(IsOk(status)) << i;
        if (version > 0) {
          ASSERT_TRUE(value == TestValue(version * kKeys + i, 300)) << i;
        }
      }
      EXPECT_TRUE(IsOk(Timely([&] { return db_->Close(); })));
      db_.reset();
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Nodes, KillUnderLoadTest, testing::ValuesIn(AllNodeKinds()), NameOfKind);

TEST_P(KillUnderLoadTest, OneCopyCompactionOnNodes) {
  Run("none", CompactionSite::kAuto, TestSeed(3001));
}
TEST_P(KillUnderLoadTest, OneCopyCompactionHere) {
  Run("none", CompactionSite::kCompute, TestSeed(3002));
}
TEST_P(KillUnderLoadTest, TwoCopiesCompactionOnNodes) {
  Run("rep(2)", CompactionSite::kAuto, TestSeed(3003));
}
TEST_P(KillUnderLoadTest, TwoCopiesCompactionHere) {
  Run("rep(2)", CompactionSite::kCompute, TestSeed(3004));
}

}  // namespace
}  // namespace nacre
