// Goal: a table's meta survives encoding, and damage to it, to a footer or to a head is seen.
// Method: round trips of random metas; every byte damaged; every truncation; footers in extents.

#include "table/format/table_meta.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/table/memory_extent.h"
#include "tests/support/table/test_table.h"
#include "util/codes/crc32c.h"
#include "util/coding.h"
#include "util/random.h"

namespace nacre {
namespace {

TableMeta RandomMeta(Random* random) {
  TableMeta meta;
  meta.id = random->Next();
  meta.database_id = random->Next();
  meta.family = static_cast<uint32_t>(random->Next());
  meta.level = static_cast<uint32_t>(random->Uniform(7));
  meta.manifest_version = random->Next();
  meta.placement.redundancy =
      random->OneIn(2) ? Redundancy::Copies(1 + static_cast<int>(random->Uniform(16)))
                       : Redundancy{.kind = RedundancyKind::kErasureCoded,
                                    .data = static_cast<uint8_t>(2 + random->Uniform(15)),
                                    .parity = static_cast<uint8_t>(random->Uniform(5))};
  for (int i = 0; i < meta.placement.redundancy.fragments(); ++i) {
    ExtentAddr fragment;
    fragment.start.offset = random->Uniform(uint64_t{1} << 48);
    fragment.start.node = random->Uniform(UINT16_MAX);
    fragment.length = random->Next();
    meta.placement.fragments.push_back(fragment);
  }
  meta.comparator = std::string(random->Skewed(6), 'c');
  meta.smallest = InternalKey(std::string(random->Skewed(10), 'a'), random->Next());
  meta.largest = InternalKey(std::string(random->Skewed(10), 'z'), random->Next());
  meta.smallest_sequence = random->Uniform(kMaxSequenceNumber);
  meta.largest_sequence = random->Uniform(kMaxSequenceNumber);
  meta.entries = 1 + random->Next() / 2;
  meta.tombstones = random->Next();
  meta.user_keys = random->Next();
  meta.user_bytes = random->Next();
  meta.largest_record = random->Next();
  meta.chunk_size = 1 + random->Uniform(1 << 20);
  meta.alignment_shift = static_cast<uint32_t>(random->Uniform(33));
  meta.size = random->Next() / 2;
  meta.records.length = 1 + random->Uniform(meta.size);
  for (TableSection* section : {&meta.point_index, &meta.range_index, &meta.bloom, &meta.lineage}) {
    section->offset = random->Uniform(meta.size + 1);
    section->length = random->Uniform(meta.size - section->offset + 1);
    section->crc = static_cast<uint32_t>(random->Next());
  }
  meta.part = static_cast<uint32_t>(random->Next());
  meta.last_part = random->OneIn(2);
  return meta;
}

std::string Encode(const TableMeta& meta) {
  std::string bytes;
  EncodeTableMeta(meta, &bytes);
  return bytes;
}

/// Any field that the encoding forgets makes two metas differ here only if both sides forget it,
/// so the fields are compared one by one.
void ExpectEqual(const TableMeta& a, const TableMeta& b) {
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.database_id, b.database_id);
  EXPECT_EQ(a.family, b.family);
  EXPECT_EQ(a.level, b.level);
  EXPECT_EQ(a.manifest_version, b.manifest_version);
  EXPECT_EQ(a.placement.redundancy, b.placement.redundancy);
  EXPECT_EQ(a.placement.fragments, b.placement.fragments);
  EXPECT_EQ(a.comparator, b.comparator);
  EXPECT_EQ(a.smallest, b.smallest);
  EXPECT_EQ(a.largest, b.largest);
  EXPECT_EQ(a.bounds_shortened, b.bounds_shortened);
  EXPECT_EQ(a.smallest_sequence, b.smallest_sequence);
  EXPECT_EQ(a.largest_sequence, b.largest_sequence);
  EXPECT_EQ(a.entries, b.entries);
  EXPECT_EQ(a.tombstones, b.tombstones);
  EXPECT_EQ(a.user_keys, b.user_keys);
  EXPECT_EQ(a.user_bytes, b.user_bytes);
  EXPECT_EQ(a.largest_record, b.largest_record);
  EXPECT_EQ(a.chunk_size, b.chunk_size);
  EXPECT_EQ(a.alignment_shift, b.alignment_shift);
  EXPECT_EQ(a.size, b.size);
  const TableSection* const left[] = {&a.records, &a.point_index, &a.range_index, &a.bloom,
                                      &a.lineage};
  const TableSection* const right[] = {&b.records, &b.point_index, &b.range_index, &b.bloom,
                                       &b.lineage};
  EXPECT_EQ(a.part, b.part);
  EXPECT_EQ(a.last_part, b.last_part);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(left[i]->offset, right[i]->offset);
    EXPECT_EQ(left[i]->length, right[i]->length);
    EXPECT_EQ(left[i]->crc, right[i]->crc);
  }
}

