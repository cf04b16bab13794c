#include "sharding/shared_batch.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <utility>

#include "db/db_impl.h"
#include "util/named_point.h"
#include "util/planted_bug.h"

namespace nacre {
namespace {

constexpr std::string_view kDecided = ":decided";

/// Writes that decide, or that follow from a decision, are in the log when they return.
WriteOptions Durable(WriteOptions options) {
  options.sync = true;
  return options;
}

/// Such an answer says that nothing was written.
bool IsRefusal(const Status& status) {
  return status.IsInvalidArgument() || status.IsIncomplete() || status.IsNotSupported();
}

}  // namespace

SharedBatch::SharedBatch(const std::vector<std::unique_ptr<Shard>>& shards, SnapshotGate* gate,
                         std::vector<BatchPart>* parts, uint64_t opening, KeyHolds::BatchId id)
    : shards_(shards),
      gate_(gate),
      parts_(parts),
      id_(id),
      name_(fmt::format("{}-{}:{}", opening, id, shards[parts->front().shard]->id())) {}

Status SharedBatch::Commit(const WriteOptions& options, Deadline deadline) {
  NACRE_RETURN_IF_ERROR(Check(options));
  if (Status s = Hold(deadline); !s.ok()) {
    Release();
    return s;
  }
  // Without a log there is nothing to be decided: a crash leaves what was flushed.
  const bool durable = !options.disable_wal;
  if (Status s = durable ? Prepare(options) : Status::OK(); !s.ok()) {
    RemovePrepared(options);
    Release();
    return s.WithContext("preparing a batch over several shards");
  }
  NACRE_POINT("batch.prepared");
  {
    std::optional<SnapshotGate::Committing> committing;
    if (!NACRE_PLANTED_BUG("batch.committed-while-a-snapshot-is-taken")) committing.emplace(gate_);
    // Families may have been dropped since; none is from here on, until all parts are committed.
    Status s = Check(options);
    if (s.ok()) s = Decide(options);
    if (!s.ok()) {
      if (!IsRefusal(s)) return Fail(s, "being decided");
      RemovePrepared(options);
      Release();
      return s;
    }
    NACRE_POINT("batch.decided");
    if (NACRE_PLANTED_BUG("batch.decision-deleted-too-early")) {
      Decider().AddEndedDecision(name_ + std::string(kDecided));
    }
    for (BatchPart& part : *parts_) {
      if (IsDecider(part)) continue;
      if (s = CommitPart(options, &part); !s.ok()) return Fail(s, "being committed");
      NACRE_POINT("batch.part-committed");
    }
  }
  if (durable) Decider().AddEndedDecision(name_ + std::string(kDecided));
  Release();
  return Status::OK();
}

Status SharedBatch::Check(const WriteOptions& options) const {
  for (const BatchPart& part : *parts_) {
    NACRE_RETURN_IF_ERROR(ShardOf(part).engine()->CheckWrite(options, part.updates));
  }
  return Status::OK();
}

Status SharedBatch::Hold(Deadline deadline) {
  // Always in the order of the shards, so that batches do not wait for one another in a circle.
  for (const BatchPart& part : *parts_) {
    NACRE_RETURN_IF_ERROR(ShardOf(part).holds()->Acquire(id_, part.keys, deadline));
    ++held_;
  }
  for (const BatchPart& part : *parts_) {
    NACRE_RETURN_IF_ERROR(ShardOf(part).AwaitOperations(deadline));
  }
  return Status::OK();
}

Status SharedBatch::Prepare(const WriteOptions& options) {
  for (BatchPart& part : *parts_) {
    if (IsDecider(part)) continue;
    ++prepared_;
    if (NACRE_PLANTED_BUG("batch.decided-unprepared")) continue;
    NACRE_RETURN_IF_ERROR(ShardOf(part).prepared()->Add(options, name_, part.updates));
  }
  return Status::OK();
}

Status SharedBatch::Decide(const WriteOptions& options) {
  BatchPart& part = parts_->front();
  if (options.disable_wal) return Decider().db()->Write(options, &part.updates);
  PreparedStore* const store = Decider().prepared();
  if (!NACRE_PLANTED_BUG("batch.decision-not-recorded")) {
    NACRE_RETURN_IF_ERROR(store->AddEntry(name_ + std::string(kDecided), {}, &part.updates));
  }
  const std::vector<std::string> all_ended = Decider().TakeEndedDecisions();
  Status s;
  for (const std::string& ended : all_ended) {
    if (s.ok()) s = store->AddRemoval(ended, &part.updates);
  }
  if (s.ok()) s = Decider().db()->Write(Durable(options), &part.updates);
  if (s.ok()) return s;
  // Removing one twice does no harm.
  for (const std::string& ended : all_ended) Decider().AddEndedDecision(ended);
  return s;
}

Status SharedBatch::CommitPart(const WriteOptions& options, BatchPart* part) {
  // It has been decided, and must not be refused for the sake of a stall.
  WriteOptions patient = options;
  patient.no_slowdown = false;
  if (options.disable_wal) return ShardOf(*part).db()->Write(patient, &part->updates);
  NACRE_RETURN_IF_ERROR(ShardOf(*part).prepared()->AddRemoval(name_, &part->updates));
  return ShardOf(*part).db()->Write(Durable(patient), &part->updates);
}

void SharedBatch::RemovePrepared(const WriteOptions& options) {
  if (options.disable_wal) return;
  // What is left over is removed when the keyspace is opened again.
  for (size_t i = 1; i < prepared_; ++i) {
    Shard& shard = ShardOf((*parts_)[i]);
    WriteBatch removal;
    Status s = shard.prepared()->AddRemoval(name_, &removal);
    if (s.ok()) s = shard.db()->Write(options, &removal);
    s.IgnoreError();
  }
}

void SharedBatch::Release() {
  for (size_t i = 0; i < held_; ++i) ShardOf((*parts_)[i]).holds()->Release(id_);
}

Status SharedBatch::Fail(const Status& why, const char* step) {
  const Status failure = why.WithContext(
      fmt::format("a batch over several shards failed while {}; opening the keyspace again settles "
                  "whether it takes place",
                  step));
  for (const BatchPart& part : *parts_) ShardOf(part).holds()->Fail(id_, failure);
  return failure;
}

// ---- After a crash ------------------------------------------------------------------------------

Status SettleBatches(const std::vector<std::unique_ptr<Shard>>& shards) {
  struct Entry {
    Shard* shard;
    std::string name;
    WriteBatch updates;
  };
  std::vector<Entry> entries;
  std::vector<Entry> decisions;
  std::set<std::string> decided;
  for (const auto& shard : shards) {
    NACRE_RETURN_IF_ERROR(
        shard->prepared()->Open([&](const std::string& name, WriteBatch* updates) {
          if (name.ends_with(kDecided)) {
            decided.insert(name.substr(0, name.size() - kDecided.size()));
            decisions.push_back({shard.get(), name, {}});
          } else {
            entries.push_back({shard.get(), name, std::move(*updates)});
          }
          return Status::OK();
        }));
  }
  WriteOptions durable;
  durable.sync = true;
  for (Entry& entry : entries) {
    WriteBatch removal;
    const bool takes_place =
        decided.contains(entry.name) || NACRE_PLANTED_BUG("batch.undecided-is-committed");
    WriteBatch* const updates =
        takes_place && !NACRE_PLANTED_BUG("batch.decided-is-dropped") ? &entry.updates : &removal;
    NACRE_RETURN_IF_ERROR(
        KeepFamilies([&](uint32_t id) { return entry.shard->engine()->HasFamily(id); }, updates));
    NACRE_RETURN_IF_ERROR(entry.shard->prepared()->AddRemoval(entry.name, updates));
    NACRE_RETURN_IF_ERROR(
        entry.shard->db()->Write(durable, updates).WithContext("ending batch " + entry.name));
    NACRE_POINT("batch.entry-settled");
  }
  // Only now: an opening that ends before this needs them again.
  for (const Entry& decision : decisions) {
    WriteBatch removal;
    NACRE_RETURN_IF_ERROR(decision.shard->prepared()->AddRemoval(decision.name, &removal));
    NACRE_RETURN_IF_ERROR(decision.shard->db()->Write(durable, &removal));
  }
  return Status::OK();
}

}  // namespace nacre
