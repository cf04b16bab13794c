// Goal: a lookup that loads all it needs answers what the data says, and gives up, leaving nothing
// behind, where it has to: for versions newer than the snapshot, operands, damaged or lost memory,
// indexes that are elsewhere, range tombstones and memory that is not mapped.
// Method: one lookup, and batches of mixed keys, on embedded pools; nodes are killed between two
// steps.

#include "db/read/direct_lookup.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nacre/merge_operator.h"
#include "tests/support/parts_fixture.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

using State = DirectLookup::State;

constexpr int kLookupKeys = 100;
constexpr const char* kGaveUp = "(gave up)";

std::string Key(int i) { return "key" + std::to_string(i); }
std::string Value(int i) { return TestValue(static_cast<uint64_t>(i), 100); }

class DirectLookupTest : public PartsFixture {
 protected:
  explicit DirectLookupTest(bool map = true) : PartsFixture({.map = map}) {}

  Status Write(ValueType type, const std::string& key, const std::string& value = "") {
    return parts_->writes.WriteOne({}, family(), type, key, value);
  }
  Status Flush() { return parts_->flushes.Flush({}, /*only=*/nullptr); }
  /// Has lookups see what is there now.
  void Look(SequenceNumber snapshot = kMaxSequenceNumber) {
    snapshot_ = snapshot;
    MutexLock lock(&parts_->state.mutex);
    view_ = family()->current_view();
  }
  /// At a snapshot of kLookupKeys keys, of which every third has a later version in a table.
  void LookBeforeEveryThirdWasOverwritten() {
    ASSERT_NO_FATAL_FAILURE(Open());
    ASSERT_TRUE(IsOk(FlushKeys("key", kLookupKeys)));
    const SequenceNumber snapshot = Last();
    for (int i = 0; i < kLookupKeys; i += 3) {
      ASSERT_TRUE(IsOk(Write(ValueType::kValue, Key(i), "later")));
    }
    ASSERT_TRUE(IsOk(Flush()));
    Look(snapshot);
  }
  SequenceNumber Last() const { return parts_->generations.sequencer()->LastPublished(); }
  LookupContext Context() const {
    return {parts_->reads.source(), *view_, read_options_, snapshot_};
  }
  /// The value, the status in parentheses, or kGaveUp. `killed` dies before bytes are taken that
  /// were asked for.
  std::string LookUp(const std::string& key, NodeId killed = kNoNode) {
    const EpochDomain::Guard guard(&parts_->context.epochs);
    PinnableSlice value;
    Status status;
    DirectLookup lookup;
    const Slice sought(key);
    if (!lookup.Begin(Context(), sought)) return kGaveUp;
    State state = lookup.Find(Context(), &value, &status);
    while (state == State::kLoads) {
      if (killed != kNoNode) Kill(std::exchange(killed, kNoNode));
      state = lookup.Load(Context(), &value, &status);
    }
    if (state == State::kEnded && status.ok()) return value.ToString();
    EXPECT_TRUE(value.empty());
    return state == State::kGaveUp ? kGaveUp : "(" + status.ToString() + ")";
  }
  void Kill(NodeId node) {
    pool_->KillEmbeddedNode(node);
    ASSERT_TRUE(Eventually([&] { return !pool_->client()->alive(node); }));
  }
  NodeId NodeOf(const std::string& key) const {
    const TableList& level0 = view_->version->level0();
    for (size_t i = 0; i < level0.size(); ++i) {
      if (!view_->version->Level0Holds(i, key)) continue;
      return static_cast<NodeId>(level0[i]->meta().placement.fragments[0].start.node);
    }
    return kNoNode;
  }

  const std::string not_found_ = "(" + Status::NotFound().ToString() + ")";
  const ReadOptions read_options_;
  SequenceNumber snapshot_ = kMaxSequenceNumber;
  std::shared_ptr<const ReadView> view_;
};

