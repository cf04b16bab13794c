// Goal: merges and single deletions survive whatever happens to the log and the tables: they are
// flushed near the data and here, compacted on nodes and here, replayed by the next owner,
// followed; operands are given one by one to a reader that asks for them; and what goes wrong with
// an operator is reported to readers of the key, and loses nothing. Method: nacre-memnode
// processes; random updates of all kinds beside a model, with snapshots; operators that nodes do
// not know, that fail, and none.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nacre/db.h"
#include "nacre/merge_operator.h"
#include "nacre/write_batch.h"
#include "pool/pool_impl.h"
#include "tests/support/model/modelled_db.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/coding.h"
#include "util/random.h"

namespace nacre {
namespace {

/// Concatenates, under a name that no node knows; refuses operands that say so.
class PickyOperator final : public MergeOperator {
 public:
  const char* Name() const override { return "Picky"; }
  bool FullMergeV2(const MergeOperationInput& in, MergeOperationOutput* out) const override {
    out->new_value = in.existing_value == nullptr ? "" : in.existing_value->ToString();
    for (const Slice& operand : in.operand_list) {
      if (operand == "refuse") return false;
      if (!out->new_value.empty()) out->new_value += ',';
      out->new_value += operand.ToString();
    }
    return true;
  }
};

class DBMergeTest : public ModelledDBTest {
 protected:
  DBMergeTest() : ModelledDBTest(4100, /*lookups=*/{"key0", "key1", "once0", "once1"}) {}

  void StartNodes() {
    ModelledDBTest::StartNodes();
    options_.merge_operator = MergeOperators::CreateStringAppendOperator();
  }
  void Merge(const std::string& key, const std::string& operand) {
    ASSERT_TRUE(IsOk(db_->Merge({}, key, operand)));
    model_.Merge(key, operand);
  }

