#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace nacre {

// What there is of tables, as RocksDB's metadata.h has it of files: of the same names, where they
// mean the same. A table has a number and no path.

/// One live table.
struct LiveTableMetaData {
  std::string column_family_name;
  int level = 0;
  uint64_t file_number = 0;   ///< The table's id, unique in its database for ever.
  std::string name;           ///< "table 17", as messages and the LOG name it.
  uint64_t size = 0;          ///< Bytes of one whole copy.
  uint64_t stored_bytes = 0;  ///< Bytes of all its fragments on the nodes, with mirrors and parity.
  std::string smallestkey;    ///< Smallest user key; both ends are included.
  std::string largestkey;
  uint64_t smallest_seqno = 0;  ///< 0 if no snapshot or follower needs it any more.
  uint64_t largest_seqno = 0;
  uint64_t num_entries = 0;
  uint64_t num_deletions = 0;
  bool being_compacted = false;
  std::string redundancy;          ///< "none", "rep(2)", "rs(4,2)".
  std::vector<std::string> nodes;  ///< Addresses, by fragment; a node that is lost, too.
};

struct LevelMetaData {
  int level = 0;
  uint64_t size = 0;
  std::vector<LiveTableMetaData> files;
};

/// One column family.
struct ColumnFamilyMetaData {
  std::string name;
  uint64_t size = 0;  ///< Bytes of its tables, without redundancy.
  size_t file_count = 0;
  std::vector<LevelMetaData> levels;  ///< All of them, the empty ones too.
};

}  // namespace nacre
