#include "sharding/remote/remote_db.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "db/read/db_iterator.h"
#include "db/read/view_reads.h"
#include "sharding/remote/member_codec.h"
#include "sharding/remote/remote_iterator.h"
#include "transactions/below.h"

namespace nacre {
namespace {

class RemoteFamily final : public ColumnFamilyHandle {
 public:
  RemoteFamily(uint32_t id, std::string name) : id_(id), name_(std::move(name)) {}

  const std::string& GetName() const override { return name_; }
  uint32_t GetID() const override { return id_; }

 private:
  const uint32_t id_;
  const std::string name_;
};

uint64_t SnapshotOf(const ReadOptions& options) {
  return options.snapshot == nullptr ? 0
                                     : static_cast<const RemoteSnapshot*>(options.snapshot)->id();
}

/// What came of one key.
Status Take(const ReadOptions& options, const sharding::Value& read, PinnableSlice* value) {
  if (read.code() == 0) [[likely]] {
    value->PinSelf(read.value());
    return Status::OK();
  }
  Status status = Status::FromCode(static_cast<int>(read.code()), read.value());
  return options.snapshot == nullptr ? std::move(status) : AtSnapshot(status);
}

}  // namespace

RemoteDB::RemoteDB(uint32_t shard, std::string name, const std::vector<ShardMap::Family>& families,
                   const Comparator* comparator, std::shared_ptr<RemoteOwner> owner,
                   ShardFollowers* followers)
    : shard_(shard),
      name_(std::move(name)),
      comparator_(comparator),
      owner_(std::move(owner)),
      followers_(followers),
      default_family_(std::make_unique<RemoteFamily>(0, kDefaultColumnFamilyName)) {
  for (const ShardMap::Family& family : families) {
    families_.emplace(family.id, std::make_unique<RemoteFamily>(family.id, family.name));
  }
}

RemoteDB::~RemoteDB() = default;

// ---- Families -----------------------------------------------------------------------------------

ColumnFamilyHandle* RemoteDB::Handle(uint32_t family) const {
  const auto found = families_.find(family);
  return found == families_.end() ? nullptr : found->second.get();
}

Status RemoteDB::NotHere(const char* method) const {
  return Status::NotSupported(
      fmt::format("{}: another process serves shard {} ({})", method, shard_, name_));
}

Status RemoteDB::CreateColumnFamilies(const std::vector<ColumnFamilyDescriptor>& /*families*/,
                                      std::vector<ColumnFamilyHandle*>* handles) {
  handles->clear();
  return NotHere("CreateColumnFamilies");
}

Status RemoteDB::DropColumnFamilies(const std::vector<ColumnFamilyHandle*>& /*families*/) {
  return NotHere("DropColumnFamilies");
}

// ---- Writes -------------------------------------------------------------------------------------

Status RemoteDB::Send(const WriteOptions& options, const WriteBatch& updates) {
  MemberExchange exchange(shard_);
  sharding::WriteRequest* const write = exchange.request()->mutable_write();
  write->set_updates(updates.Data());
  EncodeOptions(options, write->mutable_flags());
  return owner_->Call(exchange.request(), owner_->OperationDeadline(), Unanswered::kOpen,
                      exchange.reply());
}

Status RemoteDB::Put(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
                     const Slice& value) {
  WriteBatch batch;
  NACRE_RETURN_IF_ERROR(batch.Put(family, key, value));
  return Send(options, batch);
}

Status RemoteDB::Delete(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key) {
  WriteBatch batch;
  NACRE_RETURN_IF_ERROR(batch.Delete(family, key));
  return Send(options, batch);
}

Status RemoteDB::SingleDelete(const WriteOptions& options, ColumnFamilyHandle* family,
                              const Slice& key) {
  WriteBatch batch;
  NACRE_RETURN_IF_ERROR(batch.SingleDelete(family, key));
  return Send(options, batch);
}

Status RemoteDB::DeleteRange(const WriteOptions& options, ColumnFamilyHandle* family,
                             const Slice& begin, const Slice& end) {
  WriteBatch batch;
  NACRE_RETURN_IF_ERROR(batch.DeleteRange(family, begin, end));
  return Send(options, batch);
}

Status RemoteDB::Merge(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
                       const Slice& operand) {
  WriteBatch batch;
  NACRE_RETURN_IF_ERROR(batch.Merge(family, key, operand));
  return Send(options, batch);
}

Status RemoteDB::Write(const WriteOptions& options, WriteBatch* updates) {
  if (updates == nullptr) return Status::InvalidArgument("Write: there is no batch");
  return Send(options, *updates);
}

// ---- Reads --------------------------------------------------------------------------------------

Status RemoteDB::Read(const ReadOptions& options, ColumnFamilyHandle* family, size_t num_keys,
                      const Slice* keys, MemberExchange* exchange) {
  sharding::ReadRequest* const read = exchange->request()->mutable_read();
  read->set_family(IdOf(family));
  for (size_t i = 0; i < num_keys; ++i) read->add_keys(keys[i].data(), keys[i].size());
  EncodeOptions(options, SnapshotOf(options), read->mutable_flags());
  Status status = owner_->Call(exchange->request(), owner_->OperationDeadline(), Unanswered::kRetry,
                               exchange->reply());
  return options.snapshot == nullptr ? std::move(status) : AtSnapshot(status);
}

std::shared_ptr<ShardFollower> RemoteDB::FollowerFor(const ReadOptions& options) const {
  if (!ShardFollowers::MayAnswer(options)) [[likely]]
    return nullptr;
  return followers_->Find(shard_);
}

Status RemoteDB::Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                     PinnableSlice* value) {
  value->Reset();
  if (const auto follower = FollowerFor(options); follower != nullptr) {
    Status status = follower->Get(options, IdOf(family), key, value);
    if (status.ok() || status.IsNotFound()) return status;
    value->Reset();
  }
  MemberExchange exchange(shard_);
  NACRE_RETURN_IF_ERROR(Read(options, family, 1, &key, &exchange));
  const auto& values = exchange.reply()->read().values();
  if (values.size() != 1) return Status::Corruption("a member answers a read by no value");
  return Take(options, values.Get(0), value);
}

