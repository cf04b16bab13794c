// Goal: what was written by an earlier build is read by this one, so nothing in docs/formats.md may
// change by accident.
// Method: bytes and checksums of fixed inputs, written down once. A failure here means a new format
// version, not a new number in this file.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "table/format/fragment_checksums.h"
#include "table/format/record.h"
#include "table/index/point_index.h"
#include "table/index/point_index_layout.h"
#include "table/index/range_index.h"
#include "tests/support/table/test_table.h"
#include "util/codes/crc32c.h"

namespace nacre {
namespace {

std::string Hex(const Slice& bytes) { return bytes.ToString(true); }

TEST(FormatTest, Record) {
  std::string bytes(RecordBytes(3, PackTag(300, ValueType::kValue), 5), '\0');
  EncodeRecord(bytes.data(), 1, "key", PackTag(300, ValueType::kValue), "value");
  EXPECT_EQ(Hex(bytes), "051D488B04076B6579C12576616C7565");
  EncodeEndOfChunkMark(bytes.data(), RecordSeed(1));
  EXPECT_EQ(Hex(Slice(bytes.data(), kEndOfChunkMarkBytes)), "EBBEDB4F00");
}

TEST(FormatTest, RangeIndex) {
  RangeIndexBuilder builder(2);
  builder.Add("abc", 4096);
  builder.Add("abd", 8192);
  builder.AddWithinKey("abe", PackTag(5, ValueType::kValue), 8200);
  std::string bytes;
  builder.Finish(&bytes);
  EXPECT_EQ(Hex(bytes),
            "0003801061626302018010640201056501050000000000000000000001000000"
            "03000000");
}

TEST(FormatTest, PointIndex) {
  PointIndexBuilder builder(1);
  builder.Add(0x123456789abcdef0, 0x1234, 300);
  builder.Add(0xfedcba9876543210, 0x4322, 77);
  std::string bytes;
  builder.Finish(&bytes);
  EXPECT_EQ(Hex(bytes),
            "F01E100200000000000000000000000000000000000000001A09009121000000"
            "0000000000000000000000000000000000000000000000000000000002000000"
            "010000000000000002000000000000006F43000000000000010000004E495831"
            "4D0000002C0100002C0100002C0100002C0100002C0100002C0100002C010000"
            "2C0100002C0100002C0100002C0100002C0100002C0100002C0100002C010000"
            "00000000000000000000000000000000000000000000000000000000D346FD69");

  // Where keys go is fixed; which of them are moved is the builder's choice.
  constexpr uint64_t kHash = 0x123456789abcdef0;
  PointIndexShape shape;
  shape.bucket_count = 1'000'000;
  EXPECT_EQ(shape.HomeBucket(kHash), 71111u);
  EXPECT_EQ(PointIndexLayout::Fingerprint(kHash), 0xef0u);
  EXPECT_EQ(PointIndexLayout::Group(kHash), 13u);
  EXPECT_EQ(PointIndexLayout::MovedBucket(shape, kHash, 0), 786048u);
  EXPECT_EQ(PointIndexLayout::MovedBucket(shape, kHash, 254), 126851u);
}

TEST(FormatTest, Meta) {
  TableMeta meta;
  meta.id = 1;
  meta.database_id = 2;
  meta.family = 3;
  meta.level = 4;
  meta.manifest_version = 5;
  meta.placement.redundancy = Redundancy::Copies(2);
  for (const NodeId node : {1, 2}) {
    ExtentAddr fragment;
    fragment.start.node = node;
    fragment.start.offset = 4096;
    fragment.length = 8192;
    meta.placement.fragments.push_back(fragment);
  }
  meta.comparator = "c";
  meta.smallest = InternalKey("a", PackTag(6, ValueType::kValue));
  meta.largest = InternalKey("b", PackTag(7, ValueType::kDeletion));
  meta.smallest_sequence = 6;
  meta.largest_sequence = 7;
  meta.entries = 8;
  meta.tombstones = 9;
  meta.user_keys = 10;
  meta.user_bytes = 11;
  meta.largest_record = 12;
  meta.chunk_size = 13;
  meta.alignment_shift = 14;
  meta.size = 100;
  meta.records = {0, 15, 0};
  meta.point_index = {16, 17, 18};
  meta.range_index = {19, 20, 21};
  meta.bloom = {22, 23, 24};
  meta.lineage = {25, 26, 27};
  meta.part = 28;
  meta.last_part = true;
  std::string bytes;
  EncodeTableMeta(meta, &bytes);
  EXPECT_EQ(Hex(bytes),
            "4E43544D050002001E0100000300000001000000000000000200000000000000"
            "0500000000000000040000000E00000006000000000000000700000000000000"
            "080000000000000009000000000000000A000000000000000B00000000000000"
            "0C000000000000000D0000000000000064000000000000000000000000000000"
            "0F00000000000000000000001000000000000000110000000000000012000000"
            "1300000000000000140000000000000015000000160000000000000017000000"
            "000000001800000019000000000000001A000000000000001B0000001C000000"
            "0001010200100000000001000020000000000000001000000000020000200000"
            "00000000016309610106000000000000096200070000000000001E439A02");
}

TEST(FormatTest, FragmentTail) {
  std::string bytes;
  EncodeFragmentTail(
      {.table_id = 1, .fragment = 2, .bytes = 10, .chunk_size = 8, .chunks = {0x11223344, 5}},
      &bytes);
  EXPECT_EQ(Hex(bytes),
            "4E4346540100020001000000000000000A000000000000000800000000000000"
            "443322110500000000DB453F");
}

TEST(FormatTest, Table) {
  std::vector<TestEntry> entries;
  for (int i = 1000; i < 1008; ++i) {
    entries.push_back({std::to_string(i),
                       PackTag(static_cast<SequenceNumber>(i), ValueType::kValue),
                       std::string(static_cast<size_t>(100 * i - 99950), 'v')});
  }
  TestTableOptions options;
  options.capacity = 64 << 20;
  MemoryTable table;
  TableMeta meta;
  ASSERT_TRUE(BuildTable(entries, options, &table, &meta).ok());
  EXPECT_EQ(table.bytes.size(), 3911u);
  EXPECT_EQ(Crc32c(table.bytes.data(), table.bytes.size()), 2847090668u);
  EXPECT_EQ(Crc32c(table.head.data(), table.head.size()), 1214729159u);
}

}  // namespace
}  // namespace nacre
