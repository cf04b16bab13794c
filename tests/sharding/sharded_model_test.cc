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
#include "tests/support/test_db.h"

namespace nacre {
namespace {

struct ShardedModelCase {
  ModelCase model;
  size_t shards;
};

std::ostream& operator<<(std::ostream& out, const ShardedModelCase& each) {
  return out << each.model << each.shards;
}

class ShardedModelRun final : public ModelRun {
 public:
  ShardedModelRun(std::shared_ptr<pool::PoolImpl> pool, const ShardedModelCase& model_case,
                  uint64_t seed)
      : ModelRun(std::move(pool), model_case.model, seed), shards_(model_case.shards) {}

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

  const size_t shards_;
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
    testing::Values(ShardedModelCase{Case("Bytewise", BytewiseComparator(), "none", false), 1},
                    ShardedModelCase{Case("Kinds", BytewiseComparator(), "none", true), 4},
                    ShardedModelCase{
                        Case("KindsReverse", ReverseBytewiseComparator(), "none", true), 4},
                    ShardedModelCase{Case("Coded", BytewiseComparator(), "rs(2,1)", true), 9}),
    [](const testing::TestParamInfo<ShardedModelCase>& each) {
      return each.param.model.name + std::to_string(each.param.shards);
    });

}  // namespace
}  // namespace nacre
