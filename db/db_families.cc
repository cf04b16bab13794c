#include <algorithm>
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
  NACRE_RETURN_IF_ERROR(OpenPoolOf(options, &pool));
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
  for (const ColumnFamilyDescriptor& descriptor : descriptors) {
    if (parts_.state.Families()->Find(descriptor.name) != nullptr) continue;
    ColumnFamilyHandle* handle = nullptr;
    NACRE_RETURN_IF_ERROR(CreateColumnFamily(descriptor.options, descriptor.name, &handle));
    delete handle;
  }
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

Status DBImpl::CreateColumnFamily(const ColumnFamilyOptions& given, const std::string& name,
                                  ColumnFamilyHandle** handle) try {
  *handle = nullptr;
  std::vector<std::string> notes;
  const ColumnFamilyOptions options = SanitizeFamilyOptions(given, name, &notes);
  LogNotes(parts_.context.options.info_log.get(), parts_.context.name, notes);
  NACRE_RETURN_IF_ERROR(CheckFamilyOptions(options, name));
  MutexLock commit(&parts_.committer.mutex);
  if (parts_.state.Families()->Find(name) != nullptr) {
    return Status::InvalidArgument("Column family already exists: " + name);
  }
  uint32_t id = 0;
  {
    MutexLock lock(&parts_.state.mutex);
    if (parts_.state.closing.load(std::memory_order_relaxed)) return Status::ShutdownInProgress();
    if (parts_.state.next_family == kMostFamilies) {
      return Status::InvalidArgument("there were too many column families");
    }
    // No other family gets this id, whether or not it becomes durable.
    id = parts_.state.next_family++;
  }
  const auto num_levels = static_cast<uint32_t>(options.num_levels);
  ManifestEdit edit;
  edit.families_added[id] = {
      .name = name, .comparator = options.comparator->Name(), .num_levels = num_levels};
  NACRE_RETURN_IF_ERROR(parts_.committer.CommitEdit(&edit));
  NACRE_POINT("family.created");
  std::shared_ptr<ColumnFamily> family;
  {
    MutexLock lock(&parts_.state.mutex);
    parts_.state.manifest_version = edit.version;
    family = NewFamily(id, name, options, num_levels);
    auto families = std::make_shared<ColumnFamilySet>();
    families->by_id = parts_.state.families->by_id;
    families->by_id[id] = family;
    parts_.state.InstallFamilies(std::move(families));
  }
  // A manifest that is made anew from tables has the family before it has any.
  parts_.committer.RecordStateLocked();
  parts_.state.RetireUnlinkedViews();
  *handle = parts_.state.NewHandle(std::move(family)).release();
  Log(parts_.context.options.info_log, LogLevel::kInfo, "{}: made column family {} with id {}",
      parts_.context.name, name, id);
  return Status::OK();
} catch (...) {
  return StatusOfException();
}

Status DBImpl::DropColumnFamily(ColumnFamilyHandle* handle) try {
  ColumnFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(parts_.state.FindFamily(handle, &family, DatabaseState::Use::kWrite));
  if (family == parts_.state.default_family.get()) {
    return Status::InvalidArgument("Can't drop default column family");
  }
  MutexLock commit(&parts_.committer.mutex);
  NACRE_RETURN_IF_ERROR(parts_.state.FindFamily(
      handle, &family, DatabaseState::Use::kWrite));  // Another thread may have done it.
  std::shared_ptr<const Version> version;
  {
    MutexLock lock(&parts_.state.mutex);
    if (parts_.state.closing.load(std::memory_order_relaxed)) return Status::ShutdownInProgress();
    version = family->current_view()->version;
  }
  TableList tables;
  ForEachTable({version}, [&](const auto& table, int /*level*/) { tables.push_back(table); });
  ManifestEdit edit;
  edit.families_dropped.push_back(family->id());
  for (const auto& table : tables) edit.removed.push_back(table->id());
  NACRE_RETURN_IF_ERROR(parts_.committer.CommitEdit(&edit));
  NACRE_POINT("family.dropped");
  {
    MutexLock lock(&parts_.state.mutex);
    parts_.state.manifest_version = edit.version;
    auto families = std::make_shared<ColumnFamilySet>();
    families->by_id = parts_.state.families->by_id;
    families->by_id.erase(family->id());
    family->MarkDropped();
    parts_.generations.NoteDropped(*family);
    parts_.state.InstallFamilies(std::move(families));
    parts_.write_controller.Update();
    parts_.state.MaybeSchedule();
    parts_.state.changed.SignalAll();
  }
  // Before its tables are free.
  parts_.committer.RecordStateLocked();
  // These are freed with their last readers: the handle, iterators, compactions.
  for (const auto& table : tables) {
    if (!NACRE_PLANTED_BUG("family.space-kept-when-it-is-dropped")) table->MarkDropped();
  }
  parts_.context.events.TablesDeleted(tables, /*job=*/0);
  parts_.state.RetireUnlinkedViews();
  Log(parts_.context.options.info_log, LogLevel::kInfo,
      "{}: dropped column family {} with {} tables", parts_.context.name, family->name(),
      tables.size());
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
