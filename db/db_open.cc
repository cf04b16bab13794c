#include <pthread.h>

#include <algorithm>
#include <utility>

#include "db/db_impl.h"
#include "db/options_check.h"
#include "db/space_report.h"
#include "util/log.h"

namespace nacre {

Status DB::Open(const Options& options, const std::string& name, std::unique_ptr<DB>* db) {
  return DBImpl::Open(options, name, db);
}

Status DB::Get(const ReadOptions& options, const Slice& key, std::string* value) {
  PinnableSlice pinned;
  NACRE_RETURN_IF_ERROR(Get(options, key, &pinned));
  value->assign(pinned.data(), pinned.size());
  return Status::OK();
}

std::vector<Status> DB::MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                                 std::vector<std::string>* values) {
  std::vector<PinnableSlice> pinned(keys.size());
  std::vector<Status> statuses(keys.size());
  MultiGet(options, keys.size(), keys.data(), pinned.data(), statuses.data());
  values->resize(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    if (statuses[i].ok()) (*values)[i].assign(pinned[i].data(), pinned[i].size());
  }
  return statuses;
}

Status DBImpl::Open(const Options& options, const std::string& name, std::unique_ptr<DB>* db) {
  db->reset();
  RedundancyPolicy redundancy;
  NACRE_RETURN_IF_ERROR(CheckOptions(options, name, &redundancy));

  std::shared_ptr<memnode::PoolImpl> pool;
  if (options.pool != nullptr) {
    pool = std::dynamic_pointer_cast<memnode::PoolImpl>(options.pool);
    if (pool == nullptr) {
      return Status::InvalidArgument("Options::pool was not made by Pool::Open");
    }
  } else {
    memnode::PoolOpenOptions pool_options;
    pool_options.operation_timeout = options.operation_timeout;
    pool_options.slab_bytes = options.slab_size;
    pool_options.pool.info_log = options.info_log;
    pool_options.pool.max_queue_pairs_per_node = options.max_queue_pairs_per_node;
    NACRE_RETURN_IF_ERROR(
        memnode::OpenPool(options.pool_uri, pool_options, Clock::System(), &pool));
  }
  memnode::PoolClient* client = pool->client();
  const int nodes_needed = redundancy.Widest().fragments();
  if (nodes_needed > client->node_count()) {
    return Status::InvalidArgument("redundancy " + redundancy.ToString() + " needs " +
                                   std::to_string(nodes_needed) + " nodes, " + pool->uri() +
                                   " has " + std::to_string(client->node_count()));
  }
  if (const int domains = client->domain_count(/*of_all=*/true); nodes_needed > domains) {
    return Status::InvalidArgument("redundancy " + redundancy.ToString() + " needs " +
                                   std::to_string(nodes_needed) + " failure domains, " +
                                   pool->uri() + " has " + std::to_string(domains));
  }

  memnode::DatabaseLease lease;
  NACRE_RETURN_IF_ERROR(client->OpenDatabase(
      name,
      {.create_if_missing = options.create_if_missing, .error_if_exists = options.error_if_exists},
      &lease));
  // From here on a failure gives the lease back, with what was there.
  const auto give_back = [&](Status status) {
    client->LeaveDatabase(lease.database_id).IgnoreError();
    return status;
  };
  ManifestImage image;
  image.comparator = options.comparator->Name();
  image.num_levels = static_cast<uint32_t>(options.num_levels);
  image.slab_bytes = client->options().slab_bytes;
  if (lease.existed) {
    if (Status status = DecodeManifest(lease.root, &image); !status.ok()) {
      return give_back(status.WithContext("database " + name));
    }
    if (image.comparator != options.comparator->Name()) {
      return give_back(Status::InvalidArgument("database " + name + " was made with comparator " +
                                               image.comparator + ", opened with " +
                                               options.comparator->Name()));
    }
    if (image.num_levels > static_cast<uint32_t>(options.num_levels)) {
      return give_back(Status::InvalidArgument(
          "database " + name + " has " + std::to_string(image.num_levels) +
          " levels, Options::num_levels is " + std::to_string(options.num_levels)));
    }
  }
  std::unique_ptr<DBImpl> opened(
      new DBImpl(options, name, redundancy, std::move(pool), lease, image));
  Status status = opened->Restore(lease, image);
  // What is found while the database is open is of no use once the owner is gone.
  if (status.ok()) status = client->PublishRoot(lease.database_id, "");
  if (!status.ok()) {
    opened->Abandon();
    return give_back(std::move(status));
  }
  *db = std::move(opened);
  return Status::OK();
}