  /// An update of any kind, alone or in a batch.
  void Write() {
    WriteBatch batch;
    for (uint64_t left = 1 + random_.Uniform(4); left > 0; --left) {
      const std::string key = "key" + std::to_string(random_.Uniform(200));
      const std::string value = TestValue(random_.Next(), random_.Uniform(60));
      switch (random_.Uniform(8)) {
        case 0 ... 1:
          ASSERT_TRUE(IsOk(batch.Put(key, value)));
          model_.Put(key, value);
          break;
        case 2:
          ASSERT_TRUE(IsOk(batch.Delete(key)));
          model_.Delete(key);
          break;
        case 3: {
          const std::string once = "once" + std::to_string(random_.Uniform(50));
          if (model_.Get(once, model_.Now()) == nullptr) {
            ASSERT_TRUE(IsOk(batch.Put(once, value)));
            model_.Put(once, value);
          } else {
            ASSERT_TRUE(IsOk(batch.SingleDelete(once)));
            model_.Delete(once);
          }
          break;
        }
        case 4:
          ASSERT_TRUE(IsOk(batch.PutLogData(value)));
          break;
        default:
          ASSERT_TRUE(IsOk(batch.Merge(key, value)));
          model_.Merge(key, value);
      }
    }
    ASSERT_TRUE(IsOk(db_->Write({}, &batch)));
  }
};

TEST_F(DBMergeTest, SurvivesFlushesCompactionsOwnersAndFollowers) {
  ASSERT_NO_FATAL_FAILURE(StartNodes());
  ASSERT_NO_FATAL_FAILURE(Open());
  std::unique_ptr<DB> follower;
  ASSERT_TRUE(IsOk(DB::OpenAsSecondary(options_, "db", &follower)));
  std::unique_ptr<DB> predecessor;
  uint64_t near_data = 0;
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    for (int i = 0; i < 150; ++i) ASSERT_NO_FATAL_FAILURE(Write());
    const Snapshot* const snapshot = db_->GetSnapshot();
    const uint64_t time = model_.Now();
    for (int i = 0; i < 150; ++i) ASSERT_NO_FATAL_FAILURE(Write());
    ASSERT_NO_FATAL_FAILURE(ExpectModel());
    ASSERT_TRUE(IsOk(follower->TryCatchUpWithPrimary()));
    ASSERT_NO_FATAL_FAILURE(ExpectModel(follower.get(), nullptr, model_.Now()));
    options_.compaction = round % 2 == 0 ? CompactionSite::kAuto : CompactionSite::kCompute;
    if (round % 4 == 3) {  // The next owner finds all of it in the log.
      db_->ReleaseSnapshot(snapshot);
      options_.take_over = true;
      near_data += GetNumber(db_.get(), "nacre.flush.near-data");
      predecessor = std::move(db_);
      ASSERT_NO_FATAL_FAILURE(Open());
      predecessor.reset();
      ASSERT_NO_FATAL_FAILURE(ExpectModel());
      continue;
    }
    ASSERT_TRUE(IsOk(db_->Flush({})));
    ASSERT_NO_FATAL_FAILURE(ExpectModel());
    ASSERT_NO_FATAL_FAILURE(ExpectModel(db_.get(), snapshot, time));
    if (round % 2 == 0) {
      ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
      ASSERT_NO_FATAL_FAILURE(ExpectModel());
      ASSERT_NO_FATAL_FAILURE(ExpectModel(db_.get(), snapshot, time));
    }
    ASSERT_TRUE(IsOk(follower->TryCatchUpWithPrimary()));
    ASSERT_NO_FATAL_FAILURE(ExpectModel(follower.get(), nullptr, model_.Now()));
    db_->ReleaseSnapshot(snapshot);
  }
  EXPECT_GT(near_data, 0U);
}

TEST_F(DBMergeTest, CompactionsLeaveOneValueOfEachKey) {
  for (const bool known : {true, false}) {
    ASSERT_NO_FATAL_FAILURE(StartNodes());
    if (!known) options_.merge_operator = std::make_shared<PickyOperator>();
    model_ = ModelDB(BytewiseComparator());
    ASSERT_NO_FATAL_FAILURE(Open());
    for (int round = 0; round < 4; ++round) {
      for (int i = 0; i < 20; ++i) {
        ASSERT_NO_FATAL_FAILURE(Merge("key" + std::to_string(i), std::to_string(round)));
      }
      ASSERT_TRUE(IsOk(db_->Flush({})));
      ASSERT_NO_FATAL_FAILURE(ExpectModel());
    }
    // A flush whose operator nodes do not know is made here.
    if (!known) {
      EXPECT_EQ(4U, GetNumber(db_.get(), "nacre.flush.fallbacks"));
      EXPECT_EQ(0U, GetNumber(db_.get(), "nacre.flush.near-data"));
    }
    ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
    ASSERT_NO_FATAL_FAILURE(ExpectModel());
    EXPECT_EQ(20U, GetNumber(db_.get(), "nacre.estimate-num-keys"));
    // Nothing is left to be merged, so no operator is needed.
    ASSERT_TRUE(IsOk(db_->Close()));
    options_.merge_operator = nullptr;
    ASSERT_NO_FATAL_FAILURE(Open());
    ASSERT_NO_FATAL_FAILURE(ExpectModel());
    db_.reset();
  }
}

TEST_F(DBMergeTest, WithoutAnOperatorOperandsStayAndReadersAreTold) {
  ASSERT_NO_FATAL_FAILURE(StartNodes());
  options_.merge_operator = std::make_shared<PickyOperator>();
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Merge("merged", "refuse"));  // They are not merged at once this way.
  ASSERT_NO_FATAL_FAILURE(Merge("merged", "b"));
  ASSERT_TRUE(IsOk(db_->Put({}, "plain", "value")));
  model_.Put("plain", "value");
  ASSERT_TRUE(IsOk(db_->Close()));
  options_.merge_operator = nullptr;
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_TRUE(db_->Merge({}, "merged", "c").IsNotSupported());
  WriteBatch batch;
  ASSERT_TRUE(IsOk(batch.Merge("merged", "c")));
  EXPECT_TRUE(db_->Write({}, &batch).IsNotSupported());
  std::string value;
  EXPECT_TRUE(db_->Get({}, "merged", &value).IsInvalidArgument());
  EXPECT_TRUE(IsOk(db_->Get({}, "plain", &value)));
  std::unique_ptr<Iterator> iterator(db_->NewIterator({}));
  iterator->SeekToFirst();
  EXPECT_FALSE(iterator->Valid());
  EXPECT_TRUE(iterator->status().IsInvalidArgument());
  iterator->Seek("plain");
  EXPECT_TRUE(iterator->Valid());
  EXPECT_TRUE(IsOk(iterator->status()));
  iterator.reset();
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ASSERT_TRUE(IsOk(db_->Close()));
  options_.merge_operator = MergeOperators::CreateStringAppendOperator();
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(ExpectModel());
}

