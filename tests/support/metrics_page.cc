#include "tests/support/metrics_page.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <sstream>

#include "rdma/unique_fd.h"

namespace nacre {

std::string GetMetrics(const std::string& address) {
  const size_t colon = address.rfind(':');
  sockaddr_in peer = {};
  peer.sin_family = AF_INET;
  peer.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(colon + 1))));
  EXPECT_EQ(inet_pton(AF_INET, address.substr(0, colon).c_str(), &peer.sin_addr), 1) << address;
  const rdma::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&peer), sizeof(peer)) != 0) return "";
  const std::string request = "GET /metrics HTTP/1.0\r\n\r\n";
  EXPECT_EQ(::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  std::string answer;
  char bytes[4096];
  for (ssize_t n; (n = ::recv(socket.get(), bytes, sizeof(bytes), 0)) > 0;) {
    answer.append(bytes, static_cast<size_t>(n));
  }
  const size_t body = answer.find("\r\n\r\n");
  EXPECT_NE(body, std::string::npos) << answer;
  EXPECT_TRUE(answer.find(" 200 ") < answer.find("\r\n")) << answer.substr(0, 100);
  return body == std::string::npos ? "" : answer.substr(body + 4);
}

std::map<std::string, double> SamplesOf(const std::string& page) {
  std::map<std::string, double> samples;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == '#') continue;
    const size_t space = line.rfind(' ');
    EXPECT_TRUE(samples.emplace(line.substr(0, space), std::stod(line.substr(space + 1))).second)
        << "twice: " << line;
  }
  return samples;
}

}  // namespace nacre
