#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/options.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "sharding/balance/balance_options.h"
#include "sharding/remote/member_request.pb.h"
#include "sharding/shard_map.h"

namespace nacre {

// What members send one another, as values of this process.

void SetStatus(const Status& status, sharding::MemberReply* reply);
/// What the operation came to there. `Fenced` if the shard has moved.
Status GetStatus(const sharding::MemberReply& reply);

void EncodeOptions(const WriteOptions& options, sharding::WriteFlags* flags);
WriteOptions DecodeOptions(const sharding::WriteFlags& flags);

void EncodeKey(uint32_t family, const Slice& key, sharding::LockedKey* encoded);

/// Bounds and snapshots have fields of their own.
void EncodeOptions(const ReadOptions& options, uint64_t snapshot, sharding::ReadFlags* flags);
ReadOptions DecodeOptions(const sharding::ReadFlags& flags);

/// What is asked of the member that leads.
sharding::ControlRequest MoveRequest(uint32_t shard, int64_t member);
sharding::ControlRequest DrainRequest(int64_t member, bool drain);
sharding::ControlRequest BalanceRequest(const BalanceChanges& changes);
sharding::ControlRequest MakeFamiliesRequest(const FamilyOptions& families);
sharding::ControlRequest DropFamiliesRequest(const std::vector<std::string>& names);
sharding::ControlRequest SplitRequest(uint32_t shard, const std::string& key);
sharding::ControlRequest MergeRequest(uint32_t low, uint32_t high);

}  // namespace nacre
