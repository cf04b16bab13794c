// Goal: a database that is copied while it is written to is copied whole: each target has the
// newest version of each key of its range as of the end, with what was written, merged and deleted
// between any two rounds, and nothing of other ranges. It is not taken for a database before that.
// Method: a model; random updates of all kinds, flushes and compactions between and during rounds,
// in small tables; targets are read, closed, opened and read again. Seeds replay.

#include "db/copy/database_copier.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "nacre/db.h"
#include "nacre/merge_operator.h"
#include "tests/support/process/served_nodes.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {
namespace {

using Model = std::map<std::string, std::string>;

/// Appends operands, so that one that is merged twice, or not, shows.
class AppendingOperator final : public AssociativeMergeOperator {
 public:
  bool Merge(const Slice& /*key*/, const Slice* existing, const Slice& operand, std::string* value,
             Logger* /*logger*/) const override {
    value->assign(existing == nullptr ? "" : existing->ToString());
    value->append(operand.data(), operand.size());
    return true;
  }
  const char* Name() const override { return "Appending"; }
};

std::string KeyOf(uint64_t number) {
  std::string key = std::to_string(number);
  return std::string(4 - key.size(), '0') + key;
}

class DatabaseCopierTest : public testing::Test {
 protected:
  static constexpr uint64_t kKeys = 600;

  void SetUp() override { Use(OpenTestPool()); }

  void Use(std::shared_ptr<pool::PoolImpl> pool) {
    ASSERT_NE(pool, nullptr);
    options_ = SmallTableOptions(std::move(pool));
    options_.write_buffer_size = 128 << 10;
    options_.merge_operator = std::make_shared<AppendingOperator>();
  }

  Status OpenSource(const std::string& name, std::unique_ptr<DB>* db) {
    NACRE_RETURN_IF_ERROR(DB::Open(options_, name, db));
    return Status::OK();
  }
  static DBImpl* EngineIn(const std::unique_ptr<DB>& db) { return dynamic_cast<DBImpl*>(db.get()); }

  Status OpenTarget(DBImpl* source, const std::string& name, std::unique_ptr<DBImpl>* target) {
    return DatabaseCopier::OpenTarget(source, options_, name,
                                      {ColumnFamilyDescriptor(kDefaultColumnFamilyName, options_)},
                                      target);
  }

  /// One random update of a key in [first, first + count).
  void Update(DB* db, uint64_t first, uint64_t count, Random* random, Model* model) {
    const std::string key = KeyOf(first + random->Uniform(count));
    const std::string value = std::string(random->Uniform(200), 'v') + std::to_string(++written_);
    const uint64_t kind = random->Uniform(100);
    if (kind < 50) {
      ASSERT_TRUE(IsOk(db->Put({}, key, value)));
      (*model)[key] = value;
    } else if (kind < 75) {
      ASSERT_TRUE(IsOk(db->Merge({}, key, value)));
      (*model)[key] += value;
    } else if (kind < 96) {
      ASSERT_TRUE(IsOk(db->Delete({}, key)));
      model->erase(key);
    } else if (kind < 98) {
      const std::string end = KeyOf(first + count - random->Uniform(count));
      if (end <= key) return;
      ASSERT_TRUE(IsOk(db->DeleteRange({}, db->DefaultColumnFamily(), key, end)));
      model->erase(model->lower_bound(key), model->lower_bound(end));
    } else if (kind < 99) {
      ASSERT_TRUE(IsOk(db->Flush({})));
    } else {
      ASSERT_TRUE(IsOk(db->CompactRange({}, nullptr, nullptr, nullptr)));
    }
  }

  static void ExpectIs(DB* db, const Model& model, const std::string& begin,
                       const std::string& end) {
    const std::unique_ptr<Iterator> it = db->NewIterator({}, db->DefaultColumnFamily());
    auto expected = model.lower_bound(begin);
    const auto last = end.empty() ? model.end() : model.lower_bound(end);
    for (it->SeekToFirst(); it->Valid(); it->Next(), ++expected) {
      ASSERT_TRUE(expected != last) << "surplus: " << it->key().ToString();
      ASSERT_EQ(it->key().ToString(), expected->first);
      ASSERT_EQ(it->value().ToString(), expected->second);
    }
    ASSERT_TRUE(IsOk(it->status()));
    EXPECT_TRUE(expected == last) << "missing: " << expected->first;
    std::string value;
    for (auto each = model.lower_bound(begin); each != last; ++each) {
      ASSERT_TRUE(IsOk(db->Get({}, each->first, &value)));
      ASSERT_EQ(value, each->second);
    }
  }

