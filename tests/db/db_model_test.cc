// Goal: whatever is done to a database, in whatever order, it answers as an ordered map does, and
// a snapshot or an iterator keeps answering as the map did when it was taken.
// Method: seeded random operations beside a model in memory, with buffers, chunks and tables so
// small that tables of several levels are flushed, merged, moved and freed all the time; for each
// order of keys, place of compaction and redundancy, with memory that is loaded or read. A failed
// run is replayed by its seed.

#include <gtest/gtest.h>

#include <string>

#include "tests/support/comparators.h"
#include "tests/support/key_file.h"
#include "tests/support/model/model_run.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

const BackwardsComparator kBackwards;

class DBModelTest : public testing::TestWithParam<ModelCase> {};

TEST_P(DBModelTest, AnswersAsTheModelDoes) {
  ModelCase model_case = GetParam();
  const TempFolder folder;
  if (!model_case.encryption_key_file.empty()) {
    model_case.encryption_key_file = folder.path() + "/" + model_case.encryption_key_file;
    WriteKeyFile(model_case.encryption_key_file, {"one"});
  }
  const uint64_t seed = TestSeed(1000);
  const auto pool = OpenTestPool({.map = model_case.map});
  ASSERT_NE(pool, nullptr);
  ModelRun run(pool, model_case, seed);
  ASSERT_NO_FATAL_FAILURE(run.Run(Scaled(20'000)));

  if (Scaled(100) < 100) return;  // Too little data for what follows.
  EXPECT_GE(run.deepest(), 4) << "the tables are too large for this test to mean anything";
  const bool on_nodes = model_case.site != CompactionSite::kCompute &&
                        model_case.comparator != &kBackwards &&
                        model_case.encryption_key_file.empty();
  EXPECT_EQ(run.compactions_on_nodes() > 0, on_nodes) << run.compactions_on_nodes();
  EXPECT_EQ(run.cache_hits() > 0, model_case.record_cache_size > 0);
}

constexpr auto kMemnode = CompactionSite::kAuto;
constexpr auto kCompute = CompactionSite::kCompute;
const Comparator* const kBytewise = BytewiseComparator();
const Comparator* const kReverse = ReverseBytewiseComparator();

ModelCase AllKinds(const char* name, const Comparator* comparator, CompactionSite site,
                   size_t index_memory_budget = SIZE_MAX, uint32_t max_subcompactions = 1) {
  ModelCase model_case{name, comparator, site, "none", index_memory_budget, max_subcompactions};
  model_case.all_kinds = true;
  return model_case;
}

ModelCase Fetched(ModelCase model_case) {
  model_case.map = false;
  return model_case;
}

/// A cache so small that records enter and leave it all the time.
ModelCase Cached(ModelCase model_case) {
  model_case.record_cache_size = 64 << 10;
  return Fetched(model_case);
}

ModelCase Encrypted(ModelCase model_case) {
  model_case.encryption_key_file = "keys";
  return model_case;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, DBModelTest,
    testing::Values(ModelCase{"BytewiseMemnodeNone", kBytewise, kMemnode, "none"},
                    ModelCase{"BytewiseMemnodeRep2", kBytewise, kMemnode, "rep(2)"},
                    ModelCase{"BytewiseComputeNone", kBytewise, kCompute, "none"},
                    ModelCase{"BytewiseComputeRep2", kBytewise, kCompute, "rep(2)"},
                    ModelCase{"ReverseMemnodeNone", kReverse, kMemnode, "none"},
                    ModelCase{"ReverseMemnodeRep2", kReverse, kMemnode, "rep(2)"},
                    ModelCase{"ReverseComputeNone", kReverse, kCompute, "none"},
                    ModelCase{"ReverseComputeRep2", kReverse, kCompute, "rep(2)"},
                    ModelCase{"CustomMemnodeNone", &kBackwards, kMemnode, "none"},
                    ModelCase{"CustomMemnodeRep2", &kBackwards, kMemnode, "rep(2)"},
                    ModelCase{"CustomComputeNone", &kBackwards, kCompute, "none"},
                    ModelCase{"CustomAutoRep3", &kBackwards, CompactionSite::kAuto, "rep(3)"},
                    ModelCase{"Coded", kBytewise, kMemnode, "rs(2,1)"},
                    Fetched({"FetchedCoded", kBytewise, kCompute, "rs(2,1)"}),
                    Fetched({"FetchedMemnodeNone", kBytewise, kMemnode, "none"}),
                    Fetched(AllKinds("FetchedKindsReverse", kReverse, kCompute)),
                    Cached(AllKinds("CachedKinds", kBytewise, kMemnode)),
                    Cached(AllKinds("CachedKindsNoIndexes", kReverse, kCompute, 0)),
                    Cached({"CachedCoded", kBytewise, kMemnode, "rs(2,1)"}),
                    Encrypted(AllKinds("EncryptedKinds", kBytewise, kMemnode)),
                    Encrypted(AllKinds("EncryptedKindsNoIndexes", kReverse, kCompute, 0)),
                    Encrypted(Cached({"EncryptedCoded", kBytewise, kMemnode, "rs(2,1)"})),
                    ModelCase{"NoIndexes", kBytewise, kMemnode, "none", 0},
                    ModelCase{"FewIndexes", kBytewise, kMemnode, "rep(2)", 20'000},
                    ModelCase{"Subcompactions", kBytewise, kMemnode, "none", SIZE_MAX, 4},
                    AllKinds("KindsBytewiseMemnode", kBytewise, kMemnode),
                    AllKinds("KindsBytewiseCompute", kBytewise, kCompute),
                    AllKinds("KindsReverseMemnode", kReverse, kMemnode, SIZE_MAX, 4),
                    AllKinds("KindsCustomMemnode", &kBackwards, kMemnode),
                    AllKinds("KindsNoIndexes", kBytewise, kMemnode, 0),
                    AllKinds("KindsSubcompactions", kBytewise, kMemnode, SIZE_MAX, 4)),
    [](const testing::TestParamInfo<ModelCase>& it) { return std::string(it.param.name); });

}  // namespace
}  // namespace nacre
