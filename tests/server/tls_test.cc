// Goal: with a certificate the server speaks TLS and nothing else, asks clients for certificates if
// it is to, and loses or mixes no byte, however requests and answers are cut.
// Method: a server in this process over an embedded pool; clients of OpenSSL's, and plain ones;
// servers that are processes, of which one waits for the other.

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nacre/pool.h"
#include "server/server.h"
#include "tests/server/redis_client.h"
#include "tests/server/server_process.h"
#include "tests/server/test_certificates.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "util/crypto/start_openssl.h"
#include "util/random.h"

namespace nacre::server {
namespace {

/// A client that speaks TLS over a socket that blocks.
class TlsClient {
 public:
  /// `name`: that of its certificate; empty: it has none.
  TlsClient(const std::string& address, const TestCertificates& certificates,
            const std::string& name = "") {
    StartOpenssl();
    // OpenSSL's own sockets, unlike the server's, raise it when the other end has gone.
    std::signal(SIGPIPE, SIG_IGN);
    context_ = SSL_CTX_new(TLS_client_method());
    SSL_CTX_load_verify_locations(context_, certificates.authority().c_str(), nullptr);
    SSL_CTX_set_verify(context_, SSL_VERIFY_PEER, nullptr);
    if (!name.empty()) {
      SSL_CTX_use_certificate_file(context_, certificates.CertificateOf(name).c_str(),
                                   SSL_FILETYPE_PEM);
      SSL_CTX_use_PrivateKey_file(context_, certificates.KeyOf(name).c_str(), SSL_FILETYPE_PEM);
    }
    socket_ = std::make_unique<RedisClient>(address);
    ssl_ = SSL_new(context_);
    SSL_set_fd(ssl_, socket_->socket());
    connected_ = SSL_connect(ssl_) == 1;
    if (!connected_) std::printf("not connected: %s\n", ERR_reason_error_string(ERR_peek_error()));
    ERR_clear_error();
  }
  ~TlsClient() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  bool connected() const { return connected_; }
  const char* version() const { return SSL_get_version(ssl_); }
  /// The name that the server's certificate says.
  std::string peer() const {
    char name[64] = "";
    X509* const certificate = SSL_get1_peer_certificate(ssl_);
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name,
                              sizeof name);
    X509_free(certificate);
    return name;
  }
  bool Send(const std::string& bytes) {
    return SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size())) ==
           static_cast<int>(bytes.size());
  }
  /// So many bytes, or fewer if the server closes.
  std::string Read(size_t size) {
    std::string bytes(size, '\0');
    size_t got = 0;
    while (got < size) {
      const int more = SSL_read(ssl_, bytes.data() + got, static_cast<int>(size - got));
      if (more <= 0) break;
      got += static_cast<size_t>(more);
    }
    ERR_clear_error();
    bytes.resize(got);
    return bytes;
  }
  /// Sends a command; returns the answer, which has as many bytes as `expected`.
  std::string Do(const std::vector<std::string>& words, const std::string& expected) {
    EXPECT_TRUE(Send(RedisClient::Encode(words)));
    return Read(expected.size());
  }

 private:
  SSL_CTX* context_;
  std::unique_ptr<RedisClient> socket_;
  SSL* ssl_;
  bool connected_ = false;
};

class TlsTest : public testing::Test {
 protected:
  void SetUp() override {
    certificates_.Issue("server");
    certificates_.Issue("client");
    options_.tls = {.certificate = certificates_.CertificateOf("server"),
                    .key = certificates_.KeyOf("server")};
    options_.listen = "127.0.0.1:0";
    options_.database.create_if_missing = true;
    options_.database.slab_size = 8 << 20;
    options_.database.write_buffer_size = 4 << 20;
  }
  Status Start() {
    std::shared_ptr<Pool> pool;
    NACRE_RETURN_IF_ERROR(Pool::Open("embedded:?nodes=1&size=512MiB&slab_size=8MiB", &pool));
    options_.database.pool = pool;
    return Server::Start(options_, &server_);
  }

  TestCertificates certificates_;
  ServerOptions options_;
  std::unique_ptr<Server> server_;
};

