#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

namespace nacre::server {

/// A client of Redis's protocol that shows replies as text: the type's character, and the value.
/// "+OK", "-ERR syntax error", ":1", "$bytes", "$nil", "*[:1 $a]", "*nil", and of RESP3 "%[...]",
/// "~[...]", ">[...]", ",1.5", "#t" and "_". Failures fail the test.
class RedisClient {
 public:
  /// `address`: HOST:PORT with an address of IPv4.
  explicit RedisClient(const std::string& address) {
    const size_t colon = address.rfind(':');
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(colon + 1))));
    ::inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr);
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval patience{.tv_sec = 60, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0) << address;
  }
  ~RedisClient() { ::close(socket_); }
  RedisClient(const RedisClient&) = delete;
  RedisClient& operator=(const RedisClient&) = delete;

  int socket() const { return socket_; }
  void SendBytes(const std::string& bytes) {
    size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t more = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      ASSERT_GT(more, 0) << "the server has closed";
      sent += static_cast<size_t>(more);
    }
  }
  void Send(const std::vector<std::string>& words) { SendBytes(Encode(words)); }
  static std::string Encode(const std::vector<std::string>& words) {
    std::string bytes = "*" + std::to_string(words.size()) + "\r\n";
    for (const std::string& word : words) {
      bytes += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    }
    return bytes;
  }
  /// The words of a command without quotes.
  static std::vector<std::string> Words(const std::string& line) {
    std::vector<std::string> words(1);
    for (const char c : line) {
      if (c == ' ') {
        words.emplace_back();
      } else {
        words.back().push_back(c);
      }
    }
    return words;
  }

  std::string Do(const std::vector<std::string>& words) {
    Send(words);
    return Read();
  }
  std::string operator()(const std::string& line) { return Do(Words(line)); }

  /// The next reply; "closed" if there is none.
  std::string Read() {
    std::string line;
    if (!TakeLine(&line)) return "closed";
    const char type = line[0];
    const std::string rest = line.substr(1);
    switch (type) {
      case '$':
      case '=': {
        if (rest == "-1") return "$nil";
        return type + Take(static_cast<size_t>(std::stoll(rest)));
      }
      case '*':
      case '~':
      case '>':
      case '%': {
        if (rest == "-1") return "*nil";
        const int64_t count = std::stoll(rest) * (type == '%' ? 2 : 1);
        std::string text(1, type);
        text += "[";
        for (int64_t i = 0; i < count; ++i) text += (i > 0 ? " " : "") + Read();
        return text + "]";
      }
      default:
        return line;
    }
  }
  /// Whether the server closes without another byte.
  bool AwaitClosed() { return !Receive() && buffer_.empty(); }

 private:
  bool Receive() {
    std::array<char, 65536> bytes;
    const ssize_t got = ::recv(socket_, bytes.data(), bytes.size(), 0);
    if (got <= 0) return false;
    buffer_.append(bytes.data(), static_cast<size_t>(got));
    return true;
  }
  bool TakeLine(std::string* line) {
    size_t end;
    while ((end = buffer_.find("\r\n")) == std::string::npos) {
      if (!Receive()) return false;
    }
    *line = buffer_.substr(0, end);
    buffer_.erase(0, end + 2);
    return true;
  }
  std::string Take(size_t size) {
    while (buffer_.size() < size + 2) {
      if (!Receive()) return "closed";
    }
    std::string bytes = buffer_.substr(0, size);
    buffer_.erase(0, size + 2);
    return bytes;
  }

  int socket_ = -1;
  std::string buffer_;
};

}  // namespace nacre::server
