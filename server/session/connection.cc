#include "server/session/connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "server/resp/numbers.h"
#include "server/session/listener.h"
#include "server/session/permission.h"
#include "server/session/routing.h"
#include "server/store/unix_time.h"

namespace nacre::server {
namespace {

constexpr size_t kReceiveBytes = size_t{64} << 10;
constexpr int kReceivesAtOnce = 4;
/// What the slow log keeps of a command.
constexpr size_t kSlowArgsMax = 32;
constexpr size_t kSlowArgBytesMax = 128;

/// Whether a browser has sent it, whose page must not give commands in the lines of its body.
bool IsHttp(std::string_view word) { return SameWord(word, "POST") || SameWord(word, "Host:"); }

std::string UnknownCommand(const Call& call) {
  std::string text = "ERR unknown command '" + std::string(call.arg(0).substr(0, 128)) +
                     "', with args beginning with: ";
  for (size_t i = 1; i < call.argc() && text.size() < 256; ++i) {
    text += "'" + std::string(call.arg(i).substr(0, 128)) + "' ";
  }
  return text;
}

}  // namespace

void Connection::Start(int socket, Origin origin, ServerState* server, LoopState* loop) {
  const std::shared_ptr<const ServerTls> tls = server->tls();
  std::unique_ptr<ClientStream> stream =
      tls == nullptr ? NewPlainStream(socket) : tls->Accept(socket);
  const auto connection = std::make_shared<Connection>(socket, std::move(stream), server, loop);
  if (connection->stream_ == nullptr) return;
  if (!loop->loop.Add(socket, EPOLLIN, connection.get()).ok()) return;
  connection->events_ = EPOLLIN;
  connection->self_ = connection;
  connection->origin = origin;
  loop->clients[connection->id] = connection.get();
}

Connection::Connection(int socket, std::unique_ptr<ClientStream> stream, ServerState* server,
                       LoopState* loop)
    : socket_(socket),
      stream_(std::move(stream)),
      server_(server),
      loop_(loop),
      parser_(&server->limits) {
  id = server->next_client.fetch_add(1, std::memory_order_relaxed);
  address = NameOfEnd(socket, /*peer=*/true);
  local_address = NameOfEnd(socket, /*peer=*/false);
  BeAnyone(this, *server);
  connected_at_ns = last_seen_ns = loop->loop.clock()->NowNanos();
  server->connections_total.fetch_add(1, std::memory_order_relaxed);
}

Connection::~Connection() {
  ::close(socket_);
  server_->connections.fetch_sub(1, std::memory_order_relaxed);
}

void Connection::OnEvents(uint32_t events) {
  if (closed_) return;
  const bool input = (events & EPOLLIN) != 0;
  const bool room = (events & EPOLLOUT) != 0;
  if (room || (input && sending_needs_input_)) Flush();
  if (!closed_ && (input || (room && receiving_needs_room_))) Receive();
  // There is nothing left to answer to.
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) Close();
}

void Connection::Receive() {
  std::array<char, kReceiveBytes> bytes;
  for (int i = 0; i < kReceivesAtOnce && !ended; ++i) {
    size_t got = 0;
    const ClientStream::Outcome outcome = stream_->Receive(bytes, &got);
    receiving_needs_room_ = outcome == ClientStream::Outcome::kNeedsRoom;
    if (outcome == ClientStream::Outcome::kNeedsInput || receiving_needs_room_) break;
    if (outcome != ClientStream::Outcome::kSome) {
      ended = true;
      if (blocked != nullptr) server_->watches.End(blocked, BlockedClient::End::kClosed);
      if (outcome == ClientStream::Outcome::kFailed) return Close();
      break;
    }
    parser_.Append({bytes.data(), got});
    // More may have come than is looked at now; then the loop says so again.
    if (got < bytes.size()) break;
  }
  last_seen_ns = loop_->loop.clock()->CoarseNanos();
  BeginNext();
  if (ended) FlushSoon();
  if (!closed_) UpdateEvents();
}

std::unique_ptr<Call> Connection::NewCall() {
  std::vector<std::unique_ptr<Call>>& spare = loop_->spare_calls;
  if (spare.empty()) return std::make_unique<Call>();
  std::unique_ptr<Call> call = std::move(spare.back());
  spare.pop_back();
  return call;
}

void Connection::Retire(std::unique_ptr<Call> call) {
  if (loop_->spare_calls.size() >= kUnansweredMax) return;
  call->Reset();
  loop_->spare_calls.push_back(std::move(call));
}

const Command* Connection::FindCommand(std::string_view word) {
  if (found_ == nullptr || !SameWord(word, found_->name)) found_ = server_->FindCommand(word);
  return found_;
}

