#include "db/version/table_metadata.h"

#include <utility>

namespace nacre {

namespace {

LiveTableMetaData MetaDataOf(const std::string& family, int level, const TableHandle& table,
                             const pool::PoolClient& client) {
  const TableMeta& meta = table.meta();
  LiveTableMetaData data;
  data.column_family_name = family;
  data.level = level;
  data.being_compacted = table.being_compacted.load(std::memory_order_relaxed);
  data.file_number = meta.id;
  data.name = "table " + std::to_string(meta.id);
  data.size = meta.size;
  data.smallestkey = meta.smallest_user_key().ToString();
  data.largestkey = meta.largest_user_key().ToString();
  data.smallest_seqno = meta.smallest_sequence;
  data.largest_seqno = meta.largest_sequence;
  data.num_entries = meta.entries;
  data.num_deletions = meta.tombstones;
  data.redundancy = meta.placement.redundancy.ToString();
  for (const ExtentAddr& fragment : meta.placement.fragments) {
    data.stored_bytes += fragment.length;
    data.nodes.push_back(client.node_address(fragment.start.node));
  }
  return data;
}

}  // namespace

ColumnFamilyMetaData MetaDataOf(const std::string& family, const Version& version,
                                const pool::PoolClient& client) {
  ColumnFamilyMetaData metadata;
  metadata.name = family;
  for (int level = 0; level < version.num_levels(); ++level) {
    LevelMetaData& of_level = metadata.levels.emplace_back();
    of_level.level = level;
    for (const auto& table : version.tables(level)) {
      LiveTableMetaData data = MetaDataOf(family, level, *table, client);
      of_level.size += data.size;
      of_level.files.push_back(std::move(data));
    }
    metadata.size += of_level.size;
    metadata.file_count += of_level.files.size();
  }
  return metadata;
}

void AppendTables(const ColumnFamilyMetaData& metadata, std::vector<LiveTableMetaData>* tables) {
  for (const LevelMetaData& level : metadata.levels) {
    tables->insert(tables->end(), level.files.begin(), level.files.end());
  }
}

}  // namespace nacre
