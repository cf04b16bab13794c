// Goal: whatever is done to a keyspace, in whatever order, it answers as an ordered map does, as
// one database does (tests/db/db_model_test.cc). Method: the same seeded random operations beside a
// model in memory, with the keys cut into shards. A failed run is replayed by its seed.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "nacre/utilities/sharded_db.h"
#include "tests/support/model/model_run.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

struct ShardedModelCase {
  ModelCase model;
  size_t shards;
  bool reshaped = false;  ///< Shards are split and merged.
};

std::ostream& operator<<(std::ostream& out, const ShardedModelCase& each) {
  return out << each.model << each.shards << (each.reshaped ? "Reshaped" : "");
}

class ShardedModelRun final : public ModelRun {
 public:
  ShardedModelRun(std::shared_ptr<pool::PoolImpl> pool, const ShardedModelCase& model_case,
                  uint64_t seed)
      : ModelRun(std::move(pool), model_case.model, seed),
        shards_(model_case.shards),
        reshaped_(model_case.reshaped) {}

 private:
  Status OpenDatabase(const Options& options, std::unique_ptr<DB>* db) override {
    ShardedOptions sharded(options);
    for (size_t i = 1; i < shards_; ++i) {
      sharded.boundaries.push_back(keys()[keys().size() * i / shards_]);
    }
    if (options.comparator->Compare("a", "b") > 0) std::ranges::reverse(sharded.boundaries);
    std::unique_ptr<ShardedDB> opened;
    NACRE_RETURN_IF_ERROR(ShardedDB::Open(sharded, "model", &opened));
    *db = std::move(opened);
    return Status::OK();
  }

  bool rearranges() const override { return reshaped_; }
  void Rearrange(DB* db, Random* random) override {
    auto* const sharded = dynamic_cast<ShardedDB*>(db);
    const std::vector<ShardInfo> shards = sharded->GetShards();
    const size_t chosen = random->Uniform(shards.size());
    if (shards.size() > 1 && random->OneIn(2)) {
      const size_t low = std::min(chosen, shards.size() - 2);
      ASSERT_TRUE(IsOk(sharded->MergeShards(shards[low].id, shards[low + 1].id)));
      ASSERT_EQ(sharded->GetShards().size(), shards.size() - 1);
      return;
    }
    const std::string key = random->OneIn(4) ? "" : keys()[random->Uniform(keys().size())];
    const Status status = sharded->SplitShard(shards[chosen].id, key);
    // The key may be another shard's, and a shard may hold nothing.
    ASSERT_TRUE(status.ok() || status.IsInvalidArgument() || status.IsNotFound())
        << status.ToString();
    ASSERT_EQ(sharded->GetShards().size(), shards.size() + (status.ok() ? 1 : 0));
  }

  const size_t shards_;
  const bool reshaped_;
};

class ShardedModelTest : public testing::TestWithParam<ShardedModelCase> {};

TEST_P(ShardedModelTest, AnswersAsTheModelDoes) {
  const auto pool = OpenTestPool({});
  ASSERT_NE(pool, nullptr);
  ShardedModelRun run(pool, GetParam(), TestSeed(1000));
  ASSERT_NO_FATAL_FAILURE(run.Run(Scaled(8'000)));
}

ModelCase Case(const char* name, const Comparator* comparator, const char* redundancy,
               bool all_kinds) {
  ModelCase model_case{name, comparator, CompactionSite::kAuto, redundancy};
  model_case.all_kinds = all_kinds;
  return model_case;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ShardedModelTest,
    testing::Values(
        ShardedModelCase{Case("Bytewise", BytewiseComparator(), "none", false), 1},
        ShardedModelCase{Case("Kinds", BytewiseComparator(), "none", true), 4},
        ShardedModelCase{Case("KindsReverse", ReverseBytewiseComparator(), "none", true), 4},
        ShardedModelCase{Case("Kinds", BytewiseComparator(), "none", true), 2, true},
        ShardedModelCase{Case("KindsReverse", ReverseBytewiseComparator(), "rs(2,1)", true), 3,
                         true},
        ShardedModelCase{Case("Coded", BytewiseComparator(), "rs(2,1)", true), 9}),
    [](const testing::TestParamInfo<ShardedModelCase>& each) {
      return each.param.model.name + std::to_string(each.param.shards) +
             (each.param.reshaped ? "Reshaped" : "");
    });

}  // namespace
}  // namespace nacre
