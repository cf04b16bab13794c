
#include <algorithm>
#include <set>
#include <utility>

#include "db/db_impl.h"
#include "db/family/family_check.h"
#include "db/manifest/manifest_recovery.h"
#include "db/metrics/database_endpoint.h"
#include "db/metrics/owner_metrics.h"
#include "db/open_timeline.h"
#include "db/options/pool_of_options.h"
#include "db/recovery.h"
#include "pool/databases.h"
#include "pool/reports.h"
#include "table/format/write_batch_format.h"
#include "util/exceptions.h"
#include "util/log.h"
#include "util/named_point.h"

namespace nacre {

namespace {

/// Whether a database in `state` can go on; and, if `checkpoint` is not null, whether it is a
/// restore of that.
Status CheckState(const ManifestState& state, const ManifestState* checkpoint) {
  if (checkpoint == nullptr && state.restoring != 0) {
    return Status::Incomplete(
        "it is being restored from a checkpoint: run the restore to its end, or destroy it");
  }
  if (checkpoint != nullptr && state.restoring == 0) {
    return Status::InvalidArgument("there is one already");
  }
  if (checkpoint != nullptr && state.restoring != checkpoint->restoring) {
    return Status::InvalidArgument(
        "it is being restored from another checkpoint: run that restore to its end, or destroy it");
  }
  return Status::OK();
}

/// Ids that the last owner may have given since its last edit, to tables that were abandoned: what
/// bears one of them is never taken for another table.
constexpr uint64_t kUnusedIds = 1 << 20;

/// Whether the nodes have all that MemTables have, in logs.
bool AllInLog(DatabaseParts* parts) {
  if (parts->writes.log() == nullptr || !parts->writes.log()->Sync().ok()) return false;
  MutexLock lock(&parts->state.mutex);
  for (const auto& [id, family] : parts->state.families->by_id) {
    for (const auto& memtable : family->current_view()->memtables) {
      if (!memtable->all_in_some_log()) return false;
    }
  }
  return true;
}

/// Whether all is in tables.
bool NothingToFlush(DatabaseParts* parts) {
  MutexLock lock(&parts->state.mutex);
  return parts->state.work.ended_generations.empty() && !parts->generations.HasEntries(nullptr);
}

/// Bytes of keys and values that are in no table.
uint64_t UnflushedBytes(DatabaseParts* parts) {
  uint64_t bytes = 0;
  MutexLock lock(&parts->state.mutex);
  for (const auto& [id, family] : parts->state.families->by_id) {
    for (const auto& memtable : family->current_view()->memtables) bytes += memtable->data_bytes();
  }
  return bytes;
}

/// Only those MemTables stay that iterators look through. For a database that is closed.
void LetMemTablesGo(DatabaseParts* parts) {
  {
    MutexLock lock(&parts->state.mutex);
    for (const auto& [id, family] : parts->state.families->by_id) {
      const std::shared_ptr<const ReadView> view = family->current_view();
      for (const auto& memtable : view->memtables) family->ForgetMemTable(memtable->generation());
      parts->state.InstallView(family.get(), {}, view->version);
    }
  }
  parts->state.RetireUnlinkedViews();
  parts->context.epochs.Collect();
}

}  // namespace

Status DestroyDB(const std::string& name, const Options& options) {
  std::shared_ptr<pool::PoolImpl> pool;
  NACRE_RETURN_IF_ERROR(OpenPoolOf(options, &pool));
  Status status = pool->client()->databases()->Destroy(name);
  return status.IsNotFound() ? Status::OK() : status;
}

Status ListDBs(const Options& options, std::vector<std::string>* names) {
  std::shared_ptr<pool::PoolImpl> pool;
  NACRE_RETURN_IF_ERROR(OpenPoolOf(options, &pool));
  pool::PoolClient* client = pool->client();
  std::set<std::string> found;
  Status failure = Status::Unavailable("no node of " + pool->uri() + " can be reached");
  bool asked = false;
  for (int i = 0; i < client->node_count(); ++i) {
    std::vector<pool::KnownDatabase> databases;
    pool::Directions directions;
    Status status = pool::ListDatabases(client, static_cast<NodeId>(i), &databases, &directions);
    if (!status.ok()) {
      failure = std::move(status);
      continue;
    }
    asked = true;
    for (const pool::KnownDatabase& database : databases) found.insert(database.name);
  }
  if (!asked) return failure;
  names->assign(found.begin(), found.end());
  return Status::OK();
}

Status DBImpl::Open(const DBOptions& options, const std::string& name,
                    const std::vector<ColumnFamilyDescriptor>& families,
                    std::vector<ColumnFamilyHandle*>* handles, std::unique_ptr<DB>* db) try {
  db->reset();
  if (handles != nullptr) handles->clear();
  std::unique_ptr<DBImpl> opened;
  NACRE_RETURN_IF_ERROR(OpenAs(options, name, families, /*checkpoint=*/nullptr, &opened));
  if (handles != nullptr) {
    NACRE_RETURN_IF_ERROR(opened->MakeMissingFamilies(families));
    opened->MakeHandles(families, handles);
  }
  *db = std::move(opened);
  return Status::OK();
} catch (...) {
  return StatusOfException();
}

Status DBImpl::OpenAs(const DBOptions& given, const std::string& name,
                      const std::vector<ColumnFamilyDescriptor>& given_families,
                      const ManifestState* checkpoint, std::unique_ptr<DBImpl>* db) try {
  CheckedOptions checked;
  NACRE_RETURN_IF_ERROR(CheckOpening(given, name, given_families, &checked));
  // Before there is anything to give back.
  std::unique_ptr<metrics::Endpoint> endpoint;
  NACRE_RETURN_IF_ERROR(OpenEndpoint(checked.options, name, &endpoint));
  if (endpoint != nullptr) CountForMetrics(name, &checked.options);
  const auto& [options, families, redundancy, keys] = checked;

  OpenTimeline timeline(Clock::System());
  std::shared_ptr<pool::PoolImpl> pool;
  NACRE_RETURN_IF_ERROR(OpenPoolOf(options, &pool));
  timeline.EndStep("pool");
  pool::PoolClient* client = pool->client();
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

  pool::DatabaseLease lease;
  NACRE_RETURN_IF_ERROR(client->databases()->Open(name,
                                                  {.create_if_missing = options.create_if_missing,
                                                   .error_if_exists = options.error_if_exists,
                                                   .take_over = options.take_over,
                                                   .keep_lost_nodes = true},
                                                  &lease));
  timeline.EndStep("claim");
  // From here on a failure gives the lease back, with what was there. An owner that was replaced
  // meanwhile has read what its successor was changing, whatever that looked like.
  const auto give_back = [&](const Status& status) {
    const Status left = client->databases()->Leave(lease.database_id);
    if (left.IsFenced()) return left;
    // Nodes to which the connection ended meanwhile do not know this client any more.
    if (status.IsCorruption() && !left.ok()) {
      return Status::Fenced("database " + name + " was not this one's to the end of its opening: " +
                            left.ToString() + "; what was read: " + status.ToString());
    }
    return status;
  };
  ManifestRecovered last;
  if (checkpoint != nullptr) last.state = *checkpoint;
  last.state.comparator = options.comparator->Name();
  if (checkpoint == nullptr) last.state.num_levels = static_cast<uint32_t>(options.num_levels);
  last.state.slab_bytes = client->options().slab_bytes;
  last.state.database_id = lease.database_id;
  if (lease.existed) {
    Status status = RecoverManifest(client, lease.root, lease.database_id, &last);
    if (status.ok()) status = CheckState(last.state, checkpoint);
    if (!status.ok()) return give_back(status.WithContext("database " + name));
  }
  if (last.state.last_sequence > WriteSequencer::kLastPossible) {
    return give_back(Status::Corruption("database " + name + ": absurd sequence number"));
  }
  // A checkpoint's comparators are looked at here, too.
  const bool may_miss = options.create_missing_column_families && checkpoint == nullptr;
  if (Status status = CheckFamiliesOf(last.state, families, may_miss); !status.ok()) {
    return give_back(status.WithContext("database " + name));
  }
  // The new manifest, which is made of this, has the levels that tables are written to from now on.
  SetLevels(families, options, &last.state);
  timeline.EndStep("manifest");
  NACRE_POINT("open.manifest-read");
  std::unique_ptr<DBImpl> opened(new DBImpl(checked, name, std::move(pool), lease, last.state));
  opened->MakeFamilies(last.state, families);
  for (const std::string& note : last.notes) {
    Log(options.info_log, LogLevel::kWarn, "{}: manifest: {}", name, note);
  }
  Status status = CatchAll([&] {
    NACRE_RETURN_IF_ERROR(Recovery(&opened->parts_, &timeline)
                              .Run(lease, std::move(last.state), std::move(last.copies)));
    opened->StartThreads();
    return Status::OK();
  });
  if (!status.ok()) {
    opened->Abandon();
    return give_back(status.WithContext("database " + name));
  }
  if (endpoint != nullptr) {
    opened->metrics_ = std::make_unique<OwnerMetrics>(&opened->parts_, std::move(endpoint));
  }
  *db = std::move(opened);
  return Status::OK();
} catch (...) {
  return StatusOfException();
}

DBImpl::DBImpl(const CheckedOptions& checked, const std::string& name,
               std::shared_ptr<pool::PoolImpl> pool, const pool::DatabaseLease& lease,
               const ManifestState& state)
    : OwnerControls(&parts_),
      parts_(this, checked, name, std::move(pool), lease, state,
             lease.existed ? state.next_table_id + kUnusedIds : state.next_table_id),
      default_handle_(parts_.state.NewHandle(parts_.state.default_family)) {}

void DBImpl::StartThreads() {
  parts_.redundancy_keeper = std::make_unique<RedundancyKeeper>(RedundancyKeeper::Database{
      .context = &parts_.context,
      .state = &parts_.state,
      .committer = &parts_.committer,
      .log = parts_.writes.log(),
      .flush_log = [this] { parts_.flushes.FlushWritten(); },
      .settle_writes = [this] { parts_.writes.Settle().IgnoreError(); }});
  parts_.redundancy_keeper->Start();
  parts_.generations.JoinShare();
  index_thread_ = Thread("nacre-indexes", [this] { LoadIndexes(); });
}

Status DBImpl::VerifyChecksum() { return parts_.redundancy_keeper->VerifyChecksum(); }

Status DBImpl::Close() { return CloseAs(Ending::kClose); }

Status DBImpl::CloseForHandover() { return CloseAs(Ending::kHandOver); }

Status DBImpl::PrepareHandover() {
  // Each flush leaves what was written meanwhile, which is less each time as a rule.
  constexpr int kFlushesMax = 5;
  constexpr uint64_t kLittleBytes = 1 << 20;
  for (int i = 0; i < kFlushesMax && !NothingToFlush(&parts_); ++i) {
    if (i > 0 && UnflushedBytes(&parts_) <= kLittleBytes) break;
    // Those before it go with the flush.
    if (LogWriter* const log = parts_.writes.log(); log != nullptr) {
      NACRE_RETURN_IF_ERROR(parts_.context.ExplainFailure(log->StartShortSegment()));
    }
    NACRE_RETURN_IF_ERROR(parts_.flushes.Flush(FlushOptions(), /*only=*/nullptr));
  }
  return Status::OK();
}

Status DBImpl::CloseAs(Ending ending) {
  {
    MutexLock lock(&parts_.state.mutex);
    if (std::exchange(close_begun_, true)) {
      while (!closed_) parts_.state.changed.Wait();
      return close_status_;
    }
    parts_.state.work.pauses = 0;
    if (ending == Ending::kClose) parts_.state.MaybeSchedule();
    parts_.state.changed.SignalAll();
  }
  const Status status = CatchAll([&] { return CloseNow(ending); });
  MutexLock lock(&parts_.state.mutex);
  closed_ = true;
  close_status_ = status;
  parts_.state.changed.SignalAll();
  return status;
}

Status DBImpl::CloseNow(Ending ending) {
  // What was acknowledged without a log is in the MemTables: it has to reach the nodes first. If it
  // cannot, that is answered, and the tables and the log are kept nevertheless. What a log has is
  // safe without a flush: the next owner has it from there.
  NACRE_POINT("close.begin");
  const bool keep_log = ending == Ending::kHandOver && AllInLog(&parts_);
  Status status;
  if (!keep_log) status = parts_.flushes.Flush(FlushOptions(), /*only=*/nullptr);
  const bool in_tables = keep_log ? NothingToFlush(&parts_) : status.ok();
  if (!status.ok() && AllInLog(&parts_)) {
    Log(parts_.context.options.info_log, LogLevel::kWarn,
        "{}: the log stays, since a flush failed: {}", parts_.context.name, status.ToString());
    status = Status::OK();
  }
  NACRE_POINT("close.flushed");
  metrics_.reset();
  const auto also = [&status](Status step) {
    if (status.ok()) status = std::move(step);
  };
  StopThreads(/*give_up=*/keep_log);
  if (parts_.writes.log() != nullptr) parts_.writes.log()->Close();
  NACRE_POINT("close.log-closed");
  if (in_tables) {
    // What archives have by now need not be kept for them. Without an answer it is.
    if (parts_.writes.log() != nullptr) {
      parts_.context.log_readers.Ask(parts_.context.client, parts_.context.database_id)
          .IgnoreError();
    }
    also(parts_.committer.DropLog(parts_.generations.sequencer()->LastPublished()));
  }
  NACRE_POINT("close.log-dropped");
  parts_.committer.manifest()->Close();
  NACRE_POINT("close.manifest-closed");
  parts_.context.epochs.Collect();
  // The next owner can use them.
  if (ending == Ending::kClose) also(parts_.context.space.ReturnFreeSlabs());
  NACRE_POINT("close.slabs-returned");
  parts_.context.EndReads();
  also(parts_.context.client->databases()->Leave(parts_.context.database_id));
  NACRE_POINT("close.database-left");
  // They count in what databases share, however long iterators keep this one.
  if (ending == Ending::kHandOver) LetMemTablesGo(&parts_);
  Log(parts_.context.options.info_log, status.ok() ? LogLevel::kInfo : LogLevel::kError,
      "closed {}: {}", parts_.context.name, status.ToString());
  return status;
}

void DBImpl::StopThreads(bool give_up) {
  {
    MutexLock lock(&parts_.state.mutex);
    parts_.state.closing.store(true, std::memory_order_release);
    parts_.state.handing_over.store(give_up, std::memory_order_release);
    parts_.write_controller.Update();
    parts_.state.changed.SignalAll();
  }
  // Jobs that were cancelled end meanwhile.
  if (parts_.redundancy_keeper != nullptr) parts_.redundancy_keeper->Stop();
  {
    MutexLock lock(&parts_.state.mutex);
    while (parts_.state.work.flush_running || parts_.state.work.compactions_running > 0)
      parts_.state.changed.Wait();
  }
  if (index_thread_.joinable()) index_thread_.Join();
  parts_.context.point_tiers.Stop();
  parts_.flushes.Stop();
  parts_.compactions.Stop();
  parts_.context.space.EndQuarantine();
  if (parts_.context.lease != nullptr) parts_.context.lease->Stop();
  parts_.context.events.Stop();
}

void DBImpl::Abandon() {
  {
    MutexLock lock(&parts_.state.mutex);
    close_begun_ = true;
    closed_ = true;
  }
  StopThreads();
  if (parts_.writes.log() != nullptr) parts_.writes.log()->Close();
  // Its end asks for space, so it does not wait for this object's.
  if (parts_.committer.manifest() != nullptr) parts_.committer.manifest()->Close();
}

DBImpl::~DBImpl() {
  bool open = false;
  {
    MutexLock lock(&parts_.state.mutex);
    open = !closed_;
  }
  if (open) Close().IgnoreError();
}

}  // namespace nacre