TEST(TableMetaTest, RoundTripsOneAfterTheOther) {
  Random random(TestSeed(31));
  for (size_t round = 0; round < Scaled(200); ++round) {
    const TableMeta first = RandomMeta(&random);
    const TableMeta second = RandomMeta(&random);
    const std::string bytes = Encode(first) + Encode(second);
    Slice input = bytes;
    TableMeta decoded;
    ASSERT_TRUE(DecodeTableMeta(&input, &decoded).ok());
    ExpectEqual(decoded, first);
    ASSERT_TRUE(DecodeTableMeta(&input, &decoded).ok());
    ExpectEqual(decoded, second);
    EXPECT_TRUE(input.empty());
    std::string footer;
    EncodeFooter(first, &footer);
    EXPECT_EQ(footer.size(), FooterBytes(first));
  }
}

TEST(TableMetaTest, DamageAndTruncationAreSeen) {
  Random random(TestSeed(32));
  const TableMeta meta = RandomMeta(&random);
  const std::string bytes = Encode(meta);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 1 << random.Uniform(8));
    Slice input = damaged;
    TableMeta decoded;
    EXPECT_TRUE(DecodeTableMeta(&input, &decoded).IsCorruption()) << "byte " << i;
    EXPECT_EQ(input.size(), damaged.size());
    const std::string prefix = bytes.substr(0, i);
    input = prefix;
    EXPECT_TRUE(DecodeTableMeta(&input, &decoded).IsCorruption()) << "first " << i;
  }
}

TEST(TableMetaTest, NewerFormatIsRefusedByName) {
  Random random(TestSeed(33));
  std::string bytes = Encode(RandomMeta(&random));
  EncodeFixed16(bytes.data() + 4, 7);
  EncodeFixed32(bytes.data() + bytes.size() - 4, Crc32c(bytes.data(), bytes.size() - 4));
  Slice input = bytes;
  TableMeta decoded;
  const Status status = DecodeTableMeta(&input, &decoded);
  EXPECT_TRUE(status.IsNotSupported());
  EXPECT_NE(status.ToString().find("version 7"), std::string::npos);
}

TEST(TableMetaTest, SectionsOutsideOfTheTableAreRefused) {
  Random random(TestSeed(34));
  for (size_t round = 0; round < Scaled(100); ++round) {
    TableMeta meta = RandomMeta(&random);
    TableSection* const sections[] = {&meta.records, &meta.point_index, &meta.range_index,
                                      &meta.bloom, &meta.lineage};
    TableSection* const section = sections[random.Uniform(5)];
    section->length = meta.size - section->offset + 1 + random.Uniform(UINT64_MAX / 4);
    const std::string bytes = Encode(meta);
    Slice input = bytes;
    TableMeta decoded;
    EXPECT_TRUE(DecodeTableMeta(&input, &decoded).IsCorruption());
  }
}

