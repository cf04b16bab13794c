#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <utility>

#include "ctl/database_check.h"
#include "table/format/fragment_checksums.h"
#include "table/format/table_meta.h"

namespace nacre::ctl {
namespace {

constexpr FragmentSet Bit(uint32_t fragment) { return FragmentSet{1} << fragment; }

/// Names what in a head contradicts the manifest, or is empty. Level and placement may have changed
/// since.
std::string Difference(const TableMeta& head, const TableMeta& meta) {
  if (head.id != meta.id) return fmt::format("it is that of table {}", head.id);
  if (head.database_id != meta.database_id) {
    return fmt::format("it is that of database {:016x}", head.database_id);
  }
  const auto same = [](const TableSection& a, const TableSection& b) {
    return a.offset == b.offset && a.length == b.length && a.crc == b.crc;
  };
  if (head.size != meta.size || head.chunk_size != meta.chunk_size ||
      head.entries != meta.entries || head.smallest_sequence != meta.smallest_sequence ||
      head.largest_sequence != meta.largest_sequence ||
      head.manifest_version != meta.manifest_version) {
    return "it tells of other contents than the manifest";
  }
  if (!same(head.point_index, meta.point_index) || !same(head.range_index, meta.range_index) ||
      !same(head.bloom, meta.bloom) || !same(head.lineage, meta.lineage) ||
      head.records.length != meta.records.length) {
    return "it has other checksums than the manifest";
  }
  return "";
}

std::string ListOf(FragmentSet fragments) {
  std::string list;
  for (FragmentSet left = fragments; left != 0; left &= left - 1) {
    list += fmt::format("{}{}", list.empty() ? "" : ", ", std::countr_zero(left));
  }
  return list;
}

}  // namespace

void DatabaseCheck::CheckTables() {
  std::vector<FragmentPlace> places;
  for (const auto& [id, table] : view_.state.tables) {
    const auto& [level, meta] = table;
    ++health_.tables;
    for (uint32_t i = 0; i < meta.placement.fragments.size(); ++i) {
      const ExtentAddr& extent = meta.placement.fragments[i];
      health_.table_bytes += extent.length;
      if (extent.start.node == kLostNode || !client_->alive(extent.start.node)) {
        damage_[id].missing |= Bit(i);
      } else {
        places.push_back({.meta = &meta, .level = level, .fragment = i});
      }
    }
  }
  CheckHeads(places);
  if (full_) {
    for (const auto& [id, table] : view_.state.tables) chunk_bytes_ += ChunkBytes(table.second);
    for (const auto& [id, table] : view_.state.tables) CheckChunks(table.second);
  }
  for (const auto& [id, table] : view_.state.tables) JudgeTable(table.first, table.second);
}

void DatabaseCheck::CheckHeads(const std::vector<FragmentPlace>& places) {
  std::vector<NodeRange> ranges;
  ranges.reserve(places.size());
  for (const FragmentPlace& place : places) {
    ranges.push_back(RangeOf(place.extent(), 0, kFragmentHeadBytes));
  }
  reader_->ReadEach(ranges, [&](size_t i, const Status& status, const Slice& bytes) {
    const FragmentPlace& place = places[i];
    const auto add = [&](Problem problem, const std::string& text) {
      AddAt(problem, ranges[i].node, text)->table = place.meta->id;
    };
    if (!status.ok()) {
      damage_[place.meta->id].missing |= Bit(place.fragment);
      add(Problem::kNode, fmt::format("fragment {} cannot be read: {}", place.fragment,
                                      std::string(status.message())));
      return;
    }
    Slice input = bytes;
    TableMeta head;
    const Status decoded = DecodeTableMeta(&input, &head);
    const std::string why =
        decoded.ok() ? Difference(head, *place.meta) : std::string(decoded.message());
    if (!why.empty()) {
      add(Problem::kDamage, fmt::format("the head of fragment {}: {}", place.fragment, why));
    }
  });
}

uint64_t DatabaseCheck::ChunkBytes(const TableMeta& meta) const {
  const auto damage = damage_.find(meta.id);
  const FragmentSet missing = damage == damage_.end() ? 0 : damage->second.missing;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < meta.placement.fragments.size(); ++i) {
    if ((missing & Bit(i)) != 0) continue;
    bytes += FragmentBytes(meta.placement, static_cast<int>(i), meta.size);
  }
  return bytes;
}

