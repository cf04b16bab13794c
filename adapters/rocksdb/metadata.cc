#include "adapters/rocksdb/metadata.h"

#include <fmt/format.h>

#include <utility>

namespace nacre::rocksdb_api {
namespace {

void CopyTable(const nacre::LiveTableMetaData& ours, const std::string& database,
               rocksdb::SstFileMetaData* theirs) {
  theirs->relative_filename = fmt::format("{:06}.sst", ours.file_number);
  theirs->name = "/" + theirs->relative_filename;
  theirs->directory = database;
  theirs->db_path = database;
  theirs->file_number = ours.file_number;
  theirs->size = ours.size;
  theirs->smallest_seqno = ours.smallest_seqno;
  theirs->largest_seqno = ours.largest_seqno;
  theirs->smallestkey = ours.smallestkey;
  theirs->largestkey = ours.largestkey;
  theirs->num_entries = ours.num_entries;
  theirs->num_deletions = ours.num_deletions;
  theirs->being_compacted = ours.being_compacted;
}

}  // namespace

rocksdb::ColumnFamilyMetaData ToRocksdb(const nacre::ColumnFamilyMetaData& ours,
                                        const std::string& database) {
  rocksdb::ColumnFamilyMetaData theirs;
  theirs.name = ours.name;
  theirs.size = ours.size;
  theirs.file_count = ours.file_count;
  for (const nacre::LevelMetaData& level : ours.levels) {
    std::vector<rocksdb::SstFileMetaData> files(level.files.size());
    for (size_t i = 0; i < files.size(); ++i) CopyTable(level.files[i], database, &files[i]);
    theirs.levels.emplace_back(level.level, level.size, std::move(files));
  }
  return theirs;
}

std::vector<rocksdb::LiveFileMetaData> ToRocksdb(const std::vector<nacre::LiveTableMetaData>& ours,
                                                 const std::string& database) {
  std::vector<rocksdb::LiveFileMetaData> theirs(ours.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    CopyTable(ours[i], database, &theirs[i]);
    theirs[i].column_family_name = ours[i].column_family_name;
    theirs[i].level = ours[i].level;
  }
  return theirs;
}

}  // namespace nacre::rocksdb_api