bool Connection::TakeRequest() {
  if (next_ != nullptr) return true;
  if (parser_.buffered() == 0) return false;
  std::unique_ptr<Call> call = NewCall();
  switch (parser_.Next(&call->request)) {
    case RequestParser::Result::kMore:
      Retire(std::move(call));
      return false;
    case RequestParser::Result::kError:
      if (ended) return false;
      ended = true;
      call->done = true;
      call->reply.Error("ERR " + parser_.error());
      calls_.push_back(std::move(call));
      CloseSoon();
      return false;
    case RequestParser::Result::kRequest:
      break;
  }
  if (IsHttp(call->arg(0))) {
    CloseSoon();
    return false;
  }
  call->client = this;
  call->server = server_;
  call->loop = loop_;
  call->access = &loop_->access;
  call->command = FindCommand(call->arg(0));
  next_ = std::move(call);
  return true;
}

void Connection::BeginNext() {
  if (beginning_ || closed_) return;
  beginning_ = true;
  while (barrier_ == nullptr && !closing && calls_.size() < kUnansweredMax &&
         output_.size() - sent_ < kUnsentBytesMax && TakeRequest()) {
    // What names no keys has no locks to come behind what is under way.
    const Command* const command = next_->command;
    const bool keyed = command != nullptr && (command->first_key > 0 || command->keys != nullptr);
    if (!keyed && !calls_.empty()) {
      TakeAnswers();
      if (!calls_.empty()) break;
    }
    Begin(std::exchange(next_, nullptr));
  }
  beginning_ = false;
  TakeAnswers();
}

bool Connection::Refuse(Call* call) const {
  const Command* const command = call->command;
  std::string error;
  if (command == nullptr) {
    error = UnknownCommand(*call);
  } else if (!TakesArguments(*command, call->argc())) {
    error = "ERR wrong number of arguments for '" + std::string(command->name) + "' command";
  } else if (!authenticated && (command->flags & kNoAuth) == 0) {
    error = "NOAUTH Authentication required.";
  } else if (error = Forbidden(*call, in_multi ? CallContext::kMulti : CallContext::kTopLevel);
             !error.empty()) {
    // What follows is told only to a client that may run the command.
  } else if (!server_->serving(*loop_) && (command->flags & kWithoutStore) == 0) {
    error = "LOADING another server serves the database; this one takes it over when that ends";
  } else if (protocol == 2 && subscriptions() > 0 && (command->flags & kSubscribed) == 0) {
    error = "ERR Can't execute '" + std::string(command->name) +
            "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this "
            "context";
  } else if (in_multi && (command->flags & kNoMulti) != 0) {
    error = "ERR Command not allowed inside a transaction";
  } else {
    error = RefusalInCluster(*call);
  }
  if (error.empty()) return false;
  call->reply.Error(error);
  return true;
}

bool Connection::Queue(Call* call) {
  if (!in_multi || (call->command->flags & kAtOnce) != 0) return false;
  if (queued.size() >= server_->limits.args_max) {
    multi_failed = true;
    call->reply.Error("ERR too many commands within MULTI");
    return true;
  }
  queued.push_back({call->command, std::move(call->request)});
  call->reply.Simple("QUEUED");
  return true;
}

Call* Connection::Admit(std::unique_ptr<Call> owned) {
  Call* const call = owned.get();
  calls_.push_back(std::move(owned));
  call->reply.set_protocol(protocol);
  call->database = database;
  call->answered = replies && !std::exchange(skips_next, false);
  loop_->commands.fetch_add(1, std::memory_order_relaxed);
  if (call->command != nullptr) last_command = call->command->name;
  return call;
}

void Connection::Begin(std::unique_ptr<Call> owned) {
  Call* const call = Admit(std::move(owned));
  if (Refuse(call)) {
    multi_failed |= in_multi;
    call->done = true;
  } else if (Queue(call)) {
    call->done = true;
  } else {
    barrier_ = call;
    loop_->loop.Spawn(Run(shared_from_this(), TakeTogether(call)));
  }
}

std::vector<Call*> Connection::TakeTogether(Call* first) {
  std::vector<Call*> calls{first};
  if ((first->command->flags & kMetaRowsOnly) == 0) return calls;
  size_t bytes = 0;
  while (calls.size() < kTogetherMax && calls_.size() < kUnansweredMax && TakeRequest()) {
    const Command* const command = next_->command;
    if (command == nullptr || (command->flags & kMetaRowsOnly) == 0 ||
        !TakesArguments(*command, next_->argc()) || !IsAllowed(*next_)) {
      break;
    }
    for (const std::string_view arg : next_->request.args) bytes += arg.size();
    if (bytes > kTogetherBytesMax) break;
    calls.push_back(Admit(std::exchange(next_, nullptr)));
  }
  return calls;
}

