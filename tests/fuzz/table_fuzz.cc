// A whole table with damage: the input says which bytes of an intact table to change, and the
// checksums of what was changed are put right where a checksum would stop everything. Iterators
// must end, and read nothing beyond the table.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "table/table_reader.h"
#include "tests/support/table/test_table.h"
#include "util/codes/crc32c.h"

namespace {

struct Intact {
  nacre::TestTableOptions options;
  nacre::MemoryTable table;
  nacre::TableMeta meta;
};

Intact MakeIntact() {
  Intact intact;
  intact.options.chunk_size = 256;
  intact.options.range_index_interval = 100;
  std::vector<nacre::TestEntry> entries;
  for (int i = 10; i < 60; ++i) {
    entries.push_back({"key" + std::to_string(i), nacre::PackTag(9, nacre::ValueType::kValue),
                       std::string(static_cast<size_t>(i * i % 40), 'v')});
  }
  if (!BuildTable(entries, intact.options, &intact.table, &intact.meta).ok()) std::abort();
  return intact;
}

void Walk(nacre::InternalIterator* iterator) {
  int moves = 0;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    if (++moves > 10'000) std::abort();
  }
  for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) {
    if (++moves > 20'000) std::abort();
  }
  for (int i = 0; i < 70; i += 7) {
    iterator->SeekForPrev(nacre::InternalKey("key" + std::to_string(i), 1 << 10));
    if (iterator->Valid()) iterator->Next();
    if (iterator->Valid()) iterator->Prev();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Intact intact = MakeIntact();
  nacre::MemoryTable damaged = intact.table;
  nacre::TableMeta meta = intact.meta;
  for (; size >= 3; data += 3, size -= 3) {
    const size_t at = (static_cast<size_t>(data[0]) << 8 | data[1]) % damaged.bytes.size();
    damaged.bytes[at] = static_cast<char>(data[2]);
  }
  meta.range_index.crc =
      nacre::Crc32c(damaged.bytes.data() + meta.range_index.offset, meta.range_index.length);
  nacre::TestTableOptions options = intact.options;
  using Place = nacre::BytesPlace;
  for (const Place place :
       {Place::kInPlace, Place::kFetched, Place::kLoadable, Place::kLoadableByChunk}) {
    options.place = place;
    nacre::TestTable table;
    if (!OpenTable(damaged, meta, options, &table).ok()) continue;
    for (const bool verify : {true, false}) {
      const auto iterator = table.reader->NewIterator({verify, 128, 1024, 2});
      Walk(iterator.get());
    }
  }
  return 0;
}