DBImpl::DBImpl(const Options& options, const std::string& name, RedundancyPolicy redundancy,
               std::shared_ptr<memnode::PoolImpl> pool, const memnode::DatabaseLease& lease,
               const ManifestImage& image)
    : options_(options),
      name_(name),
      redundancy_(std::move(redundancy)),
      comparator_(options.comparator),
      pool_(std::move(pool)),
      client_(pool_->client()),
      clock_(pool_->clock()),
      database_id_(lease.database_id),
      picker_(options_, &comparator_),
      lease_executor_(NewThreadPool(1, "nacre-lease")),
      space_(std::make_unique<memnode::SpaceAllocator>(client_, database_id_, image.slab_bytes,
                                                       options.chunk_size, lease_executor_.get())),
      store_(std::make_unique<memnode::TableStore>(client_, memnode::LocalMemory())),
      memtable_blocks_(std::make_shared<ArenaBlockPool>(
          options.write_buffer_size * static_cast<size_t>(options.max_write_buffer_number - 1))),
      sequencer_(image.last_sequence),
      next_table_id_(image.next_table_id),
      manifest_version_(image.manifest_version),
      scrubber_({.name = name_,
                 .id = database_id_,
                 .client = client_,
                 .clock = clock_,
                 .log = options_.info_log.get(),
                 .version =
                     [this] {
                       MutexLock lock(&mutex_);
                       return current_view_->version;
                     }}),
      flush_executor_(NewThreadPool(1, "nacre-flush")),
      compaction_executor_(
          NewThreadPool(std::max(1, options.max_background_jobs - 1), "nacre-compact")),
      reporter_(
          client_, [this] { return MakeReport(); },
          [this] {
            MutexLock lock(&mutex_);
            changed_.SignalAll();
          }) {}

Status DBImpl::OpenTable(const TableMeta& meta, std::shared_ptr<TableHandle>* handle) {
  // Under a budget new tables start with the small tier; RebalancePointTiers promotes them.
  const auto tier =
      options_.index_memory_budget == SIZE_MAX ? PointTier::Kind::kIndex : PointTier::Kind::kBloom;
  return TableHandle::Open(meta, options_.comparator, store_.get(), space_.get(), &epochs_, tier,
                           handle);
}

Status DBImpl::PlaceTables(const memnode::DatabaseLease& lease, ManifestImage* image) {
  // By instance, wherever it answers now: one that was started anew has nothing of ours.
  std::map<NodeId, NodeId> numbers;
  for (const auto& [node, instance_id] : image->nodes) {
    for (const auto& [present, slabs] : lease.slabs) {
      if (client_->instance_id(present) == instance_id) numbers[node] = present;
    }
  }
  std::map<NodeId, std::vector<ExtentAddr>> live;
  size_t degraded = 0;
  for (auto& [level, meta] : image->tables) {
    bool whole = true;
    for (ExtentAddr& extent : meta.placement.fragments) {
      const auto number = numbers.find(extent.start.node);
      extent.start.node = number == numbers.end() ? kLostNode : number->second;
      if (number == numbers.end()) {
        whole = false;
      } else {
        live[extent.start.node].push_back(extent);
      }
    }
    if (!whole) ++degraded;
  }
  for (const auto& [node, slabs] : lease.slabs) {
    NACRE_RETURN_IF_ERROR(space_->Restore(node, slabs, live[node]));
  }
  if (degraded > 0) {
    Log(options_.info_log, LogLevel::kWarn,
        "{}: of {} of {} tables fragments are lost with nodes that are no longer there", name_,
        degraded, image->tables.size());
  }
  return Status::OK();
}

