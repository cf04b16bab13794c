// Goal: a follower of a database that another process owns answers what the owner had acknowledged,
// as of one moment that never goes back, and as of now if asked for it; also while the memory of
// tables is used again at once, and while owners and nodes come and go. Method: an owner and
// followers, each with a client of its own, over nacre-memnode processes so small that memory comes
// back quickly. The owner writes groups of keys by batches that are numbered, so that each answer
// tells which batch it is of, and the test knows which were acknowledged by then.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nacre/db.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {
namespace {

/// What an owner writes: rounds of a group, each of which sets all its keys by one batch, or
/// deletes them.
class Groups {
 public:
  static constexpr size_t kGroups = 40;
  static constexpr size_t kKeys = 4;  ///< Keys of a group, far from one another.
  static constexpr uint64_t kDeletionEach = 5;

  static std::string Key(size_t group, size_t i) {
    return "key" + std::to_string(i) + "/" + std::to_string(group);
  }
  static bool Deletes(uint64_t round) { return round % kDeletionEach == 0; }

  /// The next round of `group`; by one thread.
  Status WriteNext(DB* db, size_t group, Random* random) {
    const uint64_t round = begun_[group].load() + 1;
    WriteBatch batch;
    const std::string padding(random->Uniform(2000), static_cast<char>('a' + random->Uniform(26)));
    for (size_t i = 0; i < kKeys; ++i) {
      if (Deletes(round)) {
        NACRE_RETURN_IF_ERROR(batch.Delete(Key(group, i)));
      } else {
        NACRE_RETURN_IF_ERROR(batch.Put(Key(group, i), std::to_string(round) + "/" + padding));
      }
    }
    begun_[group].store(round);
    NACRE_RETURN_IF_ERROR(db->Write({}, &batch));
    acknowledged_[group].store(round);
    return Status::OK();
  }

  uint64_t acknowledged(size_t group) const { return acknowledged_[group].load(); }
  uint64_t begun(size_t group) const { return begun_[group].load(); }

  /// The earliest round from `from` on that explains the answer; fails the test if none does that
  /// has begun.
  uint64_t RoundOf(size_t group, bool found, const std::string& value, uint64_t from) const {
    const uint64_t last = begun(group);
    uint64_t round = 0;
    if (found) {
      round = std::stoull(value);
      EXPECT_FALSE(Deletes(round)) << "group " << group;
    } else {
      // Nothing is there before the first round either.
      round = from == 0 ? 0 : (from + kDeletionEach - 1) / kDeletionEach * kDeletionEach;
    }
    EXPECT_GE(round, from) << "group " << group << (found ? "" : ": absent");
    EXPECT_LE(round, last) << "group " << group << (found ? "" : ": absent");
    return round;
  }

 private:
  std::array<std::atomic<uint64_t>, kGroups> begun_{};
  std::array<std::atomic<uint64_t>, kGroups> acknowledged_{};
};

/// One thread that reads from a follower, and knows what it may be answered.
class Reader {
 public:
  Reader(const Groups* groups, DB* db, uint64_t seed)
      : groups_(groups), db_(db), random_(seed), seen_(Groups::kGroups, 0) {}

  /// One read of a group, by one of several ways. Whether it was answered.
  bool Read(bool linearizable) {
    const size_t group = random_.Uniform(Groups::kGroups);
    ReadOptions options;
    options.linearizable = linearizable;
    if (linearizable) seen_[group] = std::max(seen_[group], groups_->acknowledged(group));
    switch (random_.Uniform(4)) {
      case 0:
        return Get(options, group);
      case 1:
        return Iterate(options, group);
      default:
        return MultiGet(options, group);
    }
  }

  Status CatchUp() {
    std::vector<uint64_t> before;
    for (size_t g = 0; g < Groups::kGroups; ++g) before.push_back(groups_->acknowledged(g));
    NACRE_RETURN_IF_ERROR(db_->TryCatchUpWithPrimary());
    for (size_t g = 0; g < Groups::kGroups; ++g) seen_[g] = std::max(seen_[g], before[g]);
    return Status::OK();
  }