using Operands = std::vector<std::string>;

/// What GetMergeOperands gives, with room for as many; nothing for a key that is absent.
Operands OperandsOf(DB* db, const std::string& key, const Snapshot* snapshot = nullptr) {
  ReadOptions read;
  read.snapshot = snapshot;
  GetMergeOperandsOptions options{.expected_max_number_of_operands = 8};
  std::vector<PinnableSlice> values(8);
  int count = -1;
  const Status status = db->GetMergeOperands(read, nullptr, key, values.data(), &options, &count);
  if (status.IsNotFound()) return {};
  EXPECT_TRUE(IsOk(status)) << key;
  Operands operands;
  for (int i = 0; i < count; ++i) operands.push_back(values[static_cast<size_t>(i)].ToString());
  return operands;
}

TEST_F(DBMergeTest, OperandsAreGivenOneByOne) {
  ASSERT_NO_FATAL_FAILURE(StartNodes());
  options_.merge_operator = std::make_shared<PickyOperator>();  // Which combines none.
  options_.disable_auto_compactions = true;
  ASSERT_NO_FATAL_FAILURE(Open());
  for (const char* key : {"base", "deleted", "covered", "value"}) {
    ASSERT_TRUE(IsOk(db_->Put({}, key, "0")));
  }
  ASSERT_TRUE(IsOk(db_->Flush({})));
  ASSERT_TRUE(IsOk(db_->Merge({}, "base", "1")));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  const Snapshot* const before = db_->GetSnapshot();
  ASSERT_TRUE(IsOk(db_->Delete({}, "deleted")));
  ASSERT_TRUE(IsOk(db_->DeleteRange({}, "c", "d")));
  for (const char* key : {"base", "deleted", "covered", "fresh"}) {
    ASSERT_TRUE(IsOk(db_->Merge({}, key, "refuse")));  // It would only fail when it is applied.
    ASSERT_TRUE(IsOk(db_->Merge({}, key, "3")));
  }

  std::unique_ptr<DB> follower;
  ASSERT_TRUE(IsOk(DB::OpenAsSecondary(options_, "db", &follower)));
  ASSERT_TRUE(IsOk(follower->TryCatchUpWithPrimary()));
  for (DB* const db : {db_.get(), follower.get()}) {
    SCOPED_TRACE(db == follower.get() ? "follower" : "owner");
    EXPECT_EQ(OperandsOf(db, "base"), (Operands{"0", "1", "refuse", "3"}));
    EXPECT_EQ(OperandsOf(db, "deleted"), (Operands{"refuse", "3"}));
    EXPECT_EQ(OperandsOf(db, "covered"), (Operands{"refuse", "3"}));
    EXPECT_EQ(OperandsOf(db, "fresh"), (Operands{"refuse", "3"}));
    EXPECT_EQ(OperandsOf(db, "value"), Operands{"0"});
    EXPECT_EQ(OperandsOf(db, "absent"), Operands{});

    std::vector<PinnableSlice> values(4);
    GetMergeOperandsOptions room{.expected_max_number_of_operands = 3};
    int count = 0;
    EXPECT_TRUE(
        db->GetMergeOperands({}, nullptr, "base", values.data(), &room, &count).IsIncomplete());
    EXPECT_EQ(count, 4);
    EXPECT_TRUE(values[0].empty());
    EXPECT_TRUE(db->GetMergeOperands({}, nullptr, "base", values.data(), &room, nullptr)
                    .IsInvalidArgument());
  }
  EXPECT_EQ(OperandsOf(db_.get(), "base", before), (Operands{"0", "1"}));
  EXPECT_EQ(OperandsOf(db_.get(), "covered", before), Operands{"0"});
  EXPECT_EQ(OperandsOf(db_.get(), "fresh", before), Operands{});
  db_->ReleaseSnapshot(before);
}