/// A table of which only the end is real.
std::string BytesWithFooter(TableMeta meta, size_t body_bytes) {
  std::string bytes(body_bytes, 'b');
  meta.size = body_bytes + FooterBytes(meta);
  meta.records = {0, 1, 0};
  meta.point_index = meta.range_index = meta.bloom = meta.lineage = TableSection();
  EncodeFooter(meta, &bytes);
  return bytes;
}

TEST(TableMetaTest, FooterIsFoundFromTheEnd) {
  Random random(TestSeed(35));
  for (const size_t key_bytes : {10, 3000, 100'000}) {
    TableMeta meta = RandomMeta(&random);
    meta.largest = InternalKey(std::string(key_bytes, 'z'), 1);
    const std::string bytes = BytesWithFooter(meta, 1 + random.Uniform(10'000));
    for (const BytesPlace place : {BytesPlace::kFetched, BytesPlace::kInPlace}) {
      MemoryExtent extent(bytes, {.place = place});
      TableMeta found;
      const Status status = ReadFooter(&extent, &found);
      ASSERT_TRUE(status.ok()) << status.ToString();
      EXPECT_EQ(found.id, meta.id);
      EXPECT_EQ(found.largest, meta.largest);
      EXPECT_EQ(found.size, bytes.size());
    }
  }
}

TEST(TableMetaTest, DamagedFootersAreSeen) {
  Random random(TestSeed(36));
  const TableMeta meta = RandomMeta(&random);
  const std::string bytes = BytesWithFooter(meta, 100);
  TableMeta found;
  for (size_t i = 100; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 1 << random.Uniform(8));
    MemoryExtent extent(damaged);
    EXPECT_TRUE(ReadFooter(&extent, &found).IsCorruption()) << "byte " << i - 100;
  }
  for (const size_t size : {size_t{0}, size_t{15}, size_t{16}, bytes.size() - 1}) {
    MemoryExtent extent(bytes.substr(0, size));
    EXPECT_TRUE(ReadFooter(&extent, &found).IsCorruption()) << size;
    MemoryExtent end(bytes.substr(bytes.size() - size));
    EXPECT_TRUE(ReadFooter(&end, &found).IsCorruption()) << size;
  }
}

TEST(TableMetaTest, HeadShortensBoundsThatAreTooLong) {
  Random random(TestSeed(37));
  for (const size_t key_bytes : {100, 1700, 2500, 50'000}) {
    TableMeta meta = RandomMeta(&random);
    const std::string smallest(key_bytes, 'a');
    const std::string largest(key_bytes, 'z');
    meta.smallest = InternalKey(smallest, 77);
    meta.largest = InternalKey(largest, 78);
    std::string head;
    ASSERT_TRUE(EncodeFragmentHead(meta, &head).ok());
    EXPECT_LE(head.size(), kFragmentHeadBytes);
    // A node reads the whole head, whatever follows the meta in it.
    head.resize(kFragmentHeadBytes, '\xcd');
    Slice input = head;
    TableMeta found;
    ASSERT_TRUE(DecodeTableMeta(&input, &found).ok());
    EXPECT_EQ(found.bounds_shortened, key_bytes > 1750);
    EXPECT_EQ(ExtractTag(found.smallest), 77u);
    EXPECT_EQ(ExtractTag(found.largest), 78u);
    EXPECT_TRUE(Slice(smallest).starts_with(found.smallest_user_key()));
    EXPECT_TRUE(Slice(largest).starts_with(found.largest_user_key()));
    if (!found.bounds_shortened) {
      ExpectEqual(found, meta);
    } else {
      EXPECT_GT(found.smallest_user_key().size(), 1000u);  // The room is used.
    }
  }
}

TEST(TableMetaTest, AbsurdComparatorNameIsRefused) {
  Random random(TestSeed(38));
  TableMeta meta = RandomMeta(&random);
  meta.comparator = std::string(5000, 'c');
  std::string head;
  EXPECT_TRUE(EncodeFragmentHead(meta, &head).IsInvalidArgument());
}

}  // namespace
}  // namespace nacre
