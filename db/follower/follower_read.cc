#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "db/follower/follower_db.h"
#include "db/follower/follower_iterator.h"
#include "db/read/db_iterator.h"
#include "db/read/point_lookup.h"
#include "db/read/view_reads.h"
#include "pool/read/point_reader.h"
#include "table/format/write_batch_format.h"
#include "util/exceptions.h"
#include "util/hash.h"

namespace nacre {
namespace {

/// Keeps its view, which has what its sequence needs.
class FollowerSnapshot final : public Snapshot {
 public:
  explicit FollowerSnapshot(std::shared_ptr<const FollowerView> view) : view_(std::move(view)) {}
  ~FollowerSnapshot() override = default;
  uint64_t GetSequenceNumber() const override { return view_->sequence; }
  const std::shared_ptr<const FollowerView>& view() const { return view_; }

 private:
  const std::shared_ptr<const FollowerView> view_;
};

const FollowerSnapshot& Ours(const Snapshot* snapshot) {
  return *static_cast<const FollowerSnapshot*>(snapshot);
}

Status Gone(std::string_view what) {
  return Status::TryAgain(
      fmt::format("the owner has used memory of tables again that {} needs", what));
}

/// The keys of one look at a view that are not settled by MemTables.
class Lookups {
 public:
  Lookups(pool::PoolClient* client, const pool::TableStore* store, const ReadView& view,
          SequenceNumber snapshot)
      : reader_(client->point_sessions()), store_(store), view_(view), snapshot_(snapshot) {}

  void Add(const Slice& key, uint64_t hash, PinnableSlice* value, Status* status) {
    Item& item = items_.emplace_back();
    item.value = value;
    item.status = status;
    item.key = key;
    item.hash = hash;
    Start(&item);
  }

  /// `tier` says of a table that is to be loaded how much of its index.
  template <typename Tier>
  void Run(const Tier& tier) {
    std::vector<Item*> active;
    for (Item& item : items_) active.push_back(&item);
    while (!active.empty()) {
      std::erase_if(active, [&](Item* item) { return !FindRead(item, tier); });
      // First those without an address: the others' bytes stay until the next call only.
      for (Item* item : active) {
        if (!item->read.from.valid()) Fetch(item);
      }
      std::vector<Item*> addressed;
      std::vector<pool::PointRead> reads;
      for (Item* item : active) {
        if (item->done || !item->read.from.valid()) continue;
        addressed.push_back(item);
        reads.push_back(item->read);
      }
      if (!reads.empty()) reader_.ReadAll(reads);
      for (size_t i = 0; i < reads.size(); ++i) Consume(addressed[i], reads[i]);
      std::erase_if(active, [](const Item* item) { return item->done; });
    }
  }

 private:
  struct Item {
    PointLookup lookup;
    pool::PointRead read;
    Slice key;
    uint64_t hash = 0;
    PinnableSlice* value = nullptr;
    Status* status = nullptr;
    bool done = false;
  };

  void Start(Item* item) {
    item->lookup.Start(view_.version.get(), store_, item->key, item->hash, snapshot_,
                       /*verify_checksums=*/true);
  }

  /// False: it has ended.
  template <typename Tier>
  bool FindRead(Item* item, const Tier& tier) {
    while (!item->lookup.Next(&item->read)) {
      if (item->lookup.outcome() != PointLookup::Outcome::kUnloaded) {
        End(item, Record());
        return false;
      }
      const TableHandle& table = *item->lookup.table();
      if (Status status = table.Load(tier(table)); !status.ok()) {
        *item->status = std::move(status);
        item->done = true;
        return false;
      }
      Start(item);
    }
    return true;
  }

  void Fetch(Item* item) {
    const auto parts = item->lookup.StartFetch(item->read, pool::PointReader::kMaxReadsAtOnce);
    if (!parts.empty()) reader_.ReadAll(parts);
    item->lookup.Fetch(parts, &item->read);
    Consume(item, item->read);
  }