TEST_F(DBMergeTest, WhatAnOperatorRefusesIsKept) {
  ASSERT_NO_FATAL_FAILURE(StartNodes());
  options_.merge_operator = std::make_shared<PickyOperator>();
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_TRUE(IsOk(db_->Put({}, "bad", "base")));
  ASSERT_TRUE(IsOk(db_->Merge({}, "bad", "refuse")));
  ASSERT_NO_FATAL_FAILURE(Merge("good", "a"));
  const auto expect = [&] {
    std::string value;
    EXPECT_TRUE(db_->Get({}, "bad", &value).IsCorruption());
    EXPECT_TRUE(IsOk(db_->Get({}, "good", &value)));
    EXPECT_EQ("a", value);
  };
  expect();
  ASSERT_TRUE(IsOk(db_->Flush({})));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  expect();
  // What makes sense of it finds all that there was.
  ASSERT_TRUE(IsOk(db_->Close()));
  options_.merge_operator = MergeOperators::CreateStringAppendOperator();
  ASSERT_NO_FATAL_FAILURE(Open());
  std::string value;
  ASSERT_TRUE(IsOk(db_->Get({}, "bad", &value)));
  EXPECT_EQ("base,refuse", value);
}

TEST_F(DBMergeTest, CountsOverATakenSnapshot) {
  ASSERT_NO_FATAL_FAILURE(StartNodes());
  options_.merge_operator = MergeOperators::CreateUInt64AddOperator();
  ASSERT_NO_FATAL_FAILURE(Open());
  const auto add = [&](uint64_t n) {
    std::string operand;
    PutFixed64(&operand, n);
    ASSERT_TRUE(IsOk(db_->Merge({}, "counter", operand)));
  };
  const auto expect = [&](uint64_t n, const Snapshot* snapshot) {
    ReadOptions read;
    read.snapshot = snapshot;
    std::string value;
    ASSERT_TRUE(IsOk(db_->Get(read, "counter", &value)));
    ASSERT_EQ(8U, value.size());
    EXPECT_EQ(n, DecodeFixed64(value.data()));
  };
  for (uint64_t i = 1; i <= 10; ++i) add(i);
  const Snapshot* const snapshot = db_->GetSnapshot();
  add(1000);
  add(1000);
  for (int i = 0; i < 2; ++i) {
    expect(2055, nullptr);
    expect(55, snapshot);
    ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  }
  expect(55, snapshot);
  db_->ReleaseSnapshot(snapshot);
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  expect(2055, nullptr);
  EXPECT_EQ(1U, GetNumber(db_.get(), "nacre.estimate-num-keys"));
}

TEST(MergeOperatorTest, BuiltInOnesAreFoundByNameAndId) {
  for (const char* name :
       {"uint64add", "UInt64AddOperator", "stringappend", "StringAppendOperator"}) {
    std::shared_ptr<MergeOperator> found;
    ASSERT_TRUE(IsOk(MergeOperator::CreateFromString(name, &found))) << name;
    std::shared_ptr<MergeOperator> again;
    ASSERT_TRUE(IsOk(MergeOperator::CreateFromString(found->Id(), &again))) << found->Id();
    EXPECT_EQ(found->Id(), again->Id());
  }
  std::shared_ptr<MergeOperator> found;
  EXPECT_TRUE(MergeOperator::CreateFromString("multiply", &found).IsNotFound());
  // The separator is part of what has to be found.
  ASSERT_TRUE(IsOk(MergeOperator::CreateFromString("stringappend:::", &found)));
  EXPECT_EQ(MergeOperators::CreateStringAppendOperator("::")->Id(), found->Id());
  EXPECT_NE(MergeOperators::CreateStringAppendOperator()->Id(), found->Id());
}

}  // namespace
}  // namespace nacre