  uint64_t answered() const { return answered_; }
  uint64_t refused() const { return refused_; }

 private:
  bool Refused(const Status& status) {
    // It may not wait for ever, nor invent what is gone.
    EXPECT_TRUE(status.IsTryAgain() || status.IsUnavailable() || status.IsTimedOut())
        << status.ToString();
    ++refused_;
    return false;
  }

  bool Get(const ReadOptions& options, size_t group) {
    std::string value;
    const Status status = db_->Get(options, Groups::Key(group, random_.Uniform(4)), &value);
    if (!status.ok() && !status.IsNotFound()) return Refused(status);
    seen_[group] = groups_->RoundOf(group, status.ok(), value, seen_[group]);
    ++answered_;
    return true;
  }

  bool MultiGet(const ReadOptions& options, size_t group) {
    std::vector<std::string> keys;
    for (size_t i = 0; i < Groups::kKeys; ++i) keys.push_back(Groups::Key(group, i));
    const std::vector<Slice> slices(keys.begin(), keys.end());
    std::vector<std::string> values;
    const std::vector<Status> statuses = db_->MultiGet(options, slices, &values);
    for (const Status& status : statuses) {
      if (!status.ok() && !status.IsNotFound()) return Refused(status);
    }
    for (size_t i = 0; i < Groups::kKeys; ++i) {
      EXPECT_EQ(statuses[i].code(), statuses[0].code()) << "half a batch of group " << group;
      EXPECT_EQ(values[i], values[0]) << "half a batch of group " << group;
    }
    seen_[group] = groups_->RoundOf(group, statuses[0].ok(), values[0], seen_[group]);
    ++answered_;
    return true;
  }

  /// Iterates over all keys, forward or backward: they are as of one moment.
  bool Iterate(const ReadOptions& options, size_t group) {
    const std::unique_ptr<Iterator> it = db_->NewIterator(options);
    std::map<std::string, std::string> all;
    const bool forward = random_.OneIn(2);
    for (forward ? it->SeekToFirst() : it->SeekToLast(); it->Valid();
         forward ? it->Next() : it->Prev()) {
      all[it->key().ToString()] = it->value().ToString();
    }
    if (!it->status().ok()) return Refused(it->status());
    for (size_t g = 0; g < Groups::kGroups; ++g) {
      const auto first = all.find(Groups::Key(g, 0));
      for (size_t i = 1; i < Groups::kKeys; ++i) {
        const auto other = all.find(Groups::Key(g, i));
        EXPECT_EQ(first == all.end(), other == all.end()) << "half a batch of group " << g;
        if (first != all.end() && other != all.end()) {
          EXPECT_EQ(first->second, other->second);
        }
      }
      // Others may have gone on since this one's moment, but not back.
      const uint64_t round =
          groups_->RoundOf(g, first != all.end(), first != all.end() ? first->second : "",
                           g == group ? seen_[g] : 0);
      if (g == group) seen_[g] = round;
    }
    ++answered_;
    return true;
  }

  const Groups* const groups_;
  DB* const db_;
  Random random_;
  std::vector<uint64_t> seen_;  ///< For each group, the round that a read may not go behind.
  uint64_t answered_ = 0;
  uint64_t refused_ = 0;
};

class FollowerTest : public testing::Test {
 protected:
  void StartNodes(int count, const std::string& size = "64MiB") {
    nodes_ = std::make_unique<MemnodeProcesses>(
        count, MemnodeProcessOptions{.size = size, .slab_size = "1MiB"});
  }
  Options OptionsOf(const std::string& redundancy = "rep(2)") {
    Options options = SmallTableOptions(ConnectTestPool(nodes_->pool_uri()));
    options.redundancy = redundancy;
    return options;
  }
  void OpenOwner(const std::string& redundancy = "rep(2)") {
    Options options = OptionsOf(redundancy);
    options.take_over = true;
    options.allow_degraded_writes = true;
    ASSERT_TRUE(IsOk(DB::Open(options, "db", &owner_)));
  }
  std::unique_ptr<DB> Follow(const Options& options) {
    std::unique_ptr<DB> follower;
    EXPECT_TRUE(IsOk(DB::OpenAsSecondary(options, "db", &follower)));
    return follower;
  }
  std::unique_ptr<DB> Follow() { return Follow(OptionsOf()); }
  static std::string Read(DB* db, const std::string& key, const ReadOptions& options = {}) {
    std::string value;
    const Status status = db->Get(options, key, &value);
    return status.ok() ? value : status.IsNotFound() ? "-" : status.ToString();
  }
  static ReadOptions Linearizable() {
    ReadOptions options;
    options.linearizable = true;
    return options;
  }