  void Consume(Item* item, const pool::PointRead& read) {
    Record record;
    if (item->lookup.Consume(read, &record) != PointLookup::Outcome::kContinue) End(item, record);
  }

  void End(Item* item, const Record& record) {
    item->done = true;
    switch (item->lookup.outcome()) {
      case PointLookup::Outcome::kContinue:
        *item->status = Status::NotFound();
        return;
      case PointLookup::Outcome::kFound:
        *item->status = Status::OK();
        if (TagType(record.tag) == ValueType::kValue) {
          item->value->PinSelf(record.value);
          return;
        }
        if (TagType(record.tag) != ValueType::kMerge) {
          *item->status = Status::NotFound();
          return;
        }
        [[fallthrough]];
      case PointLookup::Outcome::kSearch:
      case PointLookup::Outcome::kUnloaded:
        *item->status = SearchView(view_, ReadOptions(), item->key, snapshot_, item->value);
        return;
      case PointLookup::Outcome::kFailed:
        *item->status = item->lookup.status();
    }
  }

  pool::PointReader reader_;
  const pool::TableStore* const store_;
  const ReadView& view_;
  const SequenceNumber snapshot_;
  std::vector<Item> items_;
};

}  // namespace

Deadline FollowerDB::ReadDeadline() const {
  return Deadline::After(pool_->clock(), options_.operation_timeout);
}

std::shared_ptr<const FollowerView> FollowerDB::CurrentView() const {
  const EpochDomain::Guard guard(&epochs_);
  const FollowerView* view = view_.load(std::memory_order_acquire);  // Pairs with InstallView.
  return view->shared_from_this();
}

Status FollowerDB::Prepare(const ReadOptions& options) {
  if (!options.linearizable) [[likely]]
    return Status::OK();
  if (mode_ == Mode::kFixed) {
    return Status::NotSupported("ReadOptions::linearizable: it was opened for reading only");
  }
  if (pool_->embedded()) {
    return Status::NotSupported("ReadOptions::linearizable: an embedded pool has no log");
  }
  return CatchUp(Goal::kAcknowledged);
}

Status FollowerDB::Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                       PinnableSlice* value) {
  Status status;
  value->Reset();
  ReadKeys(options, family, {&key, 1}, value, &status);
  return status;
}

Status FollowerDB::GetMergeOperands(const ReadOptions& options, ColumnFamilyHandle* family,
                                    const Slice& key, PinnableSlice* merge_operands,
                                    GetMergeOperandsOptions* get_merge_operands_options,
                                    int* number_of_operands) try {
  NACRE_RETURN_IF_ERROR(
      CheckOperandsCall(merge_operands, get_merge_operands_options, number_of_operands));
  Status status;
  std::vector<std::string> operands;
  ReadStatuses(options, family, {&status, 1},
               [&](const FollowerView& view, uint32_t id, SequenceNumber snapshot) {
                 status = OperandsOf(*view.Of(id), ReadOptions(), key, snapshot, &operands);
                 return Suspect(status);
               });
  NACRE_RETURN_IF_ERROR(status);
  return GiveOperands(operands, *get_merge_operands_options, merge_operands, number_of_operands);
} catch (...) {
  return StatusOfException();
}

void FollowerDB::MultiGet(const ReadOptions& options, ColumnFamilyHandle* family, size_t num_keys,
                          const Slice* keys, PinnableSlice* values, Status* statuses) {
  for (size_t i = 0; i < num_keys; ++i) values[i].Reset();
  ReadKeys(options, family, {keys, num_keys}, values, statuses);
}

Status FollowerDB::FindFamily(ColumnFamilyHandle* handle, uint32_t* id) const {
  *id = kDefaultFamily;
  if (handle == nullptr) return Status::OK();
  const auto* ours = dynamic_cast<const ColumnFamilyHandleImpl*>(handle);
  if (ours == nullptr || ours->owner() != this) {
    return Status::InvalidArgument("the handle of column family " + handle->GetName() +
                                   " is of another database than " + name_);
  }
  *id = ours->GetID();
  return Status::OK();
}

