// Goal: column families are maps of their own, with their own options and orders, that share one
// log and one sequence: they are made, written, flushed, compacted, dropped and opened again, one
// batch changes several of them at once, and what is wrong is refused as RocksDB refuses it.
// Method: databases on embedded pools, and models of std::map beside them; what is dropped is
// looked for in the space of the nodes.

#include "nacre/column_family.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nacre/db.h"
#include "tests/support/comparators.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {
namespace {

using Model = std::map<std::string, std::string>;

class ColumnFamilyTest : public testing::Test {
 protected:
  void SetUp() override {
    pool_ = OpenTestPool();
    ASSERT_NE(pool_, nullptr);
    options_ = SmallTableOptions(pool_);
    options_.create_if_missing = true;
  }
  void TearDown() override { ASSERT_NO_FATAL_FAILURE(Close()); }

  ColumnFamilyDescriptor Named(const std::string& name) const { return {name, options_}; }
  std::vector<ColumnFamilyDescriptor> All(const std::vector<std::string>& names) const {
    std::vector<ColumnFamilyDescriptor> families;
    for (const std::string& name : names) families.push_back(Named(name));
    return families;
  }
  Status TryOpen(const std::vector<ColumnFamilyDescriptor>& families) {
    return DB::Open(options_, "db", families, &handles_, &db_);
  }
  void Open(const std::vector<std::string>& names) {
    ASSERT_TRUE(IsOk(TryOpen(All(names))));
    ASSERT_EQ(handles_.size(), names.size());
    for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(handles_[i]->GetName(), names[i]);
  }
  void Close() {
    if (db_ == nullptr) return;
    for (ColumnFamilyHandle* handle : handles_) {
      ASSERT_TRUE(IsOk(db_->DestroyColumnFamilyHandle(handle)));
    }
    handles_.clear();
    ASSERT_TRUE(IsOk(db_->Close()));
    db_.reset();
  }
  ColumnFamilyHandle* Create(const std::string& name) {
    ColumnFamilyHandle* handle = nullptr;
    EXPECT_TRUE(IsOk(db_->CreateColumnFamily(options_, name, &handle)));
    handles_.push_back(handle);
    return handle;
  }

  std::string Get(ColumnFamilyHandle* family, const std::string& key) {
    std::string value;
    const Status status = db_->Get({}, family, key, &value);
    if (status.IsNotFound()) return "(none)";
    return status.ok() ? value : status.ToString();
  }
  Model ReadAll(ColumnFamilyHandle* family) {
    Model all;
    const std::unique_ptr<Iterator> it = db_->NewIterator({}, family);
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      all.emplace(it->key().ToString(), it->value().ToString());
    }
    EXPECT_TRUE(IsOk(it->status()));
    return all;
  }
  /// `count` updates of the family and its model.
  void Fill(ColumnFamilyHandle* family, Model* model, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const std::string key = "key" + std::to_string(random_.Uniform(2000));
      if (random_.Uniform(5) == 0) {
        ASSERT_TRUE(IsOk(db_->Delete({}, family, key)));
        model->erase(key);
        continue;
      }
      const std::string value = TestValue(random_.Next(), 100 + random_.Uniform(400));
      ASSERT_TRUE(IsOk(db_->Put({}, family, key, value)));
      (*model)[key] = value;
    }
  }
  void Check(ColumnFamilyHandle* family, const Model& model) {
    EXPECT_EQ(ReadAll(family), model) << family->GetName();
    for (int i = 0; i < 100; ++i) {
      const std::string key = "key" + std::to_string(random_.Uniform(2000));
      const auto it = model.find(key);
      EXPECT_EQ(Get(family, key), it == model.end() ? "(none)" : it->second);
    }
  }

  Random random_{TestSeed(8101)};
  std::shared_ptr<pool::PoolImpl> pool_;
  Options options_;
  std::unique_ptr<DB> db_;
  std::vector<ColumnFamilyHandle*> handles_;
};

