#include "tests/support/table/stored_tables.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "pool/connect/lane.h"
#include "pool/connect/node_link.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

char* Byte(pool::PoolImpl* pool, RemoteAddr at) {
  uint64_t contiguous = 0;
  return reinterpret_cast<char*>(
      pool->client()->fabric()->link(at.node)->Translate(at.offset, &contiguous).address);
}

}  // namespace

std::vector<TableMeta> StoredTables(DB* db, pool::PoolImpl* pool) {
  std::vector<TableMeta> tables;
  // Lines of "... on node N at N node N at N".
  const std::string text = GetTextProperty(db, "nacre.sstables");
  for (size_t line = 0; line < text.size();) {
    const size_t end = text.find('\n', line);
    std::vector<RemoteAddr> starts;
    const auto number = [&](size_t* at, std::string_view name) {
      *at = text.find(name, *at) + name.size();
      return std::strtoull(text.c_str() + *at, nullptr, 10);
    };
    for (size_t at = text.find("] on ", line); text.find(" node ", at) < end;) {
      RemoteAddr& start = starts.emplace_back();
      start.node = static_cast<NodeId>(number(&at, " node "));
      start.offset = number(&at, " at ") & ((uint64_t{1} << 48) - 1);
    }
    // The head of a fragment knows the rest.
    Slice head(Byte(pool, starts[0]), kFragmentHeadBytes);
    TableMeta& table = tables.emplace_back();
    EXPECT_TRUE(IsOk(DecodeTableMeta(&head, &table)));
    for (size_t i = 0; i < starts.size(); ++i) table.placement.fragments[i].start = starts[i];
    line = end + 1;
  }
  return tables;
}

char* StoredByte(pool::PoolImpl* pool, const TableMeta& table, size_t fragment, int64_t offset) {
  RemoteAddr at = table.placement.fragments[fragment].start;
  at.offset = at.offset + static_cast<uint64_t>(static_cast<int64_t>(kFragmentHeadBytes) + offset);
  return Byte(pool, at);
}

}  // namespace nacre
