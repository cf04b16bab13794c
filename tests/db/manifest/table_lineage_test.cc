// Goal: what a table tells of its database comes back as it was, and nothing else is taken for it.
// Method: round trips of random lineages; every truncation; bytes damaged at random.

#include "db/manifest/table_lineage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "util/random.h"

namespace nacre {
namespace {

TableLineage RandomLineage(Random* random) {
  TableLineage lineage;
  lineage.kind = random->OneIn(3)   ? TableLineage::Kind::kFlush
                 : random->OneIn(2) ? TableLineage::Kind::kCompaction
                                    : TableLineage::Kind::kState;
  lineage.epoch = random->Next();
  lineage.job = random->Next();
  lineage.ranges = 1 + static_cast<uint32_t>(random->Uniform(100));
  lineage.range = static_cast<uint32_t>(random->Uniform(lineage.ranges));
  lineage.through = random->Uniform(kMaxSequenceNumber);
  lineage.base_version = random->Next();
  lineage.flushed = random->Uniform(kMaxSequenceNumber);
  lineage.num_levels = 1 + static_cast<uint32_t>(random->Uniform(9));
  lineage.slab_bytes = random->Next();
  uint32_t levels = lineage.num_levels;
  const bool has_families = random->OneIn(2);
  if (has_families || lineage.kind == TableLineage::Kind::kState) {
    lineage.comparator = "nacre.BytewiseComparator";
  }
  if (has_families) {
    lineage.next_family = 2 + static_cast<uint32_t>(random->Uniform(20));
    for (uint32_t family = 1; family < lineage.next_family; ++family) {
      if (random->OneIn(2)) continue;
      const uint32_t its_levels = 1 + static_cast<uint32_t>(random->Uniform(9));
      levels = std::max(levels, its_levels);
      lineage.families[family] = {.name = "family " + std::to_string(family),
                                  .comparator = "another",
                                  .num_levels = its_levels};
    }
  }
  uint64_t id = random->OneIn(5) ? UINT64_MAX - 10'000 : 0;
  for (size_t i = random->Uniform(50); i > 0; --i) {
    lineage.tables[id += 1 + random->Uniform(100)] = static_cast<uint32_t>(random->Uniform(levels));
    if (random->OneIn(3)) lineage.inputs.push_back(id);
  }
  return lineage;
}

TEST(TableLineageTest, RoundTrips) {
  Random random(TestSeed(911));
  for (size_t round = 0; round < Scaled(300); ++round) {
    const TableLineage lineage = RandomLineage(&random);
    TableLineage decoded;
    ASSERT_TRUE(IsOk(DecodeTableLineage(EncodeTableLineage(lineage), &decoded)));
    EXPECT_TRUE(decoded == lineage);
  }
}

TEST(TableLineageTest, TruncatedAndOverlongOnesAreRefused) {
  Random random(TestSeed(912));
  const std::string bytes = EncodeTableLineage(RandomLineage(&random));
  TableLineage decoded;
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_TRUE(DecodeTableLineage(Slice(bytes.data(), i), &decoded).IsCorruption()) << i;
  }
  EXPECT_TRUE(DecodeTableLineage(bytes + "x", &decoded).IsCorruption());
}

TEST(TableLineageTest, AnotherFormatIsRefusedByName) {
  Random random(TestSeed(913));
  std::string bytes = EncodeTableLineage(RandomLineage(&random));
  bytes[0] = 4;
  TableLineage decoded;
  const Status status = DecodeTableLineage(bytes, &decoded);
  EXPECT_TRUE(status.IsNotSupported());
  EXPECT_NE(status.ToString().find("version 4"), std::string::npos);
}

}  // namespace
}  // namespace nacre
