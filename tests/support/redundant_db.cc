#include "tests/support/redundant_db.h"

#include <vector>

#include "pool/reports.h"
#include "pool/wire/database_report.h"
#include "tests/support/status_assert.h"

namespace nacre {

void RedundantDBTest::Open(const std::string& redundancy, int nodes, bool degraded_writes) {
  db_.reset();
  model_.clear();
  pool_ = OpenTestPool({.nodes = nodes, .node_bytes = 64 << 20});
  ASSERT_NE(pool_, nullptr);
  const Options set = options_;
  options_ = SmallTableOptions(pool_);
  options_.disable_auto_compactions = set.disable_auto_compactions;
  options_.index_memory_budget = set.index_memory_budget;
  options_.compaction = set.compaction;
  options_.allow_narrow_writes = set.allow_narrow_writes;
  options_.scrub_bytes_per_second = scrub_bytes_per_second_;
  options_.redundancy = redundancy;
  options_.allow_degraded_writes = degraded_writes;
  // Rows and chunks that many records meet the ends of.
  options_.chunk_size = 4 << 10;
  for (int node = 0; pause_repair_ && node < nodes; ++node) {
    pool::Directions now;
    ASSERT_TRUE(IsOk(pool::SetDirections(pool_->client(), static_cast<NodeId>(node),
                                         {.version = 1, .repair_paused = true}, &now)));
  }
  ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_)));
}

void RedundantDBTest::Fill(size_t writes) {
  for (size_t i = 0; i < writes; ++i) {
    const std::string key = "key" + std::to_string(random_.Uniform(kKeys));
    if (random_.OneIn(10)) {
      ASSERT_TRUE(IsOk(db_->Delete(NoLog(), key)));
      model_.erase(key);
      continue;
    }
    const size_t size = random_.OneIn(150) ? 3000 + random_.Uniform(30'000) : random_.Uniform(400);
    const std::string value = TestValue(random_.Next(), size);
    ASSERT_TRUE(IsOk(db_->Put(NoLog(), key, value)));
    model_[key] = value;
  }
}

void RedundantDBTest::Check() {
  std::vector<std::string> names;
  for (int i = 0; i < kKeys; ++i) names.push_back("key" + std::to_string(i));
  std::string value;
  std::vector<Slice> keys(names.begin(), names.end());
  std::vector<std::string> values;
  const std::vector<Status> statuses = db_->MultiGet({}, keys, &values);
  for (size_t i = 0; i < names.size(); ++i) {
    const auto expected = model_.find(names[i]);
    const Status status = i % 4 == 0 ? db_->Get({}, names[i], &value) : Status::OK();
    if (expected == model_.end()) {
      ASSERT_TRUE(statuses[i].IsNotFound()) << statuses[i].ToString();
      ASSERT_TRUE(i % 4 != 0 || status.IsNotFound()) << status.ToString();
    } else {
      ASSERT_TRUE(IsOk(statuses[i]));
      ASSERT_TRUE(IsOk(status));
      ASSERT_TRUE(values[i] == expected->second) << names[i];
      ASSERT_TRUE(i % 4 != 0 || value == expected->second) << names[i];
    }
  }
  const std::unique_ptr<Iterator> iterator(db_->NewIterator({}));
  auto expected = model_.begin();
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++expected) {
    ASSERT_NE(expected, model_.end());
    ASSERT_EQ(iterator->key().ToString(), expected->first);
    ASSERT_TRUE(iterator->value() == Slice(expected->second)) << expected->first;
  }
  ASSERT_TRUE(IsOk(iterator->status()));
  ASSERT_EQ(expected, model_.end());
  auto backward = model_.rbegin();
  for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev(), ++backward) {
    ASSERT_EQ(iterator->key().ToString(), backward->first);
  }
  ASSERT_TRUE(IsOk(iterator->status()));
  ASSERT_EQ(backward, model_.rend());
}

}  // namespace nacre
