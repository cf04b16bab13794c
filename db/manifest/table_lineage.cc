#include "db/manifest/table_lineage.h"

#include <algorithm>

#include "util/coding.h"

namespace nacre {
namespace {

// Layout (docs/formats.md, "Lineage"). All numbers are varint64:
//
//     format version
//     kind, epoch, job, range, ranges, through
//     base version, flushed, number of levels, bytes of a slab
//     number of inputs; each: difference to the one before, ascending
//     for each level: number of tables; each: likewise
//
// With version 2, of a database that has or had other column families than the default one, there
// are in front of the inputs: number of levels in the last lists, length and name of
// the default one's comparator, and what EncodeFamilies appends. Version 3 has the same, of a state
// without other families: there may be no table that tells the comparator.
constexpr uint64_t kLineageFormatVersion = 1;
constexpr uint64_t kLineageFormatVersionWithFamilies = 2;
constexpr uint64_t kLineageFormatVersionOfState = 3;
constexpr uint64_t kMaxLineageLevels = 256;

Status MalformedLineage(const char* what) {
  return Status::Corruption(std::string("table lineage: ") + what);
}

void PutIds(const std::vector<uint64_t>& ids, std::string* dst) {
  PutVarint64(dst, ids.size());
  uint64_t last = 0;
  for (const uint64_t id : ids) {
    PutVarint64(dst, id - last);
    last = id;
  }
}

/// Strictly ascending, 0 not among them.
bool GetIds(Slice* input, std::vector<uint64_t>* ids) {
  uint64_t count = 0;
  if (!GetVarint64(input, &count) || count > input->size()) return false;
  ids->clear();
  ids->reserve(count);
  uint64_t last = 0;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t step = 0;
    if (!GetVarint64(input, &step) || step == 0 || step > UINT64_MAX - last) return false;
    last += step;
    ids->push_back(last);
  }
  return true;
}

}  // namespace

std::string EncodeTableLineage(const TableLineage& lineage) {
  const uint64_t version = lineage.next_family > 1 ? kLineageFormatVersionWithFamilies
                           : lineage.kind == TableLineage::Kind::kState
                               ? kLineageFormatVersionOfState
                               : kLineageFormatVersion;
  std::string bytes;
  for (const uint64_t value :
       {version, static_cast<uint64_t>(lineage.kind), lineage.epoch, lineage.job,
        uint64_t{lineage.range}, uint64_t{lineage.ranges}, lineage.through, lineage.base_version,
        lineage.flushed, uint64_t{lineage.num_levels}, lineage.slab_bytes}) {
    PutVarint64(&bytes, value);
  }
  uint32_t level_count = lineage.num_levels;
  if (version != kLineageFormatVersion) {
    for (const auto& [id, family] : lineage.families) {
      level_count = std::max(level_count, family.num_levels);
    }
    PutVarint64(&bytes, level_count);
    PutLengthPrefixedSlice(&bytes, lineage.comparator);
    EncodeFamilies(lineage.families, lineage.next_family, &bytes);
  }
  std::vector<uint64_t> inputs = lineage.inputs;
  std::sort(inputs.begin(), inputs.end());
  PutIds(inputs, &bytes);
  std::vector<std::vector<uint64_t>> levels(level_count);
  for (const auto& [id, level] : lineage.tables) levels[level].push_back(id);
  for (const std::vector<uint64_t>& ids : levels) PutIds(ids, &bytes);
  return bytes;
}

Status DecodeTableLineage(const Slice& bytes, TableLineage* lineage) {
  *lineage = TableLineage();
  Slice input = bytes;
  uint64_t version = 0;
  if (!GetVarint64(&input, &version)) return MalformedLineage("there is none");
  if (version < kLineageFormatVersion || version > kLineageFormatVersionOfState) {
    return Status::NotSupported("table lineage: format version " + std::to_string(version));
  }
  uint64_t kind = 0;
  uint64_t range = 0;
  uint64_t ranges = 0;
  uint64_t levels = 0;
  for (uint64_t* value :
       {&kind, &lineage->epoch, &lineage->job, &range, &ranges, &lineage->through,
        &lineage->base_version, &lineage->flushed, &levels, &lineage->slab_bytes}) {
    if (!GetVarint64(&input, value)) return MalformedLineage("truncated");
  }
  if (kind < static_cast<uint64_t>(TableLineage::Kind::kFlush) ||
      kind > static_cast<uint64_t>(TableLineage::Kind::kState)) {
    return MalformedLineage("unknown kind");
  }
  if (ranges > UINT32_MAX || range >= ranges) return MalformedLineage("no such range");
  if (levels == 0 || levels > kMaxLineageLevels) return MalformedLineage("absurd number of levels");
  if (lineage->through > kMaxSequenceNumber || lineage->flushed > kMaxSequenceNumber) {
    return MalformedLineage("absurd sequence");
  }
  lineage->kind = static_cast<TableLineage::Kind>(kind);
  lineage->range = static_cast<uint32_t>(range);
  lineage->ranges = static_cast<uint32_t>(ranges);
  lineage->num_levels = static_cast<uint32_t>(levels);
  uint64_t level_count = levels;
  if (version != kLineageFormatVersion) {
    if (!GetVarint64(&input, &level_count) || level_count < levels ||
        level_count > kMaxLineageLevels) {
      return MalformedLineage("absurd number of levels");
    }
    Slice comparator;
    if (!GetLengthPrefixedSlice(&input, &comparator)) {
      return MalformedLineage("malformed comparator");
    }
    lineage->comparator = comparator.ToString();
    NACRE_RETURN_IF_ERROR(DecodeFamilies(&input, &lineage->families, &lineage->next_family)
                              .WithContext("table lineage"));
    if (version == kLineageFormatVersionWithFamilies && lineage->next_family < 2) {
      return MalformedLineage("no column families");
    }
  }
  if (!GetIds(&input, &lineage->inputs)) return MalformedLineage("malformed inputs");
  std::vector<uint64_t> ids;
  for (uint32_t level = 0; level < level_count; ++level) {
    if (!GetIds(&input, &ids)) return MalformedLineage("malformed tables");
    for (const uint64_t id : ids) {
      if (!lineage->tables.emplace(id, level).second) {
        return MalformedLineage("a table in two levels");
      }
    }
  }
  return input.empty() ? Status::OK() : MalformedLineage("bytes behind it");
}

}  // namespace nacre
