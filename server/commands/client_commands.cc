#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "server/commands/command_lists.h"
#include "server/commands/each_client.h"
#include "server/resp/numbers.h"
#include "server/session/server_state.h"

namespace nacre::server {
namespace {

const char* KindOf(const Client& client) {
  return client.subscriptions() > 0 ? "pubsub" : "normal";
}

/// Which clients CLIENT LIST and CLIENT KILL mean.
struct ClientFilter {
  std::vector<uint64_t> ids;
  std::string address;
  std::string local_address;
  std::string kind;
  std::string user;
  uint64_t but = 0;  ///< Not the client with this id.

  bool Takes(const Client& client) const {
    return (ids.empty() || std::find(ids.begin(), ids.end(), client.id) != ids.end()) &&
           (address.empty() || address == client.address) &&
           (local_address.empty() || local_address == client.local_address) &&
           (kind.empty() || kind == KindOf(client)) &&
           (user.empty() || (client.user != nullptr && client.user->name() == user)) &&
           client.id != but;
  }
};

bool IdArgument(Call& call, size_t at, uint64_t* id) {
  int64_t value = 0;
  if (ParseInteger(call.arg(at), &value) && value > 0) {
    *id = static_cast<uint64_t>(value);
    return true;
  }
  call.reply.Error("ERR client-id should be greater than 0");
  return false;
}

bool KindArgument(Call& call, size_t at, std::string* kind) {
  *kind = LowerCase(call.arg(at));
  if (*kind == "normal" || *kind == "pubsub" || *kind == "master" || *kind == "replica" ||
      *kind == "slave") {
    return true;
  }
  call.reply.Error("ERR Unknown client type '" + std::string(call.arg(at)) + "'");
  return false;
}

Task<void> List(Call& call) {
  ClientFilter filter;
  if (call.argc() == 4 && SameWord(call.arg(2), "TYPE")) {
    if (!KindArgument(call, 3, &filter.kind)) co_return;
  } else if (call.argc() > 3 && SameWord(call.arg(2), "ID")) {
    for (size_t i = 3; i < call.argc(); ++i) {
      uint64_t id = 0;
      int64_t value = 0;
      if (!ParseInteger(call.arg(i), &value) || !IdArgument(call, i, &id)) {
        call.reply.Clear();
        call.reply.Error("ERR Invalid client ID");
        co_return;
      }
      filter.ids.push_back(id);
    }
  } else if (call.argc() != 2) {
    call.reply.Error(kSyntaxError);
    co_return;
  }
  std::vector<std::pair<uint64_t, std::string>> lines;
  const uint64_t now = call.loop->loop.clock()->NowNanos();
  co_await ForEachClient(call, [&](Client* client, LoopState* /*loop*/) {
    if (filter.Takes(*client)) lines.emplace_back(client->id, client->Describe(now));
  });
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const auto& [id, line] : lines) text += line + "\n";
  call.reply.Verbatim(text);
}

bool ParseKill(Call& call, ClientFilter* filter) {
  bool skip_me = true;
  for (size_t i = 2; i < call.argc(); i += 2) {
    if (i + 1 == call.argc()) {
      call.reply.Error(kSyntaxError);
      return false;
    }
    const std::string_view value = call.arg(i + 1);
    if (SameWord(call.arg(i), "ID")) {
      uint64_t id = 0;
      if (!IdArgument(call, i + 1, &id)) return false;
      filter->ids = {id};
    } else if (SameWord(call.arg(i), "ADDR")) {
      filter->address = value;
    } else if (SameWord(call.arg(i), "LADDR")) {
      filter->local_address = value;
    } else if (SameWord(call.arg(i), "TYPE")) {
      if (!KindArgument(call, i + 1, &filter->kind)) return false;
    } else if (SameWord(call.arg(i), "USER")) {
      filter->user = value;
      if (call.server->acl.Find(filter->user) == nullptr) {
        call.reply.Error("ERR No such user '" + filter->user + "'");
        return false;
      }
    } else if (SameWord(call.arg(i), "SKIPME") &&
               (SameWord(value, "yes") || SameWord(value, "no"))) {
      skip_me = SameWord(value, "yes");
    } else {
      call.reply.Error(kSyntaxError);
      return false;
    }
  }
  if (skip_me) filter->but = call.client->id;
  return true;
}

Task<void> Kill(Call& call) {
  ClientFilter filter;
  const bool old_form = call.argc() == 3;
  if (old_form) {
    filter.address = call.arg(2);
  } else if (!ParseKill(call, &filter)) {
    co_return;
  }
  int64_t killed = 0;
  bool killed_itself = false;
  const Client* const self = call.client;
  co_await ForEachClient(call, [&](Client* client, LoopState* /*loop*/) {
    if (!filter.Takes(*client)) return;
    ++killed;
    if (client == self) {
      killed_itself = true;
    } else {
      client->Close();
    }
  });
  // It is answered before it is closed.
  if (killed_itself) call.client->CloseSoon();
  if (!old_form) {
    call.reply.Integer(killed);
  } else if (killed > 0) {
    call.reply.Ok();
  } else {
    call.reply.Error("ERR No such client");
  }
}

Task<void> Unblock(Call& call) {
  uint64_t id = 0;
  int64_t value = 0;
  if (!ParseInteger(call.arg(2), &value)) {
    call.reply.Error(kNotInteger);
    co_return;
  }
  id = static_cast<uint64_t>(value);
  const bool error = call.argc() == 4 && SameWord(call.arg(3), "ERROR");
  if (call.argc() == 4 && !error && !SameWord(call.arg(3), "TIMEOUT")) {
    call.reply.Error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
    co_return;
  }
  bool unblocked = false;
  co_await ForEachClient(call, [&](Client* client, LoopState* /*loop*/) {
    if (client->id != id || client->blocked == nullptr) return;
    unblocked = true;
    call.server->watches.End(client->blocked,
                             error ? BlockedClient::End::kUnblocked : BlockedClient::End::kTimeout);
  });
  call.reply.Integer(unblocked ? 1 : 0);
}

void SetName(Call& call) {
  for (const char c : call.arg(2)) {
    if (c < '!' || c > '~') {
      call.reply.Error("ERR Client names cannot contain spaces, newlines or special characters.");
      return;
    }
  }
  call.client->name = call.arg(2);
  call.reply.Ok();
}

void SetReplies(Call& call) {
  Client& client = *call.client;
  if (SameWord(call.arg(2), "ON")) {
    client.replies = true;
    call.answered = true;
    call.reply.Ok();
  } else if (SameWord(call.arg(2), "OFF")) {
    client.replies = false;
    call.answered = false;
  } else if (SameWord(call.arg(2), "SKIP")) {
    client.skips_next = client.replies;
    call.answered = false;
  } else {
    call.reply.Error(kSyntaxError);
  }
}

Task<void> ClientCommand(Call& call) {
  const std::string_view what = call.arg(1);
  Client& client = *call.client;
  if (SameWord(what, "ID") && call.argc() == 2) {
    call.reply.Integer(static_cast<int64_t>(client.id));
  } else if (SameWord(what, "GETNAME") && call.argc() == 2) {
    client.name.empty() ? call.reply.Null() : call.reply.Bulk(client.name);
  } else if (SameWord(what, "SETNAME") && call.argc() == 3) {
    SetName(call);
  } else if (SameWord(what, "INFO") && call.argc() == 2) {
    call.reply.Verbatim(client.Describe(call.loop->loop.clock()->NowNanos()) + "\n");
  } else if (SameWord(what, "NO-EVICT") && call.argc() == 3) {
    const bool on = SameWord(call.arg(2), "ON");
    if (on || SameWord(call.arg(2), "OFF")) {
      client.no_evict = on;
      call.reply.Ok();
    } else {
      call.reply.Error(kSyntaxError);
    }
  } else if (SameWord(what, "REPLY") && call.argc() == 3) {
    SetReplies(call);
  } else if (SameWord(what, "LIST")) {
    co_await List(call);
  } else if (SameWord(what, "KILL") && call.argc() > 2) {
    co_await Kill(call);
  } else if (SameWord(what, "UNBLOCK") && (call.argc() == 3 || call.argc() == 4)) {
    co_await Unblock(call);
  } else {
    UnknownSubcommand(call);
  }
}

constexpr Command kClientCommands[] = {
    WithSubcommands({"client", &ClientCommand, -2, kAdmin | kWithoutStore},
                    "getname id info kill list no-evict reply setname unblock"),
};

}  // namespace

std::span<const Command> ClientCommands() { return kClientCommands; }

}  // namespace nacre::server
