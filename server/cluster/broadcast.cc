#include "server/cluster/broadcast.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "util/clock.h"
#include "util/log.h"

namespace nacre::server {
namespace {

constexpr std::chrono::milliseconds kPatience{1000};
constexpr std::chrono::milliseconds kAskAgain{10};
/// As Redis's bound on what waits for a client that has subscribed.
constexpr size_t kBytesMax = size_t{32} << 20;

}  // namespace

void Broadcast::Publish(std::string_view channel, std::string_view message) {
  for (const ClusterNode& node : cluster_->Nodes()) {
    if (node.self) continue;
    const MutexLock lock(&mutex_);
    if (closed_) return;
    Outbox& outbox = outboxes_[node.member];
    const size_t bytes = channel.size() + message.size();
    if (outbox.bytes + bytes > kBytesMax) {
      if (!std::exchange(outbox.drops, true)) {
        Log(cluster_->log(), LogLevel::kWarn,
            "server {} takes messages of channels too slowly: some are dropped", node.address);
      }
      continue;
    }
    wire::Publication* const added = outbox.waiting.mutable_publications()->add_publications();
    added->set_channel(channel.data(), channel.size());
    added->set_message(message.data(), message.size());
    outbox.bytes += bytes;
    if (std::exchange(outbox.sending, true)) continue;
    workers_->Run([this, server = node.member] { Send(server); });
  }
}

bool Broadcast::Take(int64_t server, wire::ServerRequest* request) {
  const MutexLock lock(&mutex_);
  Outbox& outbox = outboxes_[server];
  if (closed_ || outbox.bytes == 0) {
    outboxes_.erase(server);
    sent_.SignalAll();
    return false;
  }
  *request = std::exchange(outbox.waiting, {});
  outbox.bytes = 0;
  return true;
}

void Broadcast::Send(int64_t server) {
  wire::ServerRequest request;
  while (Take(server, &request)) Deliver(server, request);
}

void Broadcast::Deliver(int64_t server, const wire::ServerRequest& request) const {
  Clock* const clock = Clock::System();
  const Deadline deadline = Deadline::After(clock, kPatience);
  const std::string bytes = request.SerializeAsString();
  for (;;) {
    std::string answer;
    const Status status = cluster_->Ask(server, bytes, kPatience, &answer);
    // Only what the server has certainly not seen may be sent again.
    if (!status.IsUnavailable() || deadline.Expired()) {
      if (status.ok()) return;
      Log(cluster_->log(), LogLevel::kDebug, "messages of channels are lost: {}",
          status.ToString());
      return;
    }
    const std::vector<ClusterNode> nodes = cluster_->Nodes();
    if (std::ranges::find(nodes, server, &ClusterNode::member) == nodes.end()) return;
    clock->SleepFor(kAskAgain);
  }
}

void Broadcast::Close() {
  const MutexLock lock(&mutex_);
  closed_ = true;
  while (!outboxes_.empty()) sent_.Wait();
}

}  // namespace nacre::server
