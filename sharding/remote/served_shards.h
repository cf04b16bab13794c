#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/status.h"
#include "sharding/local_owner.h"
#include "sharding/local_shard.h"
#include "sharding/remote/member_messages.h"

namespace nacre {

/// What a process serves to the other members of a keyspace.
///
/// Thread safety: all methods may be called from many threads at once.
class ServedShards {
 public:
  virtual ~ServedShards() = default;

  /// As which member; 0: it is none now, but it goes on with what it was asked as an earlier one.
  virtual int64_t member() const = 0;
  /// Null if it does not serve the shard.
  virtual std::shared_ptr<LocalShard> Find(uint32_t shard) const = 0;
  virtual const std::shared_ptr<LocalOwner>& owner() const = 0;
  /// What is asked of the member itself. It may take long.
  virtual Status Control(const sharding::ControlRequest& request,
                         sharding::ControlReply* reply) = 0;
  /// What another program asks of this one: ShardObserver::OnRequest. It may take long.
  virtual Status Answer(const std::string& request, std::string* answer) = 0;
  /// The client that had `batch` prepared in a shard is gone. It must not be held up.
  virtual void Orphaned(uint32_t shard, const std::string& batch) = 0;
};

}  // namespace nacre
