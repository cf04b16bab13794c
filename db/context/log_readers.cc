#include "db/context/log_readers.h"

#include <algorithm>

#include "pool/reports.h"
#include "util/planted_bug.h"

namespace nacre {

void LogReaders::Heard(const std::vector<pool::LogReader>& readers) {
  const uint64_t now = clock_->NowNanos();
  MutexLock lock(&mutex_);
  for (const pool::LogReader& each : readers) {
    Reader& reader = readers_[each.reader];
    reader.sequence = std::max(reader.sequence, each.sequence);
    reader.restorable = std::max(reader.restorable, each.restorable);
    reader.heard_nanos = std::max(reader.heard_nanos, now - std::min(now, each.age_nanos));
  }
}

void LogReaders::HeardAll() {
  const uint64_t now = clock_->NowNanos();
  MutexLock lock(&mutex_);
  complete_ = true;
  std::erase_if(readers_, [&](const auto& each) {
    return now - each.second.heard_nanos > pool::kLogReaderForgottenNanos;
  });
}

Status LogReaders::Ask(pool::PoolClient* client, uint64_t database_id) {
  std::vector<pool::LogReader> readers;
  NACRE_RETURN_IF_ERROR(pool::AcknowledgeLog(client, pool::LiveNodes(*client), database_id,
                                             /*reader=*/0, /*sequence=*/0, /*restorable=*/false,
                                             &readers));
  Heard(readers);
  HeardAll();
  return Status::OK();
}

SequenceNumber LogReaders::Needed() const {
  MutexLock lock(&mutex_);
  if (!complete_ && !NACRE_PLANTED_BUG("archive.log-not-kept-by-a-new-owner")) return 0;
  SequenceNumber needed = kMaxSequenceNumber;
  for (const auto& [number, reader] : readers_) needed = std::min(needed, reader.sequence);
  return needed;
}

SequenceNumber LogReaders::Restorable() const {
  MutexLock lock(&mutex_);
  SequenceNumber restorable = 0;
  for (const auto& [number, reader] : readers_) {
    restorable = std::max(restorable, reader.restorable);
  }
  return restorable;
}

std::vector<pool::LogReader> LogReaders::List() const {
  const uint64_t now = clock_->NowNanos();
  MutexLock lock(&mutex_);
  std::vector<pool::LogReader> list;
  for (const auto& [number, reader] : readers_) {
    list.push_back({.reader = number,
                    .sequence = reader.sequence,
                    .restorable = reader.restorable,
                    .age_nanos = now - reader.heard_nanos});
  }
  return list;
}

}  // namespace nacre