TEST_F(DirectLookupTest, AnswersFromMemTablesAndTables) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_TRUE(IsOk(FlushKeys("key", kLookupKeys)));
  ASSERT_TRUE(IsOk(Write(ValueType::kDeletion, Key(1))));
  ASSERT_TRUE(IsOk(Write(ValueType::kValue, Key(2), "newer")));
  ASSERT_TRUE(IsOk(Flush()));
  ASSERT_TRUE(IsOk(Write(ValueType::kValue, Key(3), "newest")));
  ASSERT_TRUE(IsOk(Write(ValueType::kDeletion, Key(4))));
  Look();
  ASSERT_TRUE(DirectLookup::IsPossible(Context()));
  EXPECT_EQ(Value(0), LookUp(Key(0)));
  EXPECT_EQ(not_found_, LookUp(Key(1)));
  EXPECT_EQ("newer", LookUp(Key(2)));
  EXPECT_EQ("newest", LookUp(Key(3)));
  EXPECT_EQ(not_found_, LookUp(Key(4)));
  EXPECT_EQ(not_found_, LookUp("kex"));
  EXPECT_EQ(not_found_, LookUp(Key(kLookupKeys)));
  EXPECT_EQ(not_found_, LookUp(""));
}

TEST_F(DirectLookupTest, GivesUpWhereAVersionIsNewerThanTheSnapshot) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_TRUE(IsOk(Write(ValueType::kValue, Key(0), "seen")));
  const SequenceNumber before = Last();
  ASSERT_TRUE(IsOk(Flush()));
  ASSERT_TRUE(IsOk(Write(ValueType::kValue, Key(0), "later")));
  ASSERT_TRUE(IsOk(Flush()));
  Look();
  EXPECT_EQ("later", LookUp(Key(0)));
  Look(before);
  EXPECT_EQ(kGaveUp, LookUp(Key(0)));
}

TEST_F(DirectLookupTest, GivesUpWhereAnOperandHasToBeMerged) {
  options_.merge_operator = MergeOperators::CreateStringAppendOperator();
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_TRUE(IsOk(Write(ValueType::kMerge, Key(0), "in a table")));
  ASSERT_TRUE(IsOk(Flush()));
  ASSERT_TRUE(IsOk(Write(ValueType::kMerge, Key(1), "in a MemTable")));
  Look();
  EXPECT_EQ(kGaveUp, LookUp(Key(0)));
  EXPECT_EQ(kGaveUp, LookUp(Key(1)));
}

TEST_F(DirectLookupTest, IsNotPossibleWithRangeTombstonesInTables) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_TRUE(IsOk(FlushKeys("key", kLookupKeys)));
  ASSERT_TRUE(IsOk(Write(ValueType::kRangeDeletion, Key(0), Key(2))));
  Look();
  ASSERT_TRUE(DirectLookup::IsPossible(Context()));
  EXPECT_EQ(not_found_, LookUp(Key(1))) << "a MemTable answers";
  EXPECT_EQ(Value(5), LookUp(Key(5)));
  ASSERT_TRUE(IsOk(Flush()));
  Look();
  EXPECT_FALSE(DirectLookup::IsPossible(Context()));
}

TEST_F(DirectLookupTest, GivesUpWhereMoreTablesHoldTheKeyThanItCounts) {
  options_.level0_file_num_compaction_trigger = 100;
  options_.disable_auto_compactions = true;
  ASSERT_NO_FATAL_FAILURE(Open());
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(IsOk(Write(ValueType::kValue, "a", "x")));
    ASSERT_TRUE(IsOk(Write(ValueType::kValue, "z", "x")));
    ASSERT_TRUE(IsOk(Flush()));
    Look();
    EXPECT_EQ(i < 12 ? not_found_ : kGaveUp, LookUp("key")) << i;
  }
}

