#include "sharding/batches/local_participant.h"

#include <fmt/format.h>

#include <utility>

#include "db/db_impl.h"
#include "sharding/batches/batch_parts.h"
#include "sharding/local_shard.h"
#include "transactions/write_checks.h"
#include "util/named_point.h"
#include "util/planted_bug.h"

namespace nacre {
namespace {

constexpr std::string_view kDecided = ":decided";

std::string RecordOf(const std::string& batch) { return batch + std::string(kDecided); }

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

LocalParticipant::LocalParticipant(LocalShard* shard)
    : shard_(shard), store_(shard->db(), shard->engine()) {}

bool LocalParticipant::IsDecision(const std::string& name) { return name.ends_with(kDecided); }

Status LocalParticipant::Left() const {
  return Status::Fenced(fmt::format("shard {} has moved", shard_->id()));
}

// ---- Batches ------------------------------------------------------------------------------------

Status LocalParticipant::Prepare(const std::string& batch, const WriteOptions& options,
                                 const BatchPart& part, bool decides, Deadline deadline) {
  Batch entry{.options = options,
              .part = part.updates,
              .decides = decides,
              .begun_nanos = shard_->clock()->NowNanos()};
  NACRE_RETURN_IF_ERROR(shard_->Translate(&entry.part));
  NACRE_RETURN_IF_ERROR(shard_->engine()->CheckWrite(options, entry.part));
  KeyHolds* const holds = shard_->holds();
  NACRE_RETURN_IF_ERROR(holds->Acquire(batch, KeysOf(part), deadline));
  // Without a log there is nothing to be decided: a crash leaves what was flushed.
  const bool needs_entry = !decides && !options.disable_wal && part.updates.Count() > 0;
  {
    MutexLock lock(&mutex_);
    if (left_) {
      holds->Release(batch);
      return Left();
    }
    entry.state = Batch::State::kWriting;
    batches_.emplace(batch, entry);
  }
  Status status = shard_->AwaitOperations(deadline);
  if (status.ok()) status = Check(part);
  if (status.ok() && needs_entry && !NACRE_PLANTED_BUG("batch.decided-unprepared")) {
    status = store_.Add(options, batch, entry.part);
    if (!status.ok()) RemoveEntry(batch, options);
  }
  if (!status.ok()) {
    End(batch);
    return status;
  }
  MutexLock lock(&mutex_);
  Batch& prepared = batches_.at(batch);
  prepared.has_entry = needs_entry;
  prepared.state = Batch::State::kPrepared;
  written_.SignalAll();
  return Status::OK();
}

Status LocalParticipant::Check(const BatchPart& part) const {
  if (!part.locks.empty()) {
    NACRE_RETURN_IF_ERROR(shard_->locks()->Check(part));
    // The next owner gives locks of its own.
    NACRE_RETURN_IF_ERROR(shard_->CheckOwned());
  }
  for (const KeyCheck& check : part.checks) {
    const SequenceNumber since = check.since->GetSequenceNumber();
    SequenceNumber latest = 0;
    NACRE_RETURN_IF_ERROR(shard_->LatestSequenceOf(check.family, check.key, since, &latest));
    if (latest > since && !NACRE_PLANTED_BUG("batch.checks-are-left-out")) {
      return WriteChecks::Conflict();
    }
  }
  return Status::OK();
}

Status LocalParticipant::WriteAlone(const std::string& batch, const WriteOptions& options,
                                    const BatchPart& part, Deadline deadline) {
  NACRE_RETURN_IF_ERROR(Prepare(batch, options, part, /*decides=*/true, deadline));
  Status status = BeginCommit(batch, deadline);
  Batch* const entry = BeginWriting(batch);
  if (entry == nullptr) return Left();
  bool begun = false;
  if (status.ok() && entry->part.Count() > 0) {
    begun = true;
    status = shard_->db()->Write(entry->options, &entry->part);
  }
  End(batch);
  return begun ? shard_->OutcomeOfWrite(std::move(status)) : status;
}

Status LocalParticipant::BeginCommit(const std::string& batch, Deadline deadline) {
  Batch* const entry = BeginWriting(batch);
  if (entry == nullptr) return Left();
  Status status;
  // It has entered if the shard was opened anew since it was prepared.
  if (!entry->in_gate && !NACRE_PLANTED_BUG("batch.committed-while-a-snapshot-is-taken")) {
    status = shard_->local_owner()->gate()->Enter(batch, deadline, &leaving_);
    entry->in_gate = status.ok();
    if (!status.ok() && leaving_.load()) status = Left();
  }
  // Families may have been dropped since; none is from here on, until all parts are committed.
  if (status.ok()) status = shard_->engine()->CheckWrite(entry->options, entry->part);
  EndWriting(batch, Batch::State::kPrepared);
  return status;
}

Status LocalParticipant::Decide(const std::string& batch, bool* refused) {
  *refused = true;
  Batch* const entry = BeginWriting(batch);
  if (entry == nullptr) return Left();
  const Status status = WriteDecision(batch, entry);
  if (status.ok()) {
    End(batch);
    return status;
  }
  *refused = IsRefusal(status);
  entry->in_doubt = !*refused;
  EndWriting(batch, *refused ? Batch::State::kPrepared : Batch::State::kFailed);
  return status;
}

Status LocalParticipant::WriteDecision(const std::string& batch, Batch* entry) {
  if (entry->options.disable_wal) return shard_->db()->Write(entry->options, &entry->part);
  std::vector<std::string> forgotten;
  {
    MutexLock lock(&mutex_);
    forgotten = std::exchange(forgotten_, {});
  }
  // A refused decision leaves the part as it is.
  WriteBatch updates = entry->part;
  Status status;
  if (!NACRE_PLANTED_BUG("batch.decision-not-recorded")) {
    status = store_.AddEntry(RecordOf(batch), {}, &updates);
  }
  for (const std::string& name : forgotten) {
    if (status.ok()) status = store_.AddRemoval(RecordOf(name), &updates);
  }
  if (status.ok()) status = shard_->db()->Write(Durable(entry->options), &updates);
  MutexLock lock(&mutex_);
  if (status.ok()) {
    decided_.insert(batch);
    for (const std::string& name : forgotten) decided_.erase(name);
  } else {
    // Removing one twice does no harm.
    forgotten_.insert(forgotten_.end(), forgotten.begin(), forgotten.end());
  }
  return status;
}

Status LocalParticipant::Commit(const std::string& batch) {
  Batch* const entry = BeginWriting(batch);
  if (entry == nullptr) {
    MutexLock lock(&mutex_);
    return left_ ? Left() : Status::OK();
  }
  // It has been decided, and must not be refused for the sake of a stall.
  WriteOptions patient = entry->options;
  patient.no_slowdown = false;
  WriteBatch updates = entry->part;
  if (updates.Count() == 0 && !entry->has_entry) {
    End(batch);
    return Status::OK();
  }
  Status status;
  if (entry->of_earlier_process) {
    status =
        KeepFamilies([this](uint32_t id) { return shard_->engine()->HasFamily(id); }, &updates);
  }
  if (!patient.disable_wal) {
    if (status.ok()) status = store_.AddRemoval(batch, &updates);
    patient = Durable(patient);
  }
  if (status.ok()) status = shard_->db()->Write(patient, &updates);
  if (status.ok()) {
    End(batch);
  } else {
    EndWriting(batch, Batch::State::kPrepared);
  }
  return status;
}

void LocalParticipant::LeaveToOwner(const std::string& batch) {
  MutexLock lock(&mutex_);
  if (const auto found = batches_.find(batch); found != batches_.end()) {
    found->second.orphaned = true;
  }
}

void LocalParticipant::Abort(const std::string& batch) {
  Batch* const entry = BeginWriting(batch);
  if (entry != nullptr) AbortNow(batch, *entry);
}

void LocalParticipant::AbortNow(const std::string& batch, const Batch& entry) {
  if (entry.has_entry) RemoveEntry(batch, entry.options);
  End(batch);
}

Status LocalParticipant::Settle(const std::string& batch, bool* decided) {
  Batch* entry = nullptr;
  {
    MutexLock lock(&mutex_);
    *decided = decided_.contains(batch);
    if (*decided) return Status::OK();
    if (left_) return Left();
    const auto found = batches_.find(batch);
    if (found == batches_.end()) return Status::OK();
    if (found->second.in_doubt) {
      return Status::TryAgain("batch " + batch + ": it is unknown whether it was decided");
    }
    if (found->second.state == Batch::State::kWriting) {
      return Status::Busy("batch " + batch + ": it may be being decided");
    }
    // From here on it cannot be decided.
    entry = &found->second;
    entry->state = Batch::State::kWriting;
  }
  AbortNow(batch, *entry);
  return Status::OK();
}

void LocalParticipant::Forget(const std::string& batch) {
  MutexLock lock(&mutex_);
  if (decided_.contains(batch)) forgotten_.push_back(batch);
}

void LocalParticipant::Fail(const std::string& batch, const Status& why) {
  // What uses its keys waits until the batch is settled, here or by the next owner.
  if (shard_->may_move()) return LeaveToOwner(batch);
  Batch* const entry = BeginWriting(batch);
  if (entry == nullptr) return;
  LeaveGate(batch, entry);
  shard_->holds()->Fail(batch, why);
  EndWriting(batch, Batch::State::kFailed);
}

// ---- Their ends ---------------------------------------------------------------------------------

LocalParticipant::Batch* LocalParticipant::BeginWriting(const std::string& batch) {
  MutexLock lock(&mutex_);
  for (;;) {
    const auto found = batches_.find(batch);
    if (left_ || found == batches_.end()) return nullptr;
    if (found->second.state != Batch::State::kWriting) {
      found->second.state = Batch::State::kWriting;
      return &found->second;
    }
    written_.Wait();
  }
}

void LocalParticipant::EndWriting(const std::string& batch, Batch::State state) {
  MutexLock lock(&mutex_);
  batches_.at(batch).state = state;
  written_.SignalAll();
}

void LocalParticipant::LeaveGate(const std::string& batch, Batch* entry) {
  if (std::exchange(entry->in_gate, false)) shard_->local_owner()->gate()->Leave(batch);
}

void LocalParticipant::End(const std::string& batch) {
  MutexLock lock(&mutex_);
  const auto found = batches_.find(batch);
  LeaveGate(batch, &found->second);
  batches_.erase(found);
  shard_->holds()->Release(batch);
  written_.SignalAll();
}

void LocalParticipant::RemoveEntry(const std::string& batch, const WriteOptions& options) {
  // What cannot be removed now is removed when the batch is settled.
  WriteBatch removal;
  Status status = store_.AddRemoval(batch, &removal);
  if (status.ok()) status = shard_->db()->Write(options, &removal);
  status.IgnoreError();
}

// ---- From one process to the next ---------------------------------------------------------------

Status LocalParticipant::Open() {
  const Deadline deadline = shard_->OperationDeadline();
  return store_.Open([&](const std::string& name, WriteBatch* updates) -> Status {
    MutexLock lock(&mutex_);
    if (IsDecision(name)) {
      decided_.insert(name.substr(0, name.size() - kDecided.size()));
      return Status::OK();
    }
    KeySets keys = KeysOf(*updates);
    for (KeySet& set : keys) set.family = shard_->KeyspaceId(set.family);
    NACRE_RETURN_IF_ERROR(shard_->holds()->Acquire(name, std::move(keys), deadline));
    // It may have been decided, so no snapshot may be taken before it is committed here, too.
    shard_->local_owner()->gate()->EnterAtOnce(name);
    batches_.emplace(name, Batch{.part = std::move(*updates),
                                 .has_entry = true,
                                 .in_gate = true,
                                 .of_earlier_process = true});
    return Status::OK();
  });
}

void LocalParticipant::Leave() {
  // The snapshot that a batch waits for may wait for another one that needs the shard's next owner.
  leaving_.store(true);
  shard_->local_owner()->gate()->Wake();
  MutexLock lock(&mutex_);
  left_ = true;
  for (;;) {
    bool writing = false;
    for (auto it = batches_.begin(); it != batches_.end();) {
      if (it->second.state == Batch::State::kWriting) {
        writing = true;
        ++it;
        continue;
      }
      LeaveGate(it->first, &it->second);
      shard_->holds()->Release(it->first);
      it = batches_.erase(it);
    }
    if (!writing) return;
    written_.Wait();
  }
}

void LocalParticipant::Close() {
  Leave();
  store_.Close();
}

std::vector<std::string> LocalParticipant::Unsettled() const {
  MutexLock lock(&mutex_);
  std::vector<std::string> batches;
  if (batches_.empty()) return batches;
  const uint64_t now = shard_->clock()->NowNanos();
  for (const auto& [name, batch] : batches_) {
    if (batch.state == Batch::State::kWriting) continue;
    const bool old = now - batch.begun_nanos > shard_->SettledAfterNanos();
    if (batch.of_earlier_process || batch.orphaned || batch.state == Batch::State::kFailed || old) {
      batches.push_back(name);
    }
  }
  return batches;
}

Status LocalParticipant::DeleteDecisions() {
  std::set<std::string> decided;
  {
    MutexLock lock(&mutex_);
    decided = std::exchange(decided_, {});
    forgotten_.clear();
  }
  for (const std::string& batch : decided) {
    WriteBatch removal;
    NACRE_RETURN_IF_ERROR(store_.AddRemoval(RecordOf(batch), &removal));
    NACRE_RETURN_IF_ERROR(shard_->db()->Write(Durable({}), &removal));
  }
  return Status::OK();
}

}  // namespace nacre
