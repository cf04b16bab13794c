#include "db/checkpoint/batch_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "db/checkpoint/table_jobs.h"
#include "db/db_impl.h"
#include "db/write/update_check.h"
#include "nacre/checkpoint.h"
#include "table/format/write_batch_format.h"
#include "util/coding.h"
#include "util/exceptions.h"
#include "util/hash.h"
#include "util/named_point.h"
#include "util/threads/thread.h"

namespace nacre {
namespace {

/// Below this a thread costs more than it saves.
constexpr size_t kBytesPerThread = 16 << 10;
/// How far ahead of its insertion an update's place in the index is asked for. A power of two.
constexpr size_t kInsertsAhead = 8;

SequenceNumber SequenceOf(const Slice& batch) { return DecodeFixed64(batch.data()); }
uint32_t CountOf(const Slice& batch) { return DecodeFixed32(batch.data() + sizeof(uint64_t)); }

/// Divides batches among threads: where each share begins, and the end. Shares have about as many
/// bytes, and none is empty.
std::vector<size_t> ShareOut(std::span<const Slice> batches, size_t bytes, size_t shares) {
  std::vector<size_t> begins = {0};
  size_t before = 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    if (i > begins.back() && before >= bytes * begins.size() / shares) begins.push_back(i);
    before += batches[i].size();
  }
  begins.push_back(batches.size());
  return begins;
}

}  // namespace

size_t BatchLoader::GroupBytes() const {
  constexpr size_t kMost = 8 << 20;
  constexpr size_t kPartsOfMemTable = 4;
  size_t buffer = SIZE_MAX;
  for (const auto& [id, family] : parts_.state.Families()->by_id) {
    buffer = std::min(buffer, family->options().write_buffer_size);
  }
  return std::min(kMost, buffer / kPartsOfMemTable);
}

Status BatchLoader::Load(std::span<const Slice> batches) {
  const size_t group_bytes = GroupBytes();
  SequenceNumber next = parts_.generations.sequencer()->LastPublished() + 1;
  size_t bytes = 0;
  size_t begin = 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    const Slice& batch = batches[i];
    if (batch.size() < kWriteBatchHeader || CountOf(batch) == 0) {
      return Status::Corruption(
          fmt::format("the batch behind sequence {} has {} bytes and no "
                      "update",
                      next - 1, batch.size()));
    }
    if (SequenceOf(batch) != next) {
      return Status::InvalidArgument(
          fmt::format("sequence {} follows {}", SequenceOf(batch), next - 1));
    }
    next += CountOf(batch);
    bytes += batch.size();
    if (bytes < group_bytes && i + 1 < batches.size()) continue;
    NACRE_RETURN_IF_ERROR(LoadGroup(batches.subspan(begin, i + 1 - begin), bytes));
    bytes = 0;
    begin = i + 1;
  }
  return Status::OK();
}

Status BatchLoader::Parse(std::span<const Slice> batches, const ColumnFamilySet& families,
                          Updates* updates) const {
  for (const Slice& batch : batches) {
    SequenceNumber sequence = SequenceOf(batch);
    Status refused;
    uint32_t last_id = kDefaultFamily;
    ColumnFamily* family = parts_.state.default_family.get();
    const Status parsed = ForEachUpdate(
        batch, [&](ValueType type, uint32_t id, const Slice& key, const Slice& value) {
          if (id != last_id) {
            family = families.Find(id);
            last_id = id;
          }
          if (family == nullptr) {
            if (refused.ok()) {
              refused =
                  Status::InvalidArgument(fmt::format("it is of column family {}, which is "
                                                      "not among those of the checkpoint",
                                                      id));
            }
            return;
          }
          if (refused.ok()) refused = CheckUpdateOf(family->options(), type, key, value);
          updates->push_back({family, sequence++, Hash64(key), key, value, type});
        });
    NACRE_RETURN_IF_ERROR(parsed.WithContext(fmt::format("sequence {}", SequenceOf(batch))));
    NACRE_RETURN_IF_ERROR(refused.WithContext(fmt::format("sequence {}", SequenceOf(batch))));
  }
  return Status::OK();
}

