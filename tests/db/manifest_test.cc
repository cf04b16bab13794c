// Goal: a manifest comes back as it was written, and anything else is an error: cut short, with a
// flipped bit, or malformed under a valid checksum. No bytes make the decoder read past them.
// Method: random images; every truncation and every flipped bit of one; random damage with the
// checksum made right again, so that the fields' own checks are reached.

#include "db/manifest.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "util/coding.h"
#include "util/crc32c.h"
#include "util/random.h"

namespace nacre {
namespace {

std::string RandomBytes(Random* random, size_t max_length) {
  std::string bytes(random->Uniform(max_length + 1), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random->Next());
  return bytes;
}

uint64_t Number(Random* random) { return random->Skewed(40); }

TableMeta RandomMeta(Random* random) {
  TableMeta meta;
  meta.id = Number(random);
  meta.database_id = random->Next();
  meta.level = static_cast<uint32_t>(random->Uniform(7));
  meta.manifest_version = Number(random);
  meta.placement.redundancy = Redundancy::Copies(1 + static_cast<int>(random->Uniform(3)));
  for (int i = 0; i < meta.placement.redundancy.fragments(); ++i) {
    ExtentAddr extent;
    extent.start.node = static_cast<uint64_t>(i);
    extent.start.offset = Number(random) << 12 & ((uint64_t{1} << 48) - 1);
    extent.length = 1 + Number(random);
    meta.placement.fragments.push_back(extent);
  }
  meta.comparator = "order";
  const std::string low = RandomBytes(random, 20);
  AppendInternalKey(&meta.smallest, low, PackTag(Number(random), ValueType::kValue));
  AppendInternalKey(&meta.largest, low + "z", PackTag(Number(random), ValueType::kDeletion));
  meta.smallest_sequence = 0;
  meta.largest_sequence = Number(random);
  meta.entries = 3 + Number(random);
  meta.tombstones = meta.entries / 3;
  meta.user_keys = 1 + meta.entries / 2;
  meta.user_bytes = Number(random);
  meta.largest_record = Number(random);
  meta.chunk_size = 256 << 10;
  meta.alignment_shift = static_cast<uint32_t>(random->Uniform(8));
  uint64_t offset = 0;
  for (TableSection* section : {&meta.records, &meta.point_index, &meta.range_index, &meta.bloom}) {
    section->offset = offset;
    section->length = 64 + Number(random);
    section->crc = static_cast<uint32_t>(random->Next());
    offset += section->length;
  }
  meta.size = offset + 4096;
  return meta;
}

ManifestImage RandomImage(Random* random, size_t max_tables) {
  ManifestImage image;
  image.comparator = RandomBytes(random, 30);
  image.manifest_version = Number(random);
  image.next_table_id = 1 + Number(random);
  image.last_sequence = Number(random);
  image.num_levels = 7;
  image.slab_bytes = 64 << 20;
  const uint64_t nodes = random->Uniform(5);
  for (uint64_t node = 0; node < nodes; ++node) {
    image.nodes[static_cast<NodeId>(node * 3)] = random->Next();
  }
  for (uint64_t i = random->Uniform(max_tables + 1); i > 0; --i) {
    const TableMeta meta = RandomMeta(random);
    image.tables.emplace_back(meta.level, meta);
  }
  return image;
}

TEST(ManifestTest, RoundTrip) {
  Random random(TestSeed(21));
  for (size_t round = Scaled(2000); round > 0; --round) {
    const ManifestImage image = RandomImage(&random, 20);
    const std::string bytes = EncodeManifest(image);
    ManifestImage decoded;
    const Status status = DecodeManifest(bytes, &decoded);
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(decoded.comparator, image.comparator);
    EXPECT_EQ(decoded.manifest_version, image.manifest_version);
    EXPECT_EQ(decoded.next_table_id, image.next_table_id);
    EXPECT_EQ(decoded.last_sequence, image.last_sequence);
    EXPECT_EQ(decoded.num_levels, image.num_levels);
    EXPECT_EQ(decoded.slab_bytes, image.slab_bytes);
    EXPECT_EQ(decoded.nodes, image.nodes);
    ASSERT_EQ(decoded.tables.size(), image.tables.size());
    for (size_t i = 0; i < image.tables.size(); ++i) {
      EXPECT_EQ(decoded.tables[i].first, image.tables[i].first);
      const TableMeta& meta = decoded.tables[i].second;
      EXPECT_EQ(meta.id, image.tables[i].second.id);
      EXPECT_EQ(meta.smallest, image.tables[i].second.smallest);
      EXPECT_EQ(meta.largest, image.tables[i].second.largest);
      EXPECT_EQ(meta.placement.fragments, image.tables[i].second.placement.fragments);
    }
    // What the fields above leave out.
    ASSERT_EQ(EncodeManifest(decoded), bytes);
  }
}

TEST(ManifestTest, EmptyImage) {
  ManifestImage decoded;
  decoded.num_levels = 99;
  EXPECT_TRUE(DecodeManifest(EncodeManifest(ManifestImage()), &decoded).ok());
  EXPECT_EQ(decoded.num_levels, 0u);
  EXPECT_TRUE(decoded.tables.empty());
}

TEST(ManifestTest, EveryTruncationIsAnError) {
  Random random(TestSeed(22));
  ManifestImage image = RandomImage(&random, 3);
  image.tables.emplace_back(2, RandomMeta(&random));
  const std::string bytes = EncodeManifest(image);
  for (size_t length = 0; length < bytes.size(); ++length) {
    // A copy of its own, so that AddressSanitizer sees a read past the end.
    const std::string prefix = bytes.substr(0, length);
    ManifestImage decoded;
    const Status status = DecodeManifest(prefix, &decoded);
    ASSERT_TRUE(status.IsCorruption()) << length << " of " << bytes.size();
  }
  ManifestImage decoded;
  EXPECT_FALSE(DecodeManifest(bytes + '\0', &decoded).ok());
}

TEST(ManifestTest, EveryFlippedBitIsAnError) {
  Random random(TestSeed(23));
  ManifestImage image = RandomImage(&random, 3);
  image.tables.emplace_back(2, RandomMeta(&random));
  const std::string bytes = EncodeManifest(image);
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    ManifestImage decoded;
    ASSERT_FALSE(DecodeManifest(damaged, &decoded).ok()) << "bit " << bit;
  }
}

/// Makes the checksum right again.
void Seal(std::string* bytes) {
  const size_t body = bytes->size() - sizeof(uint32_t);
  EncodeFixed32(bytes->data() + body, Crc32c(bytes->data(), body));
}

TEST(ManifestTest, NewerFormatIsNamedAsSuch) {
  std::string bytes = EncodeManifest(ManifestImage());
  EncodeFixed32(bytes.data() + 4, 3);
  Seal(&bytes);
  ManifestImage decoded;
  const Status status = DecodeManifest(bytes, &decoded);
  EXPECT_TRUE(status.IsNotSupported());
  EXPECT_NE(status.ToString().find("version 3"), std::string::npos) << status.ToString();
}

TEST(ManifestTest, NonsenseUnderAValidChecksumIsBounded) {
  // Huge counts must not be believed (memory), lengths not followed (reads past the end).
  Random random(TestSeed(24));
  const std::string bytes = EncodeManifest(RandomImage(&random, 5));
  size_t errors = 0;
  const size_t rounds = Scaled(50'000);
  for (size_t i = 0; i < rounds; ++i) {
    std::string damaged = bytes;
    for (uint64_t n = 1 + random.Uniform(4); n > 0; --n) {
      const size_t at = 8 + random.Uniform(damaged.size() - 12);
      damaged[at] = static_cast<char>(random.OneIn(3) ? 0xff : random.Next());
    }
    if (random.OneIn(4)) damaged.resize(12 + random.Uniform(damaged.size() - 12));
    Seal(&damaged);
    ManifestImage decoded;
    const Status status = DecodeManifest(damaged, &decoded);
    errors += !status.ok();
    if (status.ok()) {
      for (const auto& [level, meta] : decoded.tables) ASSERT_LT(level, decoded.num_levels);
    } else {
      ASSERT_TRUE(status.IsCorruption() || status.IsNotSupported()) << status.ToString();
    }
  }
  EXPECT_GT(errors, rounds / 10) << "the damage reaches nothing that is checked";
}

}  // namespace
}  // namespace nacre
