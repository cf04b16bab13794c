#include "db/context/database_state.h"

#include <algorithm>
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
  if (next_family > 1) lineage.comparator = default_family->user_comparator()->Name();
  return lineage;
}

}  // namespace nacre
