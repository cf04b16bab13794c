#include "sqlite/query/known_statistics.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "sqlite/database.h"
#include "util/coding.h"

namespace nacre::sqlite {
namespace {

/// Plans do not change for less.
bool IsWorthWriting(int64_t rows, int64_t written) {
  return std::llabs(rows - written) > written / 8 + 64;
}

}  // namespace

Status KnownStatistics::Read(uint32_t space, int64_t* rows) const {
  *rows = 0;
  std::string value;
  const std::string key = CatalogueKey('s', space);
  const Status status = db_->Get({}, catalogue_->handle(), catalogue_->KeyIn(key), &value);
  if (!status.ok()) return status.IsNotFound() ? Status::OK() : status;
  Slice input = value;
  uint64_t found = 0;
  if (GetVarint64(&input, &found)) *rows = static_cast<int64_t>(found);
  return Status::OK();
}

Status KnownStatistics::Put(TableStatistics* statistics, int64_t rows, WriteBatch* batch) const {
  std::string value;
  PutVarint64(&value, rows > 0 ? static_cast<uint64_t>(rows) : 0);
  const std::string key = CatalogueKey('s', statistics->space);
  return batch->Put(catalogue_->handle(), catalogue_->KeyIn(key), value);
}

std::shared_ptr<TableStatistics> KnownStatistics::Of(uint32_t space) {
  {
    MutexLock lock(&mutex_);
    const auto found = statistics_.find(space);
    if (found != statistics_.end()) return found->second;
  }
  int64_t rows = 0;
  Read(space, &rows).IgnoreError();  // Plans are worse then.
  MutexLock lock(&mutex_);
  std::shared_ptr<TableStatistics>& known = statistics_[space];
  if (known == nullptr) known = std::make_shared<TableStatistics>(space, rows);
  return known;
}

void KnownStatistics::Erase(uint32_t space) {
  MutexLock lock(&mutex_);
  statistics_.erase(space);
}

Status KnownStatistics::AddIfWorth(TableStatistics* statistics, int64_t delta,
                                   WriteBatch* batch) const {
  const int64_t rows = statistics->rows.load(std::memory_order_relaxed) + delta;
  if (!IsWorthWriting(rows, statistics->written_rows.load(std::memory_order_relaxed))) {
    return Status::OK();
  }
  NACRE_RETURN_IF_ERROR(Put(statistics, rows, batch));
  statistics->written_rows.store(rows, std::memory_order_relaxed);
  return Status::OK();
}

Status KnownStatistics::AddErasure(uint32_t space, WriteBatch* batch) const {
  const std::string key = CatalogueKey('s', space);
  return batch->Delete(catalogue_->handle(), catalogue_->KeyIn(key));
}

Status KnownStatistics::AddAll(WriteBatch* batch) {
  MutexLock lock(&mutex_);
  for (const auto& [space, statistics] : statistics_) {
    const int64_t rows = statistics->rows.load(std::memory_order_relaxed);
    if (rows == statistics->written_rows.load(std::memory_order_relaxed)) continue;
    NACRE_RETURN_IF_ERROR(Put(statistics.get(), rows, batch));
  }
  return Status::OK();
}

Status KnownStatistics::WriteShared(TableStatistics* statistics, bool always,
                                    const WriteOptions& options) const {
  const int64_t rows = statistics->rows.load(std::memory_order_relaxed);
  const int64_t written = statistics->written_rows.load(std::memory_order_relaxed);
  if (rows == written || !(always || IsWorthWriting(rows, written))) return Status::OK();
  int64_t shared = 0;
  NACRE_RETURN_IF_ERROR(Read(statistics->space, &shared));
  // Two processes at once may lose what one of them has counted.
  shared += rows - written;
  WriteBatch batch;
  NACRE_RETURN_IF_ERROR(Put(statistics, shared, &batch));
  NACRE_RETURN_IF_ERROR(db_->Write(options, &batch));
  statistics->written_rows.store(shared, std::memory_order_relaxed);
  statistics->rows.fetch_add(shared - rows, std::memory_order_relaxed);
  return Status::OK();
}

Status KnownStatistics::WriteAllShared(const WriteOptions& options) {
  std::vector<std::shared_ptr<TableStatistics>> all;
  {
    MutexLock lock(&mutex_);
    for (const auto& [space, statistics] : statistics_) all.push_back(statistics);
  }
  for (const auto& statistics : all) {
    NACRE_RETURN_IF_ERROR(WriteShared(statistics.get(), /*always=*/true, options));
  }
  return Status::OK();
}

}  // namespace nacre::sqlite
