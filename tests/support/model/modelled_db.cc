#include "tests/support/model/modelled_db.h"

#include <utility>

#include "nacre/iterator.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {

ModelledDBTest::ModelledDBTest(uint64_t seed, std::vector<std::string> lookups)
    : random_(TestSeed(seed)), model_(BytewiseComparator()), lookups_(std::move(lookups)) {}

ModelledDBTest::~ModelledDBTest() = default;

void ModelledDBTest::StartNodes() {
  nodes_ = std::make_unique<MemnodeProcesses>(
      3, MemnodeProcessOptions{.scheme = "shm", .size = "128MiB", .slab_size = "1MiB"});
  options_ = SmallTableOptions(nullptr);
  options_.pool_uri = nodes_->pool_uri();
  options_.redundancy = "rep(2)";
  options_.near_data_flush = NearDataFlush::kOn;
  options_.write_buffer_size = 64 << 20;
}

void ModelledDBTest::Open() { ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_))); }

void ModelledDBTest::ExpectModel(DB* db, const Snapshot* snapshot, uint64_t time) {
  ReadOptions read;
  read.snapshot = snapshot;
  const ModelDB::Pairs expected = model_.Visible(time);
  const std::unique_ptr<Iterator> iterator(db->NewIterator(read));
  size_t i = 0;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++i) {
    ASSERT_LT(i, expected.size()) << iterator->key().ToString();
    ASSERT_EQ(iterator->key().ToString(), expected[i].first);
    ASSERT_TRUE(iterator->value() == Slice(*expected[i].second)) << expected[i].first;
  }
  ASSERT_TRUE(IsOk(iterator->status()));
  ASSERT_EQ(i, expected.size());
  for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) {
    ASSERT_GT(i, 0U);
    ASSERT_EQ(iterator->key().ToString(), expected[--i].first);
    ASSERT_TRUE(iterator->value() == Slice(*expected[i].second)) << expected[i].first;
  }
  ASSERT_EQ(i, 0U);
  std::vector<std::string> names = lookups_;
  for (const auto& [key, value] : expected) names.push_back(key);
  std::vector<Slice> keys(names.begin(), names.end());
  std::vector<PinnableSlice> values(keys.size());
  std::vector<Status> statuses(keys.size());
  db->MultiGet(read, keys.size(), keys.data(), values.data(), statuses.data());
  for (size_t k = 0; k < keys.size(); ++k) {
    const ModelDB::Value value = model_.Get(names[k], time);
    std::string found;
    const Status status = db->Get(read, keys[k], &found);
    if (value == nullptr) {
      ASSERT_TRUE(status.IsNotFound()) << names[k] << ": " << status.ToString();
      ASSERT_TRUE(statuses[k].IsNotFound()) << names[k] << ": " << statuses[k].ToString();
      continue;
    }
    ASSERT_TRUE(IsOk(status)) << names[k];
    ASSERT_TRUE(IsOk(statuses[k])) << names[k];
    ASSERT_EQ(found, *value);
    ASSERT_TRUE(values[k] == Slice(*value)) << names[k];
  }
}

}  // namespace nacre