TEST_F(DirectLookupTest, GivesUpWhereTheNodeDiesMeanwhileOrIsDead) {
  ASSERT_NO_FATAL_FAILURE(Open("none"));
  ASSERT_TRUE(IsOk(FlushKeys("key", kLookupKeys)));
  Look();
  const NodeId node = NodeOf(Key(0));
  ASSERT_NE(kNoNode, node);
  EXPECT_EQ(kGaveUp, LookUp(Key(0), node));
  EXPECT_EQ(kGaveUp, LookUp(Key(0)));
  EXPECT_EQ(not_found_, LookUp("key0 and more")) << "the index says so";
}

class DirectLookupElsewhereTest : public DirectLookupTest {
 protected:
  DirectLookupElsewhereTest() { options_.index_memory_budget = 0; }
};

TEST_F(DirectLookupElsewhereTest, GivesUpWhereTheIndexIsNotHere) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_TRUE(IsOk(FlushKeys("key", kLookupKeys)));
  Look();
  EXPECT_EQ(kGaveUp, LookUp(Key(0)));
}

class DirectLookupUnmappedTest : public DirectLookupTest {
 protected:
  DirectLookupUnmappedTest() : DirectLookupTest(false) {}
};

TEST_F(DirectLookupUnmappedTest, IsNotPossible) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_TRUE(IsOk(FlushKeys("key", kLookupKeys)));
  Look();
  EXPECT_FALSE(DirectLookup::IsPossible(Context()));
}

TEST_F(DirectLookupTest, ABatchLeavesThoseThatGiveUpAndNoOthers) {
  ASSERT_NO_FATAL_FAILURE(LookBeforeEveryThirdWasOverwritten());
  // Every third key is newer than the snapshot, and every fifth is absent.
  std::vector<std::string> keys;
  for (int i = 0; i < kLookupKeys; ++i) keys.push_back(i % 5 == 4 ? Key(i) + "x" : Key(i));
  const std::vector<Slice> slices(keys.begin(), keys.end());
  for (const size_t count : {1, 2, 11, 12, 13, 20, 21, 31, 32, 33, 63, 64}) {
    for (const size_t first : {0, 1, 7, 36}) {
      std::vector<PinnableSlice> values(count);
      std::vector<Status> statuses(count);
      const EpochDomain::Guard guard(&parts_->context.epochs);
      const uint64_t left =
          LookUpDirectly(Context(), {slices.data() + first, count}, values.data(), statuses.data());
      for (size_t i = 0; i < count; ++i) {
        const int key = static_cast<int>(first + i);
        const bool absent = key % 5 == 4;
        ASSERT_EQ(!absent && key % 3 == 0, (left >> i & 1) != 0) << key << " of " << count;
        if ((left >> i & 1) != 0 || absent) {
          EXPECT_TRUE(values[i].empty());
          continue;
        }
        ASSERT_TRUE(IsOk(statuses[i]));
        EXPECT_EQ(Value(key), values[i].ToString());
      }
      ASSERT_TRUE(count == 64 || left >> count == 0);
    }
  }
}

TEST_F(DirectLookupTest, LookUpKeysAnswersThoseToo) {
  ASSERT_NO_FATAL_FAILURE(LookBeforeEveryThirdWasOverwritten());
  std::vector<std::string> keys;
  for (int i = 0; i < kLookupKeys + 10; ++i) keys.push_back(Key(i));
  const std::vector<Slice> slices(keys.begin(), keys.end());
  for (const size_t count : {size_t{1}, size_t{2}, size_t{64}, size_t{65}, keys.size()}) {
    std::vector<PinnableSlice> values(count);
    std::vector<Status> statuses(count);
    const EpochDomain::Guard guard(&parts_->context.epochs);
    LookUpKeys(Context(), {slices.data(), count}, values.data(), statuses.data());
    for (size_t i = 0; i < count; ++i) {
      if (i >= static_cast<size_t>(kLookupKeys)) {
        EXPECT_TRUE(statuses[i].IsNotFound()) << i;
        continue;
      }
      ASSERT_TRUE(IsOk(statuses[i])) << i;
      EXPECT_EQ(Value(static_cast<int>(i)), values[i].ToString());
    }
  }
}

}  // namespace
}  // namespace nacre
