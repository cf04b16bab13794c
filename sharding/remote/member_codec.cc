#include "sharding/remote/member_codec.h"

namespace nacre {

void SetStatus(const Status& status, sharding::MemberReply* reply) {
  reply->set_code(static_cast<uint32_t>(status.code()));
  const std::string_view message = status.message();
  reply->set_message(message.data(), message.size());
}

Status GetStatus(const sharding::MemberReply& reply) {
  if (reply.moved()) return Status::Fenced(reply.message());
  return Status::FromCode(static_cast<int>(reply.code()), reply.message());
}

void EncodeOptions(const WriteOptions& options, sharding::WriteFlags* flags) {
  flags->set_sync(options.sync);
  flags->set_disable_wal(options.disable_wal);
  flags->set_no_slowdown(options.no_slowdown);
}

WriteOptions DecodeOptions(const sharding::WriteFlags& flags) {
  WriteOptions options;
  options.sync = flags.sync();
  options.disable_wal = flags.disable_wal();
  options.no_slowdown = flags.no_slowdown();
  return options;
}

void EncodeKey(uint32_t family, const Slice& key, sharding::LockedKey* encoded) {
  encoded->set_family(family);
  encoded->set_key(key.data(), key.size());
}

void EncodeOptions(const ReadOptions& options, uint64_t snapshot, sharding::ReadFlags* flags) {
  flags->set_snapshot(snapshot);
  flags->set_no_verify_checksums(!options.verify_checksums);
}

ReadOptions DecodeOptions(const sharding::ReadFlags& flags) {
  ReadOptions options;
  options.verify_checksums = !flags.no_verify_checksums();
  return options;
}

sharding::ControlRequest MoveRequest(uint32_t shard, int64_t member) {
  sharding::ControlRequest request;
  request.set_kind(sharding::ControlRequest::MOVE);
  request.set_shard(shard);
  request.set_member(member);
  return request;
}

sharding::ControlRequest DrainRequest(int64_t member, bool drain) {
  sharding::ControlRequest request;
  request.set_kind(sharding::ControlRequest::DRAIN);
  request.set_member(member);
  request.set_flag(drain);
  return request;
}

sharding::ControlRequest BalanceRequest(const BalanceChanges& changes) {
  sharding::ControlRequest request;
  request.set_kind(sharding::ControlRequest::SET_BALANCE);
  request.mutable_options()->insert(changes.begin(), changes.end());
  return request;
}

sharding::ControlRequest MakeFamiliesRequest(const FamilyOptions& families) {
  sharding::ControlRequest request;
  request.set_kind(sharding::ControlRequest::MAKE_FAMILIES);
  request.mutable_options()->insert(families.begin(), families.end());
  return request;
}

sharding::ControlRequest DropFamiliesRequest(const std::vector<std::string>& names) {
  sharding::ControlRequest request;
  request.set_kind(sharding::ControlRequest::DROP_FAMILIES);
  for (const std::string& name : names) (*request.mutable_options())[name] = {};
  return request;
}

sharding::ControlRequest SplitRequest(uint32_t shard, const std::string& key) {
  sharding::ControlRequest request;
  request.set_kind(sharding::ControlRequest::SPLIT);
  request.set_shard(shard);
  request.set_key(key);
  return request;
}

sharding::ControlRequest MergeRequest(uint32_t low, uint32_t high) {
  sharding::ControlRequest request;
  request.set_kind(sharding::ControlRequest::MERGE);
  request.set_shard(low);
  request.set_other(high);
  return request;
}

}  // namespace nacre