  /// Makes `target` a database, goes on writing to it, and opens it once more.
  void ExpectGoesOn(std::unique_ptr<DBImpl> target, SequenceNumber copied, uint64_t first,
                    uint64_t count, const std::string& begin, const std::string& end,
                    const Model& model, Random* random) {
    const std::string name = target->GetName();
    DatabaseCopier::StartWritesAfter(copied, target.get());
    ASSERT_TRUE(IsOk(DatabaseCopier::Finish(target.get())));
    ASSERT_NO_FATAL_FAILURE(ExpectIs(target.get(), model, begin, end));
    Model later = model;
    for (int i = 0; i < 300; ++i) {
      ASSERT_NO_FATAL_FAILURE(Update(target.get(), first, count, random, &later));
    }
    ASSERT_NO_FATAL_FAILURE(ExpectIs(target.get(), later, begin, end));
    ASSERT_TRUE(IsOk(target->Close()));
    target.reset();
    std::unique_ptr<DB> again;
    ASSERT_TRUE(IsOk(DB::Open(options_, name, &again)));
    ASSERT_NO_FATAL_FAILURE(ExpectIs(again.get(), later, begin, end));
    ASSERT_TRUE(IsOk(again->CompactRange({}, nullptr, nullptr, nullptr)));
    ASSERT_NO_FATAL_FAILURE(ExpectIs(again.get(), later, begin, end));
  }

  void SplitWhileWritten(uint64_t seed, bool beside) {
    Random random(seed);
    std::unique_ptr<DB> source;
    const std::string name = "s" + std::to_string(seed);
    ASSERT_TRUE(IsOk(OpenSource(name, &source)));
    Model model;
    const auto write = [&](uint64_t updates) {
      for (uint64_t i = 0; i < updates; ++i) {
        ASSERT_NO_FATAL_FAILURE(Update(source.get(), 0, kKeys, &random, &model));
      }
    };
    ASSERT_NO_FATAL_FAILURE(write(random.Uniform(4000)));
    std::unique_ptr<DBImpl> low;
    std::unique_ptr<DBImpl> high;
    ASSERT_TRUE(IsOk(OpenTarget(EngineIn(source), name + "low", &low)));
    ASSERT_TRUE(IsOk(OpenTarget(EngineIn(source), name + "high", &high)));
    const uint64_t cut = random.Uniform(kKeys);
    DatabaseCopier copier(EngineIn(source),
                          {{low.get(), std::nullopt, KeyOf(cut)}, {high.get(), KeyOf(cut), {}}});
    const uint64_t rounds = 1 + random.Uniform(5);
    uint64_t entries = 0;
    for (uint64_t round = 0; round < rounds; ++round) {
      Status status;
      if (beside) {
        std::atomic<bool> done{false};
        std::thread copying([&] {
          status = copier.Round(&entries);
          done = true;
        });
        while (!done) write(20);
        copying.join();
      } else {
        status = copier.Round(&entries);
      }
      ASSERT_TRUE(IsOk(status));
      ASSERT_NO_FATAL_FAILURE(write(random.Uniform(1500)));
    }
    ASSERT_TRUE(IsOk(copier.Round(&entries)));
    // Nothing has come since.
    ASSERT_TRUE(IsOk(copier.Round(&entries)));
    EXPECT_EQ(entries, 0u);
    const SequenceNumber copied = copier.copied();
    if (cut > 0) {
      ExpectGoesOn(std::move(low), copied, 0, cut, "", KeyOf(cut), model, &random);
      if (HasFatalFailure()) return;
    }
    ExpectGoesOn(std::move(high), copied, cut, kKeys - cut, KeyOf(cut), "", model, &random);
  }

