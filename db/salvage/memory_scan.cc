#include "db/salvage/memory_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "db/manifest/state_record.h"
#include "pool/read/pool_reader.h"
#include "pool/reports.h"
#include "pool/wire/node_stats.h"
#include "table/format/fragment_checksums.h"
#include "util/coding.h"

namespace nacre {
namespace {

using pool::NodeRange;
using pool::PoolReader;
using pool::RangeOf;

/// Extents begin and end at multiples of this.
constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kBytesAtOnce = 1 << 20;
/// Longer tails would be those of tables larger than any.
constexpr uint64_t kMaxTailBytes = 8 << 20;
constexpr uint64_t kMaxRecordBytes = 64 << 20;
constexpr uint64_t kMaxChunkBytes = 64 << 20;
static_assert(kFragmentHeadBytes == kPageBytes);

Stretches Join(std::vector<uint64_t> slabs, uint64_t slab_bytes) {
  std::sort(slabs.begin(), slabs.end());
  Stretches stretches;
  for (const uint64_t slab : slabs) {
    if (!stretches.empty() && stretches.rbegin()->second == slab) {
      stretches.rbegin()->second += slab_bytes;
    } else {
      stretches.emplace_hint(stretches.end(), slab, slab + slab_bytes);
    }
  }
  return stretches;
}

class Scan {
 public:
  Scan(pool::PoolClient* client, uint64_t database_id, MemoryScan* result)
      : client_(client), database_id_(database_id), result_(result) {}

  Status Run(const SlabsByNode& slabs) {
    NACRE_RETURN_IF_ERROR(PoolReader::Open(client_->fabric(), &reader_));
    for (const auto& [node, offsets] : slabs) {
      pool::NodeStats stats;
      if (Status status = pool::GetStats(client_, node, &stats); !status.ok()) {
        Note(node, status);
        continue;
      }
      result_->memory[node] = Join(offsets, stats.slab_bytes);
      NACRE_RETURN_IF_ERROR(FindHeads(node));
    }
    FindStates();
    FindTails();
    CompareChunks();
    result_->tables = std::move(tables_);
    return Status::OK();
  }

 private:
  struct Head {
    size_t table = 0;  ///< Index into tables_.
    RemoteAddr at;
  };
  /// A tail that may be that of a head.
  struct TailPlace {
    Head head;
    uint64_t fragment_bytes = 0;
  };
  struct Sums {
    size_t table = 0;
    size_t fragment = 0;
    FragmentChecksums sums;
  };
  struct ChunkPlace {
    size_t sums = 0;
    size_t chunk = 0;
  };

  void Note(NodeId node, const Status& status) {
    result_->notes.push_back(fmt::format("{}: {}", client_->node_address(node), status.message()));
  }

  /// Bytes from `at` on that lie side by side.
  uint64_t Room(const RemoteAddr& at) const {
    const Stretches& stretches = result_->memory.at(static_cast<NodeId>(at.node));
    auto stretch = stretches.upper_bound(at.offset);
    if (stretch == stretches.begin()) return 0;
    --stretch;
    return stretch->second > at.offset ? stretch->second - at.offset : 0;
  }

  Status FindHeads(NodeId node) {
    std::vector<NodeRange> ranges;
    for (const auto& [start, end] : result_->memory[node]) {
      for (uint64_t at = start; at < end; at += kBytesAtOnce) {
        ranges.push_back({.node = node, .offset = at, .length = std::min(end - at, kBytesAtOnce)});
      }
    }
    Status failure;
    reader_->ReadEach(ranges, [&](size_t i, const Status& status, const Slice& bytes) {
      if (!status.ok()) {
        if (result_->notes.size() < kMaxNotes) Note(node, status);
        return;
      }
      result_->bytes += bytes.size();
      for (uint64_t at = 0; at + kPageBytes <= bytes.size(); at += kPageBytes) {
        LookAt(node, ranges[i].offset + at, Slice(bytes.data() + at, kPageBytes), &failure);
      }
    });
    return failure;
  }

  void LookAt(NodeId node, uint64_t offset, const Slice& page, Status* failure) {
    RemoteAddr at;
    at.node = node;
    at.offset = offset;
    TableMeta meta;
    LogSegmentHeader header;
    if (FindFragmentHead(page, database_id_, &meta, failure)) {
      std::string encoded;  // All fragments of a table have the same.
      EncodeTableMeta(meta, &encoded);
      const auto [known, is_new] = by_head_.emplace(std::move(encoded), tables_.size());
      if (is_new) tables_.push_back({.head = std::move(meta), .fragments = {}});
      heads_.push_back({.table = known->second, .at = at});
    } else if (const uint64_t bytes = StateRecordBytes(page, database_id_); bytes != 0) {
      if (bytes <= Room(at) && bytes <= kMaxRecordBytes) {
        state_ranges_.push_back({.node = node, .offset = offset, .length = bytes});
      }
    } else if (FindLogHead(page, database_id_, &header, failure)) {
      result_->log_heads.push_back({.at = at, .header = header});
    }
  }

  void FindStates() {
    reader_->ReadEach(state_ranges_, [&](size_t i, const Status& status, const Slice& bytes) {
      TableLineage state;
      if (!status.ok() || !DecodeStateRecord(bytes, database_id_, &state).ok()) return;
      ExtentAddr copy;
      copy.start.node = state_ranges_[i].node;
      copy.start.offset = state_ranges_[i].offset;
      copy.length = (bytes.size() + kPageBytes - 1) / kPageBytes * kPageBytes;
      auto known = std::find_if(result_->states.begin(), result_->states.end(),
                                [&](const FoundState& each) { return each.state == state; });
      if (known == result_->states.end()) {
        known = result_->states.insert(known, {.state = std::move(state), .copies = {}});
      }
      known->copies.push_back(copy);
    });
  }

