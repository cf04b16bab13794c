// Goal: every byte of a table that means anything is compared with a checksum while the table
// passes, in whatever pieces, and what is right is never refused.
// Method: tables with records of all sizes, larger than chunks too; each byte is changed in turn,
// and what is not noticed must make no difference to a reader.

#include "table/table_stream_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/table/test_table.h"
#include "util/random.h"

namespace nacre {
namespace {

constexpr size_t kChunkBytes = 4096;

std::string RandomValue(Random* random, uint64_t size) {
  std::string value(size, '\0');
  for (char& byte : value) byte = static_cast<char>(random->Next());
  return value;
}

std::vector<TestEntry> Entries(Random* random, int count) {
  std::vector<TestEntry> entries;
  for (int i = 0; i < count; ++i) {
    std::string key = std::to_string(100'000 + i);
    const uint64_t size = random->OneIn(8) ? random->Uniform(20'000) : random->Uniform(900);
    const auto sequence = 1000 - static_cast<uint64_t>(i % 3);
    entries.push_back(
        {std::move(key), PackTag(sequence, ValueType::kValue), RandomValue(random, size)});
  }
  return entries;
}

/// Has all of `bytes` pass, `chunks` chunks at a time.
Status Pass(const TableMeta& meta, const std::string& bytes, size_t chunks,
            TableSection* suspect = nullptr) {
  TableStreamCheck check(&meta);
  Status status;
  const size_t piece = chunks * kChunkBytes;
  for (size_t at = 0; at < bytes.size() && status.ok(); at += piece) {
    status = check.Add(Slice(bytes.data() + at, std::min(piece, bytes.size() - at)));
  }
  if (status.ok()) status = check.Finish();
  if (suspect != nullptr) *suspect = check.suspect();
  return status;
}

TEST(TableStreamCheckTest, PassesWhatIsRight) {
  Random random(TestSeed(71));
  for (size_t round = Scaled(30); round > 0; --round) {
    // A larger capacity has records aligned.
    const TestTableOptions options{.chunk_size = kChunkBytes,
                                   .capacity = random.OneIn(2) ? 8u << 20 : 200u << 20};
    const TestTable table =
        MakeTable(Entries(&random, 1 + static_cast<int>(random.Uniform(200))), options);
    for (const size_t chunks : {size_t{1}, size_t{2}, size_t{7}, size_t{1000}}) {
      ASSERT_TRUE(IsOk(Pass(*table.meta, *table.extent->mutable_bytes(), chunks)));
    }
  }
}

TEST(TableStreamCheckTest, NoticesEveryByteThatMeansAnything) {
  Random random(TestSeed(72));
  const TestTableOptions options{.chunk_size = kChunkBytes, .capacity = 8 << 20};
  const std::vector<TestEntry> entries = Entries(&random, 40);
  const TestTable table = MakeTable(entries, options);
  std::string bytes = *table.extent->mutable_bytes();
  const size_t step = bytes.size() / Scaled(30'000) + 1;
  size_t unnoticed = 0;
  for (size_t at = random.Uniform(step); at < bytes.size(); at += 1 + random.Uniform(2 * step)) {
    const char before = bytes[at];
    bytes[at] = static_cast<char>(before ^ 1 << random.Uniform(8));
    TableSection suspect;
    const Status status = Pass(*table.meta, bytes, 1 + random.Uniform(4), &suspect);
    if (status.ok()) {
      ++unnoticed;
      // Padding.
      EXPECT_EQ(before, 0) << at;
      MemoryTable changed{.bytes = bytes, .head = table.head, .finished = true};
      TestTable opened;
      ASSERT_TRUE(IsOk(OpenTable(changed, *table.meta, options, &opened)));
      const auto iterator = opened.reader->NewIterator({});
      iterator->SeekToFirst();
      EXPECT_TRUE(ReadAll(iterator.get()) == entries) << at;
    } else {
      EXPECT_TRUE(status.IsCorruption()) << status.ToString();
      EXPECT_LE(suspect.offset, at);
      EXPECT_GT(suspect.offset + suspect.length, at);
    }
    bytes[at] = before;
  }
  // The ends of chunks, and what brings the point index to a cache line.
  EXPECT_LT(unnoticed * step, bytes.size() / 2);
}

TEST(TableStreamCheckTest, NoticesAnotherTable) {
  Random random(TestSeed(73));
  const TestTable one = MakeTable(Entries(&random, 20), {.id = 7, .chunk_size = kChunkBytes});
  TableMeta other = *one.meta;
  other.id = 8;
  EXPECT_TRUE(IsFailure(Pass(other, *one.extent->mutable_bytes(), 1), Status::Code::kCorruption,
                        "table 8"));
  other = *one.meta;
  ++other.entries;
  EXPECT_TRUE(IsFailure(Pass(other, *one.extent->mutable_bytes(), 1), Status::Code::kCorruption,
                        "as many records"));
}

}  // namespace
}  // namespace nacre
