// Goal: the console answers what it says, to those that may ask, with headers that keep pages of
// others out; it changes nothing unless it may; requests without end do not hold it up.
// Method: a console over a source that the test fills, asked by a client of HTTP and by bare
// sockets.

#include "console/console.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "console/http_server.h"
#include "tests/support/status_assert.h"
#include "util/clock.h"

namespace nacre::console {
namespace {

constexpr const char* kToken = "0123456789abcdef0123456789abcdef";

class FixedSource : public ConsoleSource {
 public:
  uint64_t samples() const override { return 7; }
  std::string PoolJson() const override { return "{\"samples\": 7}"; }
  std::string HistoryJson() const override { return "{\"points\": []}"; }
  std::string LevelsJson() override { return "{\"databases\": []}"; }
  std::string DoctorJson() override { return "{\"findings\": []}"; }
  Status Carry(const Order& order) override {
    const std::lock_guard lock(mutex_);
    orders_.push_back(order);
    return order.node == "away" ? Status::Unavailable("it is away") : Status::OK();
  }
  std::vector<Order> orders() const {
    const std::lock_guard lock(mutex_);
    return orders_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Order> orders_;
};

class ConsoleTest : public testing::Test {
 protected:
  void Start(ConsoleOptions options) {
    options.listen = "127.0.0.1:0";
    ASSERT_TRUE(IsOk(Console::Open(options, &source_, &browser_, Clock::System(), &console_)));
    const std::string& address = console_->address();
    port_ = std::stoi(address.substr(address.rfind(':') + 1));
    client_ = std::make_unique<httplib::Client>("127.0.0.1", port_);
  }
  Status OpenAt(const std::string& listen, const std::string& token) {
    std::unique_ptr<Console> console;
    return Console::Open({.listen = listen, .token = token}, &source_, &browser_, Clock::System(),
                         &console);
  }
  /// The status of the answer.
  int Get(const std::string& path, const httplib::Headers& headers = {}) {
    const httplib::Result result = client_->Get(path, headers);
    EXPECT_TRUE(result) << path << ": " << httplib::to_string(result.error());
    if (!result) return -1;
    answer_ = *result;
    return answer_.status;
  }
  int Post(const std::string& path, const httplib::Params& form,
           const httplib::Headers& headers = {}) {
    const httplib::Result result = client_->Post(path, headers, form);
    EXPECT_TRUE(result) << path << ": " << httplib::to_string(result.error());
    if (!result) return -1;
    answer_ = *result;
    return answer_.status;
  }
  int Connect() const {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port_));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return socket;
  }