TEST_F(ColumnFamilyTest, FamiliesAreMapsOfTheirOwn) {
  ASSERT_NO_FATAL_FAILURE(Open({"default"}));
  ColumnFamilyHandle* a = Create("a");
  ColumnFamilyHandle* b = Create("b");
  EXPECT_EQ(db_->DefaultColumnFamily()->GetID(), 0u);
  EXPECT_EQ(db_->DefaultColumnFamily()->GetName(), kDefaultColumnFamilyName);
  EXPECT_EQ(a->GetID(), 1u);
  EXPECT_EQ(b->GetID(), 2u);
  ASSERT_TRUE(IsOk(db_->Put({}, "k", "of default")));
  ASSERT_TRUE(IsOk(db_->Put({}, a, "k", "of a")));
  EXPECT_EQ(Get(nullptr, "k"), "of default");
  EXPECT_EQ(Get(db_->DefaultColumnFamily(), "k"), "of default");
  EXPECT_EQ(Get(a, "k"), "of a");
  EXPECT_EQ(Get(b, "k"), "(none)");
  ASSERT_TRUE(IsOk(db_->Delete({}, a, "k")));
  EXPECT_EQ(Get(a, "k"), "(none)");
  EXPECT_EQ(Get(nullptr, "k"), "of default");
}

TEST_F(ColumnFamilyTest, AllIsThereAfterFlushesCompactionsAndReopening) {
  ASSERT_NO_FATAL_FAILURE(Open({"default"}));
  Create("a");
  Create("b");
  Create("empty");
  std::map<std::string, Model> models;
  for (int round = 0; round < 4; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    for (ColumnFamilyHandle* handle : handles_) {
      if (handle->GetName() == "empty") continue;
      ASSERT_NO_FATAL_FAILURE(Fill(handle, &models[handle->GetName()], Scaled(1500)));
    }
    if (round == 1) {
      ASSERT_TRUE(IsOk(db_->Flush({}, handles_[1])));
    } else if (round == 2) {
      ASSERT_TRUE(IsOk(db_->CompactRange({}, handles_[2], nullptr, nullptr)));
    }
    for (ColumnFamilyHandle* handle : handles_) {
      ASSERT_NO_FATAL_FAILURE(Check(handle, models[handle->GetName()]));
    }
    ASSERT_NO_FATAL_FAILURE(Close());
    ASSERT_NO_FATAL_FAILURE(Open({"b", "default", "empty", "a"}));
    for (ColumnFamilyHandle* handle : handles_) {
      ASSERT_NO_FATAL_FAILURE(Check(handle, models[handle->GetName()]));
    }
  }
  ASSERT_TRUE(IsOk(db_->VerifyChecksum()));
  std::vector<std::string> names;
  ASSERT_TRUE(IsOk(DB::ListColumnFamilies(options_, "db", &names)));
  EXPECT_EQ(names, (std::vector<std::string>{"default", "a", "b", "empty"}));
}

TEST_F(ColumnFamilyTest, AllFamiliesHaveToBeNamed) {
  ASSERT_NO_FATAL_FAILURE(Open({"default"}));
  Create("a");
  Create("b");
  ASSERT_NO_FATAL_FAILURE(Close());

  Status status = TryOpen(All({"default"}));
  EXPECT_TRUE(status.IsInvalidArgument());
  EXPECT_NE(status.ToString().find("Column families not opened: a, b"), std::string::npos)
      << status.ToString();
  EXPECT_TRUE(DB::Open(options_, "db", &db_).IsInvalidArgument());
  EXPECT_TRUE(TryOpen(All({"a", "b"})).IsInvalidArgument());
  EXPECT_TRUE(TryOpen(All({"default", "a", "b", "a"})).IsInvalidArgument());
  status = TryOpen(All({"default", "a", "b", "c"}));
  EXPECT_TRUE(status.IsInvalidArgument());
  EXPECT_NE(status.ToString().find("Column family not found: c"), std::string::npos)
      << status.ToString();
  EXPECT_EQ(db_, nullptr);
  options_.create_missing_column_families = true;
  ASSERT_NO_FATAL_FAILURE(Open({"default", "a", "b", "c"}));
  EXPECT_EQ(handles_[3]->GetID(), 3u);
}

