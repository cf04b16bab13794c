#include "server/commands/command_lists.h"

namespace nacre::server {
namespace {

constexpr CommandList kLists[] = {
    {&AclCommands, 0},
    {&BitCommands, kAclBitmap},
    {&ClientCommands, kAclConnection},
    {&ClusterCommands, kAclConnection},
    {&ConnectionCommands, kAclConnection},
    {&CounterCommands, kAclString},
    {&HashCommands, kAclHash},
    {&KeyCommands, kAclKeyspace},
    {&KeySpaceCommands, kAclKeyspace},
    {&LcsCommands, kAclString},
    {&ListCommands, kAclList},
    {&ListEndCommands, kAclList},
    {&PubSubCommands, kAclPubSub},
    {&RangeCommands, kAclKeyspace},
    {&ScriptCommands, kAclScripting},
    {&SentinelCommands, kAclDangerous},
    {&ServerCommands, 0},
    {&SetCommands, kAclSet},
    {&SortedSetCommands, kAclSortedSet},
    {&SortedSetRangeCommands, kAclSortedSet},
    {&SortedSetStoreCommands, kAclSortedSet},
    {&StringCommands, kAclString},
    {&TransactionCommands, kAclTransaction},
};

}  // namespace

std::span<const CommandList> CommandLists() { return kLists; }

}  // namespace nacre::server
