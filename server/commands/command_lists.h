#pragma once

#include <cstdint>
#include <span>

#include "server/session/command.h"

namespace nacre::server {

// The commands of each file. They live for ever.
std::span<const Command> AclCommands();
std::span<const Command> BitCommands();
std::span<const Command> ClientCommands();
std::span<const Command> ClusterCommands();
std::span<const Command> ConnectionCommands();
std::span<const Command> CounterCommands();
std::span<const Command> HashCommands();
std::span<const Command> KeyCommands();
std::span<const Command> KeySpaceCommands();
std::span<const Command> LcsCommands();
std::span<const Command> ListCommands();
std::span<const Command> ListEndCommands();
std::span<const Command> PubSubCommands();
std::span<const Command> RangeCommands();
std::span<const Command> ScriptCommands();
std::span<const Command> SentinelCommands();
std::span<const Command> ServerCommands();
std::span<const Command> SetCommands();
std::span<const Command> SortedSetCommands();
std::span<const Command> SortedSetRangeCommands();
std::span<const Command> SortedSetStoreCommands();
std::span<const Command> StringCommands();
std::span<const Command> TransactionCommands();

struct CommandList {
  std::span<const Command> (*commands)();
  uint32_t categories;  ///< All its commands have these, beside what their flags tell.
};

/// All of these.
std::span<const CommandList> CommandLists();

}  // namespace nacre::server
