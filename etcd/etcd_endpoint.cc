#include "etcd/etcd_endpoint.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <string_view>
#include <utility>

#include "etcd/etcd_call.h"
#include "util/uri.h"

namespace nacre {
namespace {

/// A peer that is silent for so long while a call runs is asked for a sign of life.
constexpr int kSilenceMs = 1000;
/// The connection is dead if that does not come within this time.
constexpr int kSignOfLifeMs = 1500;
constexpr int kConnectMs = 5000;
/// Enough to see what has come from a peer.
constexpr std::chrono::milliseconds kLook(1);
constexpr int kAnswerBytesMax = 64 << 20;

bool IsHostName(std::string_view host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_';
  });
}

bool IsIpv6InBrackets(std::string_view host) {
  if (host.size() < 2 || host.front() != '[' || host.back() != ']') return false;
  const std::string literal(host.substr(1, host.size() - 2));
  in6_addr ignored;
  return ::inet_pton(AF_INET6, literal.c_str(), &ignored) == 1;
}

Status CheckEndpoint(const std::string& endpoint) {
  if (endpoint.empty()) return Status::InvalidArgument("an endpoint is empty");
  const size_t colon = endpoint.rfind(':');
  if (colon == std::string::npos) {
    return Status::InvalidArgument(fmt::format("'{}' is not HOST:PORT", endpoint));
  }
  const std::string_view host = std::string_view(endpoint).substr(0, colon);
  if (!IsHostName(host) && !IsIpv6InBrackets(host)) {
    return Status::InvalidArgument(
        fmt::format("'{}' of '{}' is neither a name, nor an IPv4 address, nor an IPv6 address in "
                    "brackets",
                    host, endpoint));
  }
  uint64_t port = 0;
  return ParseNumber(endpoint.substr(colon + 1), 1, 65535, &port)
      .WithContext(fmt::format("port of '{}'", endpoint));
}

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kSilenceMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kSignOfLifeMs);
  // Without a limit, as a call that waits sends nothing else.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // How long one attempt to connect may take.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectMs);
  arguments.SetMaxReceiveMessageSize(kAnswerBytesMax);
  // A channel that replaces a failed one must not inherit its connection and back-off.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Neither the environment nor a name server may say how to reach it, or what is retried.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  std::string target = "dns:///";
  for (const char c : address) {
    target += c == '[' ? "%5B" : c == ']' ? "%5D" : std::string(1, c);
  }
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

Status ParseEtcdAddress(const std::string& address, std::vector<std::string>* endpoints) {
  endpoints->clear();
  size_t begin = 0;
  while (begin <= address.size()) {
    const size_t end = std::min(address.find(',', begin), address.size());
    endpoints->push_back(address.substr(begin, end - begin));
    NACRE_RETURN_IF_ERROR(
        CheckEndpoint(endpoints->back()).WithContext(fmt::format("address 'etcd:{}'", address)));
    begin = end + 1;
  }
  return Status::OK();
}

EtcdEndpoint::EtcdEndpoint(std::string address) : address_(std::move(address)) {}

std::shared_ptr<grpc::Channel> EtcdEndpoint::FreshChannel() {
  std::shared_ptr<grpc::Channel> failed;  // Ends after the lock.
  MutexLock lock(&mutex_);
  if (channel_ == nullptr ||
      channel_->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_TRANSIENT_FAILURE) {
    failed = std::exchange(channel_, MakeChannel(address_));
  }
  return channel_;
}

Status EtcdEndpoint::Connect(Deadline deadline, std::shared_ptr<grpc::Channel>* channel) {
  *channel = FreshChannel();
  for (bool known = false;; known = true) {
    const grpc_connectivity_state state = (*channel)->GetState(/*try_to_connect=*/true);
    if (state == GRPC_CHANNEL_READY) {
      if (known) return Status::OK();
      // Between calls gRPC does not look whether the peer has ended the connection.
      (*channel)->WaitForStateChange(state, GrpcTime(kLook));
      continue;
    }
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE || state == GRPC_CHANNEL_SHUTDOWN) {
      return Status::Unavailable("cannot connect");
    }
    if (!(*channel)->WaitForStateChange(state, GrpcTime(deadline.Remaining()))) {
      return Status::TimedOut("did not accept the connection in time");
    }
  }
}

}  // namespace nacre
