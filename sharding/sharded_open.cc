#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "db/db_impl.h"
#include "db/options/options_check.h"
#include "db/options/pool_of_options.h"
#include "sharding/sharded_db_impl.h"
#include "sharding/shared_batch.h"
#include "util/exceptions.h"
#include "util/log.h"
#include "util/named_point.h"
#include "util/threads/thread.h"

namespace nacre {
namespace {

/// How often the keyspace was opened, which each opening writes.
constexpr char kOpeningsKey[] = "openings";

/// The map takes a few kilobytes and no work. It shares what it can with the shards.
Options MapOptions(const ShardedOptions& options) {
  Options of_map{DBOptions(options), ColumnFamilyOptions()};
  of_map.comparator = BytewiseComparator();
  of_map.write_buffer_size = 64 << 10;
  of_map.listeners.clear();
  of_map.statistics.reset();
  of_map.record_cache_size = 0;
  of_map.create_missing_column_families = false;
  return of_map;
}

Status CheckOptionsOf(const ShardedOptions& options, const std::string& name,
                      const std::vector<ColumnFamilyDescriptor>& families) {
  if (!options.coordinator.empty()) {
    return Status::NotSupported("coordinator '" + options.coordinator +
                                "': a keyspace has one owner so far");
  }
  if (name.find('@') != std::string::npos) {
    return Status::InvalidArgument("keyspace '" + name + "': '@' is for the names of its shards");
  }
  for (const ColumnFamilyDescriptor& family : families) {
    if (family.options.comparator == options.comparator) continue;
    return Status::InvalidArgument("column family " + family.name +
                                   ": all families of a keyspace have the same comparator");
  }
  return Status::OK();
}

LocalShard::Context ContextOf(const ShardedOptions& options, std::shared_ptr<LocalOwner> owner) {
  return {.comparator = options.comparator,
          .clock = Clock::System(),
          .operation_timeout = options.operation_timeout,
          .owner = std::move(owner)};
}

const ColumnFamilyDescriptor* DescriptorOf(const std::vector<ColumnFamilyDescriptor>& families,
                                           const std::string& name) {
  const auto found = std::ranges::find(families, name, &ColumnFamilyDescriptor::name);
  return found == families.end() ? nullptr : &*found;
}

/// `InvalidArgument` if a database would be taken for a shard of a new keyspace.
Status CheckNamesAreFree(const Options& options, const std::string& keyspace) {
  std::vector<std::string> databases;
  NACRE_RETURN_IF_ERROR(ListDBs(options, &databases));
  for (const std::string& database : databases) {
    if (!ShardMap::IsShardOf(database, keyspace)) continue;
    return Status::InvalidArgument("keyspace " + keyspace + ": there is a database " + database +
                                   ", which would be taken for one of its shards");
  }
  return Status::OK();
}

}  // namespace

Status ShardedDB::Open(const ShardedOptions& options, const std::string& name,
                       std::unique_ptr<ShardedDB>* db) {
  std::vector<ColumnFamilyHandle*> handles;
  NACRE_RETURN_IF_ERROR(Open(
      options, name, {ColumnFamilyDescriptor(kDefaultColumnFamilyName, options)}, &handles, db));
  return (*db)->DestroyColumnFamilyHandle(handles.front());
}

Status ShardedDB::Open(const ShardedOptions& options, const std::string& name,
                       const std::vector<ColumnFamilyDescriptor>& families,
                       std::vector<ColumnFamilyHandle*>* handles, std::unique_ptr<ShardedDB>* db) {
  db->reset();
  return CatchAll([&] { return ShardedDBImpl::Open(options, name, families, handles, db); });
}

Status ShardedDBImpl::Open(const ShardedOptions& given, const std::string& name,
                           const std::vector<ColumnFamilyDescriptor>& families,
                           std::vector<ColumnFamilyHandle*>* handles,
                           std::unique_ptr<ShardedDB>* db) {
  handles->clear();
  ShardedOptions options = given;
  const auto of_default = std::find_if(
      families.begin(), families.end(),
      [](const ColumnFamilyDescriptor& family) { return family.name == kDefaultColumnFamilyName; });
  if (of_default == families.end()) {
    return Status::InvalidArgument("the default column family is not named");
  }
  static_cast<ColumnFamilyOptions&>(options) = of_default->options;
  NACRE_RETURN_IF_ERROR(CheckOptionsOf(options, name, families));
  if (options.pool == nullptr) {
    // All shards use the same one.
    std::shared_ptr<pool::PoolImpl> pool;
    NACRE_RETURN_IF_ERROR(OpenPoolOf(options, &pool));
    options.pool = std::move(pool);
  }
  if (options.db_write_buffer_size > 0 && options.write_buffer_manager == nullptr) {
    options.write_buffer_manager =
        std::make_shared<WriteBufferManager>(options.db_write_buffer_size);
  }
  std::unique_ptr<ShardedDBImpl> opened(new ShardedDBImpl(options, name));
  ShardMap map;
  NACRE_RETURN_IF_ERROR(opened->OpenMap(options, &map));
  NACRE_RETURN_IF_ERROR(opened->OpenShards(options, families, map));
  NACRE_RETURN_IF_ERROR(SettleBatches(*opened->views_->latest()).WithContext("keyspace " + name));
  std::vector<ColumnFamilyDescriptor> missing;
  for (const ColumnFamilyDescriptor& family : families) {
    if (!map.HasFamily(family.name)) missing.push_back(family);
  }
  std::vector<ColumnFamilyHandle*> made;
  NACRE_RETURN_IF_ERROR(opened->CreateColumnFamilies(missing, &made));
  for (ColumnFamilyHandle* handle : made) delete handle;
  for (const ColumnFamilyDescriptor& family : families) {
    handles->push_back(opened->families_.NewHandle(family.name).release());
  }
  *db = std::move(opened);
  return Status::OK();
}

ShardedDBImpl::ShardedDBImpl(const ShardedOptions& options, std::string name)
    : name_(std::move(name)),
      clock_(Clock::System()),
      operation_timeout_(options.operation_timeout),
      owner_(std::make_shared<LocalOwner>(0)),
      views_(std::make_shared<ShardedViews>()),
      families_(this, options.prefix_extractor) {}

ShardedDBImpl::~ShardedDBImpl() {
  Close().IgnoreError();
  views_->Publish(nullptr);
}

Status ShardedDBImpl::OpenMap(const ShardedOptions& options, ShardMap* map) {
  const std::string database = ShardMap::DatabaseOfMap(name_);
  std::vector<std::string> databases;
  NACRE_RETURN_IF_ERROR(ListDBs(options, &databases));
  if (std::ranges::find(databases, database) == databases.end()) {
    NACRE_RETURN_IF_ERROR(CheckNamesAreFree(options, name_));
  }
  NACRE_RETURN_IF_ERROR(DB::Open(MapOptions(options), database, &map_db_));
  std::string bytes;
  Status status = map_db_->Get({}, ShardMap::kKey, &bytes);
  const bool is_new = status.IsNotFound();
  if (!is_new) {
    NACRE_RETURN_IF_ERROR(status);
    NACRE_RETURN_IF_ERROR(ShardMap::Parse(bytes, options.comparator, map).WithContext(database));
  }
  if (is_new || map->being_made()) {
    // Or an earlier process died while it made the shards, which nothing was written to.
    if (!is_new) {
      for (const ShardMap::Shard& shard : map->shards()) {
        NACRE_RETURN_IF_ERROR(DestroyDB(ShardMap::DatabaseOf(name_, shard.id), options));
      }
    }
    NACRE_RETURN_IF_ERROR(MakeShards(options, map));
  }
  status = map_db_->Get({}, kOpeningsKey, &bytes);
  if (!status.ok() && !status.IsNotFound()) return status;
  opening_ = status.ok() ? std::stoull(bytes) + 1 : 1;
  WriteOptions durable;
  durable.sync = true;
  return map_db_->Put(durable, kOpeningsKey, std::to_string(opening_));
}

Status ShardedDBImpl::MakeShards(const ShardedOptions& options, ShardMap* map) {
  NACRE_RETURN_IF_ERROR(ShardMap::Make(options.comparator, options.boundaries, map));
  // From here on databases of these names are this keyspace's.
  NACRE_RETURN_IF_ERROR(CheckNamesAreFree(options, name_));
  NACRE_RETURN_IF_ERROR(SaveMap(*map));
  NACRE_POINT("keyspace.map-begun");
  Options create = options;
  create.create_if_missing = true;
  create.error_if_exists = true;
  std::vector<Status> statuses(map->size());
  RunTogether("nacre-shards", map->size(), [&](size_t index) {
    statuses[index] = CatchAll([&]() -> Status {
      const std::string database = ShardMap::DatabaseOf(name_, map->shards()[index].id);
      std::unique_ptr<DB> db;
      NACRE_RETURN_IF_ERROR(DB::Open(create, database, &db));
      // Now, so that families that are made later have the same ids in all shards.
      LocalShard shard(map->shards()[index].id, {}, std::move(db), ContextOf(options, owner_));
      NACRE_RETURN_IF_ERROR(shard.batches()->MakeFamily());
      return shard.Close();
    });
  });
  for (const Status& status : statuses) NACRE_RETURN_IF_ERROR(status);
  NACRE_POINT("keyspace.shards-made");
  map->SetMade();
  return SaveMap(*map);
}

Status ShardedDBImpl::SaveMap(const ShardMap& map) {
  WriteOptions durable;
  durable.sync = true;
  NACRE_RETURN_IF_ERROR(map_db_->Put(durable, ShardMap::kKey, map.Serialize()));
  // An embedded pool has no log.
  return map_db_->Flush({});
}

Status ShardedDBImpl::OpenShards(const ShardedOptions& options,
                                 const std::vector<ColumnFamilyDescriptor>& families,
                                 const ShardMap& map) {
  NACRE_RETURN_IF_ERROR(CheckNamed(families, map, options.create_missing_column_families));
  auto view = std::make_shared<ShardedView>();
  view->map = map;
  view->shards.resize(map.size());
  std::vector<Status> statuses(map.size());
  RunTogether("nacre-shards", map.size(), [&](size_t index) {
    statuses[index] =
        CatchAll([&] { return OpenShard(options, families, map, index, &view->shards[index]); });
  });
  for (const Status& status : statuses) NACRE_RETURN_IF_ERROR(status);
  for (const ShardMap::Family& record : map.families()) {
    families_.Add(record.id, record.name,
                  DescriptorOf(families, record.name)->options.prefix_extractor);
  }
  views_->Publish(std::move(view));
  return Status::OK();
}

Status ShardedDBImpl::OpenShard(const ShardedOptions& options,
                                const std::vector<ColumnFamilyDescriptor>& families,
                                const ShardMap& map, size_t index, std::shared_ptr<Shard>* shard) {
  const ShardMap::Shard& record = map.shards()[index];
  const std::string database = ShardMap::DatabaseOf(name_, record.id);
  DBOptions existing = options;
  existing.create_if_missing = false;
  existing.error_if_exists = false;
  existing.create_missing_column_families = false;
  std::vector<std::string> there;
  NACRE_RETURN_IF_ERROR(DB::ListColumnFamilies(existing, database, &there));
  // Those of the keyspace, in the order of the map, behind the default one; then what a process
  // left that died while it made or dropped families.
  std::vector<ColumnFamilyDescriptor> opened = {
      ColumnFamilyDescriptor(kDefaultColumnFamilyName, options)};
  for (const ShardMap::Family& family : map.families()) {
    opened.push_back(*DescriptorOf(families, family.name));
  }
  const size_t known = opened.size();
  for (const std::string& name : there) {
    if (std::none_of(opened.begin(), opened.end(),
                     [&](const auto& each) { return each.name == name; })) {
      opened.emplace_back(name, options);
    }
  }
  std::vector<ColumnFamilyHandle*> all;
  std::unique_ptr<DB> db;
  NACRE_RETURN_IF_ERROR(DB::Open(existing, database, opened, &all, &db));
  std::vector<std::unique_ptr<ColumnFamilyHandle>> owned(all.begin(), all.end());
  const bool last = index + 1 == map.size();
  const auto made = std::make_shared<LocalShard>(
      record.id,
      LocalShard::Bounds{.begin = record.begin,
                         .end = last ? std::string() : map.shards()[index + 1].begin,
                         .last = last},
      std::move(db), ContextOf(options, owner_));
  for (size_t i = known; i < owned.size(); ++i) {
    NACRE_RETURN_IF_ERROR(made->db()->DropColumnFamily(owned[i].get()));
  }
  for (size_t i = 1; i < known; ++i) {
    made->AddFamily(map.families()[i - 1].id, std::move(owned[i]));
  }
  NACRE_RETURN_IF_ERROR(made->batches()->Open());
  *shard = made;
  return Status::OK();
}

Status ShardedDBImpl::Close() {
  if (std::exchange(closed_, true)) return close_status_;
  if (const auto view = views_->latest(); view != nullptr) {
    std::vector<Status> statuses(view->shards.size());
    RunTogether("nacre-shards", statuses.size(),
                [&](size_t index) { statuses[index] = view->shards[index]->local()->Close(); });
    for (const Status& status : statuses) {
      if (close_status_.ok()) close_status_ = status;
    }
  }
  // Last: it makes this process the owner of the keyspace.
  if (map_db_ != nullptr) {
    if (Status status = map_db_->Close(); close_status_.ok()) close_status_ = status;
  }
  return close_status_;
}

Status DestroyShardedDB(const std::string& name, const Options& options) {
  return CatchAll([&]() -> Status {
    Options pooled = options;
    if (pooled.pool == nullptr) {
      std::shared_ptr<pool::PoolImpl> pool;
      NACRE_RETURN_IF_ERROR(OpenPoolOf(pooled, &pool));
      pooled.pool = std::move(pool);
    }
    // The names tell, so that what a process left that died meanwhile goes, too.
    std::vector<std::string> databases;
    NACRE_RETURN_IF_ERROR(ListDBs(pooled, &databases));
    const std::string of_map = ShardMap::DatabaseOfMap(name);
    // Without it these databases are others'.
    if (std::ranges::find(databases, of_map) == databases.end()) return Status::OK();
    for (const std::string& database : databases) {
      if (!ShardMap::IsShardOf(database, name)) continue;
      NACRE_RETURN_IF_ERROR(DestroyDB(database, pooled).WithContext(database));
    }
    return DestroyDB(of_map, pooled).WithContext(of_map);
  });
}

}  // namespace nacre
