#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/status.h"
#include "server/acl/acl_command.h"

namespace nacre::server {

/// What is done with a key; or'ed together. None of them: the key is only named, for which any
/// right will do.
enum AclAccess : uint8_t { kAclReads = 1, kAclWrites = 2 };

struct AclKey {
  std::string_view key;
  uint8_t access = 0;
};

/// What a command wants to do.
struct AclRequest {
  const AclCommand* command = nullptr;
  std::string_view argument;  ///< The first one, which may name a subcommand.
  std::vector<AclKey> keys;
  bool reads_all_keys = false;  ///< It shows values of keys that it does not name.
  std::vector<std::string_view> channels;
  bool patterns = false;  ///< The channels are patterns that are subscribed to.
};

/// The first thing that a request is refused for.
struct AclDenial {
  enum class Reason : uint8_t { kNone, kCommand, kKey, kChannel };
  Reason reason = Reason::kNone;
  size_t index = 0;    ///< Among the keys or channels.
  std::string object;  ///< The command, with its subcommand; the key or the channel.

  bool denied() const { return reason != Reason::kNone; }
  /// Whether it came later in the request than `other` did.
  bool Behind(const AclDenial& other) const {
    return reason != other.reason ? reason > other.reason : index > other.index;
  }
};

/// A set of rights, of which each is needed: commands, keys and channels. Rules are Redis's.
///
/// Thread safety: const methods only may be called from many threads at once.
class AclSelector {
 public:
  /// What a rule is refused with, in Redis's words.
  static Status SyntaxError() { return Status::InvalidArgument("Syntax error"); }

  /// `all_channels`: what a new one may do with channels.
  explicit AclSelector(bool all_channels) { all_channels ? AllowAllChannels() : ResetChannels(); }

  /// Applies a rule such as "+get", "-@write", "~key*", "%R~key*" or "&channel".
  Status Apply(const AclCatalog& catalog, std::string_view rule);

  AclDenial Check(const AclRequest& request) const;
  bool MayRun(const AclCommand& command, std::string_view argument) const;
  bool MayUseChannel(std::string_view channel, bool pattern) const;
  /// All is allowed.
  bool unrestricted() const;

  // As Redis describes them; applied in this order they make the same selector.
  std::string DescribeKeys() const;
  std::string DescribeChannels() const;
  std::string DescribeCommands() const;
  std::string Describe() const;

 private:
  /// What comes later counts.
  struct CommandRule {
    bool allow = false;
    uint32_t category = 0;                ///< 0: it names a command.
    const AclCommand* command = nullptr;  ///< Lives as long as the catalog.
    std::string argument;                 ///< Empty: whatever the first argument is.
    std::string text;                     ///< "@write" or "config|get".
  };
  struct KeyPattern {
    std::string pattern;
    uint8_t access = 0;
  };

  static constexpr uint8_t kBoth = kAclReads | kAclWrites;

  void AllowAllChannels() { channels_ = {"*"}; }
  void ResetChannels() { channels_.clear(); }
  bool all_channels() const { return channels_.size() == 1 && channels_[0] == "*"; }
  Status ApplyToCommands(const AclCatalog& catalog, bool allow, std::string_view word);
  void AddCategory(bool allow, uint32_t category, std::string_view word);
  Status AddCommand(const AclCatalog& catalog, bool allow, std::string_view word);
  Status ApplyToKeys(std::string_view rule);
  Status ApplyToChannels(std::string_view pattern);
  bool MayUseKey(const AclKey& key) const;

  bool all_commands_ = false;  ///< What the rules begin from.
  std::vector<CommandRule> rules_;
  std::vector<KeyPattern> keys_;
  std::vector<std::string> channels_;
};

}  // namespace nacre::server