TEST_F(ColumnFamilyTest, ANewDatabaseHasTheFamiliesThatItIsOpenedWith) {
  const Status status = TryOpen(All({"default", "a"}));
  EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
  options_.create_missing_column_families = true;
  ASSERT_NO_FATAL_FAILURE(Open({"a", "default"}));
  ASSERT_TRUE(IsOk(db_->Put({}, handles_[0], "k", "v")));
  EXPECT_EQ(Get(nullptr, "k"), "(none)");
  ASSERT_NO_FATAL_FAILURE(Close());
  ASSERT_NO_FATAL_FAILURE(Open({"default", "a"}));
  EXPECT_EQ(Get(handles_[1], "k"), "v");
  std::vector<std::string> names;
  EXPECT_TRUE(DB::ListColumnFamilies(options_, "another", &names).IsNotFound());
}

TEST_F(ColumnFamilyTest, ThreadsWriteAllFamiliesWhileGenerationsEnd) {
  options_.write_buffer_size = 128 << 10;
  ASSERT_NO_FATAL_FAILURE(Open({"default"}));
  Create("a");
  Create("b");
  constexpr uint64_t kThreads = 4;
  const uint64_t batches = Scaled(600);
  std::vector<std::thread> writers;
  for (uint64_t t = 0; t < kThreads; ++t) {
    writers.emplace_back([&, t] {
      for (uint64_t i = 0; i < batches; ++i) {
        const std::string key = std::to_string(t) + "/" + std::to_string(i % 50);
        // One family alone, two of them, or all, so that others have nothing in a generation.
        WriteBatch batch;
        for (size_t f = 0; f < handles_.size(); ++f) {
          if (i % 7 == f) continue;
          ASSERT_TRUE(IsOk(batch.Put(handles_[f], key, TestValue(i, 300))));
        }
        ASSERT_TRUE(IsOk(db_->Write({}, &batch)));
        ASSERT_TRUE(IsOk(db_->Put({}, handles_[i % 3], key + "/last", std::to_string(i))));
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  for (int round = 0; round < 2; ++round) {
    for (uint64_t t = 0; t < kThreads; ++t) {
      for (size_t f = 0; f < handles_.size(); ++f) {
        for (uint64_t k = 0; k < 50; ++k) {
          const std::string key = std::to_string(t) + "/" + std::to_string(k);
          uint64_t last = UINT64_MAX;
          uint64_t last_alone = UINT64_MAX;
          for (uint64_t i = k; i < batches; i += 50) {
            if (i % 7 != f) last = i;
            if (i % 3 == f) last_alone = i;
          }
          ASSERT_EQ(Get(handles_[f], key), last == UINT64_MAX ? "(none)" : TestValue(last, 300));
          ASSERT_EQ(Get(handles_[f], key + "/last"),
                    last_alone == UINT64_MAX ? "(none)" : std::to_string(last_alone));
        }
      }
    }
    ASSERT_NO_FATAL_FAILURE(Close());
    ASSERT_NO_FATAL_FAILURE(Open({"default", "a", "b"}));
  }
}

TEST_F(ColumnFamilyTest, WhatIsWrongIsRefused) {
  ASSERT_NO_FATAL_FAILURE(Open({"default"}));
  ColumnFamilyHandle* a = Create("a");
  ColumnFamilyHandle* made = nullptr;
  EXPECT_TRUE(db_->CreateColumnFamily(options_, "a", &made).IsInvalidArgument());
  EXPECT_TRUE(db_->CreateColumnFamily(options_, "default", &made).IsInvalidArgument());
  EXPECT_TRUE(db_->CreateColumnFamily(options_, "", &made).IsInvalidArgument());
  ColumnFamilyOptions bad = options_;
  bad.comparator = nullptr;
  EXPECT_TRUE(db_->CreateColumnFamily(bad, "c", &made).IsInvalidArgument());
  EXPECT_EQ(made, nullptr);
  EXPECT_TRUE(db_->DropColumnFamily(db_->DefaultColumnFamily()).IsInvalidArgument());
  EXPECT_TRUE(db_->DropColumnFamily(nullptr).IsInvalidArgument());

  // A handle of another database.
  std::unique_ptr<DB> other;
  std::vector<ColumnFamilyHandle*> others;
  ASSERT_TRUE(IsOk(DB::Open(options_, "other", All({"default"}), &others, &other)));
  ColumnFamilyHandle* of_other = nullptr;
  ASSERT_TRUE(IsOk(other->CreateColumnFamily(options_, "a", &of_other)));
  others.push_back(of_other);
  EXPECT_TRUE(db_->Put({}, of_other, "k", "v").IsInvalidArgument());
  EXPECT_NE(Get(of_other, "k").find("another database"), std::string::npos);
  EXPECT_TRUE(db_->Flush({}, of_other).IsInvalidArgument());
  EXPECT_TRUE(db_->DropColumnFamily(of_other).IsInvalidArgument());
  // A batch has ids, of which it cannot be told whose they are; one that there is not is refused.
  ColumnFamilyHandle* third = nullptr;
  ASSERT_TRUE(IsOk(other->CreateColumnFamily(options_, "third", &third)));
  others.push_back(third);
  WriteBatch batch;
  ASSERT_TRUE(IsOk(batch.Put(a, "k", "v")));
  ASSERT_TRUE(IsOk(batch.Put(third, "k", "v")));
  EXPECT_TRUE(db_->Write({}, &batch).IsInvalidArgument());
  EXPECT_EQ(Get(a, "k"), "(none)");
  for (ColumnFamilyHandle* handle : others) {
    ASSERT_TRUE(IsOk(other->DestroyColumnFamilyHandle(handle)));
  }
}

TEST_F(ColumnFamilyTest, SeveralAreMadeAndDroppedByOneChangeOrNoneIs) {
  constexpr size_t kMany = 100;
  ASSERT_NO_FATAL_FAILURE(Open({"default"}));
  const auto changes = [this] {
    uint64_t edits = 0;
    EXPECT_TRUE(db_->GetIntProperty("nacre.manifest.edits", &edits));
    return edits;
  };
  uint64_t before = changes();
  ColumnFamilyHandle* a = Create("a");
  const uint64_t for_one = changes() - before;
  std::vector<std::string> names;
  for (size_t i = 0; i < kMany; ++i) names.push_back("many" + std::to_string(i));
  std::vector<ColumnFamilyHandle*> made{a};
  ASSERT_TRUE(IsOk(db_->CreateColumnFamilies(options_, {}, &made)));
  EXPECT_TRUE(made.empty());

  // One of them cannot be made, so none is.
  std::vector<ColumnFamilyDescriptor> wrong = {Named("x"), Named("y"), Named("a")};
  EXPECT_TRUE(db_->CreateColumnFamilies(wrong, &made).IsInvalidArgument());
  wrong.back() = Named("x");
  EXPECT_TRUE(db_->CreateColumnFamilies(wrong, &made).IsInvalidArgument());
  wrong.back() = Named("z");
  wrong.back().options.comparator = nullptr;
  EXPECT_TRUE(db_->CreateColumnFamilies(wrong, &made).IsInvalidArgument());
  EXPECT_TRUE(made.empty());

  before = changes();
  ASSERT_TRUE(IsOk(db_->CreateColumnFamilies(options_, names, &made)));
  EXPECT_EQ(changes(), before + for_one);
  ASSERT_EQ(made.size(), kMany);
  for (size_t i = 0; i < kMany; ++i) {
    EXPECT_EQ(made[i]->GetName(), names[i]);
    EXPECT_EQ(made[i]->GetID(), a->GetID() + 1 + i);
    ASSERT_TRUE(IsOk(db_->Put({}, made[i], "k", names[i])));
  }
  ASSERT_TRUE(IsOk(db_->Put({}, a, "k", "of a")));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  std::vector<std::string> all = {"default", "a"};
  all.insert(all.end(), names.begin(), names.end());
  handles_.insert(handles_.end(), made.begin(), made.end());
  ASSERT_NO_FATAL_FAILURE(Close());
  ASSERT_NO_FATAL_FAILURE(Open(all));
  for (size_t i = 0; i < kMany; ++i) EXPECT_EQ(Get(handles_[2 + i], "k"), names[i]);

  const std::vector<ColumnFamilyHandle*> many(handles_.begin() + 2, handles_.end());
  std::vector<ColumnFamilyHandle*> not_all = many;
  not_all.push_back(db_->DefaultColumnFamily());
  EXPECT_TRUE(db_->DropColumnFamilies(not_all).IsInvalidArgument());
  not_all.back() = many.front();
  EXPECT_TRUE(db_->DropColumnFamilies(not_all).IsInvalidArgument());
  EXPECT_TRUE(IsOk(db_->Put({}, many.front(), "k", names[0])));
  before = changes();
  ASSERT_TRUE(IsOk(db_->DropColumnFamilies(many)));
  EXPECT_EQ(changes(), before + for_one);
  for (size_t i = 0; i < kMany; ++i) {
    EXPECT_TRUE(db_->Put({}, many[i], "k", "late").IsInvalidArgument());
    EXPECT_EQ(Get(many[i], "k"), names[i]);
  }
  EXPECT_TRUE(db_->DropColumnFamilies({handles_[1], many.front()}).IsInvalidArgument());
  ASSERT_NO_FATAL_FAILURE(Close());
  ASSERT_NO_FATAL_FAILURE(Open({"default", "a"}));
  EXPECT_EQ(Get(handles_[1], "k"), "of a");
}

TEST_F(ColumnFamilyTest, ABatchChangesAllOfThemAtOnce) {
  ASSERT_NO_FATAL_FAILURE(Open({"default"}));
  ColumnFamilyHandle* a = Create("a");
  ColumnFamilyHandle* b = Create("b");
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (uint64_t round = 1; !stop.load(); ++round) {
      WriteBatch batch;
      const std::string value = std::to_string(round) + "/" + TestValue(round, 300);
      for (ColumnFamilyHandle* family : {static_cast<ColumnFamilyHandle*>(nullptr), a, b}) {
        ASSERT_TRUE(IsOk(batch.Put(family, "k", value)));
      }
      ASSERT_TRUE(IsOk(db_->Write({}, &batch)));
    }
  });
  const auto number = [](const std::string& value) { return value.substr(0, value.find('/')); };
  for (uint64_t i = 0; i < Scaled(3000); ++i) {
    std::vector<std::string> values;
    const std::vector<Status> statuses =
        db_->MultiGet({}, {nullptr, a, b}, {"k", "k", "k"}, &values);
    EXPECT_EQ(number(values[0]), number(values[1]));
    EXPECT_EQ(number(values[0]), number(values[2]));
    if (i % 16 != 0) continue;
    std::vector<std::unique_ptr<Iterator>> iterators;
    ASSERT_TRUE(IsOk(db_->NewIterators({}, {nullptr, a, b}, &iterators)));
    std::vector<std::string> seen;
    for (const auto& it : iterators) {
      it->SeekToFirst();
      seen.push_back(it->Valid() ? number(it->value().ToString()) : "");
    }
    EXPECT_EQ(seen[0], seen[1]);
    EXPECT_EQ(seen[0], seen[2]);
  }
  stop.store(true);
  writer.join();
}

TEST_F(ColumnFamilyTest, ADroppedFamilyIsReadAsLongAsItsHandleIsThere) {
  ASSERT_NO_FATAL_FAILURE(Open({"default"}));
  ColumnFamilyHandle* a = Create("a");
  Model model;
  ASSERT_NO_FATAL_FAILURE(Fill(a, &model, Scaled(3000)));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, a, nullptr, nullptr)));
  ASSERT_NO_FATAL_FAILURE(Fill(a, &model, 100));
  const std::unique_ptr<Iterator> before = db_->NewIterator({}, a);
  before->SeekToFirst();
  ASSERT_TRUE(IsOk(db_->DropColumnFamily(a)));
  ASSERT_NO_FATAL_FAILURE(Check(a, model));
  EXPECT_TRUE(db_->Put({}, a, "k", "v").IsInvalidArgument());
  WriteBatch batch;
  ASSERT_TRUE(IsOk(batch.Put(a, "k", "v")));
  EXPECT_TRUE(db_->Write({}, &batch).IsInvalidArgument());
  EXPECT_TRUE(db_->DropColumnFamily(a).IsInvalidArgument());
  // Others are flushed and compacted meanwhile, and one of the same name is another one.
  Model of_default;
  ASSERT_NO_FATAL_FAILURE(Fill(db_->DefaultColumnFamily(), &of_default, Scaled(2000)));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ColumnFamilyHandle* again = Create("a");
  EXPECT_EQ(again->GetID(), 2u);
  EXPECT_EQ(ReadAll(again), Model());
  ASSERT_NO_FATAL_FAILURE(Check(a, model));
  handles_.erase(handles_.begin() + 1);
  ASSERT_TRUE(IsOk(db_->DestroyColumnFamilyHandle(a)));
  // Iterators outlive it.
  Model seen;
  for (; before->Valid(); before->Next()) {
    seen.emplace(before->key().ToString(), before->value().ToString());
  }
  EXPECT_TRUE(IsOk(before->status()));
  EXPECT_EQ(seen, model);
  ASSERT_NO_FATAL_FAILURE(Check(db_->DefaultColumnFamily(), of_default));
}

