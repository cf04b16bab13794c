#pragma once

#include <google/protobuf/arena.h>

#include <cstddef>
#include <cstdint>

#include "sharding/remote/member_request.pb.h"

namespace nacre {

/// A request to a member and its reply. Small ones need no memory of the heap beside that of their
/// bytes.
///
/// Thread safety: none.
class MemberExchange {
 public:
  explicit MemberExchange(uint32_t shard) : arena_(block_, sizeof(block_)) {
    request_ = google::protobuf::Arena::CreateMessage<sharding::MemberRequest>(&arena_);
    reply_ = google::protobuf::Arena::CreateMessage<sharding::MemberReply>(&arena_);
    request_->set_shard(shard);
  }
  MemberExchange(const MemberExchange&) = delete;
  MemberExchange& operator=(const MemberExchange&) = delete;

  sharding::MemberRequest* request() { return request_; }
  sharding::MemberReply* reply() { return reply_; }

 private:
  alignas(std::max_align_t) char block_[1024];
  google::protobuf::Arena arena_;
  sharding::MemberRequest* request_;  ///< In the arena, as the reply is.
  sharding::MemberReply* reply_;
};

}  // namespace nacre
