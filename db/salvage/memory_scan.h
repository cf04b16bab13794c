#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "db/manifest/table_lineage.h"
#include "nacre/status.h"
#include "pool/pool_client.h"
#include "table/format/log_format.h"
#include "table/format/placement.h"
#include "table/format/table_meta.h"

namespace nacre {

/// Offsets of a database's slabs, by node.
using SlabsByNode = std::map<NodeId, std::vector<uint64_t>>;

/// Ranges of one node's memory: start to end.
using Stretches = std::map<uint64_t, uint64_t>;

/// A fragment whose head and tail are whole.
struct FoundFragment {
  ExtentAddr extent;        ///< Head and tail included, up to the end of the last page.
  uint32_t number = 0;      ///< Number in the placement.
  std::vector<bool> sound;  ///< For each chunk, whether it matches its checksum.

  size_t damaged_chunks() const;
};

/// All that was found of one table: what has the same head. Parts of it may have been overwritten.
struct FoundTable {
  TableMeta head;
  std::vector<FoundFragment> fragments;  ///< Several may have the same number.
};

/// The beginning of a copy of a log segment.
struct FoundLogHead {
  RemoteAddr at;
  LogSegmentHeader header;
};

/// A state record, and its copies.
struct FoundState {
  TableLineage state;
  std::vector<ExtentAddr> copies;
};

/// What a scan has found of a database, alive or dead.
struct MemoryScan {
  std::vector<FoundTable> tables;
  std::vector<FoundLogHead> log_heads;
  std::vector<FoundState> states;
  std::map<NodeId, Stretches> memory;  ///< The slabs' memory, with adjacent slabs joined.
  uint64_t bytes = 0;                  ///< Looked at.
  uint64_t bytes_compared = 0;         ///< Bytes of chunks that were compared with their checksums.
  uint64_t unfinished = 0;  ///< Heads whose fragments have no tail: not finished, or overwritten.
  std::vector<std::string> notes{};  ///< What could not be read, and why.
};

/// Looks through the memory that the database has for whatever begins like a fragment of a table or
/// a segment of the log, and compares fragments with their checksums. Reads only, one-sided; each
/// byte once, those of fragments twice. Nodes that do not answer are told of in the notes.
/// `NotSupported` if something was written by another version of this program.
Status ScanMemory(pool::PoolClient* client, uint64_t database_id, const SlabsByNode& slabs,
                  MemoryScan* scan);

/// A head that begins at `page`, if one of the database does. Safe on any bytes.
/// `*status`: `NotSupported` if it is one of another version.
bool FindFragmentHead(const Slice& page, uint64_t database_id, TableMeta* head, Status* status);
bool FindLogHead(const Slice& page, uint64_t database_id, LogSegmentHeader* header, Status* status);

}  // namespace nacre