TEST_F(ColumnFamilyTest, TheSpaceOfWhatIsDroppedIsFree) {
  options_.redundancy = "rep(2)";
  ASSERT_NO_FATAL_FAILURE(Open({"default"}));
  ASSERT_TRUE(IsOk(db_->Put({}, "k", "v")));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  const uint64_t before = GetNumber(db_.get(), "nacre.space.used-bytes");
  ColumnFamilyHandle* a = Create("a");
  Model model;
  ASSERT_NO_FATAL_FAILURE(Fill(a, &model, Scaled(4000)));
  ASSERT_TRUE(IsOk(db_->Flush({}, a)));
  ASSERT_TRUE(IsOk(db_->WaitForCompact()));
  ASSERT_GT(GetNumber(db_.get(), "nacre.space.used-bytes"), before + (64 << 10));
  ASSERT_TRUE(IsOk(db_->DropColumnFamily(a)));
  handles_.pop_back();
  ASSERT_TRUE(IsOk(db_->DestroyColumnFamilyHandle(a)));
  EXPECT_TRUE(Eventually([&] {
    db_->WaitForCompact().IgnoreError();
    // The state record has come.
    return GetNumber(db_.get(), "nacre.space.used-bytes") < before + (64 << 10);
  })) << GetNumber(db_.get(), "nacre.space.used-bytes")
      << " bytes, before " << before;
}

