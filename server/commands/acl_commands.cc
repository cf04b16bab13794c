#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/commands/command_lists.h"
#include "server/commands/each_client.h"
#include "server/resp/numbers.h"
#include "server/session/execute.h"
#include "server/session/permission.h"
#include "server/session/server_state.h"
#include "server/store/unix_time.h"
#include "util/draw_id.h"

// ACL: users, and what they may do.

namespace nacre::server {
namespace {

constexpr const char* kDefaultUserName = "default";

// ---- Users --------------------------------------------------------------------------------------

void DescribeSelector(Call& call, const AclSelector& selector) {
  call.reply.Bulk("commands");
  call.reply.Bulk(selector.DescribeCommands());
  call.reply.Bulk("keys");
  call.reply.Bulk(selector.DescribeKeys());
  call.reply.Bulk("channels");
  call.reply.Bulk(selector.DescribeChannels());
}

void GetUser(Call& call) {
  const std::shared_ptr<const AclUser> user = call.server->acl.Find(call.arg(2));
  if (user == nullptr) {
    call.reply.Null();
    return;
  }
  call.reply.Map(6);
  call.reply.Bulk("flags");
  call.reply.Set(user->no_password() ? 2 : 1);
  call.reply.Bulk(user->enabled() ? "on" : "off");
  if (user->no_password()) call.reply.Bulk("nopass");
  call.reply.Bulk("passwords");
  call.reply.Array(user->password_hashes().size());
  for (const std::string& hash : user->password_hashes()) call.reply.Bulk(hash);
  DescribeSelector(call, user->root());
  call.reply.Bulk("selectors");
  call.reply.Array(user->selectors().size());
  for (const AclSelector& selector : user->selectors()) {
    call.reply.Map(3);
    DescribeSelector(call, selector);
  }
}

/// Whether the client may have all that it has subscribed to.
bool MayListen(const AclUser& user, Client* client) {
  using Kind = PubSub::Kind;
  for (const Kind kind : {Kind::kChannel, Kind::kPattern, Kind::kShardChannel}) {
    for (const std::string& each : PubSub::SubscriptionsOf(client, kind)) {
      if (!user.MayUseChannel(each, kind == Kind::kPattern)) return false;
    }
  }
  return true;
}

/// Closes clients whose user is gone, or that listen to what it may not any more. The one that asks
/// is answered before.
Task<void> CloseThoseWithout(Call& call) {
  const Client* const self = call.client;
  bool closes_itself = false;
  co_await ForEachClient(call, [&](Client* client, LoopState* /*loop*/) {
    const AclUser* const user = CurrentUser(client, *call.server);
    if (user != nullptr && MayListen(*user, client)) return;
    if (client == self) {
      closes_itself = true;
    } else {
      client->Close();
    }
  });
  if (closes_itself) call.client->CloseSoon();
}

Task<void> SetUser(Call& call) {
  std::vector<std::string> words;
  for (size_t i = 3; i < call.argc(); ++i) words.emplace_back(call.arg(i));
  const Status set = call.server->acl.Set(std::string(call.arg(2)), words);
  if (!set.ok()) {
    call.reply.Error("ERR " + std::string(set.message()));
    co_return;
  }
  co_await CloseThoseWithout(call);
  call.reply.Ok();
}

Task<void> DeleteUsers(Call& call) {
  int64_t deleted = 0;
  for (size_t i = 2; i < call.argc(); ++i) {
    if (call.arg(i) != kDefaultUserName) continue;
    call.reply.Error("ERR The 'default' user cannot be removed");
    co_return;
  }
  for (size_t i = 2; i < call.argc(); ++i) {
    deleted += call.server->acl.Delete(std::string(call.arg(i))) ? 1 : 0;
  }
  co_await CloseThoseWithout(call);
  call.reply.Integer(deleted);
}

void ListUsers(Call& call, bool names_only) {
  const auto users = call.server->acl.All();
  call.reply.Array(users.size());
  for (const auto& user : users) {
    call.reply.Bulk(names_only ? user->name() : user->Describe());
  }
}

/// ACL LOAD and ACL SAVE.
Task<void> UseFile(Call& call, bool load) {
  ServerState* const server = call.server;
  if (server->acl_file.empty()) {
    call.reply.Error(
        "ERR This Redis instance is not configured to use an ACL file. You may want to specify "
        "users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a "
        "Redis configuration file set) in order to store users in the Redis configuration.");
    co_return;
  }
  Status done;
  const StoreAccess& access = call.loop->access;
  Offload offload(access.loop, access.workers, [&] {
    done = load ? server->acl.Load(server->acl_file) : server->acl.Save(server->acl_file);
  });
  co_await offload;
  if (!done.ok()) {
    call.reply.Error("ERR " + std::string(done.message()));
    co_return;
  }
  if (load) co_await CloseThoseWithout(call);
  call.reply.Ok();
}

// ---- What there is ------------------------------------------------------------------------------

void ListCategories(Call& call) {
  const auto names = AclCategoryNames();
  call.reply.Array(names.size());
  for (const std::string_view name : names) call.reply.Bulk(name);
}

void ListCategory(Call& call) {
  const uint32_t category = AclCategoryOf(call.arg(2));
  if (category == 0) {
    call.reply.Error("ERR Unknown category '" + std::string(call.arg(2)) + "'");
    return;
  }
  std::vector<std::string_view> names;
  for (const auto& [name, command] : call.server->acl_commands.commands()) {
    if ((command.categories & category) != 0) names.push_back(name);
  }
  call.reply.Array(names.size());
  for (const std::string_view name : names) call.reply.Bulk(name);
}

void GeneratePassword(Call& call) {
  constexpr int64_t kBitsMax = 4096;
  int64_t bits = 256;
  if (call.argc() == 3 && (!ParseInteger(call.arg(2), &bits) || bits <= 0 || bits > kBitsMax)) {
    call.reply.Error(
        "ERR ACL GENPASS argument must be the number of bits for the output password, a positive "
        "number up to 4096");
    return;
  }
  const auto digits = static_cast<size_t>((bits + 3) / 4);
  std::string password;
  while (password.size() < digits) {
    uint64_t id = 0;
    if (const Status drawn = DrawId(&id); !drawn.ok()) {
      call.reply.Error(ErrorText(drawn));
      return;
    }
    password += fmt::format("{:016x}", id);
  }
  call.reply.Bulk(password.substr(0, digits));
}

void DryRun(Call& call) {
  const std::shared_ptr<const AclUser> user = call.server->acl.Find(call.arg(2));
  if (user == nullptr) {
    call.reply.Error("ERR User '" + std::string(call.arg(2)) + "' not found");
    return;
  }
  Call other = call.NewPart();
  other.request.args.assign(call.request.args.begin() + 3, call.request.args.end());
  other.command = call.server->FindCommand(call.arg(3));
  if (other.command == nullptr) {
    call.reply.Error("ERR Command '" + std::string(call.arg(3)) + "' not found");
    return;
  }
  if (!TakesArguments(*other.command, other.argc())) {
    call.reply.Error("ERR wrong number of arguments for '" + std::string(other.command->name) +
                     "' command");
    return;
  }
  const AclDenial denial = user->Check(AclRequestOf(other));
  using Reason = AclDenial::Reason;
  if (!denial.denied()) {
    call.reply.Ok();
  } else if (denial.reason == Reason::kCommand) {
    call.reply.Bulk("This user has no permissions to run the '" + denial.object + "' command");
  } else {
    call.reply.Bulk("This user has no permissions to access the '" + denial.object +
                    (denial.reason == Reason::kKey ? "' key" : "' channel"));
  }
}

// ---- The log ------------------------------------------------------------------------------------

void ShowLog(Call& call) {
  int64_t count = 10;
  if (call.argc() == 3 && SameWord(call.arg(2), "RESET")) {
    call.server->acl_log.Reset();
    call.reply.Ok();
    return;
  }
  if (call.argc() == 3 && !IntegerArgument(call, 2, &count)) return;
  const auto entries = call.server->acl_log.Get(static_cast<size_t>(std::max<int64_t>(count, 0)));
  const uint64_t now_ms = UnixMillis();
  call.reply.Array(entries.size());
  for (const RefusedRequest& entry : entries) {
    call.reply.Map(7);
    call.reply.Bulk("count");
    call.reply.Integer(static_cast<int64_t>(entry.count));
    call.reply.Bulk("reason");
    call.reply.Bulk(entry.reason);
    call.reply.Bulk("context");
    call.reply.Bulk(entry.context);
    call.reply.Bulk("object");
    call.reply.Bulk(entry.object);
    call.reply.Bulk("username");
    call.reply.Bulk(entry.user);
    call.reply.Bulk("age-seconds");
    const uint64_t age_ms = now_ms > entry.last_ms ? now_ms - entry.last_ms : 0;
    call.reply.Double(static_cast<double>(age_ms) / 1000);
    call.reply.Bulk("client-info");
    call.reply.Bulk(entry.client);
  }
}

Task<void> AclCommandHandler(Call& call) {
  const std::string_view what = call.arg(1);
  const size_t argc = call.argc();
  if (SameWord(what, "SETUSER") && argc >= 3) {
    co_await SetUser(call);
  } else if (SameWord(what, "DELUSER") && argc >= 3) {
    co_await DeleteUsers(call);
  } else if (SameWord(what, "GETUSER") && argc == 3) {
    GetUser(call);
  } else if ((SameWord(what, "LIST") || SameWord(what, "USERS")) && argc == 2) {
    ListUsers(call, SameWord(what, "USERS"));
  } else if (SameWord(what, "WHOAMI") && argc == 2) {
    call.reply.Bulk(CurrentUser(call.client, *call.server)->name());
  } else if ((SameWord(what, "LOAD") || SameWord(what, "SAVE")) && argc == 2) {
    co_await UseFile(call, SameWord(what, "LOAD"));
  } else if (SameWord(what, "CAT") && argc == 2) {
    ListCategories(call);
  } else if (SameWord(what, "CAT") && argc == 3) {
    ListCategory(call);
  } else if (SameWord(what, "GENPASS") && argc <= 3) {
    GeneratePassword(call);
  } else if (SameWord(what, "DRYRUN") && argc >= 4) {
    DryRun(call);
  } else if (SameWord(what, "LOG") && argc <= 3) {
    ShowLog(call);
  } else {
    UnknownSubcommand(call);
  }
}

constexpr Command kAclCommands[] = {
    WithSubcommands({"acl", &AclCommandHandler, -2, kAdmin | kNoScript | kWithoutStore},
                    "cat deluser dryrun genpass getuser list load log save setuser users whoami"),
};

}  // namespace

std::span<const Command> AclCommands() { return kAclCommands; }

}  // namespace nacre::server
