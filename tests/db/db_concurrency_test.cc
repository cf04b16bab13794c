// Goal: with many threads at work, a write is seen at once by its writer and never unseen by any
// thread, a batch is seen whole or not at all, and a snapshot never changes; whatever flushes,
// compactions and switches of MemTables go on below. Method: writers own keys and number the
// versions that they write, so that a reader can tell what it may see from what was acknowledged
// before and issued after its read. Small buffers make MemTables and tables come and go all the
// time. Meant to be run under ThreadSanitizer too.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nacre/db.h"
#include "table/format/internal_key.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/coding.h"
#include "util/random.h"

namespace nacre {
namespace {

class DBConcurrencyTest : public testing::Test {
 protected:
  void Open(const std::function<void(Options*)>& change = [](Options*) {}) {
    pool_ = OpenTestPool();
    ASSERT_NE(pool_, nullptr);
    Options options = SmallTableOptions(pool_);
    change(&options);
    ASSERT_TRUE(IsOk(DB::Open(options, "concurrent", &db_)));
  }

  /// Runs `work(index)` on `count` threads and `side` on more, which return when `done_` is set.
  void Run(size_t count, const std::function<void(size_t)>& work,
           const std::vector<std::function<void()>>& side) {
    std::vector<std::thread> workers;
    std::vector<std::thread> helpers;
    for (size_t i = 0; i < count; ++i) workers.emplace_back(work, i);
    for (const auto& task : side) helpers.emplace_back(task);
    for (std::thread& worker : workers) worker.join();
    done_.store(true);
    for (std::thread& helper : helpers) helper.join();
  }

  /// Flushes and compacts by hand from time to time.
  void Disturb(uint64_t seed) {
    Random random(seed);
    while (!done_.load()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(random.Uniform(20)));
      FlushOptions flush;
      flush.wait = random.OneIn(2);
      if (random.OneIn(4)) {
        ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
      } else {
        ASSERT_TRUE(IsOk(db_->Flush(flush)));
      }
    }
  }

  /// Keys sort in another order than they are numbered in.
  static std::string Key(uint64_t number) {
    char text[32];
    std::snprintf(text, sizeof(text), "key%08llx",
                  static_cast<unsigned long long>(number * 0x9e3779b1 & 0xffffffff));
    return text;
  }

  std::shared_ptr<pool::PoolImpl> pool_;
  std::unique_ptr<DB> db_;
  std::atomic<bool> done_{false};
};

// ---- Versions ---------------------------------------------------------------------------------

/// Keys whose versions are numbered; every tenth version is a deletion.
class VersionedKeys {
 public:
  explicit VersionedKeys(size_t count) : issued_(count), acknowledged_(count) {}