TEST_F(ColumnFamilyTest, EachHasItsOwnOrderAndOptions) {
  static const BackwardsComparator backwards;
  ASSERT_NO_FATAL_FAILURE(Open({"default"}));
  ColumnFamilyOptions options = options_;
  options.comparator = &backwards;
  options.num_levels = 3;
  options.write_buffer_size = 128 << 10;
  ColumnFamilyHandle* b = nullptr;
  ASSERT_TRUE(IsOk(db_->CreateColumnFamily(options, "b", &b)));
  handles_.push_back(b);
  ColumnFamilyDescriptor descriptor;
  ASSERT_TRUE(IsOk(b->GetDescriptor(&descriptor)));
  EXPECT_EQ(descriptor.name, "b");
  EXPECT_EQ(descriptor.options.comparator, &backwards);
  EXPECT_EQ(descriptor.options.num_levels, 3);
  Model model;
  ASSERT_NO_FATAL_FAILURE(Fill(b, &model, Scaled(3000)));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, b, nullptr, nullptr)));
  const auto check_order = [&] {
    const std::unique_ptr<Iterator> it = db_->NewIterator({}, b);
    std::string last;
    size_t count = 0;
    for (it->SeekToFirst(); it->Valid(); it->Next(), ++count) {
      EXPECT_TRUE(count == 0 || backwards.Compare(last, it->key()) < 0);
      last = it->key().ToString();
    }
    EXPECT_EQ(count, model.size());
  };
  check_order();
  ASSERT_NO_FATAL_FAILURE(Close());
  EXPECT_TRUE(TryOpen(All({"default", "b"})).IsInvalidArgument());
  ASSERT_TRUE(IsOk(TryOpen({Named("default"), {"b", options}})));
  b = handles_[1];
  check_order();
  // Its MemTable is full long before the default one's.
  ASSERT_TRUE(IsOk(db_->Put({}, "k", "v")));
  EXPECT_TRUE(Eventually([&] {
    Fill(b, &model, 100);
    return GetNumber(db_.get(), "nacre.num-live-tables") > 0;
  }));
}

