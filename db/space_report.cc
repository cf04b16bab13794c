#include "db/space_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "util/uri.h"

namespace nacre {
namespace {

/// See SpaceReport::garbage_bytes.
uint64_t KnownGarbage(const TableMeta& meta) {
  const uint64_t key_bytes = meta.smallest_user_key().size();
  const uint64_t tombstone_bytes = std::min(meta.user_bytes, meta.tombstones * key_bytes);
  const uint64_t values = meta.entries - std::min(meta.entries, meta.tombstones);
  const uint64_t older = meta.entries - std::min(meta.entries, meta.user_keys);
  const uint64_t value_bytes = values == 0 ? 0 : (meta.user_bytes - tombstone_bytes) / values;
  // An older version may be a tombstone itself.
  return std::min(meta.user_bytes, std::min(older, values) * value_bytes + tombstone_bytes);
}

bool LiesOverOthers(const Version& version, int level, const TableMeta& meta) {
  if (level == 0 && version.level0_runs() > 1) return true;
  const Slice begin = meta.smallest_user_key();
  const Slice end = meta.largest_user_key();
  for (int deeper = level + 1; deeper < version.depth(); ++deeper) {
    if (!version.Overlapping(deeper, &begin, &end).empty()) return true;
  }
  return false;
}

void AddTable(const Version& version, int level, const TableHandle& table,
              const std::vector<uint64_t>& leased, SpaceReport* report) {
  const TableMeta& meta = table.meta();
  uint64_t extents = 0;
  uint64_t table_bytes = 0;
  for (size_t i = 0; i < meta.placement.fragments.size(); ++i) {
    const ExtentAddr& fragment = meta.placement.fragments[i];
    extents += fragment.length;
    table_bytes += FragmentBytes(meta.placement, static_cast<int>(i), meta.size);
    const NodeId node = fragment.start.node;
    const bool lost = node >= leased.size() || leased[node] == 0;
    if (lost) report->lost_bytes += fragment.length;
  }
  report->user_bytes += meta.user_bytes;
  report->header_bytes += meta.records.length - meta.user_bytes;
  report->index_bytes += meta.size - meta.records.length;
  report->parity_bytes += table_bytes - meta.size;
  report->padding_bytes += extents - table_bytes;
  report->garbage_bytes += KnownGarbage(meta);
  if (LiesOverOthers(version, level, meta)) report->shadowing_bytes += meta.user_bytes;
}

}  // namespace

SpaceReport MakeSpaceReport(const VersionList& versions, const memnode::SpaceAllocator& space,
                            const std::map<NodeId, uint64_t>& log_bytes, int node_count) {
  SpaceReport report;
  // One look at each node: whoever dies meanwhile is alive or lost for all figures alike.
  std::vector<uint64_t> leased;
  uint64_t used = 0;
  for (int node = 0; node < node_count; ++node) {
    const memnode::SpaceUsage usage = space.Usage(static_cast<NodeId>(node));
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
      for (const auto& table : version->tables(level)) {
        AddTable(*version, level, *table, leased, &report);
      }
    }
  }
  report.unlinked_bytes = used + report.lost_bytes - report.stored_bytes() - report.log_bytes;
  return report;
}

const std::vector<SpaceField>& SpaceFields() {
  static const std::vector<SpaceField> kFields = {
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
