#include "db/recovery.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "db/manifest/state_record.h"
#include "db/wal/log_encryption.h"
#include "db/wal/log_reader.h"
#include "db/wal/log_tail.h"
#include "db/write/sorted_inserts.h"
#include "db/write/update_limits.h"
#include "pool/databases.h"
#include "table/format/write_batch_format.h"
#include "util/boot_clock.h"
#include "util/log.h"
#include "util/named_point.h"
#include "util/planted_bug.h"

namespace nacre {

namespace {

/// A thread for what is done for each table costs less than it saves.
constexpr size_t kManyTables = 10'000;
/// So much of the log takes about as long to read as one more thread's connections to the nodes.
constexpr uint64_t kManyLogBytes = 8 << 20;

/// Until a database is open its process has little else to do, but a few threads are enough.
size_t OpeningThreads() {
  constexpr size_t kThreadsMax = 8;
  return std::min(Thread::HardwareConcurrency(), kThreadsMax);
}

}  // namespace

Status Recovery::PlaceExtents(const pool::DatabaseLease& lease, ManifestState* state,
                              std::vector<ExtentAddr>* copies) {
  // By instance, wherever it answers now: one that was started anew has nothing of ours.
  std::map<NodeId, NodeId> numbers;
  for (const auto& [node, instance_id] : state->nodes) {
    for (const auto& [present, slabs] : lease.slabs) {
      if (context_.client->instance_id(present) == instance_id) numbers[node] = present;
    }
  }
  state->Renumber(numbers);
  state->nodes.clear();
  for (const auto& [present, slabs] : lease.slabs) {
    state->nodes[present] = context_.client->instance_id(present);
  }
  std::erase_if(*copies,
                [&](const ExtentAddr& copy) { return !lease.slabs.contains(copy.start.node); });

  std::map<NodeId, std::vector<ExtentAddr>> live;
  // Answers how many are lost.
  const auto use = [&](const std::vector<ExtentAddr>& extents) {
    int lost = 0;
    for (const ExtentAddr& extent : extents) {
      if (extent.start.node == kLostNode) {
        ++lost;
      } else {
        live[extent.start.node].push_back(extent);
      }
    }
    return lost;
  };
  size_t degraded = 0;
  for (const auto& [id, table] : state->tables) {
    const Placement& placement = table.second.placement;
    const int lost = use(placement.fragments);
    if (lost > 0) ++degraded;
    // In the new manifest these fragments are nowhere; their nodes may only be out of reach.
    if (lost > placement.redundancy.parity) {
      return Status::Unavailable("of table " + std::to_string(id) + " " + std::to_string(lost) +
                                 " of " + std::to_string(placement.fragments.size()) +
                                 " fragments are on nodes that cannot be reached");
    }
  }
  for (const auto& [number, segment] : state->segments) {
    if (!NACRE_PLANTED_BUG("recovery.log-taken-for-free-space")) use(segment.copies);
    context_.copy_bytes.Add(segment.copies);
  }
  use(*copies);
  context_.copy_bytes.Add(*copies);
  for (const auto& [node, slabs] : lease.slabs) {
    NACRE_RETURN_IF_ERROR(context_.space.Restore(node, slabs, live[node]));
  }
  if (context_.options.home_nodes) {
    context_.space.SettleOn(context_.redundancy.Widest().fragments());
  }
  if (degraded > 0) {
    Log(context_.options.info_log, LogLevel::kWarn,
        "{}: of {} of {} tables fragments are lost with nodes that are no longer there",
        context_.name, degraded, state->tables.size());
  }
  return Status::OK();
}

Status Recovery::OpenTables(const ManifestState& state) {
  const std::shared_ptr<const ColumnFamilySet> families = parts_.state.Families();
  std::map<uint32_t, VersionEdit> edits;
  for (const auto& [id, table] : state.tables) {
    const ColumnFamily* family = families->Find(table.second.family);
    std::shared_ptr<TableHandle> handle;
    NACRE_RETURN_IF_ERROR(TableHandle::OpenUnread(table.second, family->user_comparator(),
                                                  context_.Surroundings(), &handle));
    edits[family->id()].added.push_back({static_cast<int>(table.first), std::move(handle)});
  }
  MutexLock lock(&parts_.state.mutex);
  for (const auto& [id, edit] : edits) {
    ColumnFamily* family = families->Find(id);
    parts_.state.InstallView(family, {}, Version::Apply(family->version(), edit));
  }
  return Status::OK();
}

Status Recovery::Run(const pool::DatabaseLease& lease, ManifestState state,
                     std::vector<ExtentAddr> copies) {
  NACRE_RETURN_IF_ERROR(PlaceExtents(lease, &state, &copies));
  timeline_->EndStep("space");
  NACRE_POINT("open.space-restored");
  LogReadResult log;
  bool replayed = false;
  const auto read = [&] {
    NACRE_RETURN_IF_ERROR(OpenTables(state));
    timeline_->EndStep("tables");
    NACRE_POINT("open.tables-opened");
    NACRE_RETURN_IF_ERROR(ReplayLog(state, &log, &replayed));
    if (log.end_number == 0) FindEndOfKeptLog(state, &log);
    timeline_->EndStep("replay");
    NACRE_POINT("open.log-replayed");
    return Status::OK();
  };
  // The image of a manifest with many tables takes as long to make as their handles.
  std::unique_ptr<ManifestSlots> image;
  Status readable;
  RunTogether("nacre-open", state.tables.size() < kManyTables ? 1 : 2, [&](size_t part) {
    if (part == 0) {
      readable = read();
    } else {
      image = std::make_unique<ManifestSlots>(state, /*ring_position=*/0);
    }
  });
  NACRE_RETURN_IF_ERROR(readable);
  SequenceNumber last = std::max(state.last_sequence, log.last_sequence);
  if (NACRE_PLANTED_BUG("recovery.sequences-given-again")) last = state.last_sequence;
  // After a repair tables may have later ones than either.
  for (const auto& [id, table] : state.tables) {
    last = std::max(last, table.second.largest_sequence);
  }
  if (last > WriteSequencer::kLastPossible) return Status::Corruption("absurd sequence number");
  const size_t tables = state.tables.size();
  const std::map<uint64_t, LogSegment> segments = state.segments;
  const uint64_t next_segment = state.next_segment;
  // Only now: what is on nodes that cannot be reached is nowhere in it, and they may come back.
  NACRE_RETURN_IF_ERROR(parts_.committer.Open(std::move(state), std::move(image), copies));
  timeline_->EndStep("new-manifest");

  parts_.generations.sequencer()->StartAfter(last);
  if (!context_.pool->embedded()) {
    std::vector<LogSegment> left;
    for (const auto& [number, segment] : segments) {
      if (number != kStateRecordNumber && !segment.kept) left.push_back(segment);
    }
    NACRE_RETURN_IF_ERROR(parts_.writes.SealLog(left));
    NACRE_RETURN_IF_ERROR(parts_.writes.OpenLog(next_segment, log, &parts_.committer));
    NACRE_POINT("open.log-opened");
    context_.lease =
        std::make_unique<OwnerLease>(context_.client, context_.database_id, BootClock());
    NACRE_RETURN_IF_ERROR(context_.lease->Start());
  }
  timeline_->EndStep("log");
  parts_.committer.TakeOver(segments, last);
  {
    MutexLock lock(&parts_.state.mutex);
    parts_.state.manifest_version = parts_.committer.manifest()->version();
    // What is in the last owner's log is kept there until it is in tables.
    if (replayed) parts_.generations.Switch();
    parts_.write_controller.Update();  // LoadIndexes begins with background work.
  }
  if (!replayed) parts_.committer.ReleaseLog(parts_.writes.log(), last);
  NACRE_POINT("open.replayed-scheduled");
  timeline_->EndStep("open");
  {
    MutexLock lock(&parts_.state.mutex);
    parts_.open_timeline = *timeline_;
  }
  Log(context_.options.info_log, LogLevel::kInfo,
      "opened {} in {}: {} tables, sequence {}, in {} us", context_.name, context_.pool->uri(),
      tables, last, timeline_->TotalMicros());
  return Status::OK();
}

Status Recovery::ReplayLog(const ManifestState& state, LogReadResult* result, bool* replayed) {
  std::vector<LogSegment> segments;
  for (const auto& [number, segment] : state.segments) {
    if (number != kStateRecordNumber && !segment.kept) segments.push_back(segment);
  }
  if (segments.empty()) return Status::OK();
  const uint64_t start = context_.clock->NowNanos();
  const std::shared_ptr<const ColumnFamilySet> families = parts_.state.Families();
  std::map<uint32_t, SortedInserts> inserts;
  for (const auto& [id, family] : families->by_id) {
    inserts.try_emplace(id, family->user_comparator(), segments.size());
  }
  LogDecryptor decryptor(context_.keys == nullptr ? nullptr : context_.keys->ring(),
                         context_.database_id);
  const auto replay = [&](size_t part, SequenceNumber first, uint32_t count,
                          const Slice& payload) -> Status {
    if ((count == 0 || first + count - 1 <= state.last_sequence) &&
        !NACRE_PLANTED_BUG("log.recycled-segment-read-as-new")) {
      return Status::OK();  // In tables.
    }
    // In place: the memory is this opening's, and MemTables go on to use it.
    Slice updates;
    NACRE_RETURN_IF_ERROR(
        decryptor.Decrypt(first, count, payload, const_cast<char*>(payload.data()), &updates));
    SequenceNumber sequence = first;
    uint32_t unknown = 0;
    NACRE_RETURN_IF_ERROR(ForEachEncodedUpdate(
        updates, count, [&](ValueType type, uint32_t family, const Slice& key, const Slice& value) {
          const auto found = inserts.find(family);
          if (family != kDefaultFamily &&
              NACRE_PLANTED_BUG("recovery.other-families-of-a-batch-left-out")) {
            ++sequence;
            return;
          }
          if (found != inserts.end()) [[likely]] {
            found->second.Add(part, sequence, type, key, value);
          } else if (family >= state.next_family) {
            unknown = family;
          }  // Else it was dropped.
          ++sequence;
        }));
    if (unknown == 0) return Status::OK();
    return Status::Corruption("sequence " + std::to_string(first) + " is of column family " +
                              std::to_string(unknown) + ", which there never was");
  };
  uint64_t bytes = 0;
  for (const LogSegment& segment : segments) bytes += segment.copies.front().length;
  const size_t threads = std::min<size_t>(OpeningThreads(), 1 + bytes / kManyLogBytes);
  size_t parts = 0;
  // All families' values lie in the memory of one MemTable.
  const uint16_t generation = parts_.generations.sequencer()->generation();
  MemTable* first = parts_.generations.MakeMemTable(parts_.state.default_family.get(), generation);
  NACRE_RETURN_IF_ERROR(ReadLogInParts(context_.client, context_.database_id, segments,
                                       context_.options.wal_recovery_mode, threads, first->arena(),
                                       replay, result, &parts)
                            .WithContext("log of " + context_.name));
  std::shared_ptr<const MemTable> keeper;
  {
    MutexLock lock(&parts_.state.mutex);
    keeper = parts_.state.default_family->HoldMemTable(generation);
  }
  for (auto& [id, of_family] : inserts) {
    of_family.DropFrom(parts);
    if (of_family.empty()) continue;
    MemTable* memtable = parts_.generations.MakeMemTable(families->Find(id), generation);
    if (memtable != first) memtable->KeepAlive(keeper);
    of_family.InsertInto(memtable, threads);
    memtable->NoteReplayed();
    *replayed = true;
  }
  if (result->tail_begin != 0) {
    const LogSegment& last = state.segments.at(result->end_number);
    NACRE_RETURN_IF_ERROR(CompleteLogTail(context_.client, context_.database_id, last,
                                          result->tail_begin, result->end_bytes, &result->notes)
                              .WithContext("log of " + context_.name));
  }
  for (const std::string& note : result->notes) {
    Log(context_.options.info_log, LogLevel::kWarn, "{}: log: {}", context_.name, note);
  }
  Log(context_.options.info_log, LogLevel::kInfo,
      "{}: replayed {} records, {} bytes of {} segments up to sequence {} in {} us", context_.name,
      result->records, result->bytes, segments.size(), result->last_sequence,
      (context_.clock->NowNanos() - start) / 1000);
  return Status::OK();
}

void Recovery::FindEndOfKeptLog(const ManifestState& state, LogReadResult* result) {
  const auto newest = std::find_if(state.segments.rbegin(), state.segments.rend(),
                                   [](const auto& each) { return each.second.kept; });
  if (newest == state.segments.rend()) return;
  LogReadResult kept;
  const auto ignore = [](SequenceNumber, uint32_t, const Slice&) { return Status::OK(); };
  const Status status = ReadLog(context_.client, context_.database_id, {newest->second},
                                WALRecoveryMode::kTolerateCorruptedTailRecords, ignore, &kept);
  if (!status.ok()) {
    Log(context_.options.info_log, LogLevel::kWarn,
        "{}: what is kept of the log cannot be read, archives that are behind will have a gap: {}",
        context_.name, status.ToString());
    return;
  }
  result->end_number = kept.end_number;
  result->end_bytes = kept.end_bytes;
}

}  // namespace nacre