  static bool IsDeletion(uint64_t version) { return version % 10 == 0; }
  static std::string Value(size_t key, uint64_t version, Random* random) {
    std::string value;
    PutFixed64(&value, key);
    PutFixed64(&value, version);
    value.append(random->OneIn(50) ? random->Uniform(12'000) : random->Uniform(300),
                 static_cast<char>(version));
    return value;
  }

  size_t size() const { return issued_.size(); }
  uint64_t Issue(size_t key) { return issued_[key].fetch_add(1) + 1; }
  void Acknowledge(size_t key, uint64_t version) { acknowledged_[key].store(version); }
  uint64_t acknowledged(size_t key) const { return acknowledged_[key].load(); }

  /// Whether `status` and `value` are what a read of `key` may answer that began when version
  /// `before` was acknowledged. `*version`: what was seen, at least.
  testing::AssertionResult Check(size_t key, uint64_t before, const Status& status,
                                 const Slice& value, uint64_t* version) const {
    const uint64_t after = issued_[key].load();
    *version = before;
    if (status.IsNotFound()) {
      // Nothing written yet, or some deletion that may be the latest.
      for (uint64_t v = before; v <= after; ++v) {
        if (IsDeletion(v)) return testing::AssertionSuccess();
      }
      return testing::AssertionFailure() << "key " << key << " not found, versions " << before
                                         << " to " << after << " are possible";
    }
    if (!status.ok()) return testing::AssertionFailure() << status.ToString();
    if (value.size() < 16) return testing::AssertionFailure() << "short value";
    *version = DecodeFixed64(value.data() + 8);
    if (DecodeFixed64(value.data()) != key) {
      return testing::AssertionFailure()
             << "the value of key " << DecodeFixed64(value.data()) << " for key " << key;
    }
    if (*version < before || *version > after) {
      return testing::AssertionFailure() << "key " << key << " has version " << *version
                                         << ", possible are " << before << " to " << after;
    }
    for (size_t i = 16; i < value.size(); ++i) {
      if (value[i] != static_cast<char>(*version)) {
        return testing::AssertionFailure() << "torn value of key " << key;
      }
    }
    return testing::AssertionSuccess();
  }

 private:
  std::vector<std::atomic<uint64_t>> issued_;
  std::vector<std::atomic<uint64_t>> acknowledged_;
};

TEST_F(DBConcurrencyTest, WritesAreSeenAtOnceAndForEver) {
  const uint64_t seed = TestSeed(2001);
  ASSERT_NO_FATAL_FAILURE(Open());
  constexpr size_t kWriters = 3;
  constexpr size_t kKeysEach = 150;
  const size_t writes = Scaled(20'000);
  VersionedKeys keys(kWriters * kKeysEach);

  const auto write = [&](size_t writer) {
    Random random(seed + writer);
    for (size_t i = 0; i < writes; ++i) {
      // One key, or a batch of several of this writer's keys.
      WriteBatch batch;
      std::vector<std::pair<size_t, uint64_t>> written;
      for (uint64_t n = random.OneIn(10) ? random.Uniform(20) : 1; n > 0; --n) {
        const size_t key = writer * kKeysEach + random.Uniform(kKeysEach);
        const uint64_t version = keys.Issue(key);
        written.emplace_back(key, version);
        ASSERT_TRUE(IsOk(VersionedKeys::IsDeletion(version)
                             ? batch.Delete(Key(key))
                             : batch.Put(Key(key), VersionedKeys::Value(key, version, &random))));
      }
      ASSERT_TRUE(IsOk(db_->Write(NoLog(), &batch)));
      for (const auto& [key, version] : written) keys.Acknowledge(key, version);
      if (written.empty()) continue;
      // No other thread writes this key: it must be exactly the last version.
      const auto& [key, version] = written.back();
      std::string value;
      uint64_t seen = 0;
      const Status status = db_->Get({}, Key(key), &value);
      ASSERT_TRUE(keys.Check(key, version, status, value, &seen)) << "a writer's own write";
      ASSERT_EQ(status.IsNotFound(), VersionedKeys::IsDeletion(version));
    }
  };
  const auto get = [&] {
    Random random(seed + 100);
    std::vector<uint64_t> newest(keys.size());
    while (!done_.load()) {
      const size_t key = random.Uniform(keys.size());
      const uint64_t before = std::max(newest[key], keys.acknowledged(key));
      std::string value;
      const Status status = db_->Get({}, Key(key), &value);
      ASSERT_TRUE(keys.Check(key, before, status, value, &newest[key]));
    }
  };
  const auto multi_get = [&] {
    Random random(seed + 200);
    while (!done_.load()) {
      std::vector<size_t> chosen;
      std::vector<std::string> names;
      std::vector<uint64_t> before;
      for (size_t i = 0; i < 40; ++i) {
        chosen.push_back(random.Uniform(keys.size()));
        names.push_back(Key(chosen.back()));
        before.push_back(keys.acknowledged(chosen.back()));
      }
      std::vector<std::string> values;
      const std::vector<Status> statuses =
          db_->MultiGet({}, std::vector<Slice>(names.begin(), names.end()), &values);
      for (size_t i = 0; i < chosen.size(); ++i) {
        uint64_t seen = 0;
        ASSERT_TRUE(keys.Check(chosen[i], before[i], statuses[i], values[i], &seen));
      }
    }
  };
  const auto scan = [&] {
    bool forward = true;
    while (!done_.load()) {
      std::vector<uint64_t> before(keys.size());
      for (size_t key = 0; key < keys.size(); ++key) before[key] = keys.acknowledged(key);
      std::vector<bool> found(keys.size());
      const auto iterator = db_->NewIterator({});
      forward ? iterator->SeekToFirst() : iterator->SeekToLast();
      std::string last;
      for (; iterator->Valid(); forward ? iterator->Next() : iterator->Prev()) {
        const std::string name = iterator->key().ToString();
        ASSERT_TRUE(last.empty() || (forward ? last < name : name < last)) << "out of order";
        last = name;
        ASSERT_GE(iterator->value().size(), 16u);
        const size_t key = DecodeFixed64(iterator->value().data());
        ASSERT_LT(key, keys.size());
        ASSERT_EQ(name, Key(key));
        found[key] = true;
        uint64_t seen = 0;
        ASSERT_TRUE(keys.Check(key, before[key], Status::OK(), iterator->value(), &seen));
      }
      ASSERT_TRUE(IsOk(iterator->status()));
      for (size_t key = 0; key < keys.size(); ++key) {
        uint64_t seen = 0;
        if (!found[key]) {
          ASSERT_TRUE(keys.Check(key, before[key], Status::NotFound(), {}, &seen)) << "by a scan";
        }
      }
      forward = !forward;
    }
  };
  Run(kWriters, write, {get, multi_get, scan, [&] { Disturb(seed + 300); }});
  EXPECT_TRUE(IsOk(db_->WaitForCompact()));
  EXPECT_TRUE(IsOk(db_->Close()));
}

// ---- Batches ----------------------------------------------------------------------------------

class BatchTest : public DBConcurrencyTest {
 protected:
  static constexpr size_t kGroups = 20;
  static constexpr size_t kMembers = 12;

  static std::string Member(size_t group, size_t member) { return Key(group + member * kGroups); }

  /// Reads the members of a group, as of one state, in one of three ways.
  std::vector<std::string> ReadGroup(size_t group, int way, const Snapshot* snapshot) {
    ReadOptions options;
    options.snapshot = snapshot;
    std::vector<std::string> names;
    std::vector<std::string> values(kMembers, "absent");
    for (size_t i = 0; i < kMembers; ++i) names.push_back(Member(group, i));
    if (way == 0) {
      std::vector<std::string> got;
      const std::vector<Status> statuses =
          db_->MultiGet(options, std::vector<Slice>(names.begin(), names.end()), &got);
      for (size_t i = 0; i < kMembers; ++i) {
        EXPECT_TRUE(statuses[i].ok() || statuses[i].IsNotFound()) << statuses[i].ToString();
        if (statuses[i].ok()) values[i] = got[i];
      }
    } else if (way == 1) {
      const auto iterator = db_->NewIterator(options);
      for (size_t i = 0; i < kMembers; ++i) {
        // Both ways of getting there.
        i % 2 ? iterator->Seek(names[i]) : iterator->SeekForPrev(names[i]);
        EXPECT_TRUE(IsOk(iterator->status()));
        if (iterator->Valid() && iterator->key() == Slice(names[i])) {
          values[i] = iterator->value().ToString();
        }
      }
    } else {
      const Snapshot* own = snapshot == nullptr ? db_->GetSnapshot() : nullptr;
      if (own != nullptr) options.snapshot = own;
      for (size_t i = 0; i < kMembers; ++i) {
        const Status status = db_->Get(options, names[i], &values[i]);
        EXPECT_TRUE(status.ok() || status.IsNotFound()) << status.ToString();
        if (!status.ok()) values[i] = "absent";
      }
      db_->ReleaseSnapshot(own);
    }
    return values;
  }

  void RunBatches(uint64_t seed, size_t writers, size_t writes) {
    // Several writers share the groups: whose batch is last, all of it is.
    const auto write = [&](size_t writer) {
      Random random(seed + writer);
      for (size_t i = 0; i < writes; ++i) {
        const size_t group = random.Uniform(kGroups);
        const bool deletes = random.OneIn(8);
        const std::string value = "writer " + std::to_string(writer) + " write " +
                                  std::to_string(i) + std::string(random.Uniform(600), '.');
        WriteBatch batch;
        for (size_t m = 0; m < kMembers; ++m) {
          ASSERT_TRUE(
              IsOk(deletes ? batch.Delete(Member(group, m)) : batch.Put(Member(group, m), value)));
        }
        ASSERT_TRUE(IsOk(db_->Write(NoLog(), &batch)));
      }
    };
    const auto read = [&](uint64_t number) {
      Random random(seed + 100 + number);
      while (!done_.load()) {
        const size_t group = random.Uniform(kGroups);
        const int way = static_cast<int>(random.Uniform(3));
        const std::vector<std::string> values = ReadGroup(group, way, nullptr);
        for (const std::string& value : values) {
          ASSERT_EQ(value, values[0]) << "half a batch, seen in way " << way;
        }
      }
    };
    const auto hold_snapshots = [&] {
      Random random(seed + 200);
      while (!done_.load()) {
        const Snapshot* snapshot = db_->GetSnapshot();
        std::vector<std::vector<std::string>> first;
        for (size_t group = 0; group < kGroups; ++group) {
          first.push_back(ReadGroup(group, static_cast<int>(random.Uniform(3)), snapshot));
          for (const std::string& value : first.back()) ASSERT_EQ(value, first.back()[0]);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(random.Uniform(30)));
        for (size_t group = 0; group < kGroups; ++group) {
          for (int way = 0; way < 3; ++way) {
            ASSERT_EQ(ReadGroup(group, way, snapshot), first[group])
                << "a snapshot read twice, in way " << way;
          }
        }
        db_->ReleaseSnapshot(snapshot);
      }
    };
    Run(writers, write,
        {[&] { read(0); }, [&] { read(1); }, hold_snapshots, [&] { Disturb(seed + 300); }});
    EXPECT_TRUE(IsOk(db_->WaitForCompact()));
    EXPECT_TRUE(IsOk(db_->Close()));
  }
};

TEST_F(BatchTest, AllOrNothingWithCompactionOnNodes) {
  const uint64_t seed = TestSeed(2101);
  ASSERT_NO_FATAL_FAILURE(
      Open([](Options* options) { options->compaction = CompactionSite::kAuto; }));
  RunBatches(seed, 3, Scaled(8'000));
}

TEST_F(BatchTest, AllOrNothingWithCompactionHere) {
  const uint64_t seed = TestSeed(2102);
  ASSERT_NO_FATAL_FAILURE(Open([](Options* options) {
    options->compaction = CompactionSite::kCompute;
    options->redundancy = "rep(2)";
  }));
  RunBatches(seed, 2, Scaled(8'000));
}

TEST_F(BatchTest, AllOrNothingWithTiersThatChange) {
  // Tables lose and regain their point index while they are read.
  const uint64_t seed = TestSeed(2103);
  ASSERT_NO_FATAL_FAILURE(Open([](Options* options) {
    options->index_memory_budget = 6'000;
    options->max_subcompactions = 3;
  }));
  RunBatches(seed, 2, Scaled(8'000));
}

// ---- Odds and ends ----------------------------------------------------------------------------

TEST_F(DBConcurrencyTest, ManyThreadsOnOneKey) {
  const uint64_t seed = TestSeed(2201);
  ASSERT_NO_FATAL_FAILURE(Open());
  std::atomic<uint64_t> next{0};
  const size_t writes = Scaled(20'000);
  const auto write = [&](size_t) {
    for (size_t i = 0; i < writes; ++i) {
      ASSERT_TRUE(IsOk(db_->Put(NoLog(), "counter", std::to_string(next.fetch_add(1)))));
    }
  };
  const auto read = [&] {
    SequenceNumber sequence = 0;
    std::string value;
    while (!done_.load()) {
      const Status status = db_->Get({}, "counter", &value);
      ASSERT_TRUE(status.ok() || (status.IsNotFound() && sequence == 0)) << status.ToString();
      const SequenceNumber now = db_->GetLatestSequenceNumber();
      ASSERT_GE(now, sequence) << "the published sequence went back";
      sequence = now;
      if (status.ok()) {
        ASSERT_LT(std::stoull(value), next.load());
      }
    }
  };
  Run(4, write, {read, read, [&] { Disturb(seed); }});
  EXPECT_EQ(db_->GetLatestSequenceNumber(), 4 * writes);
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  // All versions but the last are gone.
  EXPECT_EQ(GetNumber(db_.get(), "nacre.num-live-tables"), 1u);
  EXPECT_EQ(GetNumber(db_.get(), "nacre.estimate-num-keys"), 1u);
}

TEST_F(DBConcurrencyTest, IteratorsAndSnapshotsOutliveWhatTheyWereMadeFrom) {
  const uint64_t seed = TestSeed(2202);
  ASSERT_NO_FATAL_FAILURE(Open());
  const size_t rounds = Scaled(300);
  const auto work = [&](size_t worker) {
    Random random(seed + worker);
    for (size_t round = 0; round < rounds; ++round) {
      const std::string prefix = "worker" + std::to_string(worker) + "/";
      const std::string value = TestValue(round, 200);
      for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(IsOk(db_->Put(NoLog(), prefix + std::to_string(i), value)));
      }
      const Snapshot* snapshot = db_->GetSnapshot();
      ReadOptions options;
      options.snapshot = snapshot;
      const auto iterator = db_->NewIterator(options);
      // An iterator keeps its state although the snapshot it was made with is gone.
      db_->ReleaseSnapshot(snapshot);
      for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(IsOk(db_->Delete(NoLog(), prefix + std::to_string(i))));
      }
      if (random.OneIn(10)) {
        ASSERT_TRUE(IsOk(db_->Flush({})));
      }
      int seen = 0;
      for (iterator->Seek(prefix); iterator->Valid(); iterator->Next()) {
        if (!iterator->key().starts_with(prefix)) break;
        ASSERT_TRUE(iterator->value() == Slice(value));
        ++seen;
      }
      ASSERT_TRUE(IsOk(iterator->status()));
      ASSERT_EQ(seen, 100);
    }
  };
  Run(3, work, {[&] { Disturb(seed + 100); }});
}

}  // namespace
}  // namespace nacre
