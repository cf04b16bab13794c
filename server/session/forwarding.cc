#include "server/session/forwarding.h"

#include <fmt/format.h>

#include <chrono>
#include <future>
#include <memory>
#include <utility>

#include "server/cluster/server_message.pb.h"
#include "server/session/execute.h"
#include "server/session/routing.h"
#include "server/session/server_state.h"
#include "util/exceptions.h"

namespace nacre::server {
namespace {

/// Longer than commands take, but for those on very large keys.
constexpr std::chrono::seconds kPatience{30};

constexpr const char* kUnknown =
    "ERR the server that has the keys has not answered: whether the command took effect is not "
    "known";

bool IsExec(const Call& call) { return std::string_view(call.command->name) == "exec"; }

// ---- The server that asks -----------------------------------------------------------------------

void AddCommand(const Request& request, wire::Commands* commands) {
  wire::Command* const command = commands->add_commands();
  for (const std::string_view word : request.args) command->add_words(word.data(), word.size());
}

std::string Encode(const std::vector<Call*>& calls) {
  const Client& client = *calls.front()->client;
  wire::ServerRequest request;
  wire::Commands* const commands = request.mutable_commands();
  if (client.user != nullptr) commands->set_user(client.user->name());
  commands->set_protocol(static_cast<uint32_t>(client.protocol));
  commands->set_transaction(IsExec(*calls.front()));
  if (commands->transaction()) {
    for (const QueuedCommand& queued : client.queued) AddCommand(queued.request, commands);
  } else {
    for (const Call* const call : calls) AddCommand(call->request, commands);
  }
  return request.SerializeAsString();
}

/// What is known of a command that was not answered.
void EndUnanswered(const Status& status, Call* call) {
  const bool reads = (call->command->flags & kReads) != 0;
  // `Unavailable`: the server has not seen it. Nothing is wrong with reading once more.
  if (status.IsUnavailable() || (reads && status.IsTimedOut())) {
    call->elsewhere = true;
  } else {
    call->reply.Error(status.IsTimedOut() ? kUnknown : ErrorText(status));
  }
}

// ---- The server that is asked -------------------------------------------------------------------

/// A client of another server. It has one request, and no connection.
class RelayedClient final : public Client {
 public:
  void LetNextBegin(const Call* /*call*/) override {}
  void Send(std::string_view /*bytes*/) override {}
  void CloseSoon() override {}
  void Close() override {}
};

/// Its commands, from when they come to their answers.
struct Relay {
  RelayedClient client;
  std::vector<std::unique_ptr<Call>> calls;
};

/// False if it names no command that this server knows.
bool TakeWords(const ServerState& server, const wire::Command& command, const Command** found,
               Request* request) {
  for (const std::string& word : command.words()) request->args.emplace_back(word);
  *found = request->args.empty() ? nullptr : server.FindCommand(request->args.front());
  return *found != nullptr && TakesArguments(**found, request->args.size());
}

void AddCall(ServerState* server, LoopState* loop, const Command* command, Request request,
             Relay* relay) {
  auto call = std::make_unique<Call>();
  call->request = std::move(request);
  call->command = command;
  call->client = &relay->client;
  call->server = server;
  call->loop = loop;
  call->access = &loop->access;
  call->reply.set_protocol(relay->client.protocol);
  relay->calls.push_back(std::move(call));
}

/// The calls view the words of `commands`.
Status MakeCalls(ServerState* server, LoopState* loop, const wire::Commands& commands,
                 Relay* relay) {
  Client& client = relay->client;
  client.origin = Client::Origin::kRelayed;
  client.id = server->next_client.fetch_add(1, std::memory_order_relaxed);
  client.address = "?:0";
  client.authenticated = true;
  client.protocol = commands.protocol() == 3 ? 3 : 2;
  client.user_version = server->acl.version();
  client.user = server->acl.Find(commands.user());
  for (const wire::Command& each : commands.commands()) {
    QueuedCommand command;
    if (!TakeWords(*server, each, &command.command, &command.request)) {
      return Status::InvalidArgument("a command that this server does not know");
    }
    if (commands.transaction()) {
      client.queued.push_back(std::move(command));
    } else {
      AddCall(server, loop, command.command, std::move(command.request), relay);
    }
  }
  if (!commands.transaction()) return Status::OK();
  client.in_multi = true;
  Request exec;
  exec.args.emplace_back("exec");
  AddCall(server, loop, server->FindCommand("exec"), std::move(exec), relay);
  return Status::OK();
}

/// The relay may be gone as soon as `done` is set.
Task<void> Run(Relay* relay, std::shared_ptr<std::promise<void>> done) {
  std::vector<Call*> calls;
  for (const auto& call : relay->calls) calls.push_back(call.get());
  co_await ExecuteWhereTheKeysAre(std::move(calls));
  done->set_value();
}

Status AnswerCommands(ServerState* server, const wire::Commands& commands,
                      wire::ServerAnswer* answer) {
  // The client's next ones come when these have been answered, so any loop will do.
  const size_t chosen = server->next_loop.fetch_add(1, std::memory_order_relaxed);
  LoopState* const loop = server->loops[chosen % server->loops.size()].get();
  Relay relay;
  NACRE_RETURN_IF_ERROR(MakeCalls(server, loop, commands, &relay));
  if (relay.calls.empty()) return Status::OK();
  const auto done = std::make_shared<std::promise<void>>();
  loop->loop.Post([loop, &relay, done] { loop->loop.Spawn(Run(&relay, done)); });
  done->get_future().wait();
  for (const auto& call : relay.calls) {
    wire::CommandAnswer* const each = answer->add_commands();
    each->set_elsewhere(call->elsewhere);
    if (!call->elsewhere) each->set_reply(call->reply.Take());
  }
  return Status::OK();
}

}  // namespace

std::string RefusalToForward(const Call& call, uint32_t slot) {
  const bool listens = (call.command->flags & kShardChannels) != 0 && call.command->arity < 0;
  const std::string_view name = call.command->name;
  if ((call.command->flags & kBlocks) == 0 && !listens && name != "watch") return {};
  return fmt::format("ERR '{}' is not forwarded to another server, such as that of slot {}: {}",
                     name, slot, call.server->cluster->OwnerOf(slot).address);
}

Task<void> Forward(int64_t server, std::vector<Call*> calls) {
  Call* const first = calls.front();
  ServerState* const own = first->server;
  const std::string request = Encode(calls);
  std::string bytes;
  wire::ServerAnswer answer;
  Status status;
  Offload asked(&first->loop->loop, own->askers, [&] {
    status = CatchAll([&] { return own->cluster->Ask(server, request, kPatience, &bytes); });
  });
  co_await asked;
  if (status.ok() && (!answer.ParseFromString(bytes) ||
                      static_cast<size_t>(answer.commands_size()) != calls.size())) {
    status = Status::Corruption("what the server answers are no replies to the commands");
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    Call* const call = calls[i];
    call->elsewhere = false;
    if (!status.ok()) {
      EndUnanswered(status, call);
    } else if (answer.commands(static_cast<int>(i)).elsewhere()) {
      call->elsewhere = true;
    } else {
      call->reply.Append(answer.commands(static_cast<int>(i)).reply());
      own->forwarded.fetch_add(1, std::memory_order_relaxed);
    }
    if (!call->elsewhere && IsExec(*call)) EndTransaction(call);
  }
}

Status AnswerServer(ServerState* server, const Slice& request, std::string* answer) {
  wire::ServerRequest asked;
  if (!asked.ParseFromArray(request.data(), static_cast<int>(request.size()))) {
    return Status::InvalidArgument("a malformed request of a server");
  }
  wire::ServerAnswer answered;
  switch (asked.body_case()) {
    case wire::ServerRequest::kPublications:
      for (const wire::Publication& each : asked.publications().publications()) {
        server->pubsub.Publish(each.channel(), each.message());
      }
      break;
    case wire::ServerRequest::kCommands:
      NACRE_RETURN_IF_ERROR(AnswerCommands(server, asked.commands(), &answered));
      break;
    default:
      return Status::NotSupported("this server does not know the request");
  }
  answered.SerializeToString(answer);
  return Status::OK();
}

}  // namespace nacre::server