template <typename Read>
void FollowerDB::ReadStatuses(const ReadOptions& options, ColumnFamilyHandle* handle,
                              std::span<Status> statuses, const Read& read) {
  uint32_t family = kDefaultFamily;
  Status status = FindFamily(handle, &family);
  if (status.ok()) status = Prepare(options);
  if (!status.ok()) {
    std::fill(statuses.begin(), statuses.end(), status);
    return;
  }
  std::optional<Attempt> attempt;
  {
    const EpochDomain::Guard guard(&epochs_);
    const FollowerView* view = options.snapshot != nullptr
                                   ? Ours(options.snapshot).view().get()
                                   : view_.load(std::memory_order_acquire);  // See InstallView.
    if (!read(*view, family, view->sequence)) [[likely]]
      return;
    attempt.emplace(view->shared_from_this(), view->sequence, ReadDeadline());
  }
  do {
    Status why;
    if (!ReadAgain(family, options.snapshot != nullptr, &*attempt, &why)) {
      for (Status& answer : statuses) {
        if (Suspect(answer)) answer = why.ok() ? Answer(*attempt->view, family, answer) : why;
      }
      return;
    }
  } while (read(*attempt->view, family, attempt->snapshot));
}

void FollowerDB::ReadKeys(const ReadOptions& options, ColumnFamilyHandle* handle,
                          std::span<const Slice> keys, PinnableSlice* values,
                          Status* statuses) try {
  ReadStatuses(options, handle, {statuses, keys.size()},
               [&](const FollowerView& view, uint32_t family, SequenceNumber snapshot) {
                 for (size_t i = 0; i < keys.size(); ++i) values[i].Reset();
                 return LookUp(view, family, snapshot, keys, values, statuses);
               });
} catch (...) {
  std::fill_n(statuses, keys.size(), StatusOfException());
}

bool FollowerDB::LookUp(const FollowerView& whole, uint32_t family, SequenceNumber snapshot,
                        std::span<const Slice> keys, PinnableSlice* values,
                        Status* statuses) const {
  const ReadView& view = *whole.Of(family);
  // How many are in flight together.
  constexpr size_t kBatch = 64;
  bool suspect = false;
  for (size_t first = 0; first < keys.size(); first += kBatch) {
    const size_t end = std::min(first + kBatch, keys.size());
    Lookups lookups(client_, store_.get(), view, snapshot);
    for (size_t i = first; i < end; ++i) {
      const uint64_t hash = Hash64(keys[i]);
      const MemTableAnswer in_memory =
          GetFromMemTables(view, keys[i], hash, snapshot, &values[i], &statuses[i]);
      if (in_memory == MemTableAnswer::kSettled) continue;
      if (in_memory == MemTableAnswer::kSearch) {
        statuses[i] = SearchView(view, ReadOptions(), keys[i], snapshot, &values[i]);
        continue;
      }
      lookups.Add(keys[i], hash, &values[i], &statuses[i]);
    }
    lookups.Run([&](const TableHandle& table) { return TierFor(table); });
    suspect = suspect || std::any_of(statuses + first, statuses + end, Suspect);
  }
  return suspect;
}

PointTier::Kind FollowerDB::TierFor(const TableHandle& table) const {
  const bool has_room = index_memory_ == nullptr ||
                        index_memory_->HasRoomForPointIndex(table.meta().point_index.length);
  return has_room ? PointTier::Kind::kIndex : PointTier::Kind::kBloom;
}

