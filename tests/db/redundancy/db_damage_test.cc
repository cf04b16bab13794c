// Goal: bytes that are damaged in the memory of nodes are noticed wherever they lie, read around
// while as much is whole as may be lost, and never answered.
// Method: bits are flipped in the fragments' places in the memory of embedded nodes, and all that
// is read is compared with a model.

#include <gtest/gtest.h>

#include <cctype>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "table/format/fragment_checksums.h"
#include "table/format/record.h"
#include "tests/support/redundant_db.h"
#include "tests/support/scale.h"
#include "tests/support/status_assert.h"
#include "tests/support/table/stored_tables.h"

namespace nacre {
namespace {

enum class Tier { kIndex, kBuckets };

class DamageTest : public RedundantDBTest,
                   public testing::WithParamInterface<std::tuple<const char*, Tier>> {
 protected:
  /// Tables of several levels, at rest. The database runs no compaction by itself.
  void OpenWithTables(Tier tier = std::get<1>(GetParam())) {
    options_.disable_auto_compactions = true;
    pause_repair_ = true;
    if (tier == Tier::kBuckets) options_.index_memory_budget = 0;
    Redundancy redundancy;
    ASSERT_TRUE(IsOk(ParseRedundancy(std::get<0>(GetParam()), &redundancy)));
    ASSERT_NO_FATAL_FAILURE(Open(std::get<0>(GetParam()), redundancy.fragments()));
    ASSERT_NO_FATAL_FAILURE(Fill(5000));
    ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
    ASSERT_NO_FATAL_FAILURE(Fill(1000));
    // Kept versions make tables that have several of a key.
    const Snapshot* snapshot = db_->GetSnapshot();
    ASSERT_NO_FATAL_FAILURE(Fill(1000));
    ASSERT_TRUE(IsOk(db_->Flush({})));
    db_->ReleaseSnapshot(snapshot);
    tables_ = StoredTables(db_.get(), pool_.get());
    ASSERT_GT(tables_.size(), 4u);
  }

  /// As from the memory, without what this process has read of the tables so far.
  void Reopen() {
    db_.reset();
    ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_)));
  }

  void Flip(const TableMeta& table, size_t fragment, int64_t offset) {
    char* const byte = StoredByte(pool_.get(), table, fragment, offset);
    *byte = static_cast<char>(*byte ^ 1 << random_.Uniform(8));
  }

  uint64_t Bytes(const TableMeta& table, size_t fragment) {
    return FragmentBytes(table.placement, static_cast<int>(fragment), table.size);
  }
  uint64_t WithTail(const TableMeta& table, size_t fragment) {
    const uint64_t bytes = Bytes(table, fragment);
    return bytes + FragmentTailBytes(bytes, table.chunk_size);
  }

  /// Flips bits all over the fragment.
  void Ruin(const TableMeta& table, size_t fragment) {
    const uint64_t end = WithTail(table, fragment);
    for (uint64_t at = random_.Uniform(200); at < end; at += 1 + random_.Uniform(400)) {
      Flip(table, fragment, static_cast<int64_t>(at));
    }
    Flip(table, fragment, -static_cast<int64_t>(1 + random_.Uniform(kFragmentHeadBytes)));
  }

  /// Different fragments of the table, in no order.
  std::vector<size_t> Fragments(const TableMeta& table, size_t count) {
    std::vector<size_t> all;
    for (size_t i = 0; i < table.placement.fragments.size(); ++i) all.push_back(i);
    for (size_t i = 0; i < count; ++i) std::swap(all[i], all[i + random_.Uniform(all.size() - i)]);
    all.resize(count);
    return all;
  }

  /// Flips a bit of the table's byte at `offset`, in one fragment that has it.
  void FlipTableByte(const TableMeta& table, uint64_t offset) {
    if (!table.placement.redundancy.striped()) {
      Flip(table, random_.Uniform(table.placement.fragments.size()), static_cast<int64_t>(offset));
      return;
    }
    const Striping::Place place = Striping(table.placement).Locate(offset);
    Flip(table, place.fragment, static_cast<int64_t>(place.offset));
  }

  std::vector<TableMeta> tables_;
};

INSTANTIATE_TEST_SUITE_P(Redundancies, DamageTest,
                         testing::Combine(testing::Values("rs(2,1)", "rs(4,2)", "rep(2)", "rep(3)"),
                                          testing::Values(Tier::kIndex, Tier::kBuckets)),
                         [](const auto& test) {
                           std::string name = std::get<0>(test.param);
                           for (char& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           }
                           return name +
                                  (std::get<1>(test.param) == Tier::kIndex ? "Index" : "Buckets");
                         });