void DatabaseCheck::CheckChunks(const TableMeta& meta) {
  struct Piece {
    uint32_t fragment = 0;
    size_t chunk = 0;
  };
  const auto missing = [&] {
    const auto it = damage_.find(meta.id);
    return it == damage_.end() ? FragmentSet{0} : it->second.missing;
  };
  const auto& fragments = meta.placement.fragments;
  const auto bytes_of = [&](uint32_t i) {
    return FragmentBytes(meta.placement, static_cast<int>(i), meta.size);
  };
  const auto add = [&](uint32_t fragment, const std::string& text) {
    AddAt(Problem::kDamage, fragments[fragment].start.node, text)->table = meta.id;
  };

  std::vector<Piece> pieces;
  std::vector<NodeRange> ranges;
  for (uint32_t i = 0; i < fragments.size(); ++i) {
    if ((missing() & Bit(i)) != 0) continue;
    pieces.push_back({.fragment = i});
    ranges.push_back(RangeOf(fragments[i], kFragmentHeadBytes + bytes_of(i),
                             FragmentTailBytes(bytes_of(i), meta.chunk_size)));
  }
  std::vector<FragmentChecksums> sums(fragments.size());
  reader_->ReadEach(ranges, [&](size_t at, const Status& status, const Slice& bytes) {
    const uint32_t i = pieces[at].fragment;
    const FragmentIdentity identity{.table_id = meta.id, .fragment = i, .bytes = bytes_of(i)};
    Status whole = status;
    if (whole.ok()) whole = DecodeFragmentTail(bytes, identity, &sums[i]);
    if (whole.ok() && sums[i].chunk_size != meta.chunk_size) {
      whole = Status::Corruption("it has another chunk size");
    }
    if (whole.ok()) return;
    damage_[meta.id].missing |= Bit(i);
    add(i, fmt::format("the checksums of fragment {}: {}", i, std::string(whole.message())));
  });

  pieces.clear();
  ranges.clear();
  for (uint32_t i = 0; i < fragments.size(); ++i) {
    if ((missing() & Bit(i)) != 0) continue;
    for (size_t chunk = 0; chunk < sums[i].chunks.size(); ++chunk) {
      pieces.push_back({.fragment = i, .chunk = chunk});
      ranges.push_back(RangeOf(fragments[i], kFragmentHeadBytes + chunk * sums[i].chunk_size,
                               sums[i].ChunkBytes(chunk)));
    }
  }
  reader_->ReadEach(ranges, [&](size_t at, const Status& status, const Slice& bytes) {
    const auto& [fragment, chunk] = pieces[at];
    health_.bytes_checked += bytes.size();
    if (progress_ != nullptr) progress_(health_.bytes_checked, chunk_bytes_);
    if (status.ok() && sums[fragment].Matches(chunk, bytes.data())) return;
    damage_[meta.id].damaged_rows[chunk] |= Bit(fragment);
    add(fragment, fmt::format("chunk {} of fragment {} {}", chunk, fragment,
                              status.ok() ? "does not match its checksum"
                                          : "cannot be read: " + std::string(status.message())));
  });
}

void DatabaseCheck::JudgeTable(uint32_t level, const TableMeta& meta) {
  const int parity = meta.placement.redundancy.parity;
  const auto damage = damage_.find(meta.id);
  if (damage == damage_.end()) return Spare(parity);
  const FragmentSet missing = damage->second.missing;
  FragmentSet worst = missing;
  for (const auto& [row, damaged] : damage->second.damaged_rows) {
    if (std::popcount(missing | damaged) > std::popcount(worst)) worst = missing | damaged;
  }
  const int spare = std::max(parity - std::popcount(worst), -1);
  std::string nodes;
  const auto& owners = view_.manifest.state.tables.at(meta.id).second.placement.fragments;
  for (FragmentSet left = missing; left != 0; left &= left - 1) {
    const NodeId node = owners[static_cast<size_t>(std::countr_zero(left))].start.node;
    nodes += (nodes.empty() ? "" : ", ") + OwnersNode(node);
  }
  std::string text = fmt::format("level {}: ", level);
  if (missing != 0) text += fmt::format("without fragments {} ({}); ", ListOf(missing), nodes);
  if (spare < 0) {
    text += fmt::format("{} fragments would be needed, parts of it cannot be read",
                        meta.placement.redundancy.data);
  } else {
    text += fmt::format("{} more of {} may be lost", spare, parity);
  }
  Finding* finding = Add(spare < 0 ? Problem::kLost : Problem::kDegraded, text);
  finding->table = meta.id;
  finding->spare_nodes = spare;
}

}  // namespace nacre::ctl