  FixedSource source_;
  KeyBrowser browser_{"tcp:127.0.0.1:1", Clock::System()};
  std::unique_ptr<Console> console_;
  std::unique_ptr<httplib::Client> client_;
  int port_ = 0;
  httplib::Response answer_;
};

TEST_F(ConsoleTest, ThePageAndWhatItAsksForAreThere) {
  Start({});
  EXPECT_EQ(Get("/"), 200);
  EXPECT_NE(answer_.body.find("<title>Nacre console</title>"), std::string::npos);
  // All that the page names is there, and is nothing else than it says.
  const std::vector<std::pair<std::string, std::string>> files = {
      {"/console.css", "text/css"},       {"/icon.svg", "image/svg+xml"},
      {"/console.js", "text/javascript"}, {"/charts.js", "text/javascript"},
      {"/format.js", "text/javascript"},  {"/pool.js", "text/javascript"},
      {"/keys.js", "text/javascript"}};
  for (const auto& [path, type] : files) {
    EXPECT_NE(answer_.body.find('"' + path + '"'), std::string::npos) << path;
  }
  for (const auto& [path, type] : files) {
    EXPECT_EQ(Get(path), 200) << path;
    EXPECT_EQ(answer_.get_header_value("Content-Type").find(type), 0u) << path;
    EXPECT_FALSE(answer_.body.empty()) << path;
  }
  EXPECT_EQ(Get("/api/pool"), 200);
  EXPECT_EQ(answer_.body, "{\"orders\": false,\n\"pool\": {\"samples\": 7}}\n");
  EXPECT_EQ(answer_.get_header_value("Content-Type"), "application/json");
  EXPECT_EQ(Get("/api/pool?after=6"), 200);
  EXPECT_EQ(Get("/api/pool?after=7"), 204);
  EXPECT_EQ(Get("/api/pool?after=x"), 400);
  EXPECT_EQ(Get("/api/history"), 200);
  EXPECT_EQ(Get("/api/levels"), 200);
  EXPECT_EQ(Get("/api/doctor"), 200);
  EXPECT_EQ(Get("/api/nothing"), 404);
  EXPECT_EQ(answer_.body, "{\"error\": \"there is no /api/nothing\"}\n");
  EXPECT_EQ(Get("/../../etc/passwd"), 404);
  EXPECT_EQ(Get("/login"), 303);
}

TEST_F(ConsoleTest, HeadersKeepOtherPagesOut) {
  Start({});
  for (const char* path : {"/", "/api/pool", "/nothing"}) {
    Get(path);
    const std::string policy = answer_.get_header_value("Content-Security-Policy");
    EXPECT_NE(policy.find("default-src 'none'"), std::string::npos) << path;
    EXPECT_EQ(policy.find("unsafe"), std::string::npos) << path;
    EXPECT_EQ(answer_.get_header_value("X-Content-Type-Options"), "nosniff") << path;
    EXPECT_EQ(answer_.get_header_value("Cache-Control"), "no-store") << path;
    EXPECT_FALSE(answer_.has_header("Access-Control-Allow-Origin")) << path;
  }
  EXPECT_EQ(Get("/", {{"Host", "evil.example.com"}}), 403);
  EXPECT_EQ(Get("/api/pool", {{"Host", "evil.example.com:80"}}), 403);
  EXPECT_EQ(Get("/api/pool", {{"Host", "localhost:80"}}), 200);
  EXPECT_EQ(Get("/api/doctor", {{"Sec-Fetch-Site", "cross-site"}}), 403);
  EXPECT_EQ(Get("/api/doctor", {{"Sec-Fetch-Site", "same-origin"}}), 200);
}

TEST_F(ConsoleTest, WithoutTheTokenNothingIsTold) {
  Start({.token = kToken, .allow_orders = true});
  for (const char* path :
       {"/api/pool", "/api/history", "/api/levels", "/api/doctor", "/api/keys", "/api/nothing"}) {
    EXPECT_EQ(Get(path), 401) << path;
  }
  EXPECT_EQ(Post("/api/orders", {{"order", "pause-repair"}}, {{"X-Nacre-Console", "1"}}), 401);
  EXPECT_TRUE(source_.orders().empty());
  EXPECT_EQ(Get("/"), 303);
  EXPECT_EQ(answer_.get_header_value("Location"), "/login");
  EXPECT_EQ(Get("/console.js"), 303);
  EXPECT_EQ(Get("/login"), 200);
  EXPECT_EQ(Get("/console.css"), 200);

  EXPECT_EQ(Get("/api/pool", {{"Authorization", std::string("Bearer ") + kToken}}), 200);
  EXPECT_EQ(Post("/login", {{"token", "wrong"}}), 403);
  EXPECT_NE(answer_.body.find("This is not the token."), std::string::npos);
  EXPECT_FALSE(answer_.has_header("Set-Cookie"));
  EXPECT_EQ(Post("/login", {{"token", kToken}}), 303);
  const std::string cookie = answer_.get_header_value("Set-Cookie");
  EXPECT_EQ(cookie.find(kToken), std::string::npos);
  EXPECT_EQ(Get("/", {{"Cookie", cookie.substr(0, cookie.find(';'))}}), 200);
  EXPECT_EQ(Get("/", {{"Cookie", cookie.substr(0, cookie.find(';') - 1)}}), 303);
}

TEST_F(ConsoleTest, OrdersAreTakenOnlyIfAllowedAndMeant) {
  Start({});
  const httplib::Headers meant = {{"X-Nacre-Console", "1"}};
  EXPECT_EQ(Post("/api/orders", {{"order", "drain"}, {"node", "tcp:a:1"}}, meant), 403);
  EXPECT_TRUE(source_.orders().empty());

  console_.reset();
  Start({.allow_orders = true});
  // A form of another page cannot send the header.
  EXPECT_EQ(Post("/api/orders", {{"order", "drain"}, {"node", "tcp:a:1"}}), 403);
  EXPECT_EQ(Get("/api/orders?order=pause-repair", meant), 404);
  EXPECT_EQ(Post("/api/orders", {{"order", "drain"}}, meant), 400);
  EXPECT_EQ(Post("/api/orders", {{"order", "explode"}}, meant), 400);
  EXPECT_NE(answer_.body.find("unknown order 'explode'"), std::string::npos) << answer_.body;
  EXPECT_TRUE(source_.orders().empty());
  EXPECT_EQ(Post("/api/orders", {{"order", "drain"}, {"node", "tcp:a:1"}}, meant), 200);
  EXPECT_EQ(Post("/api/orders", {{"order", "undrain"}, {"node", "away"}}, meant), 503);
  EXPECT_EQ(Post("/api/orders", {{"order", "pause-repair"}}, meant), 200);
  EXPECT_EQ(Post("/api/orders", {{"order", "resume-repair"}}, meant), 200);
  const std::vector<Order> orders = source_.orders();
  ASSERT_EQ(orders.size(), 4u);
  EXPECT_EQ(orders[0].kind, Order::Kind::kDrain);
  EXPECT_EQ(orders[0].node, "tcp:a:1");
  EXPECT_EQ(orders[1].kind, Order::Kind::kUndrain);
  EXPECT_EQ(orders[2].kind, Order::Kind::kPauseRepair);
  EXPECT_EQ(orders[3].kind, Order::Kind::kResumeRepair);
}

TEST_F(ConsoleTest, MistakesInQueriesAreNamed) {
  Start({});
  EXPECT_EQ(Get("/api/keys"), 400);
  EXPECT_NE(answer_.body.find("database is missing"), std::string::npos) << answer_.body;
  EXPECT_EQ(Get("/api/keys?database=a&prefix=0g"), 400);
  EXPECT_NE(answer_.body.find("prefix"), std::string::npos) << answer_.body;
  EXPECT_EQ(Get("/api/keys?database=a&limit=100000"), 400);
  EXPECT_NE(answer_.body.find("limit"), std::string::npos) << answer_.body;
}

TEST_F(ConsoleTest, OtherMachinesNeedAToken) {
  const Status status = OpenAt("0.0.0.0:0", "");
  EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
  EXPECT_NE(status.ToString().find("0.0.0.0:0"), std::string::npos) << status.ToString();
  EXPECT_TRUE(OpenAt("[::]:0", "").IsInvalidArgument());
  EXPECT_TRUE(IsOk(OpenAt("0.0.0.0:0", kToken)));
  EXPECT_TRUE(OpenAt("nonsense", kToken).IsInvalidArgument());
  Start({});
  const Status taken = OpenAt(console_->address(), "");
  EXPECT_TRUE(taken.IsIOError()) << taken.ToString();
}

TEST_F(ConsoleTest, RequestsWithoutEndEndTheirConnectionOnly) {
  Start({});
  std::string flood = "GET / HTTP/1.1\r\nHost: localhost\r\n";
  while (flood.size() < HttpServer::kRequestBytesMax * 2) flood += "X-More: and more\r\n";
  const int socket = Connect();
  // It may be reset before all of it was sent.
  [[maybe_unused]] const ssize_t sent = ::send(socket, flood.data(), flood.size(), MSG_NOSIGNAL);
  std::string answer;
  char buffer[512];
  for (ssize_t got = 1; got > 0;) {
    got = ::recv(socket, buffer, sizeof buffer, 0);
    if (got > 0) answer.append(buffer, static_cast<size_t>(got));
  }
  ::close(socket);
  EXPECT_EQ(answer.find(" 200 "), std::string::npos) << answer;
  EXPECT_EQ(Get("/api/pool"), 200);
}

TEST_F(ConsoleTest, SilentConnectionsDoNotKeepItFromEnding) {
  Start({});
  std::vector<int> sockets;
  for (size_t i = 0; i < HttpServer::kThreads; ++i) sockets.push_back(Connect());
  console_.reset();
  for (const int socket : sockets) ::close(socket);
}

}  // namespace
}  // namespace nacre::console