TEST_F(ColumnFamilyTest, PropertiesAndSizesAreOfAFamily) {
  ASSERT_NO_FATAL_FAILURE(Open({"default"}));
  ColumnFamilyHandle* a = Create("a");
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(IsOk(db_->Put({}, a, std::to_string(i), "v")));
  uint64_t number = 0;
  ASSERT_TRUE(db_->GetIntProperty(a, "nacre.num-entries-active-mem-table", &number));
  EXPECT_EQ(number, 10u);
  ASSERT_TRUE(db_->GetIntProperty("nacre.num-entries-active-mem-table", &number));
  EXPECT_EQ(number, 0u);
  ASSERT_TRUE(IsOk(db_->Flush({}, a)));
  ASSERT_TRUE(db_->GetIntProperty(a, "nacre.num-files-at-level0", &number));
  EXPECT_EQ(number, 1u);
  ASSERT_TRUE(db_->GetIntProperty("nacre.num-files-at-level0", &number));
  EXPECT_EQ(number, 0u);
  const Range range{"", "a"};
  uint64_t size = 0;
  ASSERT_TRUE(IsOk(db_->GetApproximateSizes(a, &range, 1, &size)));
  EXPECT_GT(size, 0u);
  ASSERT_TRUE(IsOk(db_->GetApproximateSizes(&range, 1, &size)));
  EXPECT_EQ(size, 0u);
}