Task<void> Connection::Run(std::shared_ptr<Connection> self, std::vector<Call*> calls) {
  Call* const first = calls.front();
  Clock* const clock = loop_->loop.clock();
  const uint64_t began = clock->NowNanos();
  co_await ExecuteWhereTheKeysAre(calls);
  const auto micros = static_cast<int64_t>((clock->NowNanos() - began) / 1000);
  const int64_t slow = server_->settings.slow_micros.load(std::memory_order_relaxed);
  if (slow >= 0 && micros >= slow) self->NoteSlow(*first, micros);
  self->LetNextBegin(first);
  for (Call* call : calls) call->done = true;
  if (!self->beginning_) self->BeginNext();
}

void Connection::NoteSlow(const Call& call, int64_t micros) const {
  SlowCommand entry;
  entry.unix_seconds = static_cast<int64_t>(UnixMillis() / 1000);
  entry.micros = micros;
  // As Redis does it: the last argument that is kept tells how many are not.
  const bool all = call.argc() <= kSlowArgsMax;
  for (size_t i = 0; i < (all ? call.argc() : kSlowArgsMax - 1); ++i) {
    std::string arg(call.arg(i).substr(0, kSlowArgBytesMax));
    if (call.arg(i).size() > kSlowArgBytesMax) {
      arg += "... (" + std::to_string(call.arg(i).size() - kSlowArgBytesMax) + " more bytes)";
    }
    entry.args.push_back(std::move(arg));
  }
  if (!all) {
    entry.args.push_back("... (" + std::to_string(call.argc() - kSlowArgsMax + 1) +
                         " more arguments)");
  }
  entry.client_address = address;
  entry.client_name = name;
  server_->slow_log.Add(
      std::move(entry),
      static_cast<size_t>(server_->settings.slow_log_entries_max.load(std::memory_order_relaxed)));
}

void Connection::LetNextBegin(const Call* call) {
  if (barrier_ != call) return;
  barrier_ = nullptr;
  if (beginning_) return;
  // Not from within the command that lets others begin.
  loop_->loop.AtTurnEnd([self = shared_from_this()] { self->BeginNext(); });
}

void Connection::TakeAnswers() {
  if (calls_.empty() || !calls_.front()->done) return;
  while (!calls_.empty() && calls_.front()->done) {
    std::unique_ptr<Call> call = std::move(calls_.front());
    calls_.pop_front();
    if (call->answered) output_.append(call->reply.bytes());
    Retire(std::move(call));
  }
  FlushSoon();
}

void Connection::Send(std::string_view bytes) {
  output_.append(bytes);
  if (output_.size() - sent_ > kUnsentBytesMax) return Close();
  FlushSoon();
}

void Connection::CloseSoon() {
  closing = true;
  FlushSoon();
}

void Connection::FlushSoon() {
  if (flushing_soon_ || closed_) return;
  flushing_soon_ = true;
  loop_->loop.AtTurnEnd([self = shared_from_this()] {
    self->flushing_soon_ = false;
    self->Flush();
  });
}

void Connection::Flush() {
  if (closed_) return;
  while (sent_ < output_.size()) {
    size_t sent = 0;
    const ClientStream::Outcome outcome =
        stream_->Send(std::string_view(output_).substr(sent_), &sent);
    sending_needs_input_ = outcome == ClientStream::Outcome::kNeedsInput;
    if (sending_needs_input_ || outcome == ClientStream::Outcome::kNeedsRoom) break;
    if (outcome != ClientStream::Outcome::kSome) return Close();
    sent_ += sent;
  }
  if (sent_ == output_.size()) {
    output_.clear();
    sent_ = 0;
    if (calls_.empty() && (closing || (ended && next_ == nullptr))) return Close();
  }
  UpdateEvents();
  BeginNext();
}

void Connection::UpdateEvents() {
  const bool full =
      calls_.size() >= kUnansweredMax || output_.size() - sent_ >= kUnsentBytesMax ||
      ((next_ != nullptr || barrier_ != nullptr) && parser_.buffered() >= kUnparsedBytesMax);
  const bool input = sending_needs_input_ || !(ended || full);
  const bool room = receiving_needs_room_ || (sent_ < output_.size() && !sending_needs_input_);
  const uint32_t wanted =
      (input ? static_cast<uint32_t>(EPOLLIN) : 0U) | (room ? static_cast<uint32_t>(EPOLLOUT) : 0U);
  if (wanted == events_) return;
  events_ = wanted;
  loop_->loop.Change(socket_, events_, this);
}

void Connection::Close() {
  if (closed_) return;
  closed_ = ended = true;
  loop_->loop.Remove(socket_);
  stream_->End();
  ::shutdown(socket_, SHUT_RDWR);
  loop_->clients.erase(id);
  if (watch != nullptr) server_->watches.Unwatch(std::exchange(watch, nullptr));
  if (blocked != nullptr) server_->watches.End(blocked, BlockedClient::End::kClosed);
  server_->pubsub.UnsubscribeAll(this, loop_);
  server_->snapshots.RemoveOf(id);
  next_.reset();
  // Events that were found already may still come.
  loop_->loop.Post([self = std::exchange(self_, nullptr)] {});
}

}  // namespace nacre::server
