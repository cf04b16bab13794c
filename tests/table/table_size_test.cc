// Goal: what is reserved for a table holds it, and a builder knows how large its table is and may
// become.
// Method: tables of random keys and values (seeded), in chunks and capacities of many sizes; the
// bounds are compared with what the tables then take.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "table/format/record.h"
#include "table/table_builder.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/table/test_table.h"
#include "util/random.h"

namespace nacre {
namespace {

TEST(TableSizeTest, BoundsHold) {
  // What Fits allows can be finished, what it refuses would not have fitted by much, no record
  // makes a table grow by more than GrowthBound, and SizeBound covers every table.
  Random random(TestSeed(306));
  for (size_t round = 0; round < Scaled(300); ++round) {
    TestTableOptions options;
    options.chunk_size = size_t{256} << random.Uniform(8);
    const bool small_capacity = random.OneIn(2);
    options.capacity = small_capacity ? 2'000 + random.Uniform(60'000) : uint64_t{16} << 20;
    const int key_bits = static_cast<int>(random.Uniform(10));
    const int value_bits = static_cast<int>(random.Uniform(13));
    MemoryTable memory;
    TableBuilderOptions builder_options;
    builder_options.comparator = options.comparator;
    TableBuilder builder(
        builder_options, TableMeta(),
        std::make_unique<MemoryExtentWriter>(&memory, options.chunk_size, options.capacity));
    uint64_t entries = 0;
    uint64_t user_bytes = 0;
    uint64_t largest = 0;
    for (uint64_t i = 0; i < 1000; ++i) {
      std::string key = std::to_string(100'000 + i) + SkewedBytes(&random, key_bits, 256);
      const std::string value = SkewedBytes(&random, value_bits, 256);
      if (!builder.Fits(key.size(), value.size())) {
        ASSERT_TRUE(small_capacity);
        break;
      }
      const uint64_t tag = PackTag(1 + random.Uniform(kMaxSequenceNumber), ValueType::kValue);
      const uint64_t grown =
          builder.EstimatedSize() + builder.GrowthBound(key.size(), value.size());
      ASSERT_TRUE(builder.Add(key, tag, value).ok());
      ASSERT_LE(builder.EstimatedSize(), grown);
      const uint64_t limit = random.Uniform(options.capacity + 1000);
      ASSERT_EQ(builder.RoomUntil(limit) > 0,
                builder.EstimatedSize() < std::min<uint64_t>(limit, options.capacity));
      ++entries;
      user_bytes += key.size() + value.size();
      largest = std::max<uint64_t>(largest, RecordBytes(key.size(), tag, value.size()));
    }
    if (entries == 0) continue;
    const uint64_t estimate = builder.EstimatedSize();
    TableMeta meta;
    const Status finished = builder.Finish(&meta);
    ASSERT_TRUE(finished.ok()) << finished.ToString();
    ASSERT_LE(meta.size, options.capacity);
    ASSERT_LE(meta.size, estimate);
    ASSERT_EQ(meta.entries, entries);
    ASSERT_EQ(meta.user_bytes, user_bytes);
    ASSERT_EQ(meta.largest_record, largest);
    ASSERT_LE(meta.size, TableBuilder::SizeBound(entries, user_bytes, largest, options.chunk_size));
  }
}

TEST(TableSizeTest, SizeBoundIsNotAbsurd) {
  // A MemTable of db_bench: what is reserved should be near what is used.
  const uint64_t entries = 150'000;
  const uint64_t bound = TableBuilder::SizeBound(
      entries, entries * 420, RecordBytes(20, PackTag(1 << 30, ValueType::kValue), 400), 256 << 10);
  EXPECT_LE(static_cast<double>(bound), 1.25 * static_cast<double>(entries * 420));
}

}  // namespace
}  // namespace nacre
