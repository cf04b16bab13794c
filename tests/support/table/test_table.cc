#include "tests/support/table/test_table.h"

#include <gtest/gtest.h>

#include <utility>

namespace nacre {

Status BuildTable(const std::vector<TestEntry>& entries, const TestTableOptions& options,
                  MemoryTable* table, TableMeta* meta, CallCounter* counter) {
  TableBuilderOptions builder_options;
  builder_options.comparator = options.comparator;
  builder_options.range_index_interval = options.range_index_interval;
  TableMeta identity;
  identity.id = options.id;
  TableBuilder builder(
      builder_options, identity,
      std::make_unique<MemoryExtentWriter>(table, options.chunk_size, options.capacity, counter));
  for (const TestEntry& entry : entries) {
    EXPECT_TRUE(builder.Fits(entry.user_key.size(), entry.value.size()));
    NACRE_RETURN_IF_ERROR(builder.Add(entry.user_key, entry.tag, entry.value));
  }
  const uint64_t estimate = builder.EstimatedSize();
  NACRE_RETURN_IF_ERROR(builder.Finish(meta));
  EXPECT_LE(meta->size, estimate);
  EXPECT_EQ(meta->size, table->bytes.size());
  return Status::OK();
}

Status OpenTable(const MemoryTable& table, const TableMeta& meta, const TestTableOptions& options,
                 TestTable* opened, CallCounter* counter) {
  opened->head = table.head;
  opened->meta = std::make_shared<const TableMeta>(meta);
  opened->extent = std::make_shared<MemoryExtent>(
      table.bytes, MemoryExtentOptions{options.place, counter, options.chunk_size});
  return TableReader::Open(opened->meta, options.comparator, opened->extent, &opened->reader);
}

TestTable MakeTable(const std::vector<TestEntry>& entries, const TestTableOptions& options) {
  MemoryTable table;
  TableMeta meta;
  TestTable opened;
  const Status built = BuildTable(entries, options, &table, &meta);
  EXPECT_TRUE(built.ok()) << built.ToString();
  const Status open = OpenTable(table, meta, options, &opened);
  EXPECT_TRUE(open.ok()) << open.ToString();
  return opened;
}

std::vector<TestEntry> ReadAll(InternalIterator* iterator) {
  std::vector<TestEntry> entries;
  for (; iterator->Valid(); iterator->Next()) {
    entries.push_back(
        {iterator->user_key().ToString(), iterator->tag(), iterator->value().ToString()});
  }
  EXPECT_TRUE(iterator->status().ok()) << iterator->status().ToString();
  return entries;
}

bool operator==(const TestEntry& a, const TestEntry& b) {
  return a.user_key == b.user_key && a.tag == b.tag && a.value == b.value;
}

std::string InternalKey(const Slice& user_key, uint64_t tag) {
  std::string key;
  AppendInternalKey(&key, user_key, tag);
  return key;
}

TestEntry PutEntry(const std::string& key, SequenceNumber sequence, std::string value) {
  return {key, PackTag(sequence, ValueType::kValue), std::move(value)};
}

void ExpectAt(const InternalIterator& iterator, const std::vector<TestEntry>& entries, size_t i) {
  ASSERT_TRUE(iterator.status().ok()) << iterator.status().ToString();
  ASSERT_EQ(iterator.Valid(), i < entries.size());
  if (!iterator.Valid()) return;
  ASSERT_EQ(iterator.user_key(), Slice(entries[i].user_key));
  ASSERT_EQ(iterator.tag(), entries[i].tag);
  ASSERT_EQ(iterator.value(), Slice(entries[i].value));
}

std::string SkewedBytes(Random* random, int max_bits, uint64_t alphabet) {
  std::string bytes(random->Skewed(max_bits), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random->Uniform(alphabet));
  return bytes;
}

}  // namespace nacre