TEST_F(TlsTest, ClientsThatSpeakItAreServedAndOthersAreNot) {
  ASSERT_TRUE(IsOk(Start()));
  TlsClient client(server_->address(), certificates_);
  ASSERT_TRUE(client.connected());
  EXPECT_STREQ(client.version(), "TLSv1.3");
  EXPECT_EQ(client.Do({"SET", "key", "value"}, "+OK\r\n"), "+OK\r\n");
  EXPECT_EQ(client.Do({"GET", "key"}, "$5\r\nvalue\r\n"), "$5\r\nvalue\r\n");
  RedisClient plain(server_->address());
  plain.SendBytes("PING\r\n");
  // It is told so by a TLS alert at most.
  EXPECT_NE(plain.Read(), "+PONG");
  EXPECT_EQ(client.Do({"PING"}, "+PONG\r\n"), "+PONG\r\n");
  EXPECT_EQ(client.Do({"QUIT"}, "+OK\r\n"), "+OK\r\n");
  EXPECT_EQ(client.Read(1), "");
}

TEST_F(TlsTest, ClientsProveWhoTheyAreIfTheyAreTo) {
  options_.tls.authorities = certificates_.authority();
  ASSERT_TRUE(IsOk(Start()));
  TlsClient known(server_->address(), certificates_, "client");
  ASSERT_TRUE(known.connected());
  EXPECT_EQ(known.Do({"PING"}, "+PONG\r\n"), "+PONG\r\n");
  // In TLS 1.3 a client has done its part before the server has looked at its certificate.
  TlsClient unknown(server_->address(), certificates_);
  EXPECT_TRUE(!unknown.connected() || !unknown.Send("PING\r\n") || unknown.Read(1).empty());
  TestCertificates others;
  others.Issue("client");
  TlsClient foreign(server_->address(), others, "client");
  EXPECT_FALSE(foreign.connected());
}

