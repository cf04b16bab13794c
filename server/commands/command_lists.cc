#include "server/commands/command_lists.h"

namespace nacre::server {
namespace {

constexpr CommandList kLists[] = {
    &BitCommands,      &ClientCommands,    &ConnectionCommands,     &CounterCommands,
    &HashCommands,     &ListCommands,      &ListEndCommands,        &KeyCommands,
    &KeySpaceCommands, &LcsCommands,       &RangeCommands,          &ServerCommands,
    &PubSubCommands,   &SortedSetCommands, &SortedSetRangeCommands, &SortedSetStoreCommands,
    &SetCommands,      &StringCommands,    &TransactionCommands,    &ScriptCommands,
    &SentinelCommands,
};

}  // namespace

std::span<const CommandList> CommandLists() { return kLists; }

}  // namespace nacre::server