Status DBImpl::Restore(const memnode::DatabaseLease& lease, ManifestImage image) {
  NACRE_RETURN_IF_ERROR(PlaceTables(lease, &image));
  VersionEdit edit;
  for (const auto& [level, meta] : image.tables) {
    std::shared_ptr<TableHandle> handle;
    NACRE_RETURN_IF_ERROR(OpenTable(meta, &handle));
    edit.added.push_back({static_cast<int>(level), std::move(handle)});
  }
  const Version empty(&comparator_, options_.num_levels);
  auto view = std::make_shared<ReadView>();
  view->memtables.push_back(NewMemTable(sequencer_.generation()));
  view->version = Version::Apply(empty, edit);
  memtable_slots_[sequencer_.generation() % kMemTableSlots].store(view->memtables.front().get(),
                                                                  std::memory_order_release);
  {
    MutexLock lock(&mutex_);
    view_.store(view.get(), std::memory_order_release);
    current_view_ = std::move(view);
    UpdateStall();
    MaybeSchedule();
  }
  RebalancePointTiers();
  reporter_.Start();
  repair_thread_ = std::thread([this] {
    ::pthread_setname_np(::pthread_self(), "nacre-repair");
    RepairLoop();
  });
  scrubber_.Start(options_.scrub_bytes_per_second);
  Log(options_.info_log, LogLevel::kInfo, "opened {} in {}: {} tables, sequence {}", name_,
      pool_->uri(), image.tables.size(), image.last_sequence);
  return Status::OK();
}

ManifestImage DBImpl::MakeManifest() {
  ManifestImage image;
  image.comparator = options_.comparator->Name();
  image.manifest_version = manifest_version_;
  image.next_table_id = next_table_id_.load(std::memory_order_relaxed);
  image.last_sequence = sequencer_.LastPublished();
  image.num_levels = static_cast<uint32_t>(options_.num_levels);
  image.slab_bytes = client_->options().slab_bytes;
  for (int node = 0; node < client_->node_count(); ++node) {
    const auto id = static_cast<NodeId>(node);
    if (client_->alive(id)) image.nodes[id] = client_->instance_id(id);
  }
  const Version& version = *current_view_->version;
  for (int level = 0; level < version.num_levels(); ++level) {
    for (const auto& table : version.tables(level)) {
      image.tables.emplace_back(static_cast<uint32_t>(level), table->meta());
    }
  }
  return image;
}

memnode::DatabaseReport DBImpl::MakeReport() {
  std::shared_ptr<const ReadView> view;
  memnode::DatabaseReport report;
  {
    MutexLock lock(&mutex_);
    view = current_view_;
    report.repair = repair_progress_;
  }
  report.database_id = database_id_;
  report.redundancy = redundancy_.ToString();
  const SpaceReport space = MakeSpaceReport(*view->version, *space_, client_->node_count());
  for (const SpaceField& field : SpaceFields()) {
    report.space.emplace_back(field.name, field.value(space));
  }
  return report;
}

Status DBImpl::Close() {
  {
    MutexLock lock(&mutex_);
    if (closed_) return close_status_;
  }
  // What was acknowledged is in the MemTables: it has to reach the nodes first. If it cannot, that
  // is answered, and the tables are kept nevertheless.
  Status status = Flush(FlushOptions());
  const auto also = [&status](Status step) {
    if (status.ok()) status = std::move(step);
  };
  {
    MutexLock lock(&mutex_);
    closing_.store(true, std::memory_order_release);
    UpdateStall();
    changed_.SignalAll();
    while (flush_running_ || compactions_running_ > 0) changed_.Wait();
  }
  if (repair_thread_.joinable()) repair_thread_.join();
  flush_executor_.reset();
  compaction_executor_.reset();
  reporter_.Stop();
  scrubber_.Stop();
  epochs_.Collect();
  also(space_->ReturnFreeSlabs());
  std::string manifest;
  {
    MutexLock lock(&mutex_);
    manifest = EncodeManifest(MakeManifest());
  }
  also(client_->PublishRoot(database_id_, manifest));
  also(client_->LeaveDatabase(database_id_));
  Log(options_.info_log, status.ok() ? LogLevel::kInfo : LogLevel::kError, "closed {}: {}", name_,
      status.ToString());
  MutexLock lock(&mutex_);
  closed_ = true;
  close_status_ = status;
  return status;
}

void DBImpl::Abandon() {
  MutexLock lock(&mutex_);
  closed_ = true;
}

DBImpl::~DBImpl() {
  bool open = false;
  {
    MutexLock lock(&mutex_);
    open = !closed_;
  }
  if (open) Close().IgnoreError();
}

}  // namespace nacre