  Options options_;
  uint64_t written_ = 0;
};

TEST_F(DatabaseCopierTest, RangesOfADatabaseThatIsWrittenBetweenRounds) {
  const uint64_t first = TestSeed(1);
  for (uint64_t seed = first; seed < first + 12; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    ASSERT_NO_FATAL_FAILURE(SplitWhileWritten(seed, /*beside=*/false));
  }
}

TEST_F(DatabaseCopierTest, RangesOfADatabaseThatIsWrittenDuringRounds) {
  const uint64_t first = TestSeed(1);
  for (uint64_t seed = first; seed < first + 6; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    ASSERT_NO_FATAL_FAILURE(SplitWhileWritten(seed, /*beside=*/true));
  }
}

TEST_F(DatabaseCopierTest, OnNodesWithALog) {
  const ServedNodes nodes(4, 128 << 20, 1 << 20);
  std::vector<std::string> addresses;
  for (size_t i = 0; i < 4; ++i) addresses.push_back(nodes.address(i));
  ASSERT_NO_FATAL_FAILURE(Use(ConnectTestPool(PoolUriOf(addresses))));
  options_.redundancy = "rs(2,1)";
  ASSERT_NO_FATAL_FAILURE(SplitWhileWritten(TestSeed(1), /*beside=*/true));
  options_.pool.reset();
}

TEST_F(DatabaseCopierTest, TwoDatabasesIntoOne) {
  Random random(TestSeed(1));
  constexpr uint64_t kCut = 200;
  std::unique_ptr<DB> sources[2];
  Model model;
  ASSERT_TRUE(IsOk(OpenSource("low", sources)));
  ASSERT_TRUE(IsOk(OpenSource("high", sources + 1)));
  const auto write = [&](int updates) {
    for (int i = 0; i < updates; ++i) {
      ASSERT_NO_FATAL_FAILURE(Update(sources[0].get(), 0, kCut, &random, &model));
      ASSERT_NO_FATAL_FAILURE(Update(sources[1].get(), kCut, kKeys - kCut, &random, &model));
    }
  };
  ASSERT_NO_FATAL_FAILURE(write(2000));
  std::unique_ptr<DBImpl> target;
  ASSERT_TRUE(IsOk(OpenTarget(EngineIn(sources[0]), "both", &target)));
  DatabaseCopier low(EngineIn(sources[0]), {{target.get(), std::nullopt, KeyOf(kCut)}});
  DatabaseCopier high(EngineIn(sources[1]), {{target.get(), KeyOf(kCut), std::nullopt}});
  uint64_t entries = 0;
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(IsOk(low.Round(&entries)));
    ASSERT_NO_FATAL_FAILURE(write(300));
    ASSERT_TRUE(IsOk(high.Round(&entries)));
    ASSERT_NO_FATAL_FAILURE(write(300));
  }
  ASSERT_TRUE(IsOk(low.Round(&entries)));
  ASSERT_TRUE(IsOk(high.Round(&entries)));
  ExpectGoesOn(std::move(target), std::max(low.copied(), high.copied()), 0, kKeys, "", "", model,
               &random);
}

TEST_F(DatabaseCopierTest, FamiliesAreToldByTheirNames) {
  std::unique_ptr<DB> source;
  ASSERT_TRUE(IsOk(OpenSource("source", &source)));
  ColumnFamilyHandle* handle = nullptr;
  ASSERT_TRUE(IsOk(source->CreateColumnFamily(options_, "other", &handle)));
  const std::unique_ptr<ColumnFamilyHandle> other(handle);
  ASSERT_TRUE(IsOk(source->Put({}, "a", "default")));
  ASSERT_TRUE(IsOk(source->Put({}, other.get(), "a", "other")));
  std::unique_ptr<DBImpl> target;
  const std::vector<ColumnFamilyDescriptor> families = {
      ColumnFamilyDescriptor(kDefaultColumnFamilyName, options_),
      ColumnFamilyDescriptor("other", options_)};
  ASSERT_TRUE(
      IsOk(DatabaseCopier::OpenTarget(EngineIn(source), options_, "target", families, &target)));
  DatabaseCopier copier(EngineIn(source), {{target.get(), std::nullopt, std::nullopt}});
  uint64_t entries = 0;
  ASSERT_TRUE(IsOk(copier.Round(&entries)));
  EXPECT_EQ(entries, 2u);
  DatabaseCopier::StartWritesAfter(copier.copied(), target.get());
  ASSERT_TRUE(IsOk(DatabaseCopier::Finish(target.get())));
  ASSERT_TRUE(IsOk(target->Close()));
  std::unique_ptr<DB> db;
  std::vector<ColumnFamilyHandle*> handles;
  ASSERT_TRUE(IsOk(DB::Open(options_, "target", families, &handles, &db)));
  std::string value;
  ASSERT_TRUE(IsOk(db->Get({}, handles[0], "a", &value)));
  EXPECT_EQ(value, "default");
  ASSERT_TRUE(IsOk(db->Get({}, handles[1], "a", &value)));
  EXPECT_EQ(value, "other");
  for (ColumnFamilyHandle* each : handles) delete each;
}

TEST_F(DatabaseCopierTest, WhatIsNotFinishedIsNoDatabase) {
  std::unique_ptr<DB> source;
  ASSERT_TRUE(IsOk(OpenSource("source", &source)));
  ASSERT_TRUE(IsOk(source->Put({}, "a", "1")));
  std::unique_ptr<DBImpl> target;
  ASSERT_TRUE(IsOk(OpenTarget(EngineIn(source), "target", &target)));
  {
    DatabaseCopier copier(EngineIn(source), {{target.get(), std::nullopt, std::nullopt}});
    uint64_t entries = 0;
    ASSERT_TRUE(IsOk(copier.Round(&entries)));
  }
  ASSERT_TRUE(IsOk(target->Close()));
  target.reset();
  std::unique_ptr<DB> db;
  EXPECT_TRUE(DB::Open(options_, "target", &db).IsIncomplete());
  ASSERT_TRUE(IsOk(DestroyDB("target", options_)));
}

}  // namespace
}  // namespace nacre