void RemoteDB::MultiGet(const ReadOptions& options, ColumnFamilyHandle* family, size_t num_keys,
                        const Slice* keys, PinnableSlice* values, Status* statuses) {
  for (size_t i = 0; i < num_keys; ++i) values[i].Reset();
  if (num_keys == 0) return;
  if (const auto follower = FollowerFor(options); follower != nullptr) {
    follower->MultiGet(options, IdOf(family), num_keys, keys, values, statuses);
    const bool answered = std::all_of(statuses, statuses + num_keys, [](const Status& status) {
      return status.ok() || status.IsNotFound();
    });
    if (answered) return;
    for (size_t i = 0; i < num_keys; ++i) values[i].Reset();
  }
  MemberExchange exchange(shard_);
  Status status = Read(options, family, num_keys, keys, &exchange);
  const auto& read = exchange.reply()->read().values();
  if (status.ok() && static_cast<size_t>(read.size()) != num_keys) {
    status = Status::Corruption("a member answers a read by another number of values");
  }
  if (!status.ok()) {
    std::fill_n(statuses, num_keys, status);
    return;
  }
  for (size_t i = 0; i < num_keys; ++i) {
    statuses[i] = Take(options, read.Get(static_cast<int>(i)), &values[i]);
  }
}

Status RemoteDB::GetMergeOperands(const ReadOptions& options, ColumnFamilyHandle* family,
                                  const Slice& key, PinnableSlice* merge_operands,
                                  GetMergeOperandsOptions* get_merge_operands_options,
                                  int* number_of_operands) {
  NACRE_RETURN_IF_ERROR(
      CheckOperandsCall(merge_operands, get_merge_operands_options, number_of_operands));
  MemberExchange exchange(shard_);
  // 0 would ask for what they make.
  exchange.request()->mutable_read()->set_merge_operands(static_cast<uint32_t>(
      std::max(get_merge_operands_options->expected_max_number_of_operands, 1)));
  const Status status = Read(options, family, 1, &key, &exchange);
  const sharding::ReadReply& read = exchange.reply()->read();
  if (!status.ok()) {
    if (status.IsIncomplete()) *number_of_operands = read.values_size();
    return status;
  }
  std::vector<std::string> operands;
  for (const sharding::Value& operand : read.values()) operands.push_back(operand.value());
  return GiveOperands(operands, *get_merge_operands_options, merge_operands, number_of_operands);
}

// ---- Snapshots and iterators --------------------------------------------------------------------

Status RemoteDB::TakeSnapshot(std::unique_ptr<RemoteSnapshot>* snapshot) {
  MemberExchange exchange(shard_);
  exchange.request()->mutable_get_snapshot();
  NACRE_RETURN_IF_ERROR(owner_->Call(exchange.request(), owner_->OperationDeadline(),
                                     Unanswered::kRetry, exchange.reply()));
  const sharding::SnapshotReply& taken = exchange.reply()->get_snapshot();
  if (taken.snapshot() == 0) return Status::Corruption("a member answers no snapshot");
  *snapshot = std::make_unique<RemoteSnapshot>(taken.snapshot(), taken.sequence());
  return Status::OK();
}

const Snapshot* RemoteDB::GetSnapshot() {
  std::unique_ptr<RemoteSnapshot> snapshot;
  TakeSnapshot(&snapshot).IgnoreError();
  return snapshot.release();
}

void RemoteDB::ReleaseSnapshot(const Snapshot* snapshot) {
  if (snapshot == nullptr) return;
  const std::unique_ptr<const RemoteSnapshot> last(static_cast<const RemoteSnapshot*>(snapshot));
  owner_->ReleaseSnapshot(shard_, last->id());
}

std::unique_ptr<Iterator> RemoteDB::NewIterator(const ReadOptions& options,
                                                ColumnFamilyHandle* family) {
  RemoteScan scan{.shard = shard_, .family = IdOf(family), .snapshot = SnapshotOf(options)};
  if (scan.snapshot == 0) {
    std::unique_ptr<RemoteSnapshot> taken;
    if (Status status = TakeSnapshot(&taken); !status.ok()) return NewErrorIterator(status);
    scan.snapshot = taken->id();
    scan.owns_snapshot = true;
  }
  return NewRemoteIterator(options, scan, owner_);
}

}  // namespace nacre
