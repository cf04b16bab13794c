#include "server/acl/acl_command.h"

#include <algorithm>
#include <string>

#include "server/resp/numbers.h"

namespace nacre::server {
namespace {

constexpr std::string_view kCategoryNames[] = {
    "keyspace", "read",   "write",       "set",       "sortedset",  "list",        "hash",
    "string",   "bitmap", "hyperloglog", "geo",       "stream",     "pubsub",      "admin",
    "fast",     "slow",   "blocking",    "dangerous", "connection", "transaction", "scripting",
};

}  // namespace

std::span<const std::string_view> AclCategoryNames() { return kCategoryNames; }

uint32_t AclCategoryOf(std::string_view name) {
  for (size_t i = 0; i < std::size(kCategoryNames); ++i) {
    if (SameWord(kCategoryNames[i], name)) return uint32_t{1} << i;
  }
  return 0;
}

std::vector<std::string_view> Subcommands(std::string_view words) {
  std::vector<std::string_view> all;
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    all.push_back(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return all;
}

bool AclCommand::HasSubcommand(std::string_view word) const {
  if (subcommands.empty()) return false;
  return SameWord(word, "HELP") || std::ranges::any_of(Subcommands(subcommands), [&](auto each) {
           return SameWord(each, word);
         });
}

const AclCommand* AclCatalog::Find(std::string_view name) const {
  const auto found = commands_.find(LowerCase(name));
  return found == commands_.end() ? nullptr : &found->second;
}

}  // namespace nacre::server
