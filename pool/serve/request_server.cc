#include "pool/serve/request_server.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "util/log.h"
#include "util/simulation.h"

namespace nacre::pool {
namespace {

using std::chrono::milliseconds;

constexpr size_t kMaxConnections = 4096;
constexpr size_t kMaxIncoming = 256;
/// Each connection has at most a receive, and a fetch or a reply, outstanding. Some adapters
/// (soft-RoCE) have no room for twice as many.
constexpr int kQueueCapacity = 5 * static_cast<int>(kMaxConnections) / 2;
constexpr milliseconds kSweepPeriod{1000};
/// While there is always more to do, the I/O thread looks at the time once in so many rounds.
constexpr int kBusyRounds = 1024;

/// How long the I/O thread looks for work before it sleeps. A client's next request often follows
/// the last one at once, and to be woken for it costs both ends microseconds. So it looks for
/// longer where the last requests came within that time.
class PollTime {
 public:
  /// Work was found `nanos` after there was none.
  void Found(uint64_t nanos) {
    prompt_ = nanos <= kMostNanos ? std::min(prompt_ + 1, kManyPrompt) : prompt_ / 2;
  }
  uint64_t nanos() const { return prompt_ >= kFewPrompt ? kMostNanos : kLeastNanos; }

 private:
  static constexpr uint64_t kLeastNanos = 2'000;
  static constexpr uint64_t kMostNanos = 20'000;
  static constexpr int kFewPrompt = 8;
  static constexpr int kManyPrompt = 32;
  int prompt_ = 0;  ///< Counts requests that came so soon; a late one halves it.
};

}  // namespace

RequestServer::RequestServer(RequestServerOptions options, rdma::Device* device, Clock* clock,
                             RequestHandler* handler)
    : options_(std::move(options)), device_(device), clock_(clock), handler_(handler) {}

RequestServer::~RequestServer() { Stop(/*silently=*/false); }

Status RequestServer::Listen() {
  NACRE_RETURN_IF_ERROR(device_->AllocateRegion(4096, rdma::Access::kLocalOnly, &scratch_));
  NACRE_RETURN_IF_ERROR(device_->CreateCompletionQueue(kQueueCapacity, &queue_));
  NACRE_RETURN_IF_ERROR(device_->Listen(options_.listen, &listener_));
  address_ = listener_->address();
  return Status::OK();
}

void RequestServer::Start() {
  accepting_ = true;
  serving_ = true;
  io_ = Thread("nacre-" + options_.kind, [this] { Loop(); });
  acceptor_ = Thread("nacre-accept", [this] { AcceptLoop(); });
}

void RequestServer::BeginStop(bool silently) {
  if (!accepting_) return;
  accepting_ = false;
  silent_.store(silently, std::memory_order_release);
  stopping_.store(true, std::memory_order_release);
  listener_->Close();
  acceptor_.Join();
}

void RequestServer::Stop(bool silently) {
  BeginStop(silently);
  if (!serving_) return;
  serving_ = false;
  quit_.store(true, std::memory_order_release);
  queue_->Wake();
  io_.Join();
  connections_.clear();
  {
    MutexLock lock(&mutex_);
    incoming_.clear();
  }
  listener_.reset();
}

RequestServer::Counts RequestServer::counts() const {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  return {.taken = counters_.taken.load(kRelaxed),
          .open = counters_.open.load(kRelaxed),
          .nanos = counters_.nanos.load(kRelaxed),
          .malformed = counters_.malformed.load(kRelaxed),
          .connections = counters_.connections.load(kRelaxed)};
}

// ---- Acceptor thread ------------------------------------------------------------------------

void RequestServer::AcceptLoop() {
  while (!stopping_.load(std::memory_order_acquire)) {
    std::unique_ptr<rdma::IncomingConnection> incoming;
    const Status s = listener_->Accept(milliseconds(1000), &incoming);
    if (s.IsShutdownInProgress()) return;
    if (!s.ok()) {
      if (!s.IsTimedOut()) {
        Log(options_.log, LogLevel::kWarn, "{}: cannot accept: {}", address_, s.ToString());
        clock_->SleepFor(milliseconds(10));
      }
      continue;
    }
    Hello hello;
    if (!Hello::Decode(incoming->private_data(), &hello)) {
      counters_.malformed.fetch_add(1, std::memory_order_relaxed);
      incoming->Reject("no Nacre client");
      continue;
    }
    if ((hello.kind != ConnectionKind::kData) != incoming->depths().control) {
      // What a device does for control connections only, it is to do for all of them: encrypt, and
      // notice that a peer has vanished.
      counters_.malformed.fetch_add(1, std::memory_order_relaxed);
      incoming->Reject("no control connection, or one for data");
      continue;
    }
    const std::string refusal = handler_->Refusal(hello);
    if (!refusal.empty()) {
      Log(options_.log, LogLevel::kWarn, "{}: refused a client: {}", address_, refusal);
      incoming->Reject(refusal);
      continue;
    }
    MutexLock lock(&mutex_);
    if (incoming_.size() >= kMaxIncoming) {
      incoming->Reject("too many connections at once");
      continue;
    }
    incoming_.emplace_back(std::move(incoming), hello);
    queue_->Wake();
  }
}

// ---- I/O thread -----------------------------------------------------------------------------

void RequestServer::Loop() {
  uint64_t next_sweep = 0;
  uint64_t idle_since = 0;
  uint64_t slept_since = 0;
  // Only threads that sleep let others go on in a simulation.
  const bool adapts = Simulation::Current() == nullptr;
  PollTime poll_time;
  int busy_rounds = 0;
  while (true) {
    // Read before the queues are: what was put there before it was set is still served.
    const bool quit = quit_.load(std::memory_order_acquire);
    TakeIncoming();
    handler_->OnIo();
    rdma::Completion completions[32];
    const int n = queue_->Poll(completions, 32);
    for (int i = 0; i < n; ++i) TakeCompletion(completions[i]);
    if (n > 0) {
      if (adapts && slept_since != 0) {
        poll_time.Found(clock_->NowNanos() - slept_since);
      } else if (adapts && idle_since != 0) {
        poll_time.Found(0);
      }
      idle_since = slept_since = 0;
      if (++busy_rounds < kBusyRounds) continue;
    }
    busy_rounds = 0;
    if (quit && n == 0) return;

    const uint64_t now = clock_->NowNanos();
    if (now >= next_sweep) {
      Sweep();
      next_sweep = now + static_cast<uint64_t>(std::chrono::nanoseconds(kSweepPeriod).count());
    }
    if (n > 0) continue;
    if (idle_since == 0) idle_since = now;
    if (now - idle_since < poll_time.nanos()) continue;
    if (slept_since == 0) slept_since = idle_since;
    const Status woken = queue_->Wait(std::chrono::nanoseconds(next_sweep - now));
    if (!woken.ok() && !woken.IsTimedOut()) {
      Log(options_.log, LogLevel::kError, "{}: cannot wait: {}", address_, woken.ToString());
      clock_->SleepFor(milliseconds(1));
    }
    idle_since = 0;
  }
}

void RequestServer::TakeIncoming() {
  while (true) {
    std::pair<std::unique_ptr<rdma::IncomingConnection>, Hello> next;
    {
      MutexLock lock(&mutex_);
      if (incoming_.empty()) return;
      next = std::move(incoming_.front());
      incoming_.pop_front();
    }
    Admit(std::move(next.first), next.second);
  }
}

void RequestServer::Admit(std::unique_ptr<rdma::IncomingConnection> incoming, const Hello& hello) {
  const bool has_lifeline = lifelines_.contains(hello.client_id);
  if (hello.client_id == 0 || (hello.kind == ConnectionKind::kLifeline) == has_lifeline) {
    // Without one this server would not learn of the client's end; with two, of which end.
    incoming->Reject(has_lifeline ? "has a lifeline already" : "has no lifeline");
    return;
  }
  if (connections_.size() >= kMaxConnections) {
    incoming->Reject("too many connections");
    return;
  }
  if (hello.kind == ConnectionKind::kLifeline) {
    const std::string reason = MissingFeaturesReason(hello.features, handler_->features_on());
    if (!reason.empty()) {
      Log(options_.log, LogLevel::kWarn, "{}: refused a client: {}", address_, reason);
      incoming->Reject(reason);
      return;
    }
  }
  auto connection = std::make_unique<ServerConnection>();
  connection->id = ++last_connection_;
  connection->kind = hello.kind;
  connection->client_id = hello.client_id;
  connection->number = hello.connection;
  connection->protocol = {.range = hello.range, .features = hello.features};
  connection->credential = incoming->credential();
  if (connection->credential->revoked()) {
    incoming->Reject("the secret was revoked");
    return;
  }
  if (const Status s = Rights::Parse(connection->credential->rights(), &connection->rights);
      !s.ok()) {
    Log(options_.log, LogLevel::kError, "{}: secret '{}': {}", address_,
        connection->credential->name(), s.ToString());
    incoming->Reject("its secret has no rights");
    return;
  }
  Status s = TakeIn(incoming.get(), hello, connection.get());
  if (s.ok()) s = PostReceive(connection.get());
  if (!s.ok()) {
    Log(options_.log, LogLevel::kWarn, "{}: a connection failed: {}", address_, s.ToString());
    return;
  }
  if (hello.kind == ConnectionKind::kLifeline) lifelines_[hello.client_id] = connection->id;
  connections_.emplace(connection->id, std::move(connection));
  counters_.connections.store(connections_.size(), std::memory_order_relaxed);
}

Status RequestServer::TakeIn(rdma::IncomingConnection* incoming, const Hello& hello,
                             ServerConnection* connection) {
  if (Status s = Prepare(connection); !s.ok()) {
    incoming->Reject("out of memory");
    return s;
  }
  const Welcome welcome{.version = CommonVersion(hello.range, options_.protocol.range),
                        .instance_id = options_.instance_id,
                        .features = options_.protocol.features,
                        .features_on = handler_->features_on()};
  return incoming->Accept(queue_.get(), queue_.get(), welcome.Encode(), &connection->queue_pair);
}

Status RequestServer::Prepare(ServerConnection* connection) {
  if (connection->kind != ConnectionKind::kRequest) return Status::OK();
  return device_->AllocateRegion(
      ServerConnection::kReceiveBytes + ServerConnection::kShortReplyBytes,
      rdma::Access::kLocalOnly, &connection->memory);
}

void RequestServer::TakeCompletion(const rdma::Completion& completion) {
  const auto it = connections_.find(completion.id >> kWorkBits);
  if (it == connections_.end()) return;  // It was closed with work outstanding.
  ServerConnection* connection = it->second.get();
  if (completion.code != rdma::CompletionCode::kSuccess) {
    if (completion.code == rdma::CompletionCode::kRemoteAccessError) {
      counters_.malformed.fetch_add(1, std::memory_order_relaxed);
    }
    CloseConnection(connection->id);
    return;
  }
  switch (static_cast<Work>(completion.id & ((1 << kWorkBits) - 1))) {
    case Work::kReceive:
      Received(connection, completion.bytes);
      return;
    case Work::kFetch:
      Fetched(connection);
      return;
    case Work::kReply:
      Answered(connection);
      return;
  }
}

void RequestServer::Sweep() {
  std::vector<uint64_t> ended;
  for (const auto& [id, connection] : connections_) {
    if (connection->queue_pair->broken() || connection->credential->revoked()) {
      ended.push_back(id);
    }
  }
  for (const uint64_t id : ended) CloseConnection(id);
}

void RequestServer::CloseConnection(uint64_t connection_id) {
  const auto it = connections_.find(connection_id);
  if (it == connections_.end()) return;
  const std::unique_ptr<ServerConnection> connection = std::move(it->second);
  connections_.erase(it);
  counters_.connections.store(connections_.size(), std::memory_order_relaxed);
  if (connection->open()) counters_.open.fetch_sub(1, std::memory_order_relaxed);
  handler_->Closing(*connection);
  if (connection->kind != ConnectionKind::kLifeline) return;
  const uint64_t client_id = connection->client_id;
  const bool hung_up = connection->queue_pair->peer_hung_up();
  lifelines_.erase(client_id);
  // Its other connections first: it must not touch what the handler gives to others.
  std::vector<uint64_t> others;
  for (const auto& [id, other] : connections_) {
    if (other->client_id == client_id) others.push_back(id);
  }
  for (const uint64_t id : others) CloseConnection(id);
  handler_->LifelineEnded(client_id, hung_up);
}

void RequestServer::CloseDataConnections(uint64_t client_id, const std::set<uint32_t>& numbers) {
  std::vector<uint64_t> ended;
  for (const auto& [id, connection] : connections_) {
    if (connection->client_id == client_id && connection->kind == ConnectionKind::kData &&
        numbers.contains(connection->number)) {
      ended.push_back(id);
    }
  }
  for (const uint64_t id : ended) CloseConnection(id);
}

void RequestServer::ListClients(std::vector<ConnectedClient>* clients) const {
  for (const auto& [client_id, connection_id] : lifelines_) {
    clients->push_back({.client_id = client_id,
                        .protocol = connections_.at(connection_id)->protocol,
                        .owned = {}});
  }
}

bool RequestServer::CloseThoseWithout(FeatureSet features_on) {
  if (features_on == known_to_all_) return false;
  known_to_all_ = features_on;
  std::vector<uint64_t> ended;
  for (const auto& [client_id, connection_id] : lifelines_) {
    const FeatureSet known = connections_.at(connection_id)->protocol.features;
    if ((features_on & ~known) != 0) ended.push_back(connection_id);
  }
  for (const uint64_t id : ended) CloseConnection(id);
  return true;
}

void RequestServer::LookAt(uint64_t client_id) {
  const auto lifeline = lifelines_.find(client_id);
  if (lifeline == lifelines_.end()) return;
  rdma::QueuePair* const queue_pair = connections_.at(lifeline->second)->queue_pair.get();
  queue_pair->LookAtPeer();
  if (queue_pair->broken()) CloseConnection(lifeline->second);
}

ServerConnection* RequestServer::Find(uint64_t connection_id) {
  const auto it = connections_.find(connection_id);
  return it == connections_.end() ? nullptr : it->second.get();
}

}  // namespace nacre::pool
