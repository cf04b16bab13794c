#include "rdma/verbs/address.h"

#include <netdb.h>

#include <charconv>
#include <cstring>
#include <memory>

namespace nacre::rdma {

namespace {

Status Malformed(const std::string& text, const std::string& why) {
  return Status::InvalidArgument("address '" + text + "': " + why);
}

}  // namespace

std::string VerbsAddress::ToString() const {
  const bool brackets = host.find(':') != std::string::npos;
  return "verbs:" + (brackets ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Status ParseVerbsAddress(const std::string& text, VerbsAddress* address) {
  std::string rest = text;
  if (rest.starts_with("verbs:")) rest.erase(0, std::strlen("verbs:"));
  const size_t colon = rest.rfind(':');
  if (colon == std::string::npos) return Malformed(text, "not of the form HOST:PORT");
  const char* const end = rest.data() + rest.size();
  const auto [stop, error] = std::from_chars(rest.data() + colon + 1, end, address->port);
  if (error != std::errc() || stop != end || address->port < 0 || address->port > 65535) {
    return Malformed(text, "no port from 0 to 65535");
  }
  address->host = rest.substr(0, colon);
  if (address->host.starts_with('[') && address->host.ends_with(']')) {
    address->host = address->host.substr(1, address->host.size() - 2);
  } else if (address->host.find(':') != std::string::npos) {
    return Malformed(text, "an IPv6 address wants brackets");
  }
  if (address->host.empty() || address->host.size() > 253) return Malformed(text, "no host");

  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  // The wildcard of both families: an IPv6 socket serves IPv4 as well.
  const char* const name = address->host == "*" ? "::" : address->host.c_str();
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(name, std::to_string(address->port).c_str(), &hints, &found);
  if (failure != 0) {
    return Status::Unavailable("address '" + text + "': " + ::gai_strerror(failure));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  std::memcpy(&address->socket_address, found->ai_addr, found->ai_addrlen);
  return Status::OK();
}

}  // namespace nacre::rdma
