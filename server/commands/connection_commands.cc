#include <utility>

#include "server/commands/command_lists.h"
#include "server/resp/numbers.h"
#include "server/session/execute.h"
#include "server/session/permission.h"
#include "server/session/server_state.h"
#include "server/store/unix_time.h"

namespace nacre::server {
namespace {

constexpr const char* kWrongPassword =
    "WRONGPASS invalid username-password pair or user is disabled.";

Task<void> Ping(Call& call) {
  if (call.argc() > 2) {
    WrongArity(call);
  } else if (call.client->protocol == 2 && call.client->subscriptions() > 0) {
    call.reply.Array(2);
    call.reply.Bulk("pong");
    call.reply.Bulk(call.argc() == 2 ? call.arg(1) : "");
  } else if (call.argc() == 2) {
    call.reply.Bulk(call.arg(1));
  } else {
    call.reply.Simple("PONG");
  }
  co_return;
}

Task<void> Echo(Call& call) {
  call.reply.Bulk(call.arg(1));
  co_return;
}

Task<void> Quit(Call& call) {
  call.reply.Ok();
  call.client->CloseSoon();
  co_return;
}

Task<void> Auth(Call& call) {
  if (call.argc() > 3) {
    call.reply.Error(kSyntaxError);
  } else if (call.argc() == 2 && call.server->acl.Find("default")->no_password()) {
    call.reply.Error(
        "ERR AUTH <password> called without any password configured for the default user. Are you "
        "sure your configuration is correct?");
  } else if (LogIn(call, call.argc() == 3 ? call.arg(1) : "default", call.arg(call.argc() - 1))) {
    call.reply.Ok();
  } else {
    call.reply.Error(kWrongPassword);
  }
  co_return;
}

Task<void> Hello(Call& call) {
  Client& client = *call.client;
  int64_t version = client.protocol;
  if (call.argc() > 1 && (!ParseInteger(call.arg(1), &version) || version < 2 || version > 3)) {
    call.reply.Error("NOPROTO unsupported protocol version");
    co_return;
  }
  std::string name = client.name;
  for (size_t i = 2; i < call.argc();) {
    if (SameWord(call.arg(i), "AUTH") && i + 2 < call.argc()) {
      if (!LogIn(call, call.arg(i + 1), call.arg(i + 2))) {
        call.reply.Error(kWrongPassword);
        co_return;
      }
      i += 3;
    } else if (SameWord(call.arg(i), "SETNAME") && i + 1 < call.argc()) {
      name = call.arg(i + 1);
      i += 2;
    } else {
      call.reply.Error("ERR Syntax error in HELLO option '" + std::string(call.arg(i)) + "'");
      co_return;
    }
  }
  if (!client.authenticated) {
    call.reply.Error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "<proto> AUTH <user> <pass> option can be used to authenticate the client and select the "
        "RESP protocol version at the same time");
    co_return;
  }
  client.name = name;
  client.protocol = static_cast<int>(version);
  call.reply.set_protocol(client.protocol);
  call.reply.Map(7);
  call.reply.Bulk("server");
  call.reply.Bulk("redis");
  call.reply.Bulk("version");
  call.reply.Bulk(kRedisVersion);
  call.reply.Bulk("proto");
  call.reply.Integer(client.protocol);
  call.reply.Bulk("id");
  call.reply.Integer(static_cast<int64_t>(client.id));
  call.reply.Bulk("mode");
  call.reply.Bulk(call.server->cluster == nullptr ? "standalone" : "cluster");
  call.reply.Bulk("role");
  call.reply.Bulk(call.server->serving(*call.loop) ? "master" : "replica");
  call.reply.Bulk("modules");
  call.reply.Array(0);
}

Task<void> Select(Call& call) {
  int64_t number = 0;
  if (!IntegerArgument(call, 1, &number)) co_return;
  if (call.server->cluster != nullptr) {
    number == 0 ? call.reply.Ok() : call.reply.Error("ERR SELECT is not allowed in cluster mode");
    co_return;
  }
  Store* const store = call.access->store;
  if (number < 0 || number >= store->databases()) {
    call.reply.Error("ERR DB index is out of range");
    co_return;
  }
  const auto database = static_cast<int>(number);
  Status made;
  if (store->Find(database) == nullptr) {
    const StoreAccess& access = call.loop->access;
    Offload offload(access.loop, access.workers, [&] { made = store->Make(database); });
    co_await offload;
  }
  if (!made.ok()) {
    call.reply.Error(ErrorText(made));
    co_return;
  }
  call.client->database = database;
  call.reply.Ok();
}

Task<void> Time(Call& call) {
  const uint64_t now = UnixMicros();
  call.reply.Array(2);
  call.reply.Bulk(std::to_string(now / 1'000'000));
  call.reply.Bulk(std::to_string(now % 1'000'000));
  co_return;
}

/// What a new connection has. What it has begun with WATCH ends.
Task<void> Reset(Call& call) {
  Client& client = *call.client;
  client.in_multi = client.multi_failed = false;
  client.queued.clear();
  if (client.watch != nullptr) call.server->watches.Unwatch(std::exchange(client.watch, nullptr));
  call.server->pubsub.UnsubscribeAll(&client, call.loop);
  client.database = 0;
  client.name.clear();
  client.protocol = 2;
  client.replies = true;
  client.no_evict = client.reads_elsewhere = false;
  BeAnyone(&client, *call.server);
  call.reply.set_protocol(2);
  call.reply.Simple("RESET");
  co_return;
}

constexpr Command kConnectionCommands[] = {
    {"ping", &Ping, -1, kFast | kSubscribed | kWithoutStore},
    {"echo", &Echo, 2, kFast | kWithoutStore},
    {"quit", &Quit, -1, kNoAuth | kAtOnce | kFast | kSubscribed | kWithoutStore},
    {"auth", &Auth, -2, kNoAuth | kFast | kWithoutStore},
    {"hello", &Hello, -1, kNoAuth | kFast | kNoMulti | kWithoutStore},
    {"select", &Select, 2, kFast},
    {"time", &Time, 1, kFast | kWithoutStore},
    {"reset", &Reset, 1, kNoAuth | kAtOnce | kFast | kSubscribed | kWithoutStore},
};

}  // namespace

std::span<const Command> ConnectionCommands() { return kConnectionCommands; }

}  // namespace nacre::server
