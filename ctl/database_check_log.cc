#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ctl/database_check.h"
#include "db/manifest/state_record.h"
#include "db/wal/log_reader.h"
#include "table/format/log_format.h"
#include "util/coding.h"

namespace nacre::ctl {
namespace {

/// The header and the stamp of what follows it.
constexpr size_t kBeginning = kLogHeaderBytes + sizeof(uint32_t);

}  // namespace

void DatabaseCheck::CheckSegments() {
  std::map<uint64_t, std::vector<SegmentCopy>> seen;
  // What a later segment follows. One that is not and that has no records was never used: it was
  // made ahead, and left as it was too short or one of its nodes was slow.
  std::set<uint64_t> followed;
  for (const auto& [number, segment] : view_.state.segments) {
    if (number == kStateRecordNumber) continue;
    ++health_.segments;
    for (const ExtentAddr& extent : segment.copies) {
      SegmentCopy& copy = seen[number].emplace_back();
      if (extent.start.node == kLostNode || extent.length < kBeginning) {
        copy.status = Status::Unavailable("its node is lost");
        continue;
      }
      char bytes[kBeginning];
      copy.status = reader_->Read(RangeOf(extent, 0, kBeginning), bytes);
      if (!copy.status.ok()) continue;
      LogSegmentHeader header;
      copy.header = DecodeLogHeader(Slice(bytes, kLogHeaderBytes), health_.id, number, &header);
      copy.has_records = DecodeFixed32(bytes + kLogHeaderBytes) == LogStamp(health_.id, number);
      if (copy.header.ok()) followed.insert(header.previous_number);
    }
  }
  for (const auto& [number, segment] : view_.state.segments) {
    if (number == kStateRecordNumber) continue;
    bool in_use = followed.contains(number);
    for (const SegmentCopy& copy : seen[number]) in_use = in_use || copy.has_records;
    CheckSegment(segment, seen[number], in_use);
  }
}

void DatabaseCheck::CheckSegment(const LogSegment& segment, const std::vector<SegmentCopy>& copies,
                                 bool in_use) {
  const auto& owners = view_.manifest.state.segments.at(segment.number).copies;
  int whole = 0;
  int missing = 0;
  std::string nodes;
  for (size_t i = 0; i < copies.size(); ++i) {
    if (!copies[i].status.ok()) {
      ++missing;
      nodes += (nodes.empty() ? "" : ", ") + OwnersNode(owners[i].start.node);
    } else if (in_use && !copies[i].header.ok()) {
      AddAt(Problem::kDamage, segment.copies[i].start.node,
            "its head: " + std::string(copies[i].header.message()))
          ->segment = segment.number;
    } else {
      ++whole;
    }
  }
  // The database is whole without those that are there only for readers of the log.
  if (segment.kept) return;
  // Without records nothing is lost, but an opening could not tell.
  const int spare = whole - 1;
  if (missing == 0 && whole == static_cast<int>(copies.size())) return Spare(spare);
  Finding* finding = Add(spare < 0 ? Problem::kLost : Problem::kDegraded,
                         fmt::format("{} of {} copies are left{}{}", whole, copies.size(),
                                     missing > 0 ? "; those are lost of " : "", nodes));
  finding->segment = segment.number;
  finding->spare_nodes = spare;
}

void DatabaseCheck::CheckLog() {
  std::vector<LogSegment> segments;
  for (const auto& [number, segment] : view_.state.segments) {
    if (number != kStateRecordNumber && !segment.kept) segments.push_back(segment);
  }
  if (segments.empty()) return;
  LogReadResult result;
  const auto ignore = [](SequenceNumber, uint32_t, const Slice&) { return Status::OK(); };
  const Status status = ReadLog(client_, health_.id, segments,
                                WALRecoveryMode::kTolerateCorruptedTailRecords, ignore, &result);
  health_.bytes_checked += result.bytes;
  if (!status.ok()) {
    Add(status.IsCorruption() ? Problem::kDamage : Problem::kLost,
        "the log: " + std::string(status.message()));
  }
  for (const std::string& note : result.notes) {
    if (result.healed) {
      Add(Problem::kDamage, "the log: " + note);
    } else {
      health_.remarks.push_back("the log: " + note);
    }
  }
}

}  // namespace nacre::ctl
