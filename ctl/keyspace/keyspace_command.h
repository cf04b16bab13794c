#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "nacre/status.h"
#include "pool/connect/peer_device.h"
#include "util/clock.h"

// The commands of nacre-ctl about keyspaces with a coordinator:
//
//   shards KEYSPACE
//   members KEYSPACE [drain MEMBER | undrain MEMBER]
//   move KEYSPACE SHARD MEMBER
//   balance KEYSPACE [pause | resume]
//   split KEYSPACE SHARD, merge KEYSPACE SHARD SHARD

namespace nacre::ctl {

struct KeyspaceRequest {
  std::string coordinator;  ///< As ShardedOptions has it.
  pool::PeerSecurity security{};
  std::chrono::milliseconds timeout{3000};
  bool json = false;
  bool wait = true;  ///< drain: until the member serves no shards.
};

/// Whether `words` begin with such a command.
bool IsKeyspaceCommand(const std::vector<std::string>& words);
/// Whether they are one, with the arguments that it takes.
bool FitsKeyspaceCommand(const std::vector<std::string>& words);

/// Does what `words` say, which fit, and prints to standard output. `*fine` is false if not all
/// shards, or members, could be told about. MEMBER is an id, or an address with or without its
/// scheme (`InvalidArgument` if there is no such member). Fails as KeyspaceAdmin does;
/// `NotSupported` for split and merge.
Status RunKeyspaceCommand(const KeyspaceRequest& request, const std::vector<std::string>& words,
                          Clock* clock, bool* fine);

}  // namespace nacre::ctl
