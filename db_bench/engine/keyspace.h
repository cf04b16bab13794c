#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "db_bench/config.h"
#include "db_bench/engine/member_process.h"
#include "db_bench/engine/nacre_database.h"
#include "nacre/options.h"
#include "nacre/status.h"
#include "nacre/utilities/sharded_db.h"
#include "util/clock.h"

namespace nacre::bench {

/// Options of the keyspace that --sharded, and --coordinator, ask for.
ShardedOptions KeyspaceOptions(const BenchConfig& config, const Options& options);

/// Deletes the keyspace, whether it has a coordinator or not. Waits for members that an earlier run
/// has left.
Status DestroyKeyspace(const BenchConfig& config, const std::string& name, const Options& options);

/// "2 members (shm:@, tcp:127.0.0.1:0)".
std::string DescribeMembers(const BenchConfig& config);

/// In a process that db_bench has started: opens the keyspace, and serves its shards until it shall
/// end.
Status ServeMember(const BenchConfig& config);

/// The members of a keyspace that this process has open by a coordinator. Most of them are
/// processes that it has started, which end with this object.
///
/// Invariant: between calls no shard moves by itself, save from members that are gone.
///
/// Thread safety: none.
class KeyspaceMembers {
 public:
  /// Starts the other processes, opens the keyspace, and gives each member as many shards.
  static Status Open(const BenchConfig& config, const std::string& name, const Options& options,
                     NacreDatabase* database, std::unique_ptr<KeyspaceMembers>* members);
  ~KeyspaceMembers() = default;  // Kills those that have not ended.
  KeyspaceMembers(const KeyspaceMembers&) = delete;
  KeyspaceMembers& operator=(const KeyspaceMembers&) = delete;

  ShardedDB* db() const { return db_; }
  /// Those that own shards, in the order of their ids.
  Status Servers(std::vector<ShardMember>* servers) const;
  /// Kills a process that was started, one that does not lead if there is such a one. `*shards` are
  /// those that it had.
  Status KillOne(ShardMember* killed, std::vector<ShardInfo>* shards);
  /// Starts a process in the place of that, and spreads the shards anew.
  Status Replace();

  /// Has the processes close the keyspace and end.
  void BeginEnd();
  /// Waits for that. The first failure, if any.
  Status AwaitEnd();

 private:
  explicit KeyspaceMembers(const BenchConfig& config);

  Status StartProcesses();
  /// Until all members that there shall be, and no others, are there.
  Status AwaitMembers() const;
  Status Spread();

  const BenchConfig& config_;
  Clock* const clock_;
  ShardedDB* db_ = nullptr;
  std::vector<std::unique_ptr<MemberProcess>> processes_;
};

}  // namespace nacre::bench
