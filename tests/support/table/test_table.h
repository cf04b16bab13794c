#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "table/format/table_meta.h"
#include "table/table_builder.h"
#include "table/table_reader.h"
#include "tests/support/table/memory_extent.h"
#include "tests/support/table/vector_iterator.h"
#include "util/random.h"

namespace nacre {

struct TestTableOptions {
  const Comparator* comparator = BytewiseComparator();
  uint64_t id = 7;
  size_t chunk_size = 4096;
  uint64_t capacity = 64 << 20;
  size_t range_index_interval = 2048;
  BytesPlace place = BytesPlace::kInPlace;
};

/// A table in memory, built and opened.
struct TestTable {
  std::shared_ptr<const TableMeta> meta;
  std::shared_ptr<MemoryExtent> extent;
  std::unique_ptr<TableReader> reader;
  std::string head;  ///< Head of its fragments.
};

/// Writes `entries` (sorted, not empty) as one table into `*table`.
Status BuildTable(const std::vector<TestEntry>& entries, const TestTableOptions& options,
                  MemoryTable* table, TableMeta* meta, CallCounter* counter = nullptr);

/// Opens what BuildTable wrote.
Status OpenTable(const MemoryTable& table, const TableMeta& meta, const TestTableOptions& options,
                 TestTable* opened, CallCounter* counter = nullptr);

/// Both; failures fail the test.
TestTable MakeTable(const std::vector<TestEntry>& entries, const TestTableOptions& options);

/// All entries from where `iterator` stands, forward. Its status is checked.
std::vector<TestEntry> ReadAll(InternalIterator* iterator);

bool operator==(const TestEntry& a, const TestEntry& b);

std::string InternalKey(const Slice& user_key, uint64_t tag);

TestEntry PutEntry(const std::string& key, SequenceNumber sequence, std::string value);

/// Fails the test unless `iterator` stands at entry `i`, or at none if there are fewer.
void ExpectAt(const InternalIterator& iterator, const std::vector<TestEntry>& entries, size_t i);

/// Less than 2^`max_bits` bytes, of which each is below `alphabet`; as a rule few.
std::string SkewedBytes(Random* random, int max_bits, uint64_t alphabet);

}  // namespace nacre