bool FollowerDB::ReadAgain(uint32_t family, bool keep, Attempt* attempt, Status* why) {
  *why = Status::OK();
  const auto gone_on = [&] {
    // Acquire: pairs with InstallView.
    return latest_generation_.load(std::memory_order_acquire) != attempt->view->generation;
  };
  Status status;
  for (const Goal goal : {Goal::kRecent, Goal::kTables}) {
    if (!gone_on()) status = CatchUp(goal);
  }
  const uint64_t membership = client_->membership_changes();
  const bool nodes_stayed = attempt->membership == membership;
  attempt->membership = membership;
  if (CurrentView()->dropped.contains(family)) {
    *why = Gone("a column family that it has dropped");
    return false;
  }
  if (!gone_on()) {
    // The owner still has the tables, so they are damaged, or their nodes lost, or nodes are back
    // by now that had been away during the read. If the manifest could not be asked, it is unknown
    // whose bytes these are.
    *why = std::move(status);
    return why->ok() && !nodes_stayed && !GivesUp(*attempt, why);
  }
  if (mode_ == Mode::kFixed) {
    *why = Gone("the state as of opening");
    return false;
  }
  std::shared_ptr<const FollowerView> latest = CurrentView();
  if (keep && attempt->snapshot < latest->tables_through) {
    *why = Gone("the snapshot");
    return false;
  }
  if (GivesUp(*attempt, why)) return false;
  if (!keep) attempt->snapshot = latest->sequence;
  attempt->view = std::move(latest);
  counters_.reads_again.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool FollowerDB::GivesUp(const Attempt& attempt, Status* why) const {
  if (!attempt.deadline.Expired()) return false;
  *why =
      Status::TimedOut(fmt::format("database '{}': it changes faster than it can be read", name_));
  return true;
}

Status FollowerDB::Answer(const FollowerView& view, uint32_t family, const Status& failure) const {
  if (!failure.IsCorruption()) return failure;
  const Version& version = *view.Of(family)->version;
  for (int level = 0; level < version.depth(); ++level) {
    for (const auto& table : version.tables(level)) {
      for (const ExtentAddr& fragment : table->meta().placement.fragments) {
        if (client_->alive(static_cast<NodeId>(fragment.start.node))) continue;
        return Status::Unavailable(fmt::format(
            "{}; part of table {} is on a node that cannot be reached, or was not met yet",
            failure.message(), table->meta().id));
      }
    }
  }
  return failure;
}

std::unique_ptr<Iterator> FollowerDB::NewIterator(const ReadOptions& options,
                                                  ColumnFamilyHandle* handle) try {
  uint32_t family = kDefaultFamily;
  Status status = FindFamily(handle, &family);
  if (status.ok()) status = Prepare(options);
  if (!status.ok()) return NewErrorIterator(std::move(status));
  std::shared_ptr<const FollowerView> view =
      options.snapshot != nullptr ? Ours(options.snapshot).view() : CurrentView();
  const SequenceNumber snapshot = view->sequence;
  return NewFollowerIterator(this, options, family, std::move(view), snapshot);
} catch (...) {
  return NewErrorIterator(StatusOfException());
}

std::vector<Status> FollowerDB::MultiGet(const ReadOptions& options,
                                         const std::vector<ColumnFamilyHandle*>& families,
                                         const std::vector<Slice>& keys,
                                         std::vector<std::string>* values) {
  // All as of one moment, and that is now.
  if (Status status = Prepare(options); !status.ok()) {
    values->assign(keys.size(), std::string());
    return std::vector<Status>(keys.size(), status);
  }
  ReadOptions prepared = options;
  prepared.linearizable = false;
  return DB::MultiGet(prepared, families, keys, values);
}

Status FollowerDB::NewIterators(const ReadOptions& options,
                                const std::vector<ColumnFamilyHandle*>& families,
                                std::vector<std::unique_ptr<Iterator>>* iterators) {
  iterators->clear();
  NACRE_RETURN_IF_ERROR(Prepare(options));
  ReadOptions prepared = options;
  prepared.linearizable = false;
  return DB::NewIterators(prepared, families, iterators);
}

const Snapshot* FollowerDB::GetSnapshot() { return new FollowerSnapshot(CurrentView()); }

void FollowerDB::ReleaseSnapshot(const Snapshot* snapshot) {
  delete static_cast<const FollowerSnapshot*>(snapshot);
}

uint64_t FollowerDB::GetLatestSequenceNumber() const {
  const EpochDomain::Guard guard(&epochs_);
  return view_.load(std::memory_order_acquire)->sequence;  // Pairs with InstallView.
}

}  // namespace nacre
