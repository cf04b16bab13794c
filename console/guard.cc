#include "console/guard.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "util/crypto/secret_key.h"
#include "util/crypto/secret_text.h"
#include "util/uri.h"

namespace nacre::console {
namespace {

constexpr std::string_view kCookieName = "nacre_console";
constexpr int kCookieSeconds = 12 * 60 * 60;
constexpr size_t kTokenBytesMin = 16;
constexpr size_t kTokenBytesMax = 1024;

using Digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

Digest DigestOf(std::string_view text) {
  Digest digest;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return digest;
}

/// In a time that depends on neither where they differ nor how long the secret is.
bool SameSecret(std::string_view given, std::string_view secret) {
  const Digest a = DigestOf(given);
  const Digest b = DigestOf(secret);
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

bool IsAddressOf(int family, const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> bytes;
  return ::inet_pton(family, text.c_str(), bytes.data()) == 1;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

/// "host:80" without the port, "[::1]:80" without brackets as well; empty if it is malformed.
std::string HostOf(std::string_view header) {
  if (header.starts_with('[')) {
    const size_t end = header.find(']');
    if (end == std::string_view::npos) return "";
    const std::string_view rest = header.substr(end + 1);
    if (!rest.empty() && !rest.starts_with(':')) return "";
    return std::string(header.substr(1, end - 1));
  }
  return Lower(header.substr(0, header.find(':')));
}

}  // namespace

Status ParseListenAddress(const std::string& text, ListenAddress* address) {
  const size_t colon = text.rfind(':');
  uint64_t port = 0;
  const Status malformed = Status::InvalidArgument(
      fmt::format("'{}' is not HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080", text));
  if (colon == std::string::npos || colon == 0) return malformed;
  if (!ParseNumber(text.substr(colon + 1), 0, 65'535, &port).ok()) return malformed;
  std::string host = text.substr(0, colon);
  if (host.front() == '[') {
    if (host.back() != ']') return malformed;
    host = host.substr(1, host.size() - 2);
    if (!IsAddressOf(AF_INET6, host)) return malformed;
  } else if (host.find(':') != std::string::npos) {
    return malformed;
  }
  *address = {.host = std::move(host), .port = static_cast<int>(port)};
  return Status::OK();
}

bool IsLoopback(const std::string& host) {
  in_addr v4;
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  return host == "::1" || Lower(host) == "localhost";
}

Status ReadTokenFile(const std::string& path, std::string* token, bool* open_to_all) {
  std::string content;
  SecretReaders readers;
  NACRE_RETURN_IF_ERROR(ReadSecretText(path, kTokenBytesMax + 1, &content, &readers));
  *open_to_all = readers.group || readers.others;
  std::string_view line(content);
  line = line.substr(0, line.find('\n'));
  const bool printable =
      std::all_of(line.begin(), line.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (!printable || line.size() < kTokenBytesMin || line.size() > kTokenBytesMax) {
    return Status::InvalidArgument(
        fmt::format("{}: the first line is no token, which has {} to {} printable characters "
                    "without spaces; 'openssl rand -hex 32' makes one",
                    path, kTokenBytesMin, kTokenBytesMax));
  }
  *token = line;
  WipeSecret(&content);
  return Status::OK();
}

Guard::Guard(std::string token, std::vector<std::string> hosts, std::string session)
    : token_(std::move(token)),
      hosts_([&] {
        for (std::string& host : hosts) host = Lower(host);
        return std::move(hosts);
      }()),
      session_(std::move(session)) {}

bool Guard::KnowsHost(std::string_view header) const {
  const std::string host = HostOf(header);
  if (host == "localhost" || IsAddressOf(AF_INET, host) || IsAddressOf(AF_INET6, host)) return true;
  return std::find(hosts_.begin(), hosts_.end(), host) != hosts_.end();
}

bool Guard::IsToken(std::string_view text) const { return SameSecret(text, token_); }

bool Guard::Admits(std::string_view authorization, std::string_view cookie) const {
  if (!asks_for_token()) return true;
  constexpr std::string_view kBearer = "Bearer ";
  if (authorization.starts_with(kBearer) && IsToken(authorization.substr(kBearer.size()))) {
    return true;
  }
  while (!cookie.empty()) {
    const size_t end = std::min(cookie.find(';'), cookie.size());
    std::string_view one = cookie.substr(0, end);
    cookie.remove_prefix(std::min(end + 1, cookie.size()));
    while (one.starts_with(' ')) one.remove_prefix(1);
    if (!one.starts_with(kCookieName)) continue;
    one.remove_prefix(kCookieName.size());
    if (one.starts_with('=') && SameSecret(one.substr(1), session_)) return true;
  }
  return false;
}

std::string Guard::SetCookie() const {
  return fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age={}", kCookieName, session_,
                     kCookieSeconds);
}

}  // namespace nacre::console
