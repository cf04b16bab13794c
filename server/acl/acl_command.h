#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

namespace nacre::server {

/// The categories that rules of users name, by Redis's names. Some have no commands here.
enum AclCategory : uint32_t {
  kAclKeyspace = 1 << 0,
  kAclRead = 1 << 1,
  kAclWrite = 1 << 2,
  kAclSet = 1 << 3,
  kAclSortedSet = 1 << 4,
  kAclList = 1 << 5,
  kAclHash = 1 << 6,
  kAclString = 1 << 7,
  kAclBitmap = 1 << 8,
  kAclPubSub = 1 << 12,
  kAclAdmin = 1 << 13,
  kAclFast = 1 << 14,
  kAclSlow = 1 << 15,
  kAclBlocking = 1 << 16,
  kAclDangerous = 1 << 17,
  kAclConnection = 1 << 18,
  kAclTransaction = 1 << 19,
  kAclScripting = 1 << 20,
};

/// The name of bit N is element N.
std::span<const std::string_view> AclCategoryNames();
/// 0: there is no such category.
uint32_t AclCategoryOf(std::string_view name);

/// The words of AclCommand::subcommands.
std::vector<std::string_view> Subcommands(std::string_view words);

/// A command as rules of users know it.
struct AclCommand {
  std::string_view name;  ///< In lower case.
  uint32_t categories = 0;
  /// "get set" of CONFIG; empty: it has none.
  std::string_view subcommands;

  /// Whether `word` is one of the subcommands, or HELP of such a command, in upper or lower case.
  bool HasSubcommand(std::string_view word) const;
};

/// The commands by their names. It does not change once there are users.
class AclCatalog {
 public:
  void Add(const AclCommand& command) { commands_[command.name] = command; }
  /// Null: there is no such command. In upper or lower case.
  const AclCommand* Find(std::string_view name) const;
  const std::map<std::string_view, AclCommand>& commands() const { return commands_; }

 private:
  std::map<std::string_view, AclCommand> commands_;
};

}  // namespace nacre::server