  Random random_{TestSeed(771)};
  std::unique_ptr<MemnodeProcesses> nodes_;
  std::unique_ptr<DB> owner_;
};

TEST_F(FollowerTest, SeesWhatWasAcknowledgedWhenItCaughtUp) {
  StartNodes(3);
  ASSERT_NO_FATAL_FAILURE(OpenOwner());
  ASSERT_TRUE(IsOk(owner_->Put({}, "table", "1")));
  ASSERT_TRUE(IsOk(owner_->Flush({})));
  ASSERT_TRUE(IsOk(owner_->Put({}, "log", "1")));
  const std::unique_ptr<DB> follower = Follow();
  ASSERT_NE(follower, nullptr);
  EXPECT_EQ(Read(follower.get(), "table"), "1");
  EXPECT_EQ(Read(follower.get(), "log"), "1");
  EXPECT_EQ(Read(follower.get(), "nothing"), "-");

  ASSERT_TRUE(IsOk(owner_->Put({}, "log", "2")));
  ASSERT_TRUE(IsOk(owner_->Delete({}, "table")));
  EXPECT_EQ(Read(follower.get(), "log"), "1");
  EXPECT_EQ(Read(follower.get(), "table"), "1");
  ASSERT_TRUE(IsOk(follower->TryCatchUpWithPrimary()));
  EXPECT_EQ(Read(follower.get(), "log"), "2");
  EXPECT_EQ(Read(follower.get(), "table"), "-");

  ASSERT_TRUE(IsOk(owner_->Put({}, "log", "3")));
  EXPECT_EQ(Read(follower.get(), "log", Linearizable()), "3");
  EXPECT_EQ(Read(follower.get(), "log"), "3");
  EXPECT_EQ(follower->GetLatestSequenceNumber(), owner_->GetLatestSequenceNumber());
  ASSERT_TRUE(IsOk(owner_->Flush({})));
  ASSERT_TRUE(IsOk(owner_->CompactRange({}, nullptr, nullptr)));
  ASSERT_TRUE(IsOk(owner_->Put({}, "log", "4")));
  EXPECT_EQ(Read(follower.get(), "log", Linearizable()), "4");
  EXPECT_EQ(Read(follower.get(), "table", Linearizable()), "-");
}

TEST_F(FollowerTest, OneThatIsOpenedForReadingStaysAsItWas) {
  StartNodes(3);
  ASSERT_NO_FATAL_FAILURE(OpenOwner());
  ASSERT_TRUE(IsOk(owner_->Put({}, "k", "1")));
  std::unique_ptr<DB> reader;
  EXPECT_TRUE(IsFailure(DB::OpenForReadOnly(OptionsOf(), "db", &reader, true),
                        Status::Code::kInvalidArgument, "in the log only"));
  ASSERT_TRUE(IsOk(DB::OpenForReadOnly(OptionsOf(), "db", &reader)));
  ASSERT_TRUE(IsOk(owner_->Put({}, "k", "2")));
  ASSERT_TRUE(IsOk(owner_->Flush({})));
  EXPECT_EQ(Read(reader.get(), "k"), "1");
  EXPECT_TRUE(reader->TryCatchUpWithPrimary().IsNotSupported());
  std::string value;
  EXPECT_TRUE(reader->Get(Linearizable(), "k", &value).IsNotSupported());
  EXPECT_TRUE(reader->Put({}, "k", "3").IsNotSupported());
  EXPECT_TRUE(reader->Delete({}, "k").IsNotSupported());
  EXPECT_TRUE(reader->Flush({}).IsNotSupported());
  EXPECT_EQ(Read(owner_.get(), "k"), "2");
  ASSERT_TRUE(IsOk(DB::OpenForReadOnly(OptionsOf(), "db", &reader, true)));
  EXPECT_EQ(Read(reader.get(), "k"), "2");
  EXPECT_TRUE(DB::OpenForReadOnly(OptionsOf(), "other", &reader).IsNotFound());
}

/// An owner that writes, flushes and compacts all the time in a pool of some megabytes, beside
/// readers that catch up now and then.
class ChurnTest : public FollowerTest {
 protected:
  ~ChurnTest() override { StopOwner(); }

