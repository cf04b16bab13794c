#include "db/context/database_state.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <utility>

#include "table/format/write_batch_format.h"

namespace nacre {

DatabaseState::DatabaseState(DatabaseContext* database, const Options& options,
                             const ManifestState& recovered)
    : context(database),
      default_family(std::make_shared<ColumnFamily>(kDefaultFamily, kDefaultColumnFamilyName,
                                                    options, recovered.num_levels,
                                                    options.info_log.get())),
      manifest_version(recovered.version),
      flushed(recovered.last_sequence) {}

std::shared_ptr<const ColumnFamilySet> DatabaseState::Families() const {
  const EpochDomain::Guard guard(&context->epochs);
  // Acquire: pairs with InstallFamilies.
  return family_set_.load(std::memory_order_acquire)->shared_from_this();
}

void DatabaseState::InstallFamilies(std::shared_ptr<const ColumnFamilySet> made) {
  family_set_.store(made.get(), std::memory_order_release);  // Pairs with Families.
  if (families != nullptr) unlinked_views_.push_back(std::move(families));
  families = std::move(made);
}

size_t DatabaseState::MemTablesMax() const {
  size_t most = SIZE_MAX;
  for (const auto& [id, family] : families->by_id) {
    most = std::min(most, static_cast<size_t>(family->options().max_write_buffer_number));
  }
  return most;
}

Status DatabaseState::FindOtherFamily(ColumnFamilyHandle* handle, ColumnFamily** family,
                                      Use use) const {
  assert(handle != nullptr);  // That is the default family, which FindFamily knows.
  const auto* ours = dynamic_cast<const ColumnFamilyHandleImpl*>(handle);
  if (ours == nullptr || ours->owner() != this) {
    return Status::InvalidArgument("the handle of column family " + handle->GetName() +
                                   " is of another database than " + context->name);
  }
  *family = ours->family().get();
  if (use == Use::kRead || !(*family)->dropped()) return Status::OK();
  return Status::InvalidArgument("column family " + handle->GetName() + " was dropped");
}

VersionList DatabaseState::Versions() const {
  MutexLock lock(&mutex);
  return CurrentVersions();
}

VersionList DatabaseState::CurrentVersions() const {
  VersionList versions;
  for (const auto& [id, family] : families->by_id) {
    versions.push_back(family->current_view()->version);
  }
  return versions;
}

std::shared_ptr<const ReadView> DatabaseState::HoldView(const ColumnFamily& family) const {
  MutexLock lock(&mutex);
  return family.current_view();
}

void DatabaseState::InstallView(ColumnFamily* family,
                                std::vector<std::shared_ptr<MemTable>> memtables,
                                std::shared_ptr<const Version> version) {
  std::shared_ptr<const ReadView> before =
      family->InstallView(std::move(memtables), std::move(version));
  if (before != nullptr) unlinked_views_.push_back(std::move(before));
}

void DatabaseState::Install(const FamilyEdit& change) {
  if (change.edit.added.empty() && change.edit.removed.empty()) return;
  const ReadView& view = *change.family->current_view();
  InstallView(change.family.get(), view.memtables, Version::Apply(*view.version, change.edit));
}

void DatabaseState::RetireUnlinkedViews() {
  std::vector<std::shared_ptr<const void>> views;
  {
    MutexLock lock(&mutex);
    views.swap(unlinked_views_);
  }
  if (!views.empty()) {
    context->epochs.Retire([held = std::move(views)] {});
  }
}

TableLineage DatabaseState::BeginLineage(TableLineage::Kind kind) {
  TableLineage lineage;
  lineage.kind = kind;
  lineage.epoch = context->epoch;
  lineage.job = ++last_job;
  lineage.base_version = manifest_version;
  lineage.flushed = flushed;
  lineage.num_levels = default_family->num_levels();
  lineage.slab_bytes = context->slab_bytes;
  lineage.families = RecordsOf(*families);
  lineage.next_family = next_family;
  // Tables tell it themselves. Where a state is recorded, there may be none.
  if (next_family > 1 || kind == TableLineage::Kind::kState) {
    lineage.comparator = default_family->user_comparator()->Name();
  }
  return lineage;
}

bool DatabaseState::CompactionDue() const {
  return std::any_of(families->by_id.begin(), families->by_id.end(), [](const auto& family) {
    return family.second->picker().Due(family.second->version());
  });
}

Status DatabaseState::CompactionFailure() const {
  if (!work.CompactionFails()) return Status::OK();
  return work.compactions_running > 0 || CompactionDue() ? work.compaction_error : Status::OK();
}

void DatabaseState::BackOff(Work what, int failures, uint64_t room) {
  constexpr auto kFirst = std::chrono::milliseconds(20);
  constexpr auto kLast = std::chrono::milliseconds(1000);
  const auto wait =
      std::min<std::chrono::nanoseconds>(kFirst * (1 << std::min(failures, 6)), kLast);
  const Deadline deadline = Deadline::After(context->clock, wait);
  const size_t generations = work.ended_generations.size();
  const auto wanted_elsewhere = [&]() REQUIRES(mutex) {
    return what == Work::kFlush
               ? work.flush_waiters > 0 || work.ended_generations.size() > generations
               : work.compactions_held > 0;
  };
  while (!deadline.Expired() && !closing.load(std::memory_order_relaxed) &&
         work.room_made == room && work.pauses == 0 && !wanted_elsewhere()) {
    changed.WaitFor(deadline.Remaining());
  }
}

void DatabaseState::MadeRoom() {
  ++work.room_made;
  work.compactions_stuck = 0;
  changed.SignalAll();
}

Status DatabaseState::PauseWork() {
  MutexLock lock(&mutex);
  if (closing.load(std::memory_order_relaxed)) return Status::ShutdownInProgress();
  ++work.pauses;
  changed.SignalAll();
  while (work.flush_running || work.compactions_running > 0 || work.manual_compactions > 0) {
    changed.Wait();
  }
  return Status::OK();
}

Status DatabaseState::ContinueWork() {
  MutexLock lock(&mutex);
  if (work.pauses == 0) {
    return Status::InvalidArgument("ContinueBackgroundWork: it is not paused");
  }
  if (--work.pauses > 0) return Status::OK();
  MaybeSchedule();
  changed.SignalAll();
  return Status::OK();
}

}  // namespace nacre