void BatchLoader::Insert(const WriteSequencer::Ticket& ticket, const Updates& updates) {
  const bool note = parts_.writes.log() != nullptr;
  ColumnFamily* family = nullptr;
  MemTable* memtable = nullptr;
  bool new_chunk = false;  // What is taken is looked at once all have ended.
  for (size_t i = 0; i < updates.size(); ++i) {
    const Update& update = updates[i];
    if (update.family != family) {
      family = update.family;
      memtable = parts_.generations.MemTableOf(family, ticket);
      if (note) memtable->NoteUnlogged();
    }
    // It may be another family's, whose place then is looked up without help.
    if (i + kInsertsAhead < updates.size()) memtable->Prefetch(updates[i + kInsertsAhead].hash);
    memtable->Add(update.sequence, update.type, update.key, update.hash, update.value, &new_chunk);
  }
}

WrittenMemory BatchLoader::MemoryOf(const ColumnFamilySet& families,
                                    const WriteSequencer::Ticket& ticket) const {
  WrittenMemory memory = WrittenMemory::kEnough;
  for (const auto& [id, family] : families.by_id) {
    const MemTable* const memtable = family->FindMemTable(ticket.generation);
    if (memtable == nullptr) continue;
    memory = std::max(memory, MemTableGenerations::MemoryOf(*family, *memtable));
  }
  return memory;
}

Status BatchLoader::LoadGroup(std::span<const Slice> batches, size_t bytes) {
  const std::shared_ptr<const ColumnFamilySet> families = parts_.state.Families();
  const size_t threads = std::clamp<size_t>(bytes / kBytesPerThread, 1, threads_);
  const std::vector<size_t> begins = ShareOut(batches, bytes, threads);
  const size_t shares = begins.size() - 1;
  std::vector<Updates> updates(shares);
  std::vector<Status> parsed(shares);
  // What is wrong with the bytes is found before any sequence number is taken.
  const Status ran = CatchAll([&] {
    RunTogether("nacre-load", shares, [&](size_t i) {
      parsed[i] =
          Parse(batches.subspan(begins[i], begins[i + 1] - begins[i]), *families, &updates[i]);
    });
    return Status::OK();
  });
  NACRE_RETURN_IF_ERROR(ran);
  for (const Status& status : parsed) NACRE_RETURN_IF_ERROR(status);
  NACRE_RETURN_IF_ERROR(parts_.write_controller.Admit(WriteOptions(), bytes, /*deletes=*/false));

  WriteSequencer* const sequencer = parts_.generations.sequencer();
  const SequenceNumber first = SequenceOf(batches.front());
  const SequenceNumber end = SequenceOf(batches.back()) + CountOf(batches.back());
  const WriteSequencer::Ticket ticket = sequencer->Begin(end - first);
  // An unfinished ticket is never published: flushes fail, and so does the restore.
  const Status inserted = CatchAll([&]() -> Status {
    if (!WriteSequencer::HasNumbers(ticket)) {
      return Status::Aborted("the database has given out all of its sequence numbers");
    }
    if (ticket.first != first) {
      return Status::InvalidArgument(
          fmt::format("sequence {} was taken by another write while batches were loaded", first));
    }
    RunTogether("nacre-load", shares, [&](size_t i) { Insert(ticket, updates[i]); });
    return Status::OK();
  });
  if (!inserted.ok()) {
    parts_.write_controller.StopFor(inserted);
    return inserted;
  }
  const WrittenMemory memory = MemoryOf(*families, ticket);
  NACRE_POINT("restore.batches-inserted");
  NACRE_RETURN_IF_ERROR(sequencer->Finish(ticket, parts_.writes.why_stuck()));
  NACRE_RETURN_IF_ERROR(sequencer->AwaitPublished(end, parts_.writes.why_stuck()));
  if (memory == WrittenMemory::kEnough) return Status::OK();
  return CatchAll([&] {
    parts_.generations.MakeRoom(memory, ticket.generation, /*waits=*/true);
    return Status::OK();
  });
}

Status LoadBatches(DB* db, std::span<const Slice> batches, int threads) {
  auto* const restored = dynamic_cast<DBImpl*>(db);
  if (restored == nullptr || !restored->parts()->restoring) {
    return Status::NotSupported("LoadBatches: the database is not one that is being restored");
  }
  int count = threads;
  NACRE_RETURN_IF_ERROR(ChooseRestoreThreads(&count));
  return CatchAll(
      [&] { return BatchLoader(restored->parts(), static_cast<size_t>(count)).Load(batches); });
}

}  // namespace nacre