  /// All groups, into tables.
  void Fill() {
    for (size_t g = 0; g < Groups::kGroups; ++g) {
      ASSERT_TRUE(IsOk(groups_.WriteNext(owner_.get(), g, &random_)));
    }
    ASSERT_TRUE(IsOk(owner_->Flush({})));
  }
  void StartOwner() {
    stop_ = false;
    writer_ = std::thread([this, seed = random_.Next()] {
      Random random(seed);
      while (!stop_) {
        // One that fails, since a node dies, may take place or not.
        groups_.WriteNext(owner_.get(), random.Uniform(Groups::kGroups), &random).IgnoreError();
        if (random.OneIn(400)) owner_->CompactRange({}, nullptr, nullptr).IgnoreError();
      }
    });
  }
  void StopOwner() {
    stop_ = true;
    if (writer_.joinable()) writer_.join();
  }

  Groups groups_;
  std::atomic<bool> stop_{false};
  std::thread writer_;
};

TEST_F(ChurnTest, ReadersOfMemoryThatIsUsedAgain) {
  StartNodes(3);
  ASSERT_NO_FATAL_FAILURE(OpenOwner());
  ASSERT_NO_FATAL_FAILURE(Fill());
  for (const size_t budget : {SIZE_MAX, size_t{0}}) {
    SCOPED_TRACE("index_memory_budget " + std::to_string(budget));
    Options options = OptionsOf();
    options.index_memory_budget = budget;
    const std::unique_ptr<DB> follower = Follow(options);
    ASSERT_NE(follower, nullptr);
    Reader reader(&groups_, follower.get(), random_.Next());
    // Each time the view grows old until what it needs may be gone; as a rule it is the first time.
    for (int i = 0; i < 300 && GetNumber(follower.get(), "nacre.follower.reads-again") < 2; ++i) {
      ASSERT_TRUE(IsOk(reader.CatchUp()));
      // This opens tables.
      for (int j = 0; j < 20; ++j) reader.Read(/*linearizable=*/false);
      for (int j = 0; j < 3; ++j) {
        ASSERT_NO_FATAL_FAILURE(Fill());
        ASSERT_TRUE(IsOk(owner_->CompactRange({}, nullptr, nullptr)));
      }
      for (int j = 0; j < 40; ++j) reader.Read(/*linearizable=*/j % 10 == 9);
      if (HasFailure()) return;
    }
    EXPECT_GE(GetNumber(follower.get(), "nacre.follower.reads-again"), 2u);
    EXPECT_GT(reader.answered(), 0u);
  }
}

TEST_F(ChurnTest, SnapshotsStandStillOrSayThatTheyCannot) {
  StartNodes(3);
  ASSERT_NO_FATAL_FAILURE(OpenOwner());
  ASSERT_NO_FATAL_FAILURE(Fill());
  const std::unique_ptr<DB> follower = Follow();
  ASSERT_NE(follower, nullptr);
  std::unique_ptr<DB> fixed;
  ASSERT_TRUE(IsOk(DB::OpenForReadOnly(OptionsOf(), "db", &fixed)));
  uint64_t answered = 0;
  // Reads until a snapshot has lost what it needs, and so has what stays as it was.
  const auto hold = [&](DB* db, const Snapshot* snapshot) {
    ReadOptions options;
    options.snapshot = snapshot;
    std::map<std::string, std::string> before;
    for (;;) {
      for (size_t g = 0; g < Groups::kGroups; ++g) {
        for (size_t i = 0; i < Groups::kKeys; ++i) {
          const std::string key = Groups::Key(g, i);
          std::string value;
          const Status status = db->Get(options, key, &value);
          if (status.IsTryAgain()) return;
          ASSERT_TRUE(status.ok() || status.IsNotFound()) << status.ToString();
          if (status.IsNotFound()) value = "absent";
          const auto [known, fresh] = before.emplace(key, value);
          ASSERT_EQ(known->second, value) << key;
          ++answered;
        }
      }
    }
  };
  const Snapshot* const snapshot = follower->GetSnapshot();
  ASSERT_NO_FATAL_FAILURE(StartOwner());
  ASSERT_NO_FATAL_FAILURE(hold(follower.get(), snapshot));
  follower->ReleaseSnapshot(snapshot);
  ASSERT_NO_FATAL_FAILURE(hold(fixed.get(), nullptr));
  EXPECT_GT(answered, 0u);
}

TEST_F(ChurnTest, OwnersAndNodesComeAndGo) {
  StartNodes(4);
  ASSERT_NO_FATAL_FAILURE(OpenOwner());
  ASSERT_NO_FATAL_FAILURE(StartOwner());
  Options options = OptionsOf();
  options.follow_interval = std::chrono::milliseconds(20);
  const std::unique_ptr<DB> follower = Follow(options);
  ASSERT_NE(follower, nullptr);
  Reader reader(&groups_, follower.get(), random_.Next());
  const auto read_on = [&] {
    // Reads until an answer has what was acknowledged just before.
    ASSERT_TRUE(Eventually([&] { return HasFailure() || reader.Read(/*linearizable=*/true); }));
    for (int i = 0; i < 100; ++i) reader.Read(random_.OneIn(4));
  };
  ASSERT_NO_FATAL_FAILURE(read_on());
  for (int round = 0; round < 3 && !HasFailure(); ++round) {
    StopOwner();
    // There is no owner; then another one owns it, and the first is fenced or gone.
    if (random_.OneIn(2)) {
      ASSERT_TRUE(IsOk(owner_->Close()));
    }
    ASSERT_NO_FATAL_FAILURE(read_on());
    std::unique_ptr<DB> before = std::move(owner_);
    ASSERT_NO_FATAL_FAILURE(OpenOwner());
    ASSERT_NO_FATAL_FAILURE(read_on());
    ASSERT_NO_FATAL_FAILURE(StartOwner());
    ASSERT_NO_FATAL_FAILURE(read_on());
  }
  (*nodes_)[1].Kill();
  ASSERT_NO_FATAL_FAILURE(read_on());
  StopOwner();
  ASSERT_TRUE(IsOk(owner_->Close()));
  ASSERT_NO_FATAL_FAILURE(read_on());
  ASSERT_TRUE(IsOk(DestroyDB("db", OptionsOf())));
  EXPECT_TRUE(follower->TryCatchUpWithPrimary().IsAborted());
  std::string value;
  EXPECT_TRUE(follower->Get(Linearizable(), "k", &value).IsAborted());
}

TEST_F(ChurnTest, EightFollowersReadWhatIsNew) {
  StartNodes(3);
  ASSERT_NO_FATAL_FAILURE(OpenOwner());
  ASSERT_NO_FATAL_FAILURE(StartOwner());
  std::vector<std::thread> threads;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    threads.emplace_back([this, seed, options = OptionsOf()] {
      const std::unique_ptr<DB> follower = Follow(options);
      ASSERT_NE(follower, nullptr);
      Reader reader(&groups_, follower.get(), seed);
      for (size_t i = 0; i < Scaled(200) && !HasFailure(); ++i) {
        reader.Read(/*linearizable=*/seed % 2 == 0);
        if (seed % 2 != 0) {
          EXPECT_TRUE(IsOk(reader.CatchUp()));
        }
      }
      EXPECT_GT(reader.answered(), 0u);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace nacre
