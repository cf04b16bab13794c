// What a ShardService does with the database of a shard as a whole.

#include <string>
#include <unordered_map>
#include <vector>

#include "sharding/remote/shard_service.h"

namespace nacre {
namespace {

using sharding::DatabaseReply;
using sharding::DatabaseRequest;

/// A bound that may be missing.
class Bounds {
 public:
  explicit Bounds(const DatabaseRequest& request) {
    if (request.ranges().empty()) return;
    const sharding::KeyRange& range = request.ranges(0);
    has_begin_ = range.has_begin();
    has_end_ = range.has_end();
    begin_ = range.begin();
    end_ = range.end();
  }
  const Slice* begin() const { return has_begin_ ? &begin_ : nullptr; }
  const Slice* end() const { return has_end_ ? &end_ : nullptr; }

 private:
  bool has_begin_ = false;
  bool has_end_ = false;
  Slice begin_;
  Slice end_;
};

std::unordered_map<std::string, std::string> ChangesOf(const DatabaseRequest& request) {
  return {request.options().begin(), request.options().end()};
}

Status Sizes(DB* db, ColumnFamilyHandle* family, const DatabaseRequest& request,
             DatabaseReply* reply) {
  std::vector<Range> ranges;
  for (const sharding::KeyRange& range : request.ranges()) {
    ranges.push_back({Slice(range.begin()), Slice(range.end())});
  }
  std::vector<uint64_t> sizes(ranges.size());
  NACRE_RETURN_IF_ERROR(db->GetApproximateSizes(family, ranges.data(),
                                                static_cast<int>(ranges.size()), sizes.data()));
  for (const uint64_t size : sizes) reply->add_numbers(size);
  return Status::OK();
}

void IntProperty(DB* db, ColumnFamilyHandle* family, const DatabaseRequest& request,
                 DatabaseReply* reply) {
  uint64_t number = 0;
  reply->set_found(request.kind() == DatabaseRequest::INT_PROPERTY
                       ? db->GetIntProperty(family, request.name(), &number)
                       : db->GetAggregatedIntProperty(request.name(), &number));
  reply->add_numbers(number);
}

void MapProperty(DB* db, ColumnFamilyHandle* family, const DatabaseRequest& request,
                 DatabaseReply* reply) {
  std::map<std::string, std::string> values;
  reply->set_found(db->GetMapProperty(family, request.name(), &values));
  reply->mutable_map()->insert(values.begin(), values.end());
}

Status RunOn(DB* db, ColumnFamilyHandle* family, const DatabaseRequest& request,
             DatabaseReply* reply) {
  const Bounds bounds(request);
  switch (request.kind()) {
    case DatabaseRequest::FLUSH: {
      FlushOptions options;
      options.wait = request.flag();
      return db->Flush(options, family);
    }
    case DatabaseRequest::FLUSH_WAL:
      return db->FlushWAL(request.flag());
    case DatabaseRequest::COMPACT_RANGE:
      return db->CompactRange({.change_level = request.change_level(),
                               .target_level = request.target_level(),
                               .max_subcompactions = request.max_subcompactions()},
                              family, bounds.begin(), bounds.end());
    case DatabaseRequest::SUGGEST_COMPACT_RANGE:
      return db->SuggestCompactRange(family, bounds.begin(), bounds.end());
    case DatabaseRequest::WAIT_FOR_COMPACT:
      return db->WaitForCompact();
    case DatabaseRequest::VERIFY_CHECKSUM:
      return db->VerifyChecksum();
    case DatabaseRequest::RESET_STATS:
      return db->ResetStats();
    case DatabaseRequest::PROPERTY:
      reply->set_found(db->GetProperty(family, request.name(), reply->mutable_text()));
      return Status::OK();
    case DatabaseRequest::INT_PROPERTY:
    case DatabaseRequest::AGGREGATED_INT_PROPERTY:
      IntProperty(db, family, request, reply);
      return Status::OK();
    case DatabaseRequest::MAP_PROPERTY:
      MapProperty(db, family, request, reply);
      return Status::OK();
    case DatabaseRequest::APPROXIMATE_SIZES:
      return Sizes(db, family, request, reply);
    case DatabaseRequest::SET_OPTIONS:
      return db->SetOptions(family, ChangesOf(request));
    case DatabaseRequest::SET_DB_OPTIONS:
      return db->SetDBOptions(ChangesOf(request));
    case DatabaseRequest::RESUME:
      return db->Resume();
    case DatabaseRequest::PAUSE_BACKGROUND_WORK:
      return db->PauseBackgroundWork();
    case DatabaseRequest::CONTINUE_BACKGROUND_WORK:
      return db->ContinueBackgroundWork();
    case DatabaseRequest::LATEST_SEQUENCE_NUMBER:
      reply->add_numbers(db->GetLatestSequenceNumber());
      return Status::OK();
    case DatabaseRequest::NUMBER_LEVELS:
      reply->add_numbers(static_cast<uint64_t>(db->NumberLevels(family)));
      return Status::OK();
    default:
      return Status::NotSupported("this member does not know the request");
  }
}

}  // namespace

Status ShardService::RunDatabase(LocalShard* shard, const DatabaseRequest& request,
                                 DatabaseReply* reply) {
  // It may take long, so it does not hold up a move.
  const std::shared_ptr<ColumnFamilyHandle> family = shard->Hold(request.family());
  if (family == nullptr && request.family() != 0) {
    return Status::InvalidArgument("column family " + std::to_string(request.family()) +
                                   " was dropped");
  }
  return shard->Do([&] { return RunOn(shard->db(), family.get(), request, reply); });
}

}  // namespace nacre
