#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "db/follower/follower_db.h"
#include "db/follower/follower_iterator.h"
#include "db/read/db_iterator.h"
#include "db/read/lookup_batch.h"
#include "db/read/view_reads.h"
#include "table/format/write_batch_format.h"
#include "util/exceptions.h"

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
  // Checksums are always verified here.
  const ReadOptions options;
  LookUpKeys(LookupContext{lookup_source_, *whole.Of(family), options, snapshot}, keys, values,
             statuses);
  return std::any_of(statuses, statuses + keys.size(), Suspect);
}

PointTier::Kind FollowerDB::TierFor(const TableHandle& table) const {
  const bool has_room = reading_.indexes == nullptr ||
                        reading_.indexes->HasRoomForPointIndex(table.meta().point_index.length);
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
        // One that is slow may not have been asked.
        if (client_->prompt(static_cast<NodeId>(fragment.start.node))) continue;
        return Status::Unavailable(
            fmt::format("{}; part of table {} is on a node that is slow or cannot be reached, or "
                        "was not met yet",
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
