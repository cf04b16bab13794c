// Goal: what is written into an encrypted table is read back at any place and length, and nothing
// else is: not what was changed, cut, moved within the table or taken from another one; metas and
// heads of such tables keep their bounds secret, and say which key they need.
// Method: tables of random bytes through writer and extent over a string; every kind of change.

#include "table/format/table_seal.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "table/format/table_meta.h"
#include "table/seal/sealed_extent.h"
#include "table/seal/table_keys.h"
#include "tests/support/key_file.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/table/memory_extent.h"
#include "tests/support/table/test_table.h"
#include "util/random.h"

namespace nacre {
namespace {

constexpr size_t kPlainChunk = 8 * kCellBytes;

std::shared_ptr<const TableKeys> KeysOf(const std::vector<std::string>& ids) {
  std::string content;
  for (const std::string& id : ids) content += id + " " + TestKey(id) + "\n";
  auto ring = std::make_shared<KeyRing>();
  EXPECT_TRUE(IsOk(KeyRing::Parse(content, ring.get())));
  return std::make_shared<const TableKeys>(ring);
}

TableMeta SealedMeta(const TableKeys& keys, uint64_t id = 7) {
  TableMeta meta;
  meta.id = id;
  meta.database_id = 3;
  meta.comparator = "c";
  meta.smallest = InternalKey("PLAINTEXT a", 5);
  meta.largest = InternalKey("PLAINTEXT z", 6);
  meta.chunk_size = StoredBytes(kPlainChunk);
  meta.size = StoredBytes(100'000);
  meta.records.length = 1;
  EXPECT_TRUE(IsOk(keys.SealNew(&meta)));
  EXPECT_TRUE(IsOk(meta.seal->WithBounds(meta.smallest, meta.largest, &meta.seal)));
  return meta;
}

/// Collects what is stored.
class StringWriter final : public ExtentWriter {
 public:
  explicit StringWriter(std::string* stored) : stored_(stored) {}
  size_t chunk_size() const override { return StoredBytes(kPlainChunk); }
  uint64_t capacity() const override { return 100 * chunk_size() + 20; }
  Status NextChunk(char** buffer) override {
    chunk_.assign(chunk_size(), '?');
    *buffer = chunk_.data();
    return Status::OK();
  }
  Status Commit(size_t n) override {
    stored_->append(chunk_, 0, n);
    return Status::OK();
  }
  Status Finish(const Slice& /*head*/) override { return Status::OK(); }

 private:
  std::string* const stored_;
  std::string chunk_;
};

std::string Store(const TableMeta& meta, const std::string& plain) {
  std::string stored;
  const auto writer = PlainWriter(meta, std::make_unique<StringWriter>(&stored));
  EXPECT_EQ(writer->chunk_size(), kPlainChunk);
  EXPECT_EQ(writer->capacity(), 100 * kPlainChunk + 4);
  for (size_t at = 0; at < plain.size(); at += kPlainChunk) {
    char* buffer = nullptr;
    EXPECT_TRUE(IsOk(writer->NextChunk(&buffer)));
    const size_t n = plain.copy(buffer, kPlainChunk, at);
    EXPECT_TRUE(IsOk(writer->Commit(n)));
  }
  return stored;
}

std::shared_ptr<Extent> Opened(const TableMeta& meta, const std::string& stored) {
  return PlainExtent(meta, std::make_shared<MemoryExtent>(
                               stored, MemoryExtentOptions{.place = BytesPlace::kFetched}));
}

std::string Read(Extent* extent, uint64_t offset, size_t n) {
  const std::unique_ptr<PendingRead> read = extent->StartRead(offset, n);
  Slice bytes;
  EXPECT_TRUE(IsOk(read->Await(&bytes)));
  EXPECT_TRUE(IsOk(read->Await(&bytes)));  // Again.
  return bytes.ToString();
}

std::string RandomBytes(Random* random, size_t n) {
  std::string bytes(n, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random->Next());
  return bytes;
}

TEST(TableSealTest, WhatIsWrittenIsReadAtAnyPlace) {
  Random random(TestSeed(31));
  const auto keys = KeysOf({"one"});
  for (const size_t size : {size_t{1}, size_t{1023}, size_t{1024}, size_t{1025}, size_t{50'000},
                            5 * kPlainChunk, 5 * kPlainChunk + 1}) {
    SCOPED_TRACE(size);
    const TableMeta meta = SealedMeta(*keys);
    const std::string plain = RandomBytes(&random, size);
    const std::string stored = Store(meta, plain);
    EXPECT_EQ(stored.size(), StoredBytes(size));
    EXPECT_EQ(PlainBytes(stored.size()), size);
    const auto extent = Opened(meta, stored);
    ASSERT_EQ(extent->size(), size);
    EXPECT_EQ(Read(extent.get(), 0, size), plain);
    for (size_t i = 0; i < Scaled(300); ++i) {
      const uint64_t offset = random.Uniform(size + 1);
      const size_t n = random.OneIn(2) ? random.Uniform(size - offset + 1)
                                       : std::min<size_t>(random.Uniform(40), size - offset);
      ASSERT_EQ(Read(extent.get(), offset, n), plain.substr(offset, n)) << offset << " " << n;
    }
    Slice bytes;
    EXPECT_TRUE(extent->StartRead(size, 1)->Await(&bytes).IsCorruption());
  }
}

TEST(TableSealTest, WhatWasChangedDoesNotOpen) {
  Random random(TestSeed(32));
  const auto keys = KeysOf({"one"});
  const TableMeta meta = SealedMeta(*keys);
  const std::string plain = RandomBytes(&random, 10'000);
  const std::string stored = Store(meta, plain);
  for (size_t i = 0; i < Scaled(500); ++i) {
    const uint64_t place = random.Uniform(stored.size());
    std::string changed = stored;
    changed[place] = static_cast<char>(changed[place] ^ 1 << random.Uniform(8));
    const uint64_t cell = place / kStoredCellBytes;
    const size_t in_cell = std::min<size_t>(kCellBytes, plain.size() - cell * kCellBytes);
    // All of the cell is marked, and the others are what they were.
    std::string expected = plain;
    expected.replace(cell * kCellBytes, in_cell, in_cell, '\xff');
    ASSERT_EQ(Read(Opened(meta, changed).get(), 0, plain.size()), expected) << place;
  }
}

TEST(TableSealTest, WhatWasMovedDoesNotOpen) {
  Random random(TestSeed(33));
  const auto keys = KeysOf({"one"});
  const TableMeta meta = SealedMeta(*keys);
  const TableMeta again = SealedMeta(*keys);  // The same table, written once more.
  const TableMeta other = SealedMeta(*keys, /*id=*/8);
  const std::string plain = RandomBytes(&random, 4 * kCellBytes);
  const std::string unopened(kCellBytes, '\xff');
  const std::string stored = Store(meta, plain);
  std::string moved = stored;
  moved.replace(0, kStoredCellBytes, stored, kStoredCellBytes, kStoredCellBytes);
  EXPECT_EQ(Read(Opened(meta, moved).get(), 0, kCellBytes), unopened);
  for (const TableMeta& from : {again, other}) {
    std::string mixed = stored;
    mixed.replace(0, kStoredCellBytes, Store(from, plain), 0, kStoredCellBytes);
    EXPECT_NE(mixed, stored);
    EXPECT_EQ(Read(Opened(meta, mixed).get(), 0, kCellBytes), unopened);
  }
}

TEST(TableSealTest, MetasKeepTheirBoundsSecret) {
  const auto keys = KeysOf({"one"});
  const TableMeta meta = SealedMeta(*keys);
  std::string encoded;
  EncodeTableMeta(meta, &encoded);
  EXPECT_EQ(encoded.find("PLAINTEXT"), std::string::npos);
  EXPECT_EQ(encoded.size() + kFooterTrailerBytes, FooterBytes(meta));
  Slice input = encoded;
  TableMeta decoded;
  ASSERT_TRUE(IsOk(DecodeTableMeta(&input, &decoded)));
  EXPECT_TRUE(input.empty());
  ASSERT_TRUE(decoded.sealed());
  EXPECT_EQ(decoded.seal->key_id(), "one");
  EXPECT_TRUE(decoded.smallest_user_key().empty());
  std::string encoded_again;  // As by a process that has no keys.
  EncodeTableMeta(decoded, &encoded_again);
  EXPECT_EQ(encoded_again, encoded);

  EXPECT_TRUE(IsFailure(OpenSeal(nullptr, &decoded), Status::Code::kInvalidArgument, "'one'"));
  EXPECT_TRUE(IsFailure(OpenSeal(KeysOf({"two"}).get(), &decoded), Status::Code::kInvalidArgument,
                        "'one'"));
  ASSERT_TRUE(IsOk(OpenSeal(KeysOf({"two", "one"}).get(), &decoded)));
  EXPECT_EQ(decoded.smallest, meta.smallest);
  EXPECT_EQ(decoded.largest, meta.largest);
  EXPECT_FALSE(decoded.bounds_shortened);

  const TableMeta plain = PlainMeta(decoded);
  EXPECT_FALSE(plain.sealed());
  EXPECT_EQ(plain.size, 100'000u);
  EXPECT_EQ(plain.chunk_size, kPlainChunk);
}

TEST(TableSealTest, HeadsAreReadWithoutKeysAndNameThem) {
  const auto keys = KeysOf({"one"});
  const TableMeta meta = SealedMeta(*keys);
  std::string head;
  ASSERT_TRUE(IsOk(EncodeFragmentHead(meta, &head)));
  EXPECT_EQ(head.find("PLAINTEXT"), std::string::npos);
  head.resize(kFragmentHeadBytes);
  Slice input = head;
  TableMeta plain;  // What a node finds there, of whatever release.
  ASSERT_TRUE(IsOk(DecodeTableMeta(&input, &plain)));
  EXPECT_EQ(plain.id, meta.id);
  EXPECT_EQ(plain.size, meta.size);
  EXPECT_TRUE(plain.bounds_shortened);
  TableMeta found;
  ASSERT_TRUE(IsOk(DecodeFragmentHead(head, &found)));
  ASSERT_TRUE(found.sealed());
  ASSERT_TRUE(IsOk(OpenSeal(keys.get(), &found)));
  const std::string bytes(5000, 'x');
  EXPECT_EQ(Read(Opened(found, Store(meta, bytes)).get(), 0, bytes.size()), bytes);
}

TEST(TableSealTest, NoChangeOfASealIsTakenForAnother) {
  const auto keys = KeysOf({"one"});
  std::string encoded;
  EncodeTableMeta(SealedMeta(*keys), &encoded);
  for (size_t n = 0; n < encoded.size(); ++n) {
    Slice input(encoded.data(), n);
    TableMeta meta;
    EXPECT_FALSE(DecodeTableMeta(&input, &meta).ok()) << n;
  }
  // The bounds of one table in another's meta, with a right checksum.
  TableMeta one = SealedMeta(*keys);
  const TableMeta two = SealedMeta(*keys, /*id=*/8);
  one.seal = std::make_shared<TableSeal>(one.seal->key_id(), one.seal->salt(), two.seal->smallest(),
                                         two.seal->largest());
  EXPECT_TRUE(IsFailure(OpenSeal(keys.get(), &one), Status::Code::kCorruption, "bounds"));
}

}  // namespace
}  // namespace nacre
