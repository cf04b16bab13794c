#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "db/database_parts.h"
#include "db/family/hidden_family.h"
#include "db/follower/log_updates.h"
#include "db/owner_controls.h"
#include "db/read/view_reads.h"
#include "db/version/table_metadata.h"
#include "pool/read/point_reader.h"
#include "util/exceptions.h"

namespace nacre {

namespace {

/// Counts what is in `range`: one by one where there is little, else by how many of the cuts into
/// equal parts lie in it.
void AddStats(const MemTable& memtable, const InternalKeyComparator& comparator, const Range& range,
              uint64_t* count, uint64_t* size) {
  constexpr uint64_t kFew = 4096;
  constexpr size_t kParts = 64;
  const uint64_t entries = memtable.entries();
  if (entries == 0) return;
  const auto inside = [&](const Slice& key) {
    return comparator.CompareUserKeys(key, range.start) >= 0 &&
           comparator.CompareUserKeys(key, range.limit) < 0;
  };
  uint64_t found = 0;
  if (entries <= kFew) {
    std::string start;
    AppendInternalKey(&start, range.start, PackTag(kMaxSequenceNumber, kValueTypeForSeek));
    const std::unique_ptr<InternalIterator> iterator = memtable.NewIterator();
    for (iterator->Seek(start); iterator->Valid() && inside(iterator->user_key());
         iterator->Next()) {
      ++found;
    }
  } else {
    const std::vector<std::string> cuts = memtable.Divide(kParts);
    uint64_t cuts_inside = 0;
    for (const std::string& cut : cuts) cuts_inside += inside(cut) ? 1 : 0;
    found = entries * cuts_inside / (cuts.size() + 1);
  }
  *count += found;
  *size += memtable.data_bytes() * found / entries;
}

}  // namespace

Status OwnerControls::GetApproximateSizes(ColumnFamilyHandle* handle, const Range* ranges, int n,
                                          uint64_t* sizes) {
  ColumnFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(parts_->state.FindFamily(handle, &family));
  return ApproximateSizes(*parts_->state.HoldView(*family)->version, ranges, n, sizes);
}

void OwnerControls::GetApproximateMemTableStats(ColumnFamilyHandle* handle, const Range& range,
                                                uint64_t* count, uint64_t* size) {
  *count = *size = 0;
  ColumnFamily* family = nullptr;
  if (!parts_->state.FindFamily(handle, &family).ok()) return;
  const std::shared_ptr<const ReadView> view = parts_->state.HoldView(*family);
  for (const auto& memtable : view->memtables) {
    AddStats(*memtable, family->comparator(), range, count, size);
  }
}

void OwnerControls::GetLiveTablesMetaData(std::vector<LiveTableMetaData>* tables) {
  tables->clear();
  // All as of one moment, of which the tables are told without the mutex.
  std::vector<std::pair<std::string, std::shared_ptr<const Version>>> families;
  {
    MutexLock lock(&parts_->state.mutex);
    for (const auto& [id, family] : parts_->state.families->by_id) {
      if (family->name() == kPreparedFamilyName) continue;
      families.emplace_back(family->name(), family->current_view()->version);
    }
  }
  for (const auto& [name, version] : families) {
    AppendTables(MetaDataOf(name, *version, *parts_->context.client), tables);
  }
}

void OwnerControls::GetColumnFamilyMetaData(ColumnFamilyHandle* handle,
                                            ColumnFamilyMetaData* metadata) {
  *metadata = ColumnFamilyMetaData();
  ColumnFamily* family = nullptr;
  if (!parts_->state.FindFamily(handle, &family).ok()) return;
  *metadata = MetaDataOf(family->name(), *parts_->state.HoldView(*family)->version,
                         *parts_->context.client);
}

int OwnerControls::NumberLevels(ColumnFamilyHandle* handle) {
  ColumnFamily* family = nullptr;
  if (!parts_->state.FindFamily(handle, &family).ok()) return 0;
  return family->options().num_levels;
}

Status OwnerControls::GetUpdatesSince(uint64_t sequence,
                                      std::unique_ptr<TransactionLogIterator>* updates) {
  const DatabaseContext& context = parts_->context;
  return NewLogUpdates(context.pool, context.keys, context.name, sequence, updates);
}

Status OwnerControls::WaitForArchive(uint64_t sequence, std::chrono::milliseconds timeout) {
  DatabaseContext& context = parts_->context;
  if (context.pool->embedded()) {
    return Status::NotSupported("WaitForArchive: there is no log in an embedded pool");
  }
  // An archive tells how far it is after each time it has written something.
  constexpr std::chrono::milliseconds kAgain{5};
  const Deadline deadline = Deadline::After(context.clock, timeout);
  for (;;) {
    NACRE_RETURN_IF_ERROR(context.CheckLease());
    const Status asked = context.log_readers.Ask(context.client, context.database_id);
    const SequenceNumber archived = context.log_readers.Restorable();
    if (archived >= sequence) return Status::OK();
    if (deadline.Expired()) {
      NACRE_RETURN_IF_ERROR(asked);
      if (context.log_readers.List().empty()) {
        return Status::Unavailable("database " + context.name +
                                   ": no archive that follows it has been heard of");
      }
      return Status::TimedOut("database " + context.name + ": archived up to " +
                              std::to_string(archived) + ", not yet up to " +
                              std::to_string(sequence));
    }
    context.clock->SleepFor(std::min<std::chrono::nanoseconds>(kAgain, deadline.Remaining()));
  }
}

}  // namespace nacre
