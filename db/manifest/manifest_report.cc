#include "db/manifest/manifest_report.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

#include "util/json_text.h"

namespace nacre {
namespace {

std::string Hex(const Slice& bytes) {
  std::string hex;
  for (size_t i = 0; i < bytes.size(); ++i) {
    fmt::format_to(std::back_inserter(hex), "{:02x}", static_cast<unsigned char>(bytes[i]));
  }
  return hex;
}

/// What `text` gives for each of `items`, with `separator` between them.
template <typename Items, typename Text>
std::string Join(const Items& items, std::string_view separator, const Text& text) {
  std::string joined;
  for (const auto& item : items) {
    if (!joined.empty()) joined += separator;
    joined += text(item);
  }
  return joined;
}

std::string ExtentText(const ExtentAddr& extent) {
  const auto node = static_cast<NodeId>(extent.start.node);
  return fmt::format("{}:{}+{}", node == kLostNode ? "lost" : std::to_string(node),
                     static_cast<uint64_t>(extent.start.offset), extent.length);
}

std::string ExtentJson(const ExtentAddr& extent) {
  return fmt::format(R"({{"node": {}, "offset": {}, "length": {}}})",
                     static_cast<NodeId>(extent.start.node),
                     static_cast<uint64_t>(extent.start.offset), extent.length);
}

std::string TableText(uint32_t level, const TableMeta& table) {
  const std::string family = table.family == 0 ? "" : fmt::format(" family {}", table.family);
  return fmt::format("table {}{} level {} bytes {} entries {} {} at {} keys {}..{}", table.id,
                     family, level, table.size, table.entries,
                     table.placement.redundancy.ToString(),
                     Join(table.placement.fragments, " ", ExtentText),
                     Hex(table.smallest_user_key()), Hex(table.largest_user_key()));
}

std::string TableJson(uint32_t level, const TableMeta& table) {
  return fmt::format(R"({{"id": {}, "family": {}, "level": {}, "bytes": {}, "entries": {}, )"
                     R"("redundancy": {}, "smallest": "{}", "largest": "{}", "fragments": [{}]}})",
                     table.id, table.family, level, table.size, table.entries,
                     JsonString(table.placement.redundancy.ToString()),
                     Hex(table.smallest_user_key()), Hex(table.largest_user_key()),
                     Join(table.placement.fragments, ", ", ExtentJson));
}

std::string SegmentText(const LogSegment& segment) {
  return fmt::format("segment {}{} at {}", segment.number, segment.kept ? ", kept," : "",
                     Join(segment.copies, " ", ExtentText));
}

std::string SegmentJson(const LogSegment& segment) {
  return fmt::format(R"({{"number": {}, "kept": {}, "copies": [{}]}})", segment.number,
                     segment.kept, Join(segment.copies, ", ", ExtentJson));
}

std::string FamilyText(uint32_t id, const FamilyRecord& family) {
  return fmt::format("family {} {}, comparator {}, {} levels", id, family.name, family.comparator,
                     family.num_levels);
}

std::string FamiliesJson(const std::map<uint32_t, FamilyRecord>& families) {
  return Join(families, ", ", [](const auto& family) {
    return fmt::format(R"({{"id": {}, "name": {}, "comparator": {}, "levels": {}}})", family.first,
                       JsonString(family.second.name), JsonString(family.second.comparator),
                       family.second.num_levels);
  });
}

std::string Number(uint64_t number) { return std::to_string(number); }

std::string EditText(const ManifestEdit& edit) {
  std::string text = fmt::format("edit {}\n", edit.version);
  const auto line = [&](std::string_view sign, const std::string& what) {
    text += fmt::format("  {} {}\n", sign, what);
  };
  for (const auto& [node, instance] : edit.nodes) {
    line("+", fmt::format("node {} instance {:016x}", node, instance));
  }
  for (const auto& [id, family] : edit.families_added) line("+", FamilyText(id, family));
  for (const uint64_t id : edit.families_dropped) line("-", fmt::format("family {}", id));
  for (const auto& [level, table] : edit.added) line("+", TableText(level, table));
  for (const uint64_t id : edit.removed) line("-", fmt::format("table {}", id));
  for (const LogSegment& segment : edit.segments_added) line("+", SegmentText(segment));
  for (const uint64_t number : edit.segments_removed) line("-", fmt::format("segment {}", number));
  if (edit.next_table_id.has_value()) line("=", fmt::format("next table {}", *edit.next_table_id));
  if (edit.last_sequence.has_value()) line("=", fmt::format("sequence {}", *edit.last_sequence));
  return text;
}

std::string NodesJson(const std::map<NodeId, uint64_t>& nodes) {
  return Join(nodes, ", ", [](const auto& node) {
    return fmt::format(R"({{"node": {}, "instance_id": "{:016x}"}})", node.first, node.second);
  });
}

std::string EditJson(const ManifestEdit& edit) {
  std::string json =
      fmt::format(R"({{"version": {}, "added": [{}], "removed": [{}], "segments_added": [{}], )"
                  R"("segments_removed": [{}], "nodes": [{}])",
                  edit.version,
                  Join(edit.added, ", ",
                       [](const auto& table) { return TableJson(table.first, table.second); }),
                  Join(edit.removed, ", ", Number), Join(edit.segments_added, ", ", SegmentJson),
                  Join(edit.segments_removed, ", ", Number), NodesJson(edit.nodes));
  if (!edit.families_added.empty()) {
    json += fmt::format(R"(, "families_added": [{}])", FamiliesJson(edit.families_added));
  }
  if (!edit.families_dropped.empty()) {
    json += fmt::format(R"(, "families_dropped": [{}])", Join(edit.families_dropped, ", ", Number));
  }
  if (edit.next_table_id.has_value()) {
    json += fmt::format(R"(, "next_table_id": {})", *edit.next_table_id);
  }
  if (edit.last_sequence.has_value()) {
    json += fmt::format(R"(, "last_sequence": {})", *edit.last_sequence);
  }
  return json + "}";
}

}  // namespace

std::string ManifestText(const ManifestRecovered& manifest) {
  const ManifestState& state = manifest.state;
  const ManifestRoot& root = manifest.root;
  std::string text = fmt::format(
      "database {:016x}, epoch {}, generation {}\n"
      "version {}: image at version {}, {} edits on top\n"
      "comparator {}, {} levels, slabs of {} bytes\n"
      "next table {}, last sequence {}, next segment {}\n",
      root.identity.database_id, root.identity.epoch, root.identity.generation, state.version,
      manifest.image_version, manifest.edits.size(), state.comparator, state.num_levels,
      state.slab_bytes, state.next_table_id, state.last_sequence, state.next_segment);
  if (root.features != 0) text += fmt::format("features {}\n", pool::ToString(root.features));
  if (state.restoring != 0) {
    text += fmt::format("being restored from checkpoint {:016x}\n", state.restoring);
  }
  for (const ManifestRoot::Replica& replica : root.replicas) {
    text += fmt::format("copy on instance {:016x} at {}: {} slots, ring of {} bytes\n",
                        replica.instance_id, replica.offset, root.image_slots, root.ring_bytes);
  }
  for (const std::string& note : manifest.notes) text += fmt::format("note: {}\n", note);
  for (const auto& [node, instance] : state.nodes) {
    text += fmt::format("node {} instance {:016x}\n", node, instance);
  }
  for (const auto& [id, family] : state.families) text += FamilyText(id, family) + "\n";
  for (const auto& [id, table] : state.tables) text += TableText(table.first, table.second) + "\n";
  for (const auto& [number, segment] : state.segments) text += SegmentText(segment) + "\n";
  for (const ManifestEdit& edit : manifest.edits) text += EditText(edit);
  return text;
}

std::string ManifestJson(const ManifestRecovered& manifest) {
  const ManifestState& state = manifest.state;
  const ManifestRoot& root = manifest.root;
  std::string json = fmt::format(
      R"({{"database_id": "{:016x}", "epoch": {}, "generation": {}, "version": {}, )"
      R"("image_version": {}, "comparator": {}, "levels": {}, "slab_bytes": {}, )"
      R"("next_table_id": {}, "last_sequence": {}, "next_segment": {}, )",
      root.identity.database_id, root.identity.epoch, root.identity.generation, state.version,
      manifest.image_version, JsonString(state.comparator), state.num_levels, state.slab_bytes,
      state.next_table_id, state.last_sequence, state.next_segment);
  if (state.restoring != 0) json += fmt::format(R"("restoring": "{:016x}", )", state.restoring);
  json += fmt::format(
      R"("features": [{}], "image_slots": {}, "ring_bytes": {}, "copies": [{}], "notes": [{}], )"
      R"("nodes": [{}], )",
      Join(pool::FeatureNames(root.features), ", ",
           [](const std::string& name) { return JsonString(name); }),
      root.image_slots, root.ring_bytes,
      Join(root.replicas, ", ",
           [](const ManifestRoot::Replica& replica) {
             return fmt::format(R"({{"instance_id": "{:016x}", "offset": {}}})",
                                replica.instance_id, replica.offset);
           }),
      Join(manifest.notes, ", ", [](const std::string& note) { return JsonString(note); }),
      NodesJson(state.nodes));
  json += fmt::format(
      R"("families": [{}], "tables": [{}], "segments": [{}], "edits": [{}]}})",
      FamiliesJson(state.families),
      Join(state.tables, ", ",
           [](const auto& table) { return TableJson(table.second.first, table.second.second); }),
      Join(state.segments, ", ", [](const auto& segment) { return SegmentJson(segment.second); }),
      Join(manifest.edits, ", ", EditJson));
  return json + "\n";
}

}  // namespace nacre