TEST_P(DamageTest, WholeFragmentsAreReadAround) {
  ASSERT_NO_FATAL_FAILURE(OpenWithTables());
  ASSERT_NO_FATAL_FAILURE(Check());
  EXPECT_EQ(GetNumber(db_.get(), "nacre.damage.reads"), 0u);
  for (const TableMeta& table : tables_) {
    for (const size_t fragment : Fragments(table, table.placement.redundancy.parity)) {
      Ruin(table, fragment);
    }
  }
  ASSERT_NO_FATAL_FAILURE(Check());
  EXPECT_GT(GetNumber(db_.get(), "nacre.damage.reads"), 0u);
  EXPECT_GT(GetNumber(db_.get(), "nacre.damage.fragments"), 0u);
  // Indexes are damaged too.
  ASSERT_NO_FATAL_FAILURE(Reopen());
  ASSERT_NO_FATAL_FAILURE(Check());
  // What compactions write is whole.
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  EXPECT_EQ(GetNumber(db_.get(), "nacre.damage.fragments"), 0u);
  const uint64_t reads = GetNumber(db_.get(), "nacre.damage.reads");
  ASSERT_NO_FATAL_FAILURE(Check());
  ASSERT_NO_FATAL_FAILURE(Reopen());
  ASSERT_NO_FATAL_FAILURE(Check());
  EXPECT_LE(GetNumber(db_.get(), "nacre.damage.reads"), reads);
}

TEST_P(DamageTest, ABitAnywhereIsReadAround) {
  ASSERT_NO_FATAL_FAILURE(OpenWithTables());
  const auto within = [&](const TableSection& section) {
    return section.offset + random_.Uniform(section.length);
  };
  for (size_t round = 0; round < Scaled(3); ++round) {
    for (const TableMeta& table : tables_) {
      switch (random_.Uniform(8)) {
        case 0:
          FlipTableByte(table, random_.Uniform(64));  // The first records' heads and keys.
          break;
        case 1:
          FlipTableByte(table, within(table.records));
          break;
        case 2:
          FlipTableByte(table, within(table.point_index));
          break;
        case 3:
          FlipTableByte(table, within(table.range_index));
          break;
        case 4:
          FlipTableByte(table, within(table.bloom));
          break;
        case 5:
          FlipTableByte(table, table.size - 1 - random_.Uniform(kFooterTrailerBytes));
          break;
        default: {
          const size_t fragment = random_.Uniform(table.placement.fragments.size());
          Flip(table, fragment, static_cast<int64_t>(random_.Uniform(WithTail(table, fragment))));
        }
      }
    }
    ASSERT_NO_FATAL_FAILURE(Check());
    ASSERT_NO_FATAL_FAILURE(Reopen());
    ASSERT_NO_FATAL_FAILURE(Check());
    // The next bits may hit the same rows.
    ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
    ASSERT_NO_FATAL_FAILURE(Fill(500));
    ASSERT_TRUE(IsOk(db_->Flush({})));
    tables_ = StoredTables(db_.get(), pool_.get());
  }
  ASSERT_NO_FATAL_FAILURE(Check());
}

TEST_P(DamageTest, MoreThanMayBeLostIsNeverAnswered) {
  ASSERT_NO_FATAL_FAILURE(OpenWithTables());
  for (const TableMeta& table : tables_) {
    for (const size_t fragment : Fragments(table, table.placement.redundancy.parity + size_t{1})) {
      Ruin(table, fragment);
    }
  }
  size_t failed = 0;
  const auto agrees = [&](const Status& status, const std::string& key, const Slice& value) {
    if (status.IsCorruption()) {
      ++failed;
      return status.ToString().find("embedded") != std::string::npos;
    }
    const auto expected = model_.find(key);
    if (expected == model_.end()) return status.IsNotFound();
    return status.ok() && value == Slice(expected->second);
  };
  for (int i = 0; i < kKeys; ++i) {
    const std::string key = "key" + std::to_string(i);
    std::string value;
    const Status status = db_->Get({}, key, &value);
    ASSERT_TRUE(agrees(status, key, value)) << key << ": " << status.ToString();
  }
  EXPECT_GT(failed, 0u);
  const std::unique_ptr<Iterator> iterator(db_->NewIterator({}));
  auto expected = model_.begin();
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++expected) {
    ASSERT_EQ(iterator->key().ToString(), expected->first);
    ASSERT_TRUE(iterator->value() == Slice(expected->second));
  }
  EXPECT_TRUE(iterator->status().IsCorruption());
  auto backward = model_.rbegin();
  for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev(), ++backward) {
    ASSERT_EQ(iterator->key().ToString(), backward->first);
    ASSERT_TRUE(iterator->value() == Slice(backward->second));
  }
  EXPECT_TRUE(iterator->status().IsCorruption());
  EXPECT_TRUE(db_->CompactRange({}, nullptr, nullptr).IsCorruption());
}

TEST_P(DamageTest, LostNodesAndDamageTogetherAreReadAround) {
  if (std::get<0>(GetParam()) != std::string("rs(4,2)") &&
      std::get<0>(GetParam()) != std::string("rep(3)")) {
    GTEST_SKIP() << "takes two that may be lost";
  }
  ASSERT_NO_FATAL_FAILURE(OpenWithTables());
  const NodeId lost = 1;
  for (const TableMeta& table : tables_) {
    for (const size_t fragment : Fragments(table, table.placement.fragments.size())) {
      if (table.placement.fragments[fragment].start.node == lost) continue;
      Ruin(table, fragment);
      break;
    }
  }
  pool_->KillEmbeddedNode(lost);
  ASSERT_NO_FATAL_FAILURE(Check());
}

}  // namespace
}  // namespace nacre
