#include "sharding/local_shard.h"

#include <fmt/format.h>

#include <utility>

#include "db/db_impl.h"
#include "db/read/key_sequences.h"
#include "sharding/batches/batch_parts.h"
#include "transactions/below.h"

namespace nacre {

LocalShard::LocalShard(uint32_t id, std::unique_ptr<DB> db, Context context,
                       ShardMap::FamilySet families)
    : Shard(id, this),
      context_(std::move(context)),
      db_(std::move(db)),
      engine_(EngineOf(db_.get())),
      family_set_(families),
      holds_(context_.comparator),
      locks_(context_.clock),
      families_(std::make_shared<const Families>()),
      published_(families_.get()),
      participant_(this) {
  operations_.PrepareToReclaim();
}

LocalShard::~LocalShard() { Close().IgnoreError(); }

// ---- Operations ---------------------------------------------------------------------------------

Status LocalShard::WriteBatchHere(const WriteOptions& options, WriteBatch* updates,
                                  bool* would_wait) {
  return Write([&] { return KeysOf(*updates); },
               [&]() -> Status {
                 if (same_ids()) [[likely]]
                   return db_->Write(options, updates);
                 WriteBatch translated = *updates;
                 NACRE_RETURN_IF_ERROR(Translate(&translated));
                 return db_->Write(options, &translated);
               },
               would_wait);
}

Status LocalShard::LatestSequenceOf(uint32_t family, const Slice& key, SequenceNumber known,
                                    SequenceNumber* sequence) const {
  const std::shared_ptr<ColumnFamilyHandle> handle = Hold(family);
  if (handle == nullptr && family != 0) {
    return Status::InvalidArgument(fmt::format("column family {} was dropped", family));
  }
  return engine_->key_sequences().Latest(IdOf(handle.get()), key, known, sequence);
}

Status LocalShard::OutcomeOfWrite(Status status) const {
  if (!IsOfClosedDatabase(status) || !context_.may_move) [[likely]]
    return status;
  // It may have reached the log before that was taken away.
  return Status::TimedOut(Lost(status).ToString());
}

Status LocalShard::CheckOwned() const {
  if (!context_.may_move) return Status::OK();
  if (left()) return Left();
  // A read needs the owner's lease, whatever it finds.
  PinnableSlice value;
  const Status status = db_->Get({}, nullptr, Slice(), &value);
  if (status.ok() || status.IsNotFound()) return left() ? Left() : Status::OK();
  return IsOfClosedDatabase(status) ? Lost(status) : status;
}

Status LocalShard::AwaitOperations(Deadline deadline) {
  if (operations_.AwaitGuards(deadline)) return Status::OK();
  return Status::TimedOut(fmt::format("operations on shard {} do not end", id()));
}

Status LocalShard::Left() const { return Status::Fenced(fmt::format("shard {} has moved", id())); }

Status LocalShard::Lost(const Status& status) const {
  // It is closed while operations still run if these do not end.
  if (left()) return Left();
  lost_.store(true, std::memory_order_relaxed);
  return status.WithContext(fmt::format("shard {}", id()));
}

Status LocalShard::Leave(Deadline deadline) {
  left_.store(true, std::memory_order_seq_cst);
  locks_.End();
  participant_.Leave();
  return AwaitOperations(deadline);
}

Status LocalShard::Close() {
  left_.store(true, std::memory_order_release);
  locks_.End();
  participant_.Close();
  return db_->Close();
}

// ---- Families -----------------------------------------------------------------------------------

ColumnFamilyHandle* LocalShard::Handle(uint32_t family) const {
  if (family == 0) return nullptr;
  const Families& families = *published_.load(std::memory_order_acquire);
  return family < families.size() ? families[family].get() : nullptr;
}

std::shared_ptr<ColumnFamilyHandle> LocalShard::Hold(uint32_t family) const {
  MutexLock lock(&mutex_);
  return family < families_->size() ? (*families_)[family] : nullptr;
}

void LocalShard::AddFamily(uint32_t id, std::shared_ptr<ColumnFamilyHandle> handle) {
  if (handle->GetID() != id) same_ids_.store(false, std::memory_order_relaxed);
  MutexLock lock(&mutex_);
  Families families = *families_;
  if (families.size() <= id) families.resize(id + 1);
  families[id] = std::move(handle);
  Publish(std::move(families));
}

void LocalShard::RemoveFamily(uint32_t id) {
  MutexLock lock(&mutex_);
  if (id >= families_->size()) return;
  Families families = *families_;
  families[id].reset();
  Publish(std::move(families));
}

void LocalShard::Publish(Families families) {
  const std::shared_ptr<const Families> before =
      std::exchange(families_, std::make_shared<const Families>(std::move(families)));
  published_.store(families_.get(), std::memory_order_release);
  operations_.Retire([before] {});
}

uint32_t LocalShard::KeyspaceId(uint32_t id) const {
  MutexLock lock(&mutex_);
  for (size_t i = 0; i < families_->size(); ++i) {
    const auto& family = (*families_)[i];
    if (family != nullptr && family->GetID() == id) return static_cast<uint32_t>(i);
  }
  return id;
}

Status LocalShard::PrepareHandover() const {
  return Do([this] { return engine_->PrepareHandover(); });
}

uint64_t LocalShard::BytesHeld() const {
  uint64_t bytes = 0;
  for (const char* const property :
       {"nacre.total-sst-files-size", "nacre.cur-size-all-mem-tables"}) {
    uint64_t part = 0;
    if (db_->GetAggregatedIntProperty(property, &part)) bytes += part;
  }
  return bytes;
}

Status LocalShard::CloseForHandover() {
  participant_.Close();
  return engine_->CloseForHandover();
}

Status LocalShard::Translate(WriteBatch* updates) const {
  if (same_ids()) return Status::OK();
  return RenameFamilies([this](uint32_t id) { return Hold(id); }, updates);
}

}  // namespace nacre
