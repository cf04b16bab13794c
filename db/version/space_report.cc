#include "db/version/space_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "util/uri.h"

namespace nacre {
namespace {

void AddChunk(const TableChunk& chunk, const std::vector<uint64_t>& leased, SpaceReport* report) {
  const TableSums& sums = chunk.sums();
  report->user_bytes += sums.user_bytes;
  report->header_bytes += sums.records_bytes - sums.user_bytes;
  report->index_bytes += sums.table_bytes - sums.records_bytes;
  report->parity_bytes += sums.fragment_bytes - sums.table_bytes;
  report->padding_bytes += sums.extent_bytes - sums.fragment_bytes;
  report->garbage_bytes += sums.garbage_bytes;
  for (const auto& [node, bytes] : sums.extent_bytes_by_node) {
    const bool lost = node >= leased.size() || leased[node] == 0;
    if (lost) report->lost_bytes += bytes;
  }
}

/// Tells of tables of one level, in their order, whether some table of another level overlaps them:
/// one walk over both.
class OverlapWalk {
 public:
  explicit OverlapWalk(const SortedLevel& level) : next_(level.Begin()), end_(level.End()) {}

  bool Overlaps(const LevelIterator& table) {
    while (next_ != end_ &&
           next_.bounds().EndsBefore(next_.index(), table.bounds(), table.index())) {
      ++next_;
    }
    return next_ != end_ &&
           !table.bounds().EndsBefore(table.index(), next_.bounds(), next_.index());
  }

 private:
  LevelIterator next_;
  const LevelIterator end_;
};

/// The bytes of `level`: see SpaceReport::shadowing_bytes.
uint64_t ShadowingBytes(const Version& version, int level) {
  uint64_t bytes = 0;
  const TableRange tables = version.tables(level);
  if (level == 0) {
    // Level 0 is in no order of keys.
    for (const auto& table : tables) {
      const TableMeta& meta = table->meta();
      const bool over = version.level0_runs() > 1 ||
                        version.AnyBelow(0, meta.smallest_user_key(), meta.largest_user_key());
      if (over) bytes += meta.user_bytes;
    }
    return bytes;
  }
  std::vector<OverlapWalk> below;
  for (int deeper = version.depth() - 1; deeper > level; --deeper) {
    if (!version.sorted_level(deeper).empty()) below.emplace_back(version.sorted_level(deeper));
  }
  if (below.empty()) return 0;
  for (LevelIterator table = tables.begin(); table != tables.end(); ++table) {
    const bool over = std::any_of(below.begin(), below.end(),
                                  [&](OverlapWalk& walk) { return walk.Overlaps(table); });
    if (over) bytes += (*table)->meta().user_bytes;
  }
  return bytes;
}

}  // namespace

SpaceReport MakeSpaceReport(const VersionList& versions, const pool::SpaceAllocator& space,
                            const std::map<NodeId, uint64_t>& log_bytes, int node_count) {
  SpaceReport report;
  // Each node is read once, so that one that dies meanwhile is alive or lost for all figures alike.
  std::vector<uint64_t> leased;
  uint64_t used = 0;
  for (int node = 0; node < node_count; ++node) {
    const pool::SpaceUsage usage = space.Usage(static_cast<NodeId>(node));
    leased.push_back(usage.leased_bytes);
    used += usage.used_bytes;
    report.leased_bytes += usage.leased_bytes;
  }
  report.free_bytes = report.leased_bytes - used;
  for (const auto& [node, bytes] : log_bytes) {
    if (node < leased.size() && leased[node] > 0) report.log_bytes += bytes;
  }

  for (const auto& version : versions) {
    for (int level = 0; level < version->depth(); ++level) {
      for (const auto& chunk : version->chunks(level)) AddChunk(*chunk, leased, &report);
      report.shadowing_bytes += ShadowingBytes(*version, level);
    }
  }
  report.unlinked_bytes = used + report.lost_bytes - report.stored_bytes() - report.log_bytes;
  return report;
}

std::span<const SpaceField> SpaceFields() {
  static constexpr SpaceField kFields[] = {
      {"user-bytes", "keys and values, of all versions",
       [](const SpaceReport& report) { return report.user_bytes; }},
      {"header-bytes", "heads of records, gaps between them",
       [](const SpaceReport& report) { return report.header_bytes; }},
      {"remote-index-bytes", "point and range indexes, Bloom filters, footers",
       [](const SpaceReport& report) { return report.index_bytes; }},
      {"parity-bytes", "parity, or further copies",
       [](const SpaceReport& report) { return report.parity_bytes; }},
      {"padding-bytes", "heads and checksums of fragments, rounding to pages",
       [](const SpaceReport& report) { return report.padding_bytes; }},
      {"log-bytes", "log and manifest, in all copies",
       [](const SpaceReport& report) { return report.log_bytes; }},
      {"unlinked-bytes", "tables being written, dropped ones still read",
       [](const SpaceReport& report) { return report.unlinked_bytes; }},
      {"free-bytes", "not in use in leased slabs",
       [](const SpaceReport& report) { return report.free_bytes; }},
      {"lost-bytes", "of these on lost nodes",
       [](const SpaceReport& report) { return report.lost_bytes; }},
      {"leased-bytes", "slabs, the lost ones not counted",
       [](const SpaceReport& report) { return report.leased_bytes; }},
      {"data-bytes", "tables, each counted once: user, header, index",
       [](const SpaceReport& report) { return report.data_bytes(); }},
      {"stored-bytes", "tables with parity and padding",
       [](const SpaceReport& report) { return report.stored_bytes(); }},
      {"garbage-bytes", "of user bytes: shadowed in their table, tombstones",
       [](const SpaceReport& report) { return report.garbage_bytes; }},
      {"shadowing-bytes", "of user bytes: over tables of the same range",
       [](const SpaceReport& report) { return report.shadowing_bytes; }},
  };
  return kFields;
}

std::string SpaceReport::ToString() const {
  std::string text = fmt::format("{:<20} {:>12} {:>8} {:>9}\n", "space", "", "percent", "per user");
  const uint64_t whole = leased_bytes + lost_bytes;
  const auto ratio = [](uint64_t bytes, uint64_t of) {
    return of == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(of);
  };
  for (const SpaceField& field : SpaceFields()) {
    const uint64_t bytes = field.value(*this);
    text += fmt::format("{:<20} {:>12} {:>8.2f} {:>9.3f}  {}\n", field.name, FormatBytes(bytes),
                        100 * ratio(bytes, whole), ratio(bytes, user_bytes), field.help);
  }
  return text;
}

}  // namespace nacre
