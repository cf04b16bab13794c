// Goal: records come back as they were written, and no damage to one goes unnoticed.
// Method: round trips of random records; every bit of encoded records flipped; every prefix.

#include "table/format/record.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre {
namespace {

constexpr uint64_t kTableId = 42;

std::string RandomRecordBytes(Random* random, int max_bits) {
  std::string bytes(random->Skewed(max_bits), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random->Next());
  return bytes;
}

std::string EncodeOne(const Slice& user_key, uint64_t tag, const Slice& value) {
  std::string bytes(RecordBytes(user_key.size(), tag, value.size()), '\xee');
  const char* const end = EncodeRecord(bytes.data(), kTableId, user_key, tag, value);
  EXPECT_EQ(end, bytes.data() + bytes.size());
  return bytes;
}

struct Sample {
  std::string user_key;
  uint64_t tag;
  std::string value;
};

Sample RandomSample(Random* random) {
  return {RandomRecordBytes(random, 9),
          PackTag(random->Uniform(uint64_t{1} << random->Uniform(49)),
                  random->OneIn(3) ? ValueType::kDeletion : ValueType::kValue),
          RandomRecordBytes(random, 15)};
}

TEST(RecordTest, RoundTrip) {
  Random random(TestSeed(1));
  for (size_t round = 0; round < Scaled(2000); ++round) {
    const Sample sample = RandomSample(&random);
    const std::string bytes = EncodeOne(sample.user_key, sample.tag, sample.value);
    EXPECT_EQ(
        RecordBytesFromHeader(Slice(bytes.data(), std::min(bytes.size(), kMaxRecordHeaderBytes))),
        bytes.size());
    // What follows a record is not looked at.
    const std::string longer = bytes + RandomRecordBytes(&random, 5);
    for (const bool verify : {false, true}) {
      Record record;
      ASSERT_EQ(ParseRecord(longer, kTableId, verify, &record), RecordParse::kOk);
      EXPECT_EQ(record.user_key, Slice(sample.user_key));
      EXPECT_EQ(record.tag, sample.tag);
      EXPECT_EQ(record.value, Slice(sample.value));
      EXPECT_EQ(record.encoded_bytes, bytes.size());
    }
  }
}

TEST(RecordTest, PiecesMakeTheSameRecord) {
  Random random(TestSeed(2));
  for (size_t round = 0; round < Scaled(500); ++round) {
    const Sample sample = RandomSample(&random);
    const RecordPieces pieces =
        MakeRecordPieces(RecordSeed(kTableId), sample.user_key, sample.tag, sample.value);
    EXPECT_EQ(std::string(pieces.header, pieces.header_bytes) + sample.user_key +
                  std::string(pieces.tag, pieces.tag_bytes) + sample.value,
              EncodeOne(sample.user_key, sample.tag, sample.value));
  }
}

TEST(RecordTest, HeadsAreParsedFromAPrefixThatHoldsThem) {
  Random random(TestSeed(7));
  for (size_t round = 0; round < Scaled(500); ++round) {
    const Sample sample = RandomSample(&random);
    const std::string bytes = EncodeOne(sample.user_key, sample.tag, sample.value);
    const size_t head_bytes = bytes.size() - sample.value.size();
    for (size_t n = 0; n <= std::min(bytes.size(), head_bytes + 3); ++n) {
      const std::string prefix(bytes, 0, n);
      RecordHead head;
      ASSERT_EQ(ParseRecordHead(prefix, &head), n >= head_bytes) << n;
      if (n < head_bytes) continue;
      EXPECT_EQ(head.user_key, Slice(sample.user_key));
      EXPECT_EQ(head.tag, sample.tag);
      EXPECT_EQ(head.bytes, head_bytes);
      EXPECT_EQ(head.value_bytes, sample.value.size());
    }
    std::string value = sample.value;
    const Slice head(bytes.data(), head_bytes);
    EXPECT_TRUE(RecordChecksumMatches(head, value, RecordSeed(kTableId)));
    EXPECT_FALSE(RecordChecksumMatches(head, value, RecordSeed(kTableId).At(64)));
    if (value.empty()) continue;
    value.back() = static_cast<char>(value.back() ^ 1);
    EXPECT_FALSE(RecordChecksumMatches(head, value, RecordSeed(kTableId)));
  }
}

TEST(RecordTest, HeadsOfAnyBytesAreSafeToParse) {
  Random random(TestSeed(8));
  for (size_t round = 0; round < Scaled(20'000); ++round) {
    const std::string bytes = RandomRecordBytes(&random, 6);
    RecordHead head;
    if (!ParseRecordHead(bytes, &head)) continue;
    ASSERT_LE(head.bytes, bytes.size());
    ASSERT_LE(head.user_key.size() + kMinRecordBytes, head.bytes);
  }
}

TEST(RecordTest, BottomLevelRecordSpendsOneByteOnItsTag) {
  EXPECT_EQ(RecordBytes(20, PackTag(0, ValueType::kValue), 100), 4u + 1 + 1 + 20 + 1 + 100);
  EXPECT_EQ(RecordBytes(0, PackTag(0, ValueType::kValue), 0), kMinRecordBytes);
}

TEST(RecordTest, EveryFlippedBitIsSeen) {
  Random random(TestSeed(3));
  for (size_t round = 0; round < Scaled(50); ++round) {
    Sample sample = RandomSample(&random);
    sample.value.resize(std::min<size_t>(sample.value.size(), 300));
    std::string bytes = EncodeOne(sample.user_key, sample.tag, sample.value);
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
      Record record;
      const RecordParse parse = ParseRecord(bytes, kTableId, true, &record);
      EXPECT_TRUE(parse == RecordParse::kCorrupt || parse == RecordParse::kTruncated)
          << "bit " << bit << " of " << 8 * bytes.size();
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    }
  }
}

TEST(RecordTest, RecordOfAnotherTableIsSeen) {
  const std::string bytes = EncodeOne("key", PackTag(5, ValueType::kValue), "value");
  Record record;
  EXPECT_EQ(ParseRecord(bytes, kTableId + 1, true, &record), RecordParse::kCorrupt);
}

TEST(RecordTest, RecordOfAnotherPlaceIsSeen) {
  const RecordSeed seed(kTableId);
  const std::string key = "key";
  std::string bytes(RecordBytes(key.size(), PackTag(5, ValueType::kValue), 5), '\0');
  std::string mark(kEndOfChunkMarkBytes, '\0');
  Record record;
  for (const uint64_t offset : {uint64_t{0}, uint64_t{1}, uint64_t{4096}, uint64_t{5} << 32}) {
    EncodeRecord(bytes.data(), seed.At(offset), key, PackTag(5, ValueType::kValue), "value");
    EncodeEndOfChunkMark(mark.data(), seed.At(offset));
    EXPECT_EQ(ParseRecord(bytes, seed.At(offset), true, &record), RecordParse::kOk);
    EXPECT_EQ(ParseRecord(mark, seed.At(offset), true, &record), RecordParse::kEndOfChunk);
    for (int bit = 0; bit < 40; ++bit) {
      const uint64_t other = offset ^ uint64_t { 1 } << bit;
      EXPECT_EQ(ParseRecord(bytes, seed.At(other), true, &record), RecordParse::kCorrupt) << other;
      EXPECT_EQ(ParseRecord(mark, seed.At(other), true, &record), RecordParse::kCorrupt) << other;
    }
  }
}

TEST(RecordTest, EveryPrefixIsTruncated) {
  Random random(TestSeed(4));
  for (size_t round = 0; round < Scaled(50); ++round) {
    const Sample sample = RandomSample(&random);
    const std::string bytes = EncodeOne(sample.user_key, sample.tag, sample.value);
    for (size_t n = 0; n < bytes.size(); n += 1 + random.Skewed(8)) {
      // A copy of exact size, so that a sanitizer sees reads beyond it.
      const std::string prefix = bytes.substr(0, n);
      Record record;
      ASSERT_EQ(ParseRecord(prefix, kTableId, true, &record), RecordParse::kTruncated) << n;
    }
  }
}

TEST(RecordTest, UnknownTypesAndAbsurdSequencesAreCorrupt) {
  // Only a writer of another make has these, with a right checksum: take it from a record that is
  // parsed without one.
  for (const unsigned char stored_tag : {0x03, 0x0f}) {
    std::string bytes = EncodeOne("k", PackTag(0, ValueType::kValue), "");
    bytes.back() = static_cast<char>(stored_tag);
    Record record;
    EXPECT_EQ(ParseRecord(bytes, kTableId, false, &record), RecordParse::kCorrupt);
  }
  std::string bytes = EncodeOne("k", PackTag(kMaxSequenceNumber, ValueType::kValue), "");
  Record record;
  EXPECT_EQ(ParseRecord(bytes, kTableId, false, &record), RecordParse::kOk);
  bytes.back() = '\x7f';  // The tag's uppermost bits.
  EXPECT_EQ(ParseRecord(bytes, kTableId, false, &record), RecordParse::kCorrupt);
}

TEST(RecordTest, EndOfChunkMark) {
  std::string mark(kEndOfChunkMarkBytes, '\0');
  EncodeEndOfChunkMark(mark.data(), RecordSeed(kTableId));
  Record record;
  for (const bool verify : {false, true}) {
    EXPECT_EQ(ParseRecord(mark, kTableId, verify, &record), RecordParse::kEndOfChunk);
    EXPECT_EQ(ParseRecord(mark + "behind", kTableId, verify, &record), RecordParse::kEndOfChunk);
    EXPECT_EQ(ParseRecord(mark, kTableId + 1, verify, &record), RecordParse::kCorrupt);
    // Zeroes are no mark: a chunk that was never written must not pass for an empty one.
    EXPECT_EQ(ParseRecord(std::string(64, '\0'), kTableId, verify, &record), RecordParse::kCorrupt);
  }
  EXPECT_EQ(RecordBytesFromHeader(mark), 0u);
}

TEST(RecordTest, HeaderOfRandomBytes) {
  Random random(TestSeed(5));
  for (size_t round = 0; round < Scaled(20000); ++round) {
    const std::string bytes = RandomRecordBytes(&random, 7);
    Record record;
    const RecordParse parse = ParseRecord(bytes, kTableId, random.OneIn(2), &record);
    if (parse != RecordParse::kOk) continue;
    EXPECT_EQ(RecordBytesFromHeader(bytes), record.encoded_bytes);
    EXPECT_LE(record.encoded_bytes, bytes.size());
  }
}

}  // namespace
}  // namespace nacre
