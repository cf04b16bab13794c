#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "db/db_impl.h"
#include "db/family/family_check.h"
#include "db/family/hidden_family.h"
#include "db/manifest/manifest_follower.h"
#include "db/options/options_check.h"
#include "db/options/pool_of_options.h"
#include "table/format/write_batch_format.h"
#include "util/exceptions.h"
#include "util/log.h"
#include "util/named_point.h"
#include "util/planted_bug.h"

namespace nacre {

Status DB::ListColumnFamilies(const DBOptions& options, const std::string& name,
                              std::vector<std::string>* families) {
  families->clear();
  std::shared_ptr<pool::PoolImpl> pool;
  NACRE_RETURN_IF_ERROR(OpenPoolToRead(options, &pool));
  ManifestFollower manifest(pool->client(), name);
  NACRE_RETURN_IF_ERROR(manifest.Open().WithContext("database " + name));
  families->push_back(kDefaultColumnFamilyName);
  for (const auto& [id, family] : manifest.state().families) {
    if (family.name != kPreparedFamilyName) families->push_back(family.name);
  }
  return Status::OK();
}

namespace {

/// More than applications make; ids stay below what a varint32 holds.
constexpr uint32_t kMostFamilies = uint32_t{1} << 31;

}  // namespace

std::shared_ptr<ColumnFamily> DBImpl::NewFamily(uint32_t id, const std::string& name,
                                                const ColumnFamilyOptions& options,
                                                uint32_t num_levels) {
  auto family = std::make_shared<ColumnFamily>(id, name, options, num_levels,
                                               parts_.context.options.info_log.get());
  parts_.state.InstallView(family.get(), {},
                           std::make_shared<Version>(&family->comparator(), options.num_levels));
  return family;
}

void DBImpl::MakeFamilies(const ManifestState& state,
                          const std::vector<ColumnFamilyDescriptor>& descriptors) {
  MutexLock lock(&parts_.state.mutex);
  auto families = std::make_shared<ColumnFamilySet>();
  families->by_id[kDefaultFamily] = parts_.state.default_family;
  parts_.state.InstallView(
      parts_.state.default_family.get(), {},
      std::make_shared<Version>(&parts_.state.default_family->comparator(),
                                parts_.state.default_family->options().num_levels));
  for (const auto& [id, record] : state.families) {
    const ColumnFamilyDescriptor* named = FindDescriptor(descriptors, record.name);
    families->by_id[id] = NewFamily(
        id, record.name,
        named != nullptr
            ? named->options
            : HiddenFamilyOptions(parts_.state.default_family->options(), record.num_levels),
        record.num_levels);
  }
  parts_.state.next_family = state.next_family;
  parts_.state.InstallFamilies(std::move(families));
}

Status DBImpl::MakeMissingFamilies(const std::vector<ColumnFamilyDescriptor>& descriptors) {
  std::vector<ColumnFamilyDescriptor> missing;
  for (const ColumnFamilyDescriptor& descriptor : descriptors) {
    if (parts_.state.Families()->Find(descriptor.name) == nullptr) missing.push_back(descriptor);
  }
  std::vector<ColumnFamilyHandle*> handles;
  NACRE_RETURN_IF_ERROR(CreateColumnFamilies(missing, &handles));
  for (ColumnFamilyHandle* handle : handles) delete handle;
  return Status::OK();
}

void DBImpl::MakeHandles(const std::vector<ColumnFamilyDescriptor>& descriptors,
                         std::vector<ColumnFamilyHandle*>* handles) {
  const std::shared_ptr<const ColumnFamilySet> families = parts_.state.Families();
  for (const ColumnFamilyDescriptor& descriptor : descriptors) {
    const uint32_t id = families->Find(descriptor.name)->id();
    handles->push_back(parts_.state.NewHandle(families->by_id.at(id)).release());
  }
}

Status DBImpl::CheckNewFamilies(std::vector<ColumnFamilyDescriptor>* descriptors) const {
  std::vector<std::string> notes;
  for (ColumnFamilyDescriptor& descriptor : *descriptors) {
    descriptor.options = SanitizeFamilyOptions(descriptor.options, descriptor.name, &notes);
  }
  LogNotes(parts_.context.options.info_log.get(), parts_.context.name, notes);
  std::set<std::string_view> names;
  for (const auto& [name, options] : *descriptors) {
    NACRE_RETURN_IF_ERROR(CheckFamilyOptions(options, name));
    if (!names.insert(name).second) {
      return Status::InvalidArgument("Column family is named twice: " + name);
    }
  }
  return Status::OK();
}

Status DBImpl::TakeFamilyIds(size_t count, uint32_t* first) {
  MutexLock lock(&parts_.state.mutex);
  if (parts_.state.closing.load(std::memory_order_relaxed)) return Status::ShutdownInProgress();
  if (count > kMostFamilies - parts_.state.next_family) {
    return Status::InvalidArgument("there were too many column families");
  }
  // No other families get these ids, whether or not they become durable.
  *first = parts_.state.next_family;
  parts_.state.next_family += static_cast<uint32_t>(count);
  return Status::OK();
}

std::vector<std::shared_ptr<ColumnFamily>> DBImpl::InstallNewFamilies(
    const ManifestEdit& edit, const std::vector<ColumnFamilyDescriptor>& descriptors) {
  std::vector<std::shared_ptr<ColumnFamily>> made;
  MutexLock lock(&parts_.state.mutex);
  parts_.state.manifest_version = edit.version;
  auto families = std::make_shared<ColumnFamilySet>();
  families->by_id = parts_.state.families->by_id;
  for (const auto& [id, record] : edit.families_added) {
    const ColumnFamilyOptions& options = descriptors[made.size()].options;
    made.push_back(NewFamily(id, record.name, options, record.num_levels));
    families->by_id[id] = made.back();
  }
  parts_.state.InstallFamilies(std::move(families));
  return made;
}

Status DBImpl::CreateColumnFamilies(const std::vector<ColumnFamilyDescriptor>& given,
                                    std::vector<ColumnFamilyHandle*>* handles) try {
  handles->clear();
  std::vector<ColumnFamilyDescriptor> descriptors = given;
  NACRE_RETURN_IF_ERROR(CheckNewFamilies(&descriptors));
  if (descriptors.empty()) return Status::OK();
  MutexLock commit(&parts_.committer.mutex);
  const std::shared_ptr<const ColumnFamilySet> there = parts_.state.Families();
  for (const ColumnFamilyDescriptor& descriptor : descriptors) {
    if (there->Find(descriptor.name) == nullptr) continue;
    return Status::InvalidArgument("Column family already exists: " + descriptor.name);
  }
  uint32_t id = 0;
  NACRE_RETURN_IF_ERROR(TakeFamilyIds(descriptors.size(), &id));
  ManifestEdit edit;
  for (const auto& [name, options] : descriptors) {
    edit.families_added[id++] = {.name = name,
                                 .comparator = options.comparator->Name(),
                                 .num_levels = static_cast<uint32_t>(options.num_levels)};
  }
  NACRE_RETURN_IF_ERROR(parts_.committer.CommitEdit(&edit));
  NACRE_POINT("family.created");
  const std::vector<std::shared_ptr<ColumnFamily>> made = InstallNewFamilies(edit, descriptors);
  // A manifest that is made anew from tables has the families before they have any.
  parts_.committer.RecordStateLocked();
  parts_.state.RetireUnlinkedViews();
  for (const std::shared_ptr<ColumnFamily>& family : made) {
    handles->push_back(parts_.state.NewHandle(family).release());
    Log(parts_.context.options.info_log, LogLevel::kInfo, "{}: made column family {} with id {}",
        parts_.context.name, family->name(), family->id());
  }
  return Status::OK();
} catch (...) {
  return StatusOfException();
}

Status DBImpl::FindFamiliesToDrop(const std::vector<ColumnFamilyHandle*>& handles,
                                  std::vector<std::shared_ptr<ColumnFamily>>* families) const {
  families->clear();
  for (ColumnFamilyHandle* handle : handles) {
    ColumnFamily* family = nullptr;
    NACRE_RETURN_IF_ERROR(parts_.state.FindFamily(handle, &family, DatabaseState::Use::kWrite));
    if (family == parts_.state.default_family.get()) {
      return Status::InvalidArgument("Can't drop default column family");
    }
    std::shared_ptr<ColumnFamily> found = family->shared_from_this();
    if (std::find(families->begin(), families->end(), found) != families->end()) {
      return Status::InvalidArgument("Column family is named twice: " + family->name());
    }
    families->push_back(std::move(found));
  }
  return Status::OK();
}

void DBImpl::UninstallFamilies(const ManifestEdit& edit,
                               const std::vector<std::shared_ptr<ColumnFamily>>& dropped) {
  MutexLock lock(&parts_.state.mutex);
  parts_.state.manifest_version = edit.version;
  auto families = std::make_shared<ColumnFamilySet>();
  families->by_id = parts_.state.families->by_id;
  for (const std::shared_ptr<ColumnFamily>& family : dropped) {
    families->by_id.erase(family->id());
    family->MarkDropped();
    parts_.generations.NoteDropped(*family);
  }
  parts_.state.InstallFamilies(std::move(families));
  parts_.write_controller.Update();
  parts_.state.MaybeSchedule();
  parts_.state.changed.SignalAll();
}

Status DBImpl::DropColumnFamilies(const std::vector<ColumnFamilyHandle*>& handles) try {
  MutexLock commit(&parts_.committer.mutex);
  std::vector<std::shared_ptr<ColumnFamily>> families;
  NACRE_RETURN_IF_ERROR(FindFamiliesToDrop(handles, &families));
  if (families.empty()) return Status::OK();
  VersionList versions;
  {
    MutexLock lock(&parts_.state.mutex);
    if (parts_.state.closing.load(std::memory_order_relaxed)) return Status::ShutdownInProgress();
    for (const auto& family : families) versions.push_back(family->current_view()->version);
  }
  TableList tables;
  ForEachTable(versions, [&](const auto& table, int /*level*/) { tables.push_back(table); });
  ManifestEdit edit;
  for (const auto& family : families) edit.families_dropped.push_back(family->id());
  for (const auto& table : tables) edit.removed.push_back(table->id());
  NACRE_RETURN_IF_ERROR(parts_.committer.CommitEdit(&edit));
  NACRE_POINT("family.dropped");
  UninstallFamilies(edit, families);
  // Before their tables are free.
  parts_.committer.RecordStateLocked();
  // These are freed with their last readers: handles, iterators, compactions.
  for (const auto& table : tables) {
    if (!NACRE_PLANTED_BUG("family.space-kept-when-it-is-dropped")) table->MarkDropped();
  }
  parts_.context.events.TablesDeleted(tables, /*job=*/0);
  parts_.state.RetireUnlinkedViews();
  for (const auto& family : families) {
    Log(parts_.context.options.info_log, LogLevel::kInfo, "{}: dropped column family {}",
        parts_.context.name, family->name());
  }
  return Status::OK();
} catch (...) {
  return StatusOfException();
}

Status DBImpl::DestroyColumnFamilyHandle(ColumnFamilyHandle* handle) {
  if (handle != nullptr && handle != default_handle_.get())
    parts_.context.events.HandleDeleted(handle);
  return DB::DestroyColumnFamilyHandle(handle);
}

}  // namespace nacre
