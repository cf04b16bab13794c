#include "server/session/permission.h"

#include <memory>
#include <unordered_map>
#include <utility>

#include "server/resp/numbers.h"
#include "server/session/server_state.h"
#include "server/store/unix_time.h"

namespace nacre::server {
namespace {

using DenialReason = AclDenial::Reason;

constexpr uint8_t kR = kAclReads;
constexpr uint8_t kW = kAclWrites;
constexpr uint8_t kRW = kAclReads | kAclWrites;

/// What is done with the first key, and with the others.
struct KeyAccess {
  uint8_t first = 0;
  uint8_t others = 0;
};

/// Where it is not that those that write only write, and others only read: a value that is answered
/// is read. To know that a key is there, or how large it is, any right will do.
const std::unordered_map<std::string_view, KeyAccess>& Exceptions() {
  static const std::unordered_map<std::string_view, KeyAccess> kExceptions = {
      {"exists", {0, 0}},
      {"type", {0, 0}},
      {"strlen", {0, 0}},
      {"hlen", {0, 0}},
      {"llen", {0, 0}},
      {"scard", {0, 0}},
      {"zcard", {0, 0}},
      {"memory", {0, 0}},
      {"watch", {0, 0}},
      {"hexists", {0, 0}},
      {"hstrlen", {0, 0}},
      {"sismember", {0, 0}},
      {"smismember", {0, 0}},
      {"touch", {0, 0}},
      {"bitfield", {kRW, kRW}},
      {"bitop", {kW, kR}},
      {"blmove", {kRW, kW}},
      {"blmpop", {kRW, kRW}},
      {"blpop", {kRW, kRW}},
      {"brpop", {kRW, kRW}},
      {"brpoplpush", {kRW, kW}},
      {"bzmpop", {kRW, kRW}},
      {"bzpopmax", {kRW, kRW}},
      {"bzpopmin", {kRW, kRW}},
      {"copy", {kR, kW}},
      {"decr", {kRW, kRW}},
      {"decrby", {kRW, kRW}},
      {"eval", {kRW, kRW}},
      {"evalsha", {kRW, kRW}},
      {"getdel", {kRW, kRW}},
      {"getex", {kRW, kRW}},
      {"getset", {kRW, kRW}},
      {"hincrby", {kRW, kRW}},
      {"hincrbyfloat", {kRW, kRW}},
      {"incr", {kRW, kRW}},
      {"incrby", {kRW, kRW}},
      {"incrbyfloat", {kRW, kRW}},
      {"lmove", {kRW, kW}},
      {"lmpop", {kRW, kRW}},
      {"lpop", {kRW, kRW}},
      {"move", {kRW, kW}},
      {"rename", {kRW, kW}},
      {"renamenx", {kRW, kW}},
      {"rpop", {kRW, kRW}},
      {"rpoplpush", {kRW, kW}},
      {"sdiffstore", {kW, kR}},
      {"setbit", {kRW, kRW}},
      {"sinterstore", {kW, kR}},
      {"smove", {kRW, kW}},
      {"spop", {kRW, kRW}},
      {"sunionstore", {kW, kR}},
      {"zdiffstore", {kW, kR}},
      {"zincrby", {kRW, kRW}},
      {"zinterstore", {kW, kR}},
      {"zmpop", {kRW, kRW}},
      {"zpopmax", {kRW, kRW}},
      {"zpopmin", {kRW, kRW}},
      {"zrangestore", {kW, kR}},
      {"zunionstore", {kW, kR}},
  };
  return kExceptions;
}

KeyAccess AccessOf(const Call& call) {
  const Command& command = *call.command;
  const std::string_view name = command.name;
  if (name == "bitfield" && !HasWord(call, 2, "SET") && !HasWord(call, 2, "INCRBY")) {
    return {kR, kR};
  }
  if (name == "set" && HasWord(call, 3, "GET")) return {kRW, kRW};
  if (const auto found = Exceptions().find(name); found != Exceptions().end()) {
    return found->second;
  }
  const uint8_t access = (command.flags & kWrites) != 0 ? kW : kR;
  return {access, access};
}

std::string ErrorOf(const AclDenial& denial, CallContext context) {
  std::string text = "NOPERM ";
  if (context == CallContext::kScript) text += "ACL failure in script: ";
  switch (denial.reason) {
    case DenialReason::kNone:
    case DenialReason::kCommand:
      return text + "this user has no permissions to run the '" + denial.object + "' command";
    case DenialReason::kKey:
      return text + "this user has no permissions to access one of the keys used as arguments";
    case DenialReason::kChannel:
      return text + "this user has no permissions to access one of the channels used as arguments";
  }
  return text;
}

void Note(const Call& call, const char* reason, CallContext context, std::string object,
          std::string user) {
  RefusedRequest entry;
  entry.reason = reason;
  entry.context = context == CallContext::kTopLevel ? "toplevel"
                  : context == CallContext::kMulti  ? "multi"
                                                    : "lua";
  entry.object = std::move(object);
  entry.user = std::move(user);
  entry.client = call.client->Describe(call.loop->loop.clock()->NowNanos());
  entry.last_ms = UnixMillis();
  const int64_t most = call.server->settings.acl_log_entries_max.load(std::memory_order_relaxed);
  call.server->acl_log.Add(std::move(entry), static_cast<size_t>(most));
}

/// What the client's user may not do of the call.
AclDenial DenialOf(const Call& call) {
  const AclUser* const user = CurrentUser(call.client, *call.server);
  if (user != nullptr && user->unrestricted()) [[likely]]
    return {};
  if (user == nullptr) return {DenialReason::kCommand, 0, call.command->name};
  return user->Check(AclRequestOf(call));
}

}  // namespace

AclCommand AclCommandOf(const Command& command, uint32_t categories) {
  const auto has = [&](uint32_t flag) { return (command.flags & flag) != 0; };
  const std::string_view name = command.name;
  AclCommand acl;
  acl.name = name;
  acl.categories = categories | (has(kFast) ? kAclFast : kAclSlow);
  if (has(kReads)) acl.categories |= kAclRead;
  if (has(kWrites) && (categories & (kAclScripting | kAclTransaction)) == 0) {
    acl.categories |= kAclWrite;
  }
  if (has(kBlocks)) acl.categories |= kAclBlocking;
  if (has(kAdmin) && name != "client") acl.categories |= kAclAdmin | kAclDangerous;
  if (has(kAllLocks) || name == "keys" || name == "info" || name == "client") {
    acl.categories |= kAclDangerous;
  }
  acl.subcommands = command.subcommands;
  return acl;
}

AclRequest AclRequestOf(const Call& call) {
  const Command& command = *call.command;
  AclRequest request;
  request.command = call.server->acl_commands.Find(command.name);
  if (call.argc() > 1) request.argument = call.arg(1);
  const KeyAccess access = AccessOf(call);
  for (const KeyRef& key : KeysOf(call)) {
    const bool first = request.keys.empty();
    request.keys.push_back({key.key, first ? access.first : access.others});
  }
  const std::string_view name = command.name;
  request.reads_all_keys = name == "nrange";
  request.patterns = name == "psubscribe";
  if (name == "publish" || name == "spublish") request.channels = {call.arg(1)};
  if (name == "subscribe" || name == "ssubscribe" || request.patterns) {
    request.channels.assign(call.request.args.begin() + 1, call.request.args.end());
  }
  return request;
}

bool LogIn(Call& call, std::string_view user, std::string_view password) {
  // Before the user is read, so that a change meanwhile is seen.
  const uint64_t version = call.server->acl.version();
  std::shared_ptr<const AclUser> found = call.server->acl.LogIn(user, password);
  if (found == nullptr) {
    Note(call, "auth", CallContext::kTopLevel, UpperCase(call.command->name), std::string(user));
    return false;
  }
  call.client->user = std::move(found);
  call.client->user_version = version;
  call.client->authenticated = true;
  return true;
}

void BeAnyone(Client* client, const ServerState& server) {
  client->user_version = server.acl.version();
  client->user = server.acl.Find("default");
  client->authenticated = client->user->enabled() && client->user->no_password();
}

const AclUser* CurrentUser(Client* client, const ServerState& server) {
  const uint64_t version = server.acl.version();
  if (client->user_version != version && client->user != nullptr) [[unlikely]] {
    const uint64_t id = client->user->id();
    client->user = server.acl.Find(client->user->name());
    // Another one of the name is not the one that logged in.
    if (client->user != nullptr && client->user->id() != id) client->user = nullptr;
    client->user_version = version;
  }
  return client->user.get();
}

bool IsAllowed(const Call& call) { return !DenialOf(call).denied(); }

std::string Forbidden(const Call& call, CallContext context) {
  // One that logs in may be anyone until then.
  if ((call.command->flags & kNoAuth) != 0) return {};
  const AclDenial denial = DenialOf(call);
  if (!denial.denied()) [[likely]]
    return {};
  const char* const reason = denial.reason == DenialReason::kCommand ? "command"
                             : denial.reason == DenialReason::kKey   ? "key"
                                                                     : "channel";
  const AclUser* const user = call.client->user.get();
  Note(call, reason, context, denial.object, user == nullptr ? "" : user->name());
  return ErrorOf(denial, context);
}

}  // namespace nacre::server
