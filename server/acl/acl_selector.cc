#include "server/acl/acl_selector.h"

#include <algorithm>
#include <utility>

#include "server/resp/numbers.h"

namespace nacre::server {
namespace {

Status UnknownWord() { return Status::InvalidArgument("Unknown command or category name in ACL"); }

Status BehindAll(const char* what, const char* word, const char* reset) {
  return Status::InvalidArgument(std::string("Adding a pattern after the * pattern (or the '") +
                                 word + "' flag) is not valid and does not have any effect. Try '" +
                                 reset + "' to start with an empty list of " + what);
}

/// "client|kill", or "get".
std::string FullName(const AclCommand& command, std::string_view argument) {
  std::string name(command.name);
  if (command.HasSubcommand(argument)) name += "|" + LowerCase(argument);
  return name;
}

}  // namespace

// ---- Rules --------------------------------------------------------------------------------------

Status AclSelector::Apply(const AclCatalog& catalog, std::string_view rule) {
  if (SameWord(rule, "allkeys") || rule == "~*") {
    keys_ = {{"*", kBoth}};
  } else if (SameWord(rule, "resetkeys")) {
    keys_.clear();
  } else if (SameWord(rule, "allchannels") || rule == "&*") {
    AllowAllChannels();
  } else if (SameWord(rule, "resetchannels")) {
    ResetChannels();
  } else if (SameWord(rule, "allcommands")) {
    return ApplyToCommands(catalog, /*allow=*/true, "@all");
  } else if (SameWord(rule, "nocommands")) {
    return ApplyToCommands(catalog, /*allow=*/false, "@all");
  } else if (rule.starts_with('+') || rule.starts_with('-')) {
    return ApplyToCommands(catalog, rule[0] == '+', rule.substr(1));
  } else if (rule.starts_with('~') || rule.starts_with('%')) {
    return ApplyToKeys(rule);
  } else if (rule.starts_with('&')) {
    return ApplyToChannels(rule.substr(1));
  } else {
    return SyntaxError();
  }
  return Status::OK();
}

Status AclSelector::ApplyToCommands(const AclCatalog& catalog, bool allow, std::string_view word) {
  if (SameWord(word, "@all")) {
    all_commands_ = allow;
    rules_.clear();
    return Status::OK();
  }
  if (!word.starts_with('@')) return AddCommand(catalog, allow, word);
  const uint32_t category = AclCategoryOf(word.substr(1));
  if (category == 0) return UnknownWord();
  AddCategory(allow, category, word);
  return Status::OK();
}

void AclSelector::AddCategory(bool allow, uint32_t category, std::string_view word) {
  std::erase_if(rules_, [&](const CommandRule& rule) { return rule.category == category; });
  const bool needed =
      all_commands_ != allow ||
      std::ranges::any_of(rules_, [&](const CommandRule& rule) { return rule.allow != allow; });
  if (needed) rules_.push_back({allow, category, nullptr, {}, LowerCase(word)});
}

Status AclSelector::AddCommand(const AclCatalog& catalog, bool allow, std::string_view word) {
  const size_t bar = std::min(word.find('|'), word.size());
  const AclCommand* const command = catalog.Find(word.substr(0, bar));
  if (command == nullptr) return UnknownWord();
  const std::string argument = LowerCase(word.substr(std::min(bar + 1, word.size())));
  if (bar != word.size()) {
    if (argument.empty()) return SyntaxError();
    const size_t second = argument.find('|');
    if (second != std::string::npos) {
      const bool of_subcommand = command->HasSubcommand(argument.substr(0, second));
      if (!of_subcommand || !allow) return UnknownWord();
      return Status::InvalidArgument("Allowing first-arg of a subcommand is not supported");
    }
    // A command without subcommands can be allowed for a first argument, as SELECT for a database.
    const bool known = command->subcommands.empty() ? allow : command->HasSubcommand(argument);
    if (!known) return UnknownWord();
  }
  std::erase_if(rules_, [&](const CommandRule& rule) {
    return rule.command == command && (argument.empty() || rule.argument == argument);
  });
  if (MayRun(*command, argument) != allow) {
    rules_.push_back({allow, 0, command, argument, LowerCase(word)});
  }
  return Status::OK();
}

Status AclSelector::ApplyToKeys(std::string_view rule) {
  uint8_t access = kBoth;
  if (rule[0] == '%') {
    access = 0;
    const size_t tilde = rule.find('~');
    if (tilde == std::string_view::npos) return SyntaxError();
    for (const char letter : rule.substr(1, tilde - 1)) {
      if (letter == 'R' || letter == 'r') {
        access |= kAclReads;
      } else if (letter == 'W' || letter == 'w') {
        access |= kAclWrites;
      } else {
        return SyntaxError();
      }
    }
    if (access == 0) return SyntaxError();
    rule.remove_prefix(tilde);
  }
  const std::string pattern(rule.substr(1));
  if (pattern.find_first_of(std::string_view(" \0", 2)) != std::string::npos) return SyntaxError();
  if (!keys_.empty() && keys_[0].pattern == "*" && keys_[0].access == kBoth) {
    return BehindAll("patterns", "allkeys", "resetkeys");
  }
  for (KeyPattern& known : keys_) {
    if (known.pattern != pattern) continue;
    known.access |= access;
    return Status::OK();
  }
  keys_.push_back({pattern, access});
  return Status::OK();
}

Status AclSelector::ApplyToChannels(std::string_view pattern) {
  if (pattern.find_first_of(std::string_view(" \0", 2)) != std::string_view::npos) {
    return SyntaxError();
  }
  if (all_channels()) return BehindAll("channels", "allchannels", "resetchannels");
  if (std::ranges::find(channels_, pattern) == channels_.end()) channels_.emplace_back(pattern);
  return Status::OK();
}

// ---- Checks -------------------------------------------------------------------------------------

bool AclSelector::unrestricted() const {
  return all_commands_ && rules_.empty() && all_channels() && keys_.size() == 1 &&
         keys_[0].pattern == "*" && keys_[0].access == kBoth;
}

bool AclSelector::MayRun(const AclCommand& command, std::string_view argument) const {
  bool allowed = all_commands_;
  for (const CommandRule& rule : rules_) {
    const bool meant =
        rule.category != 0 ? (command.categories & rule.category) != 0 : rule.command == &command;
    if (!meant || (!rule.argument.empty() && !SameWord(rule.argument, argument))) continue;
    allowed = rule.allow;
  }
  return allowed;
}

bool AclSelector::MayUseKey(const AclKey& key) const {
  return std::ranges::any_of(keys_, [&](const KeyPattern& each) {
    return (each.access & key.access) == key.access && MatchesGlob(each.pattern, key.key);
  });
}

bool AclSelector::MayUseChannel(std::string_view channel, bool pattern) const {
  return all_channels() || std::ranges::any_of(channels_, [&](const std::string& each) {
           return pattern ? each == channel : MatchesGlob(each, channel);
         });
}

AclDenial AclSelector::Check(const AclRequest& request) const {
  using Reason = AclDenial::Reason;
  if (!MayRun(*request.command, request.argument)) {
    return {Reason::kCommand, 0, FullName(*request.command, request.argument)};
  }
  for (size_t i = 0; i < request.keys.size(); ++i) {
    if (!MayUseKey(request.keys[i])) return {Reason::kKey, i, std::string(request.keys[i].key)};
  }
  const bool reads_all = std::ranges::any_of(keys_, [](const KeyPattern& each) {
    return each.pattern == "*" && (each.access & kAclReads) != 0;
  });
  if (request.reads_all_keys && !reads_all) return {Reason::kKey, request.keys.size(), "*"};
  for (size_t i = 0; i < request.channels.size(); ++i) {
    if (MayUseChannel(request.channels[i], request.patterns)) continue;
    return {Reason::kChannel, i, std::string(request.channels[i])};
  }
  return {};
}

// ---- Descriptions -------------------------------------------------------------------------------

std::string AclSelector::DescribeKeys() const {
  std::string text;
  for (const KeyPattern& each : keys_) {
    if (!text.empty()) text += ' ';
    if (each.access != kBoth) text += each.access == kAclReads ? "%R" : "%W";
    text += "~" + each.pattern;
  }
  return text;
}

std::string AclSelector::DescribeChannels() const {
  std::string text;
  for (const std::string& each : channels_) text += (text.empty() ? "&" : " &") + each;
  return text;
}

std::string AclSelector::DescribeCommands() const {
  std::string text = all_commands_ ? "+@all" : "-@all";
  for (const CommandRule& rule : rules_) text += (rule.allow ? " +" : " -") + rule.text;
  return text;
}

std::string AclSelector::Describe() const {
  std::string text = DescribeKeys();
  if (!text.empty()) text += ' ';
  if (!all_channels()) text += "resetchannels ";
  if (!channels_.empty()) text += DescribeChannels() + " ";
  return text + DescribeCommands();
}

}  // namespace nacre::server
