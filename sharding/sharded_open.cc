#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "db/db_impl.h"
#include "db/metrics/database_endpoint.h"
#include "db/options/options_check.h"
#include "db/options/pool_of_options.h"
#include "pool/pool_client.h"
#include "pool/pool_impl.h"
#include "sharding/batches/shared_batch.h"
#include "sharding/members/coordinator.h"
#include "sharding/members/keyspace_member.h"
#include "sharding/members/membership.h"
#include "sharding/members/shared_families.h"
#include "sharding/reshaping/local_balancer.h"
#include "sharding/sharded_db_impl.h"
#include "util/exceptions.h"
#include "util/log.h"
#include "util/named_point.h"
#include "util/threads/thread.h"

namespace nacre {
namespace {

constexpr std::chrono::milliseconds kLeastLease{1000};

bool IsEmbedded(const ShardedOptions& options) {
  const auto pool = std::dynamic_pointer_cast<pool::PoolImpl>(options.pool);
  return pool != nullptr && pool->embedded();
}

Status CheckOptionsOf(const ShardedOptions& options, const std::string& name,
                      const std::vector<ColumnFamilyDescriptor>& families) {
  if (options.coordinator.empty() && !options.member_address.empty()) {
    return Status::InvalidArgument("member_address '" + options.member_address +
                                   "': there is no coordinator");
  }
  if (!options.coordinator.empty() && options.error_if_exists) {
    return Status::NotSupported("error_if_exists with a coordinator: any member may make it");
  }
  if (!options.coordinator.empty() && options.member_lease < kLeastLease) {
    return Status::InvalidArgument("member_lease is less than a second");
  }
  if (name.find('@') != std::string::npos) {
    return Status::InvalidArgument("keyspace '" + name + "': '@' is for the names of its shards");
  }
  for (const ColumnFamilyDescriptor& family : families) {
    NACRE_RETURN_IF_ERROR(CheckComparator(options.comparator, family));
  }
  return Status::OK();
}

/// Deletes what the coordinator has of the keyspace. `Busy` while it has members, or changes.
Status DropFromCoordinator(const std::string& name, const ShardedOptions& options) {
  std::shared_ptr<Coordinator> coordinator;
  NACRE_RETURN_IF_ERROR(OpenCoordinator(options.coordinator, &coordinator));
  const std::string prefix = KeyspacePrefix(MembershipOptions().pool, name);
  const Deadline deadline = Deadline::After(Clock::System(), options.operation_timeout);
  std::vector<Coordinator::Entry> entries;
  int64_t revision = 0;
  NACRE_RETURN_IF_ERROR(coordinator->Read(prefix, deadline, &entries, &revision));
  std::vector<Coordinator::Change> changes;
  for (const Coordinator::Entry& entry : entries) {
    if (entry.key.starts_with(prefix + "members/")) {
      return Status::Busy("keyspace " + name + " has members");
    }
    // Those of a keyspace whose name begins with this one and a slash stay.
    if (entry.key != prefix + "map" && entry.key != prefix + "leader") continue;
    changes.push_back({.key = entry.key, .expected = entry.changed});
  }
  if (changes.empty()) return Status::OK();
  bool done = false;
  NACRE_RETURN_IF_ERROR(coordinator->Commit(changes, deadline, &done));
  return done ? Status::OK() : Status::Busy("keyspace " + name + " is being opened");
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
  // One count of what the application does with the keyspace, whatever its shards.
  if (!MetricsAddress(options).empty()) CountForMetrics(name, &options);
  const bool alone = options.coordinator.empty();
  if (!alone && IsEmbedded(options)) {
    return Status::NotSupported("coordinator: an embedded pool is this process's own");
  }
  std::unique_ptr<ShardedDBImpl> opened(new ShardedDBImpl(options, name, families));
  NACRE_RETURN_IF_ERROR(alone ? opened->OpenAlone() : opened->OpenAsMember());
  for (const ColumnFamilyDescriptor& family : families) {
    handles->push_back(opened->families_.NewHandle(family.name).release());
  }
  *db = std::move(opened);
  return Status::OK();
}

ShardedDBImpl::ShardedDBImpl(const ShardedOptions& options, std::string name,
                             const std::vector<ColumnFamilyDescriptor>& families)
    : name_(std::move(name)),
      clock_(Clock::System()),
      operation_timeout_(options.operation_timeout),
      owner_(std::make_shared<LocalOwner>(0)),
      views_(std::make_shared<ShardedViews>()),
      opener_(std::make_unique<ShardOpener>(options, name_, families, owner_)),
      families_(this, options.prefix_extractor),
      reshaping_(opener_.get(), views_.get(), clock_) {}

ShardedDBImpl::~ShardedDBImpl() {
  Close().IgnoreError();
  views_->Publish(nullptr);
}

Status ShardedDBImpl::OpenAlone() {
  ShardMap map;
  NACRE_RETURN_IF_ERROR(opener_->OpenMap(&map));
  if (map.shared()) {
    return Status::InvalidArgument("keyspace " + name_ +
                                   " belongs to members: it needs its coordinator");
  }
  uint64_t opening = 0;
  NACRE_RETURN_IF_ERROR(opener_->CountOpening(&opening));
  batch_prefix_ = std::to_string(opening);
  NACRE_RETURN_IF_ERROR(opener_->CheckFamilies(map));
  auto view = std::make_shared<ShardedView>();
  view->map = map;
  view->shards.resize(map.size());
  std::vector<Status> statuses(map.size());
  const auto open = [&](size_t index) {
    statuses[index] = CatchAll([&]() -> Status {
      std::shared_ptr<LocalShard> shard;
      NACRE_RETURN_IF_ERROR(opener_->OpenShard(map, index, &shard));
      view->shards[index] = std::move(shard);
      return Status::OK();
    });
  };
  RunTogether("nacre-shards", map.size(), open, ShardOpener::kAtOnce);
  for (const Status& status : statuses) NACRE_RETURN_IF_ERROR(status);
  families_.Follow(map, *opener_, views_);
  views_->Publish(view);
  NACRE_RETURN_IF_ERROR(SettleBatches(*view).WithContext("keyspace " + name_));
  {
    MutexLock lock(&change_mutex_);
    reshaping_.EndThoseBefore();
  }
  std::vector<ColumnFamilyDescriptor> missing;
  for (const ColumnFamilyDescriptor& family : opener_->families()) {
    if (!map.HasFamily(family.name)) missing.push_back(family);
  }
  std::vector<ColumnFamilyHandle*> made;
  NACRE_RETURN_IF_ERROR(CreateColumnFamilies(missing, &made));
  for (ColumnFamilyHandle* handle : made) delete handle;
  const auto pool = std::dynamic_pointer_cast<pool::PoolImpl>(opener_->options().pool);
  if (pool == nullptr) return Status::InvalidArgument("Options::pool is none of Nacre's");
  balancer_ = std::make_unique<LocalBalancer>(LocalBalancer::Context{
      .views = views_.get(),
      .threads = pool->client()->threads(),
      .clock = clock_,
      .keyspace = name_,
      .log = opener_->options().info_log,
      .split = [this](uint32_t shard) { return SplitShard(shard, {}); },
      .merge = [this](uint32_t low, uint32_t high) { return MergeShards(low, high); }});
  return Status::OK();
}

Status ShardedDBImpl::Close() {
  if (std::exchange(closed_, true)) return close_status_;
  balancer_.reset();
  recent_.Drop();
  if (member_ != nullptr) {
    close_status_ = member_->Close();
  } else if (const auto view = views_->latest(); view != nullptr) {
    std::vector<Status> statuses(view->shards.size());
    const auto close = [&](size_t index) {
      statuses[index] = view->shards[index]->local()->Close();
    };
    RunTogether("nacre-shards", statuses.size(), close, ShardOpener::kAtOnce);
    for (const Status& status : statuses) {
      if (close_status_.ok()) close_status_ = status;
    }
  }
  // Last: it makes this process the owner of the keyspace.
  if (Status status = opener_->CloseMap(); close_status_.ok()) close_status_ = status;
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

Status DestroyShardedDB(const std::string& name, const ShardedOptions& options) {
  if (!options.coordinator.empty()) {
    NACRE_RETURN_IF_ERROR(CatchAll([&] { return DropFromCoordinator(name, options); }));
  }
  return DestroyShardedDB(name, static_cast<const Options&>(options));
}

}  // namespace nacre