TEST_F(TlsTest, ManyRequestsAndLargeAnswersAreWhole) {
  ASSERT_TRUE(IsOk(Start()));
  TlsClient client(server_->address(), certificates_);
  ASSERT_TRUE(client.connected());
  const std::string large(3 << 20, 'x');
  EXPECT_EQ(client.Do({"SET", "large", large}, "+OK\r\n"), "+OK\r\n");
  // Pipelines that are cut anywhere; the client reads only once all is sent, so that the socket
  // fills up.
  Random random(TestSeed(11));
  std::string requests;
  std::string expected;
  for (int i = 0; i < 3000; ++i) {
    const std::string value = std::to_string(i) + std::string(random.Uniform(3000), 'v');
    requests += RedisClient::Encode({"ECHO", value});
    expected += "$" + std::to_string(value.size()) + "\r\n" + value + "\r\n";
  }
  for (int i = 0; i < 3; ++i) {
    requests += RedisClient::Encode({"GET", "large"});
    expected += "$" + std::to_string(large.size()) + "\r\n" + large + "\r\n";
  }
  std::thread sender([&] {
    for (size_t sent = 0; sent < requests.size();) {
      const size_t piece = std::min<size_t>(requests.size() - sent, 1 + random.Uniform(40'000));
      ASSERT_TRUE(client.Send(requests.substr(sent, piece)));
      sent += piece;
    }
  });
  sender.join();
  EXPECT_TRUE(client.Read(expected.size()) == expected);
}

TEST_F(TlsTest, ChannelsReachClients) {
  ASSERT_TRUE(IsOk(Start()));
  TlsClient listening(server_->address(), certificates_);
  const std::string subscribed = "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n";
  EXPECT_EQ(listening.Do({"SUBSCRIBE", "news"}, subscribed), subscribed);
  TlsClient other(server_->address(), certificates_);
  EXPECT_EQ(other.Do({"PUBLISH", "news", "hello"}, ":1\r\n"), ":1\r\n");
  const std::string message = "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n";
  EXPECT_EQ(listening.Read(message.size()), message);
}

TEST_F(TlsTest, ConnectionsThatBreakOffAreForgotten) {
  ASSERT_TRUE(IsOk(Start()));
  Random random(TestSeed(12));
  for (int i = 0; i < 50; ++i) {
    RedisClient broken(server_->address());
    std::string bytes(random.Uniform(300), '\0');
    for (char& c : bytes) c = static_cast<char>(random.Uniform(256));
    // What looks like the begin of a handshake, and what does not.
    if (random.OneIn(2)) bytes = std::string("\x16\x03\x01\x02", 4) + bytes;
    broken.SendBytes(bytes);
  }
  for (int i = 0; i < 20; ++i) {
    TlsClient client(server_->address(), certificates_);
    ASSERT_TRUE(client.connected());
    // It goes without a word, while it is answered.
    ASSERT_TRUE(client.Send(RedisClient::Encode({"ECHO", std::string(100'000, 'x')})));
  }
  TlsClient client(server_->address(), certificates_);
  EXPECT_EQ(client.Do({"PING"}, "+PONG\r\n"), "+PONG\r\n");
}

TEST_F(TlsTest, CertificatesAreReadAnew) {
  ASSERT_TRUE(IsOk(Start()));
  TlsClient before(server_->address(), certificates_);
  ASSERT_TRUE(before.connected());
  EXPECT_EQ(before.peer(), "server");
  // Their files have others now.
  for (const char* const suffix : {".pem", ".key"}) {
    std::filesystem::copy_file(certificates_.File("client", suffix),
                               certificates_.File("server", suffix),
                               std::filesystem::copy_options::overwrite_existing);
  }
  ASSERT_TRUE(IsOk(server_->ReadCertificates()));
  TlsClient after(server_->address(), certificates_);
  ASSERT_TRUE(after.connected());
  EXPECT_EQ(after.peer(), "client");
  std::ofstream(certificates_.KeyOf("server")) << "nonsense";
  EXPECT_TRUE(
      IsFailure(server_->ReadCertificates(), Status::Code::kInvalidArgument, "private key"));
  TlsClient last(server_->address(), certificates_);
  ASSERT_TRUE(last.connected());
  EXPECT_EQ(last.peer(), "client");
  // Connections that there are go on.
  EXPECT_EQ(before.Do({"PING"}, "+PONG\r\n"), "+PONG\r\n");
}

TEST_F(TlsTest, WhatIsWrongWithFilesIsNamed) {
  const TlsFiles right = options_.tls;
  options_.tls.key.clear();
  EXPECT_TRUE(IsFailure(Start(), Status::Code::kInvalidArgument, "its private key, both"));
  options_.tls = {.authorities = certificates_.authority()};
  EXPECT_TRUE(IsFailure(Start(), Status::Code::kInvalidArgument, "has no certificate"));
  options_.tls = right;
  options_.tls.certificate = "/nonexistent.pem";
  EXPECT_TRUE(IsFailure(Start(), Status::Code::kInvalidArgument, "certificate '/nonexistent.pem'"));
  options_.tls = right;
  options_.tls.key = certificates_.KeyOf("client");
  EXPECT_TRUE(IsFailure(Start(), Status::Code::kInvalidArgument, "key values mismatch"));
  options_.tls = right;
  options_.tls.authorities = right.key;
  EXPECT_TRUE(IsFailure(Start(), Status::Code::kInvalidArgument, "certificates of authorities"));
}

TEST(TlsStandbyTest, OneThatStandsStillIsTakenOver) {
  TestCertificates certificates;
  certificates.Issue("server");
  const MemnodeProcesses nodes(2, {.size = "256MiB", .slab_size = "8MiB"});
  const std::vector<std::string> flags = {"--pool=" + nodes.pool_uri(),
                                          "--redundancy=rep(2)",
                                          "--slab_size=8388608",
                                          "--tls_cert_file=" + certificates.CertificateOf("server"),
                                          "--tls_key_file=" + certificates.KeyOf("server"),
                                          "--standby",
                                          "--down_after_ms=1000"};
  ServerProcess first(flags);
  {
    TlsClient client(first.address(), certificates);
    ASSERT_TRUE(client.connected());
    std::string answer;
    for (int i = 0; i < 6000 && answer != "+OK\r\n"; ++i) {
      answer = client.Do({"SET", "key", "value"}, "+OK\r\n");
      if (answer != "+OK\r\n") std::this_thread::sleep_for(std::chrono::milliseconds(10));
      // LOADING is longer.
      while (answer.starts_with("-") && !answer.ends_with("\n")) {
        const std::string more = client.Read(1);
        ASSERT_FALSE(more.empty()) << answer;
        answer += more;
      }
    }
    ASSERT_EQ(answer, "+OK\r\n");
  }
  ServerProcess second(flags);
  // As long as the first one answers, it has the database.
  std::this_thread::sleep_for(std::chrono::seconds(3));
  {
    TlsClient client(first.address(), certificates);
    ASSERT_EQ(client.Do({"PING"}, "+PONG\r\n"), "+PONG\r\n");
  }
  kill(first.process().pid(), SIGSTOP);
  std::string answer;
  for (int i = 0; i < 6000 && answer != "$5\r\nvalue\r\n"; ++i) {
    TlsClient client(second.address(), certificates);
    answer = client.Do({"GET", "key"}, "$5\r\nvalue\r\n");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(answer, "$5\r\nvalue\r\n");
  kill(first.process().pid(), SIGCONT);
}

}  // namespace
}  // namespace nacre::server
