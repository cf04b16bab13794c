// What a ShardService does with one shard.

#include <string>
#include <utility>
#include <vector>

#include "sharding/batches/batch_parts.h"
#include "sharding/batches/key_holds.h"
#include "sharding/remote/member_codec.h"
#include "sharding/remote/shard_service.h"

namespace nacre {
namespace {

/// The handle there of a family, which stays while the operation does.
Status HandleOf(const LocalShard& shard, uint32_t family, ColumnFamilyHandle** handle) {
  *handle = shard.Handle(family);
  if (*handle != nullptr || family == 0) return Status::OK();
  return Status::InvalidArgument("column family " + std::to_string(family) + " was dropped");
}

void AddValue(const Status& status, const PinnableSlice& value, sharding::ReadReply* reply) {
  sharding::Value* const added = reply->add_values();
  added->set_code(static_cast<uint32_t>(status.code()));
  if (status.ok()) {
    added->set_value(value.data(), value.size());
  } else {
    added->set_value(std::string(status.message()));
  }
}

Status ReadKeys(LocalShard* shard, ColumnFamilyHandle* handle, const ReadOptions& options,
                const sharding::ReadRequest& request, sharding::ReadReply* reply) {
  const size_t count = static_cast<size_t>(request.keys_size());
  std::vector<Slice> keys;
  for (const std::string& key : request.keys()) keys.emplace_back(key);
  std::vector<PinnableSlice> values(count);
  std::vector<Status> statuses(count);
  if (count == 1) {
    statuses[0] = shard->db()->Get(options, handle, keys[0], &values[0]);
  } else {
    shard->db()->MultiGet(options, handle, count, keys.data(), values.data(), statuses.data());
  }
  for (size_t i = 0; i < count; ++i) {
    if (IsOfClosedDatabase(statuses[i])) return statuses[i];
    AddValue(statuses[i], values[i], reply);
  }
  return Status::OK();
}

Status ReadOperands(LocalShard* shard, ColumnFamilyHandle* handle, const ReadOptions& options,
                    const sharding::ReadRequest& request, sharding::ReadReply* reply) {
  if (request.keys_size() != 1) return Status::InvalidArgument("operands of other than one key");
  constexpr uint32_t kMost = 1 << 16;
  const uint32_t most = std::min(request.merge_operands(), kMost);
  GetMergeOperandsOptions bound;
  bound.expected_max_number_of_operands = static_cast<int>(most);
  std::vector<PinnableSlice> operands(most);
  int count = 0;
  const Status status = shard->db()->GetMergeOperands(options, handle, request.keys(0),
                                                      operands.data(), &bound, &count);
  // If there are too many, their number is the answer.
  if (status.IsIncomplete()) {
    for (int i = 0; i < count; ++i) reply->add_values();
  }
  NACRE_RETURN_IF_ERROR(status);
  for (int i = 0; i < count; ++i) AddValue(Status::OK(), operands[static_cast<size_t>(i)], reply);
  return Status::OK();
}

}  // namespace

Status ShardService::Write(LocalShard* shard, const sharding::WriteRequest& request,
                           bool* would_wait) {
  WriteOptions options = DecodeOptions(request.flags());
  const bool may_stall = !options.no_slowdown;
  if (would_wait != nullptr) options.no_slowdown = true;
  WriteBatch updates(request.updates());
  const Status status = shard->WriteBatchHere(options, &updates, would_wait);
  if (status.IsIncomplete() && may_stall && would_wait != nullptr) {
    // Nothing was written.
    *would_wait = true;
    return Status::OK();
  }
  return status;
}

Status ShardService::SnapshotOf(Client client, const LocalShard& shard, uint64_t id,
                                std::shared_ptr<ServedSnapshot>* snapshot) const {
  *snapshot = clients_->Find(client, id);
  if (*snapshot != nullptr && (*snapshot)->shard() == &shard) return Status::OK();
  return Status::Aborted("shard " + std::to_string(shard.id()) +
                         " has no such snapshot any more, as it has moved or the connection ended");
}

Status ShardService::Read(Client client, LocalShard* shard, const sharding::ReadRequest& request,
                          sharding::ReadReply* reply, bool* would_wait) {
  constexpr int kFewKeys = 8;
  if (would_wait != nullptr && request.keys_size() > kFewKeys) {
    *would_wait = true;
    return Status::OK();
  }
  const auto keys = [&] {
    KeySets sets;
    for (const std::string& key : request.keys()) {
      sets.push_back({.family = request.family(), .begin = key});
    }
    return sets;
  };
  ReadOptions options = DecodeOptions(request.flags());
  const auto work = [&]() -> Status {
    ColumnFamilyHandle* handle = nullptr;
    NACRE_RETURN_IF_ERROR(HandleOf(*shard, request.family(), &handle));
    return request.merge_operands() > 0 ? ReadOperands(shard, handle, options, request, reply)
                                        : ReadKeys(shard, handle, options, request, reply);
  };
  if (request.flags().snapshot() == 0) return shard->Read(keys, work, would_wait);
  std::shared_ptr<ServedSnapshot> snapshot;
  NACRE_RETURN_IF_ERROR(SnapshotOf(client, *shard, request.flags().snapshot(), &snapshot));
  options.snapshot = snapshot->get();
  return shard->ReadAt(keys, work);
}

Status ShardService::Scan(Client client, LocalShard* shard, const sharding::ScanRequest& request,
                          sharding::ScanReply* reply) {
  std::shared_ptr<ServedSnapshot> snapshot;
  NACRE_RETURN_IF_ERROR(SnapshotOf(client, *shard, request.flags().snapshot(), &snapshot));
  ReadOptions options = DecodeOptions(request.flags());
  options.snapshot = snapshot->get();
  const Slice lower(request.lower_bound());
  const Slice upper(request.upper_bound());
  if (request.has_lower_bound()) options.iterate_lower_bound = &lower;
  if (request.has_upper_bound()) options.iterate_upper_bound = &upper;
  const auto keys = [&] {
    return KeySets{{.family = request.family(), .kind = KeySet::Kind::kFamily}};
  };
  return shard->ReadAt(keys, [&]() -> Status {
    ColumnFamilyHandle* handle = nullptr;
    NACRE_RETURN_IF_ERROR(HandleOf(*shard, request.family(), &handle));
    const std::unique_ptr<Iterator> it = shard->db()->NewIterator(options, handle);
    const bool backward = request.backward();
    if (!request.has_from()) {
      backward ? it->SeekToLast() : it->SeekToFirst();
    } else {
      backward ? it->SeekForPrev(request.from()) : it->Seek(request.from());
      if (request.after() && it->Valid() && it->key() == Slice(request.from())) {
        backward ? it->Prev() : it->Next();
      }
    }
    size_t bytes = 0;
    while (it->Valid()) {
      const bool full = reply->keys_size() >= static_cast<int>(request.max_entries()) ||
                        bytes >= request.max_bytes();
      if (full && reply->keys_size() > 0) return it->status();
      reply->add_keys(it->key().data(), it->key().size());
      reply->add_values(it->value().data(), it->value().size());
      bytes += it->key().size() + it->value().size();
      backward ? it->Prev() : it->Next();
    }
    reply->set_end(true);
    return it->status();
  });
}

Status ShardService::TakeSnapshot(Client client, const std::shared_ptr<LocalShard>& shard,
                                  sharding::SnapshotReply* reply) {
  return shard->Do([&]() -> Status {
    const Snapshot* const taken = shard->db()->GetSnapshot();
    if (taken == nullptr) return Status::Unavailable("no snapshot can be taken");
    reply->set_sequence(taken->GetSequenceNumber());
    reply->set_snapshot(clients_->Keep(client, std::make_shared<ServedSnapshot>(shard, taken)));
    return Status::OK();
  });
}

}  // namespace nacre
