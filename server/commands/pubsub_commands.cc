#include <set>
#include <string>
#include <vector>

#include "server/commands/command_lists.h"
#include "server/resp/numbers.h"
#include "server/session/server_state.h"

namespace nacre::server {
namespace {

using SubscriptionKind = PubSub::Kind;

SubscriptionKind KindOfCommand(const Call& call) {
  const std::string_view name = call.command->name;
  if (name.starts_with("ps") || name.starts_with("punsub")) return SubscriptionKind::kPattern;
  return name.starts_with("ss") || name.starts_with("sunsub") || name == "spublish"
             ? SubscriptionKind::kShardChannel
             : SubscriptionKind::kChannel;
}

void AnswerSubscription(Call& call, const std::string* name) {
  call.answered = true;  // It is no reply that CLIENT REPLY could turn off.
  const Client& client = *call.client;
  // Those to sharded channels are counted by themselves.
  const size_t count = KindOfCommand(call) == SubscriptionKind::kShardChannel
                           ? client.shard_channels.size()
                           : client.channels.size() + client.patterns.size();
  call.reply.Push(3);
  call.reply.Bulk(call.command->name);
  name == nullptr ? call.reply.Null() : call.reply.Bulk(*name);
  call.reply.Integer(static_cast<int64_t>(count));
}

/// SUBSCRIBE, PSUBSCRIBE and SSUBSCRIBE.
Task<void> Subscribe(Call& call) {
  for (size_t i = 1; i < call.argc(); ++i) {
    const std::string name(call.arg(i));
    call.server->pubsub.Subscribe(call.client, call.loop, KindOfCommand(call), name);
    AnswerSubscription(call, &name);
  }
  co_return;
}

/// UNSUBSCRIBE, PUNSUBSCRIBE and SUNSUBSCRIBE; without names, from all.
Task<void> Unsubscribe(Call& call) {
  const SubscriptionKind kind = KindOfCommand(call);
  const std::set<std::string>& all = PubSub::SubscriptionsOf(call.client, kind);
  std::vector<std::string> names(all.begin(), all.end());
  if (call.argc() > 1) names.assign(call.request.args.begin() + 1, call.request.args.end());
  for (const std::string& name : names) {
    call.server->pubsub.Unsubscribe(call.client, call.loop, kind, name);
    AnswerSubscription(call, &name);
  }
  if (names.empty()) AnswerSubscription(call, nullptr);
  co_return;
}

/// PUBLISH and SPUBLISH. In a cluster they answer how many of this server's clients get it.
Task<void> Publish(Call& call) {
  const SubscriptionKind kind = KindOfCommand(call);
  call.reply.Integer(call.server->pubsub.Publish(call.arg(1), call.arg(2), kind));
  if (call.server->broadcast != nullptr && kind == SubscriptionKind::kChannel) {
    call.server->broadcast->Publish(call.arg(1), call.arg(2));
  }
  co_return;
}

void ListChannels(Call& call, SubscriptionKind kind) {
  const auto names = call.server->pubsub.Channels(kind, call.argc() == 3 ? call.arg(2) : "*");
  call.reply.Array(names.size());
  for (const std::string& name : names) call.reply.Bulk(name);
}

void CountSubscribers(Call& call, SubscriptionKind kind) {
  call.reply.Array((call.argc() - 2) * 2);
  for (size_t i = 2; i < call.argc(); ++i) {
    call.reply.Bulk(call.arg(i));
    call.reply.Integer(
        static_cast<int64_t>(call.server->pubsub.Subscribers(kind, std::string(call.arg(i)))));
  }
}

Task<void> PubSubCommand(Call& call) {
  const std::string_view what = call.arg(1);
  if (SameWord(what, "CHANNELS") && call.argc() <= 3) {
    ListChannels(call, SubscriptionKind::kChannel);
  } else if (SameWord(what, "SHARDCHANNELS") && call.argc() <= 3) {
    ListChannels(call, SubscriptionKind::kShardChannel);
  } else if (SameWord(what, "NUMSUB")) {
    CountSubscribers(call, SubscriptionKind::kChannel);
  } else if (SameWord(what, "SHARDNUMSUB")) {
    CountSubscribers(call, SubscriptionKind::kShardChannel);
  } else if (SameWord(what, "NUMPAT") && call.argc() == 2) {
    call.reply.Integer(static_cast<int64_t>(call.server->pubsub.patterns()));
  } else {
    UnknownSubcommand(call);
  }
  co_return;
}

constexpr Command kPubSubCommands[] = {
    {"subscribe", &Subscribe, -2, kSubscribed | kWithoutStore | kNoScript},
    {"psubscribe", &Subscribe, -2, kSubscribed | kWithoutStore | kNoScript},
    {"ssubscribe", &Subscribe, -2, kSubscribed | kWithoutStore | kNoScript | kShardChannels},
    {"unsubscribe", &Unsubscribe, -1, kSubscribed | kWithoutStore | kNoScript},
    {"punsubscribe", &Unsubscribe, -1, kSubscribed | kWithoutStore | kNoScript},
    {"sunsubscribe", &Unsubscribe, -1, kSubscribed | kWithoutStore | kNoScript},
    {"publish", &Publish, 3, kFast},
    {"spublish", &Publish, 3, kFast | kShardChannels},
    WithSubcommands({"pubsub", &PubSubCommand, -2, 0},
                    "channels numpat numsub shardchannels shardnumsub"),
};

}  // namespace

std::span<const Command> PubSubCommands() { return kPubSubCommands; }

}  // namespace nacre::server
