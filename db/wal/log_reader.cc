#include "db/wal/log_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "db/wal/log_replicas.h"
#include "db/wal/log_scan.h"
#include "pool/read/pool_reader.h"
#include "table/format/log_format.h"
#include "util/threads/thread.h"

namespace nacre {
namespace {

/// Finds out which segments the log consists of, from the headers.
class Chain {
 public:
  Chain(pool::PoolClient* client, pool::PoolReader* reader, uint64_t database_id,
        LogReadResult* result)
      : client_(client), reader_(reader), database_id_(database_id), result_(result) {}

  /// `segments` in the order of their numbers, which stay where they are.
  Status Find(const std::vector<LogSegment>& segments, std::vector<LogLink>* chain) {
    for (const LogSegment& segment : segments) {
      LogLink link;
      link.segment = &segment;
      NACRE_RETURN_IF_ERROR(
          ReadLogSegmentHead(client_, reader_, database_id_, segment, &link.head, &result_->notes));
      if (link.head.kind == LogSegmentHead::Kind::kUnused) continue;
      result_->healed = result_->healed || link.head.healed;
      used_.push_back(std::move(link));
    }
    if (used_.empty()) return Status::OK();
    for (size_t i = used_.size(); i-- > 0;) {
      const uint64_t previous = Previous(segments.front().number, &used_[i]);
      chain->push_back(std::move(used_[i]));
      // What lies between was given up before a record there was acknowledged.
      while (i > 0 && used_[i - 1].segment->number > previous) --i;
      if (previous == 0) break;
      if (i > 0 && used_[i - 1].segment->number == previous) {
        used_[i - 1].end = chain->back().head.header.previous_bytes;
        if (used_[i - 1].end > used_[i - 1].segment->copies.front().length) {
          chain->back().damage_before = "its header tells of a longer predecessor";
          used_[i - 1].end = 0;
        }
      }
    }
    std::reverse(chain->begin(), chain->end());
    return Status::OK();
  }

 private:
  /// The highest number that the predecessor can have; 0: there is none.
  uint64_t Previous(uint64_t lowest, LogLink* link) const {
    const uint64_t number = link->segment->number;
    if (link->head.kind == LogSegmentHead::Kind::kDamaged) {
      link->damage_before = "no copy has its header";
      return number - 1;
    }
    const uint64_t previous = link->head.header.previous_number;
    // Segments are dropped from the beginning of the log on.
    if (previous < lowest) return 0;
    const bool there = std::any_of(used_.begin(), used_.end(), [=](const LogLink& other) {
      return other.segment->number == previous;
    });
    if (!there) {
      link->damage_before = fmt::format("segment {} before it is missing or damaged", previous);
    }
    return previous;
  }

  pool::PoolClient* const client_;
  pool::PoolReader* const reader_;
  const uint64_t database_id_;
  LogReadResult* const result_;
  std::vector<LogLink> used_;
};

class Reading {
 public:
  Reading(pool::PoolClient* client, uint64_t database_id, WALRecoveryMode mode,
          LogReadResult* result)
      : client_(client), database_id_(database_id), mode_(mode), result_(result) {}

  /// Finds the parts.
  Status Start(const std::vector<LogSegment>& segments) {
    *result_ = LogReadResult();
    ordered_ = segments;
    std::sort(ordered_.begin(), ordered_.end(),
              [](const LogSegment& a, const LogSegment& b) { return a.number < b.number; });
    NACRE_RETURN_IF_ERROR(pool::PoolReader::Open(client_->fabric(), &reader_));
    return Chain(client_, reader_.get(), database_id_, result_).Find(ordered_, &chain_);
  }

  /// One part after the other.
  Status ReadInTurn(const LogVisitor& visit) {
    bool stop = false;
    for (size_t part = 0; part < chain_.size() && !stop; ++part) {
      LogScan scan(client_, database_id_, mode_, &chain_[part], nullptr);
      scan.Run(reader_.get(), visit);
      NACRE_RETURN_IF_ERROR(scan.Conclude(result_, &stop));
    }
    return Status::OK();
  }

  /// Several at once.
  Status ReadTogether(size_t threads, ConcurrentArena* kept, const LogPartVisitor& visit,
                      size_t* parts) {
    threads = std::clamp<size_t>(threads, 1, std::max<size_t>(chain_.size(), 1));
    std::vector<std::unique_ptr<pool::PoolReader>> readers;
    readers.push_back(std::move(reader_));
    while (readers.size() < threads) {
      NACRE_RETURN_IF_ERROR(pool::PoolReader::Open(client_->fabric(), &readers.emplace_back()));
    }
    std::vector<std::unique_ptr<LogScan>> scans;
    for (const LogLink& link : chain_) {
      scans.push_back(std::make_unique<LogScan>(client_, database_id_, mode_, &link, kept));
    }
    std::atomic<size_t> taken{0};
    RunTogether("nacre-open", threads, [&](size_t reader) {
      for (size_t i = taken++; i < scans.size(); i = taken++) {
        // The last one first: all its replicas are looked through, so it takes longest.
        const size_t part = scans.size() - 1 - i;
        scans[part]->Run(readers[reader].get(),
                         [&](SequenceNumber first, uint32_t count, const Slice& updates) {
                           return visit(part, first, count, updates);
                         });
      }
    });

    bool stop = false;
    for (*parts = 0; *parts < scans.size() && !stop; ++*parts) {
      NACRE_RETURN_IF_ERROR(scans[*parts]->Conclude(result_, &stop));
    }
    return Status::OK();
  }

 private:
  pool::PoolClient* const client_;
  const uint64_t database_id_;
  const WALRecoveryMode mode_;
  LogReadResult* const result_;
  std::unique_ptr<pool::PoolReader> reader_;
  std::vector<LogSegment> ordered_;
  std::vector<LogLink> chain_;  ///< Points into `ordered_`.
};

}  // namespace

Status ReadLog(pool::PoolClient* client, uint64_t database_id,
               const std::vector<LogSegment>& segments, WALRecoveryMode mode,
               const LogVisitor& visit, LogReadResult* result) {
  Reading reading(client, database_id, mode, result);
  NACRE_RETURN_IF_ERROR(reading.Start(segments));
  return reading.ReadInTurn(visit);
}

Status ReadLogInParts(pool::PoolClient* client, uint64_t database_id,
                      const std::vector<LogSegment>& segments, WALRecoveryMode mode, size_t threads,
                      ConcurrentArena* kept, const LogPartVisitor& visit, LogReadResult* result,
                      size_t* parts) {
  *parts = 0;
  Reading reading(client, database_id, mode, result);
  NACRE_RETURN_IF_ERROR(reading.Start(segments));
  return reading.ReadTogether(threads, kept, visit, parts);
}

}  // namespace nacre
