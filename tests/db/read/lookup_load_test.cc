// Goal: a lookup answers the same whether it loads what lies in mapped memory or reads it, also
// when the memory ends, or its node, between the moment in which the lookup names bytes and that in
// which it takes them. Method: lookups taken step by step on embedded pools with and without
// mapping, with indexes here and on the nodes; nodes are killed between two steps.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "db/read/lookup_batch.h"
#include "pool/read/point_reader.h"
#include "tests/support/parts_fixture.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

constexpr int kLoadKeys = 300;

struct LoadCase {
  const char* name;
  bool map;
  bool indexes_here;
};

class LookupLoadTest : public PartsFixture, public testing::WithParamInterface<LoadCase> {
 protected:
  LookupLoadTest() : PartsFixture({.map = GetParam().map}) {
    if (!GetParam().indexes_here) options_.index_memory_budget = 0;
  }

  void Fill(const std::string& redundancy) {
    ASSERT_NO_FATAL_FAILURE(Open(redundancy));
    ASSERT_TRUE(IsOk(FlushKeys("key", kLoadKeys)));
    MutexLock lock(&parts_->state.mutex);
    view_ = family()->current_view();
  }
  LookupContext Context() const {
    return {parts_->reads.source(), *view_, read_options_, kMaxSequenceNumber};
  }
  static std::string Key(int i) { return "key" + std::to_string(i); }
  static std::string Value(int i) { return TestValue(static_cast<uint64_t>(i), 100); }
  NodeId NodeOfFirstCopy(size_t table) {
    return static_cast<NodeId>(
        view_->version->level0()[table]->meta().placement.fragments[0].start.node);
  }
  void Kill(NodeId node) {
    pool_->KillEmbeddedNode(node);
    ASSERT_TRUE(Eventually([&] { return !pool_->client()->alive(node); }));
  }
  /// To the end, with reads where it asks for them. `killed` is killed once, when the lookup has
  /// named bytes that can be loaded, or read.
  void Finish(KeyLookup* lookup, KeyLookup::State state, int* loads, NodeId killed = kNoNode) {
    pool::PointRead read;
    while (state == KeyLookup::State::kReads || state == KeyLookup::State::kWaits) {
      if (state == KeyLookup::State::kReads) state = lookup->Next(Context(), &read);
      if (state == KeyLookup::State::kWaits) {
        state = lookup->Await(Context());
        continue;
      }
      if (state != KeyLookup::State::kReads && state != KeyLookup::State::kLoads) break;
      if (killed != kNoNode) Kill(std::exchange(killed, kNoNode));
      if (state == KeyLookup::State::kLoads) {
        ++*loads;
        state = lookup->Load(Context());
      } else {
        EXPECT_TRUE(read.from.valid());
        pool::PointReader reader(pool_->client()->point_sessions());
        reader.ReadAll({&read, 1});
        state = lookup->Consume(Context(), read);
      }
    }
  }
  Status LookUp(const std::string& key, PinnableSlice* value, int* loads, NodeId killed = kNoNode) {
    const EpochDomain::Guard guard(&parts_->context.epochs);
    Status status;
    KeyLookup lookup;
    const Slice sought(key);
    lookup.Begin(Context(), sought, value, &status);
    const KeyLookup::State state = lookup.LookInMemory(Context());
    lookup.BeginTables(Context());
    Finish(&lookup, state, loads, killed);
    return status;
  }

  const ReadOptions read_options_;
  std::shared_ptr<const ReadView> view_;
};

TEST_P(LookupLoadTest, LoadsWhatIsMappedAndReadsTheRest) {
  ASSERT_NO_FATAL_FAILURE(Fill("none"));
  int loads = 0;
  for (int i = 0; i < kLoadKeys; ++i) {
    PinnableSlice value;
    ASSERT_TRUE(IsOk(LookUp(Key(i), &value, &loads)));
    ASSERT_EQ(value.ToString(), Value(i));
  }
  EXPECT_EQ(loads >= kLoadKeys, GetParam().map) << loads;
  EXPECT_EQ(loads == 0, !GetParam().map) << loads;
  PinnableSlice value;
  EXPECT_TRUE(LookUp("kex", &value, &loads).IsNotFound());
  EXPECT_TRUE(value.empty());
}

TEST_P(LookupLoadTest, TurnsToAnotherCopyWhenItsNodeDiesMeanwhile) {
  ASSERT_NO_FATAL_FAILURE(Fill("rep(2)"));
  int loads = 0;
  for (int i = 0; i < kLoadKeys; ++i) {
    PinnableSlice value;
    const NodeId killed = i == 7 ? NodeOfFirstCopy(0) : kNoNode;
    ASSERT_TRUE(IsOk(LookUp(Key(i), &value, &loads, killed))) << i;
    ASSERT_EQ(value.ToString(), Value(i));
  }
  EXPECT_EQ(loads > kLoadKeys / 2, GetParam().map) << "the other copy can be loaded as well";
}

TEST_P(LookupLoadTest, NamesTheNodeThatDiedMeanwhile) {
  ASSERT_NO_FATAL_FAILURE(Fill("none"));
  int loads = 0;
  PinnableSlice value;
  const NodeId node = NodeOfFirstCopy(0);
  // A key of that table, which is so by the table's bounds.
  const std::string key = ExtractUserKey(view_->version->level0()[0]->meta().smallest).ToString();
  const Status status = LookUp(key, &value, &loads, node);
  ASSERT_TRUE(IsFailure(status, Status::Code::kUnavailable));
  EXPECT_NE(status.ToString().find(pool_->client()->node_address(node)), std::string::npos)
      << status.ToString();
  EXPECT_TRUE(value.empty());
}

TEST_P(LookupLoadTest, ABatchGoesOnWhenANodeDies) {
  ASSERT_NO_FATAL_FAILURE(Fill("rep(2)"));
  std::vector<std::string> keys;
  for (int i = 0; i < kLoadKeys + 20; ++i) keys.push_back(Key(i));
  const std::vector<Slice> slices(keys.begin(), keys.end());
  for (const bool killed : {false, true}) {
    if (killed) {
      ASSERT_NO_FATAL_FAILURE(Kill(NodeOfFirstCopy(0)));
    }
    for (const size_t count : {1, 2, 16, 17, 64, 65, kLoadKeys + 20}) {
      std::vector<PinnableSlice> values(count);
      std::vector<Status> statuses(count);
      const size_t first = keys.size() - count;
      {
        const EpochDomain::Guard guard(&parts_->context.epochs);
        LookUpKeys(Context(), {slices.data() + first, count}, values.data(), statuses.data());
      }
      for (size_t i = 0; i < count; ++i) {
        const int key = static_cast<int>(first + i);
        if (key >= kLoadKeys) {
          ASSERT_TRUE(statuses[i].IsNotFound()) << key;
          ASSERT_TRUE(values[i].empty());
        } else {
          ASSERT_TRUE(IsOk(statuses[i])) << key;
          ASSERT_EQ(values[i].ToString(), Value(key));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, LookupLoadTest,
    testing::Values(LoadCase{"Mapped", true, true}, LoadCase{"MappedBuckets", true, false},
                    LoadCase{"Read", false, true}, LoadCase{"ReadBuckets", false, false}),
    [](const testing::TestParamInfo<LoadCase>& it) { return std::string(it.param.name); });

}  // namespace
}  // namespace nacre
