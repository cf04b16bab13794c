#include "adapters/rocksdb/nacre_db.h"

#include <random>
#include <string_view>

#include "adapters/rocksdb/batch_filter.h"

namespace nacre::rocksdb_api {
namespace {

/// Whether the whole table lies in the range. A null end is unbounded.
bool IsIn(const nacre::LiveTableMetaData& table, const rocksdb::RangePtr& range, bool include_end,
          const rocksdb::Comparator& order) {
  if (range.start != nullptr && order.Compare(table.smallestkey, *range.start) < 0) return false;
  if (range.limit == nullptr) return true;
  const int end = order.Compare(table.largestkey, *range.limit);
  return include_end ? end <= 0 : end < 0;
}

}  // namespace

std::string NacreRocksdb::NewSessionId() {
  constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::random_device device;
  std::uniform_int_distribution<size_t> digit(0, kDigits.size() - 1);
  std::string id(20, '0');
  for (char& character : id) character = kDigits[digit(device)];
  return id;
}

void NacreRocksdb::GetAllColumnFamilyMetaData(
    std::vector<rocksdb::ColumnFamilyMetaData>* metadata) {
  metadata->clear();
  for (const nacre::ColumnFamilyMetaData& family : MetaDataOfFamilies(db_.get())) {
    metadata->push_back(ToRocksdb(family, GetName()));
  }
}

rocksdb::Status NacreRocksdb::WriteToPresent(const nacre::WriteOptions& ours,
                                             const rocksdb::WriteBatch& updates) {
  constexpr int kAttempts = 10;
  BatchFilter filter(db_.get());
  nacre::Status status;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (Status s = filter.Filter(updates); !s.ok()) return s;
    nacre::WriteBatch batch(filter.kept().Data());
    status = db_->Write(ours, &batch);
    // It may have been dropped between the two.
    if (!status.IsInvalidArgument() || !filter.LostFamily()) break;
  }
  return ToRocksdb(status);
}

rocksdb::Status NacreRocksdb::DeleteFilesInRanges(Family* family, const rocksdb::RangePtr* ranges,
                                                  size_t count, bool include_end) {
  if (family == nullptr) return NoSuchFamily();
  nacre::ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(Ours(family), &metadata);
  const rocksdb::Comparator& order = *family->GetComparator();
  for (const nacre::LevelMetaData& level : metadata.levels) {
    if (level.level == 0) continue;  // As in RocksDB.
    for (const nacre::LiveTableMetaData& table : level.files) {
      const bool within = std::any_of(ranges, ranges + count, [&](const rocksdb::RangePtr& range) {
        return IsIn(table, range, include_end, order);
      });
      if (!within) continue;
      const nacre::Slice smallest(table.smallestkey);
      const nacre::Slice largest(table.largestkey);
      nacre::WriteBatch batch;
      nacre::Status status = batch.DeleteRange(Ours(family), smallest, largest);
      if (status.ok()) status = batch.Delete(Ours(family), largest);
      if (status.ok()) status = db_->Write({}, &batch);
      if (status.ok()) status = db_->SuggestCompactRange(Ours(family), &smallest, &largest);
      if (!status.ok()) return ToRocksdb(status);
    }
  }
  return Status::OK();
}

}  // namespace nacre::rocksdb_api