TEST_F(ColumnFamilyTest, SnapshotsAreOfAllFamilies) {
  ASSERT_NO_FATAL_FAILURE(Open({"default"}));
  ColumnFamilyHandle* a = Create("a");
  ASSERT_TRUE(IsOk(db_->Put({}, "k", "1")));
  ASSERT_TRUE(IsOk(db_->Put({}, a, "k", "2")));
  ReadOptions then;
  then.snapshot = db_->GetSnapshot();
  ASSERT_TRUE(IsOk(db_->Put({}, "k", "3")));
  ASSERT_TRUE(IsOk(db_->Delete({}, a, "k")));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, a, nullptr, nullptr)));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  std::vector<std::string> values;
  for (const Status& status : db_->MultiGet(then, {nullptr, a}, {"k", "k"}, &values)) {
    EXPECT_TRUE(IsOk(status));
  }
  EXPECT_EQ(values, (std::vector<std::string>{"1", "2"}));
  db_->ReleaseSnapshot(then.snapshot);
  EXPECT_EQ(Get(a, "k"), "(none)");
}

TEST_F(ColumnFamilyTest, FamiliesComeAndGoWhileOthersAreWritten) {
  ASSERT_NO_FATAL_FAILURE(Open({"default"}));
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (uint64_t i = 0; !stop.load(); ++i) {
      ASSERT_TRUE(IsOk(db_->Put({}, "key" + std::to_string(i % 500), TestValue(i, 200))));
    }
  });
  for (uint64_t round = 0; round < Scaled(30); ++round) {
    ColumnFamilyHandle* handle = nullptr;
    ASSERT_TRUE(IsOk(db_->CreateColumnFamily(options_, "f", &handle)));
    WriteBatch batch;
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(IsOk(batch.Put(handle, "k" + std::to_string(i), TestValue(round, 500))));
    }
    ASSERT_TRUE(IsOk(db_->Write({}, &batch)));
    if (round % 3 == 0) {
      ASSERT_TRUE(IsOk(db_->Flush({}, handle)));
    }
    EXPECT_EQ(Get(handle, "k7"), TestValue(round, 500));
    ASSERT_TRUE(IsOk(db_->DropColumnFamily(handle)));
    EXPECT_EQ(Get(handle, "k7"), TestValue(round, 500));
    ASSERT_TRUE(IsOk(db_->DestroyColumnFamilyHandle(handle)));
  }
  stop.store(true);
  writer.join();
  ASSERT_NO_FATAL_FAILURE(Close());
  ASSERT_NO_FATAL_FAILURE(Open({"default"}));
}

}  // namespace
}  // namespace nacre