  void FindTails() {
    std::vector<TailPlace> places;
    std::vector<NodeRange> ranges;
    for (const Head& head : heads_) {
      const TableMeta& meta = tables_[head.table].head;
      const uint64_t room = Room(head.at);
      std::vector<uint64_t> lengths;
      for (int i = 0; i < meta.placement.redundancy.fragments(); ++i) {
        lengths.push_back(FragmentBytes(meta.placement, i, meta.size));
      }
      std::sort(lengths.begin(), lengths.end());
      lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
      for (const uint64_t bytes : lengths) {
        if (bytes > room || kFragmentHeadBytes > room - bytes) continue;
        const uint64_t tail = FragmentTailBytes(bytes, meta.chunk_size);
        if (tail > kMaxTailBytes || tail > room - bytes - kFragmentHeadBytes) continue;
        places.push_back({.head = head, .fragment_bytes = bytes});
        ranges.push_back({.node = static_cast<NodeId>(head.at.node),
                          .offset = head.at.offset + kFragmentHeadBytes + bytes,
                          .length = tail});
      }
    }
    uint64_t found = 0;
    reader_->ReadEach(ranges, [&](size_t i, const Status& status, const Slice& bytes) {
      if (status.ok() && TakeTail(places[i], bytes)) ++found;
    });
    result_->unfinished = heads_.size() - std::min<uint64_t>(found, heads_.size());
  }

  bool TakeTail(const TailPlace& place, const Slice& bytes) {
    FoundTable& table = tables_[place.head.table];
    const TableMeta& meta = table.head;
    for (int i = 0; i < meta.placement.redundancy.fragments(); ++i) {
      if (FragmentBytes(meta.placement, i, meta.size) != place.fragment_bytes) continue;
      Sums found;
      const FragmentIdentity identity{
          .table_id = meta.id, .fragment = static_cast<uint32_t>(i), .bytes = place.fragment_bytes};
      if (!DecodeFragmentTail(bytes, identity, &found.sums).ok()) continue;
      if (found.sums.chunk_size != meta.chunk_size) continue;
      const uint64_t length = kFragmentHeadBytes + place.fragment_bytes + bytes.size();
      found.table = place.head.table;
      found.fragment = table.fragments.size();
      FoundFragment& fragment = table.fragments.emplace_back();
      fragment.extent.start = place.head.at;
      fragment.extent.length = (length + kPageBytes - 1) / kPageBytes * kPageBytes;
      fragment.number = static_cast<uint32_t>(i);
      fragment.sound.resize(found.sums.chunks.size());
      sums_.push_back(std::move(found));
      return true;
    }
    return false;
  }

  void CompareChunks() {
    std::vector<ChunkPlace> places;
    std::vector<NodeRange> ranges;
    for (size_t i = 0; i < sums_.size(); ++i) {
      const Sums& of = sums_[i];
      const ExtentAddr& extent = tables_[of.table].fragments[of.fragment].extent;
      for (size_t chunk = 0; chunk < of.sums.chunks.size(); ++chunk) {
        places.push_back({.sums = i, .chunk = chunk});
        ranges.push_back(RangeOf(extent, kFragmentHeadBytes + chunk * of.sums.chunk_size,
                                 of.sums.ChunkBytes(chunk)));
      }
    }
    reader_->ReadEach(ranges, [&](size_t i, const Status& status, const Slice& bytes) {
      const Sums& of = sums_[places[i].sums];
      result_->bytes_compared += bytes.size();
      tables_[of.table].fragments[of.fragment].sound[places[i].chunk] =
          status.ok() && of.sums.Matches(places[i].chunk, bytes.data());
    });
  }

  static constexpr size_t kMaxNotes = 20;

  pool::PoolClient* const client_;
  const uint64_t database_id_;
  MemoryScan* const result_;
  std::unique_ptr<PoolReader> reader_;
  std::vector<FoundTable> tables_;
  std::map<std::string, size_t> by_head_;  ///< Encoded.
  std::vector<Head> heads_;
  std::vector<NodeRange> state_ranges_;
  std::vector<Sums> sums_;
};

}  // namespace

size_t FoundFragment::damaged_chunks() const {
  return static_cast<size_t>(std::count(sound.begin(), sound.end(), false));
}

bool FindFragmentHead(const Slice& page, uint64_t database_id, TableMeta* head, Status* status) {
  const Status decoded = DecodeFragmentHead(page, head);
  // The offset is the same in all versions.
  constexpr size_t kDatabaseIdAt = 24;
  if (decoded.IsNotSupported() && status->ok() &&
      DecodeFixed64(page.data() + kDatabaseIdAt) == database_id) {
    *status = decoded;
  }
  return decoded.ok() && head->database_id == database_id &&
         head->placement.fragments.size() ==
             static_cast<size_t>(head->placement.redundancy.fragments()) &&
         head->chunk_size <= kMaxChunkBytes && head->size > 0 && head->size < uint64_t{1} << 48;
}

bool FindLogHead(const Slice& page, uint64_t database_id, LogSegmentHeader* header,
                 Status* status) {
  const Status decoded = DecodeAnyLogHeader(page, database_id, header);
  if (decoded.IsNotSupported() && status->ok()) *status = decoded;
  return decoded.ok() && !header->announced;
}

Status ScanMemory(pool::PoolClient* client, uint64_t database_id, const SlabsByNode& slabs,
                  MemoryScan* scan) {
  *scan = MemoryScan();
  return Scan(client, database_id, scan).Run(slabs);
}

}  // namespace nacre
