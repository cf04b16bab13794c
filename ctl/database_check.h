#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ctl/database_view.h"
#include "ctl/finding.h"
#include "pool/pool_client.h"
#include "pool/read/pool_reader.h"
#include "pool/read/slab_map.h"

namespace nacre::ctl {

using pool::NodeRange;
using pool::PoolReader;
using pool::RangeOf;
using pool::ReadSlabMap;
using pool::SlabMap;

/// Compares what a view of a database says with what the nodes hold. Reads only.
///
/// Thread safety: none. Used once.
class DatabaseCheck {
 public:
  /// Told of each chunk: the bytes of chunks that were read, and of those that there are.
  using Progress = std::function<void(uint64_t done, uint64_t total)>;

  /// `full`: all chunks are compared with their checksums, too. What is given outlives the check.
  DatabaseCheck(pool::PoolClient* client, PoolReader* reader, const DatabaseView& view, bool full,
                Progress progress)
      : client_(client),
        reader_(reader),
        view_(view),
        full_(full),
        progress_(std::move(progress)) {}

  /// `slabs`: of all nodes that answer, read after the view was.
  void Run(const std::map<NodeId, SlabMap>& slabs);

  std::vector<Finding>& findings() { return findings_; }
  DatabaseHealth& health() { return health_; }

 private:
  /// A part of a node's memory, and what it is there for.
  struct Use {
    ExtentAddr extent;
    uint64_t table = 0;
    uint64_t segment = 0;
  };
  /// What of one table is not as it should be, by fragment.
  struct TableDamage {
    FragmentSet missing = 0;  ///< Those that went with a node, or whose tail is damaged.
    std::map<uint64_t, FragmentSet> damaged_rows;  ///< Damage of the other fragments, by row.
  };
  /// How a copy of a log segment begins.
  struct SegmentCopy {
    Status status;  ///< If not OK, it cannot be read.
    Status header;  ///< If not OK, there is no header of this segment.
    bool has_records = false;
  };
  struct FragmentPlace {
    const TableMeta* meta = nullptr;
    uint32_t level = 0;
    uint32_t fragment = 0;
    const ExtentAddr& extent() const { return meta->placement.fragments[fragment]; }
  };

  void CheckRoot();
  void CheckManifest();
  void CheckSpace(const std::map<NodeId, SlabMap>& slabs);
  void CheckOverlaps(NodeId node, std::vector<Use>* uses);
  void CountLeaks(const SlabMap& map, const std::vector<Use>& uses);
  void CheckTables();
  void CheckHeads(const std::vector<FragmentPlace>& places);
  void CheckChunks(const TableMeta& meta);
  /// Bytes of the chunks of fragments that are not missing.
  uint64_t ChunkBytes(const TableMeta& meta) const;
  void JudgeTable(uint32_t level, const TableMeta& meta);
  void CheckSegments();
  void CheckSegment(const LogSegment& segment, const std::vector<SegmentCopy>& copies, bool in_use);
  /// Replays it all.
  void CheckLog();

  Finding* Add(Problem problem, const std::string& text);
  Finding* AddAt(Problem problem, NodeId node, const std::string& text);
  std::string NameOf(const Use& use) const;
  /// The node, by the number that the owner gave it.
  std::string OwnersNode(NodeId node) const;
  /// Records that `spare` more nodes may be lost by the sound parts.
  void Spare(int spare) { health_.spare_nodes = std::min(health_.spare_nodes, spare); }

  pool::PoolClient* const client_;
  PoolReader* const reader_;
  const DatabaseView& view_;
  const bool full_;
  const Progress progress_;                 ///< May be null.
  uint64_t chunk_bytes_ = 0;                ///< Bytes of all chunks.
  std::map<uint64_t, TableDamage> damage_;  ///< The damaged tables only.
  DatabaseHealth health_;
  std::vector<Finding> findings_;
};

}  // namespace nacre::ctl
