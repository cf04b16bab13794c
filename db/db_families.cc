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

/// More than anybody makes; ids stay below what a varint32 holds.
constexpr uint32_t kMostFamilies = uint32_t{1} << 31;

}  // namespace

std::shared_ptr<ColumnFamily> DBImpl::NewFamily(uint32_t id, const std::string& name,
                                                const ColumnFamilyOptions& options,
                                                uint32_t num_levels) {
  auto family =
      std::make_shared<ColumnFamily>(id, name, options, num_levels, options_.info_log.get());
  state_.InstallView(family.get(), {},
                     std::make_shared<Version>(&family->comparator(), options.num_levels));
  return family;
}

void DBImpl::MakeFamilies(const ManifestState& state,
                          const std::vector<ColumnFamilyDescriptor>& descriptors) {
  MutexLock lock(&state_.mutex);
  auto families = std::make_shared<ColumnFamilySet>();
  families->by_id[kDefaultFamily] = default_family_;
  state_.InstallView(default_family_.get(), {},
                     std::make_shared<Version>(&default_family_->comparator(),
                                               default_family_->options().num_levels));
  for (const auto& [id, record] : state.families) {
    const ColumnFamilyDescriptor* named = FindDescriptor(descriptors, record.name);
    families->by_id[id] = NewFamily(
        id, record.name,
        named != nullptr ? named->options
                         : HiddenFamilyOptions(default_family_->options(), record.num_levels),
        record.num_levels);
  }
  state_.next_family = state.next_family;
  state_.InstallFamilies(std::move(families));
}

Status DBImpl::MakeMissingFamilies(const std::vector<ColumnFamilyDescriptor>& descriptors) {
  for (const ColumnFamilyDescriptor& descriptor : descriptors) {
    if (state_.Families()->Find(descriptor.name) != nullptr) continue;
    ColumnFamilyHandle* handle = nullptr;
    NACRE_RETURN_IF_ERROR(CreateColumnFamily(descriptor.options, descriptor.name, &handle));
    delete handle;
  }
  return Status::OK();
}

void DBImpl::MakeHandles(const std::vector<ColumnFamilyDescriptor>& descriptors,
                         std::vector<ColumnFamilyHandle*>* handles) {
  const std::shared_ptr<const ColumnFamilySet> families = state_.Families();
  for (const ColumnFamilyDescriptor& descriptor : descriptors) {
    const uint32_t id = families->Find(descriptor.name)->id();
    handles->push_back(state_.NewHandle(families->by_id.at(id)).release());
  }
}

Status DBImpl::CreateColumnFamily(const ColumnFamilyOptions& given, const std::string& name,
                                  ColumnFamilyHandle** handle) try {
  *handle = nullptr;
  std::vector<std::string> notes;
  const ColumnFamilyOptions options = SanitizeFamilyOptions(given, name, &notes);
  LogNotes(options_.info_log.get(), name_, notes);
  NACRE_RETURN_IF_ERROR(CheckFamilyOptions(options, name));
  MutexLock commit(&committer_.mutex);
  if (state_.Families()->Find(name) != nullptr) {
    return Status::InvalidArgument("Column family already exists: " + name);
  }
  uint32_t id = 0;
  {
    MutexLock lock(&state_.mutex);
    if (closing_.load(std::memory_order_relaxed)) return Status::ShutdownInProgress();
    if (state_.next_family == kMostFamilies) {
      return Status::InvalidArgument("there were too many column families");
    }
    // Whether or not it becomes durable: nobody else gets this id.
    id = state_.next_family++;
  }
  const auto num_levels = static_cast<uint32_t>(options.num_levels);
  ManifestEdit edit;
  edit.families_added[id] = {
      .name = name, .comparator = options.comparator->Name(), .num_levels = num_levels};
  NACRE_RETURN_IF_ERROR(committer_.CommitEdit(&edit));
  NACRE_POINT("family.created");
  std::shared_ptr<ColumnFamily> family;
  {
    MutexLock lock(&state_.mutex);
    state_.manifest_version = edit.version;
    family = NewFamily(id, name, options, num_levels);
    auto families = std::make_shared<ColumnFamilySet>();
    families->by_id = state_.families->by_id;
    families->by_id[id] = family;
    state_.InstallFamilies(std::move(families));
  }
  // A manifest that is made anew from tables has the family before it has any.
  committer_.RecordStateLocked();
  state_.RetireUnlinkedViews();
  *handle = state_.NewHandle(std::move(family)).release();
  Log(options_.info_log, LogLevel::kInfo, "{}: made column family {} with id {}", name_, name, id);
  return Status::OK();
} catch (...) {
  return StatusOfException();
}

Status DBImpl::DropColumnFamily(ColumnFamilyHandle* handle) try {
  ColumnFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(state_.FindFamily(handle, &family, DatabaseState::Use::kWrite));
  if (family == default_family_.get()) {
    return Status::InvalidArgument("Can't drop default column family");
  }
  MutexLock commit(&committer_.mutex);
  NACRE_RETURN_IF_ERROR(state_.FindFamily(
      handle, &family, DatabaseState::Use::kWrite));  // Somebody else may have done it.
  std::shared_ptr<const Version> version;
  {
    MutexLock lock(&state_.mutex);
    if (closing_.load(std::memory_order_relaxed)) return Status::ShutdownInProgress();
    version = family->current_view()->version;
  }
  TableList tables;
  ForEachTable({version}, [&](const auto& table, int /*level*/) { tables.push_back(table); });
  ManifestEdit edit;
  edit.families_dropped.push_back(family->id());
  for (const auto& table : tables) edit.removed.push_back(table->id());
  NACRE_RETURN_IF_ERROR(committer_.CommitEdit(&edit));
  NACRE_POINT("family.dropped");
  {
    MutexLock lock(&state_.mutex);
    state_.manifest_version = edit.version;
    auto families = std::make_shared<ColumnFamilySet>();
    families->by_id = state_.families->by_id;
    families->by_id.erase(family->id());
    family->MarkDropped();
    generations_.NoteDropped(*family);
    state_.InstallFamilies(std::move(families));
    write_controller_.Update();
    state_.MaybeSchedule();
    changed_.SignalAll();
  }
  // Before its tables are free.
  committer_.RecordStateLocked();
  // Freed once nobody reads them any more: the handle, iterators, compactions.
  for (const auto& table : tables) {
    if (!NACRE_PLANTED_BUG("family.space-kept-when-it-is-dropped")) table->MarkDropped();
  }
  events_.TablesDeleted(tables, /*job=*/0);
  state_.RetireUnlinkedViews();
  Log(options_.info_log, LogLevel::kInfo, "{}: dropped column family {} with {} tables", name_,
      family->name(), tables.size());
  return Status::OK();
} catch (...) {
  return StatusOfException();
}

Status DBImpl::DestroyColumnFamilyHandle(ColumnFamilyHandle* handle) {
  if (handle != nullptr && handle != default_handle_.get()) events_.HandleDeleted(handle);
  return DB::DestroyColumnFamilyHandle(handle);
}

}  // namespace nacre
