#include "server/net/server_tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "server/net/await_socket.h"
#include "util/crypto/start_openssl.h"

namespace nacre::server {
namespace {

struct Freer {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(BIO_METHOD* method) const { BIO_meth_free(method); }
};
using ContextPtr = std::unique_ptr<SSL_CTX, Freer>;
using SslPtr = std::unique_ptr<SSL, Freer>;

// OpenSSL's own socket BIO raises SIGPIPE when the client has gone.

int SocketOf(BIO* bio) { return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))); }

bool MayTryAgain() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

int WriteToSocket(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t sent =
      ::send(SocketOf(bio), bytes, static_cast<size_t>(size), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && MayTryAgain()) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int ReadFromSocket(BIO* bio, char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t got = ::recv(SocketOf(bio), bytes, static_cast<size_t>(size), MSG_DONTWAIT);
  if (got < 0 && MayTryAgain()) BIO_set_retry_read(bio);
  return static_cast<int>(got);
}

long ControlSocket(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO_METHOD* SocketMethod() {
  static const std::unique_ptr<BIO_METHOD, Freer> method = [] {
    std::unique_ptr<BIO_METHOD, Freer> made(
        BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "client"));
    if (made == nullptr || BIO_meth_set_write(made.get(), WriteToSocket) != 1 ||
        BIO_meth_set_read(made.get(), ReadFromSocket) != 1 ||
        BIO_meth_set_ctrl(made.get(), ControlSocket) != 1) {
      made.reset();
    }
    return made;
  }();
  return method.get();
}

/// Null if there is no memory.
SslPtr NewSsl(SSL_CTX* context, int socket) {
  SslPtr ssl(SSL_new(context));
  BIO* const bio = SocketMethod() == nullptr ? nullptr : BIO_new(SocketMethod());
  if (ssl == nullptr || bio == nullptr) {
    BIO_free(bio);
    return nullptr;
  }
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(socket)));
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl.get(), bio, bio);
  return ssl;
}

std::string Reason() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason == nullptr ? "OpenSSL does not say why" : reason;
}

class TlsClientStream final : public ClientStream {
 public:
  explicit TlsClientStream(SslPtr ssl) : ssl_(std::move(ssl)) {}

  Outcome Receive(std::span<char> bytes, size_t* got) override {
    ERR_clear_error();
    return OutcomeOf(SSL_read_ex(ssl_.get(), bytes.data(), bytes.size(), got));
  }
  Outcome Send(std::string_view bytes, size_t* sent) override {
    ERR_clear_error();
    return OutcomeOf(SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), sent));
  }
  void End() override {
    if (failed_ || !SSL_is_init_finished(ssl_.get())) return;
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
    ERR_clear_error();
  }

 private:
  Outcome OutcomeOf(int result) {
    if (result == 1) return Outcome::kSome;
    const int error = SSL_get_error(ssl_.get(), result);
    ERR_clear_error();
    switch (error) {
      case SSL_ERROR_WANT_READ:
        return Outcome::kNeedsInput;
      case SSL_ERROR_WANT_WRITE:
        return Outcome::kNeedsRoom;
      case SSL_ERROR_ZERO_RETURN:
        return Outcome::kEnded;
      default:
        failed_ = true;
        return Outcome::kFailed;
    }
  }

  const SslPtr ssl_;
  bool failed_ = false;
};

}  // namespace

struct ServerTls::Library {
  ContextPtr context;
};

ServerTls::ServerTls(std::unique_ptr<Library> library) : library_(std::move(library)) {}
ServerTls::~ServerTls() = default;

Status ServerTls::Open(const TlsFiles& files, std::shared_ptr<const ServerTls>* tls) {
  StartOpenssl();
  ERR_clear_error();
  const auto refused = [](const char* what, const std::string& path) {
    return Status::InvalidArgument(std::string(what) + " '" + path + "': " + Reason());
  };
  ContextPtr context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) return Status::IOError("TLS cannot be set up: " + Reason());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                         SSL_OP_CIPHER_SERVER_PREFERENCE);
  // What is to be sent grows, and moves, while it waits for room.
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  if (SSL_CTX_use_certificate_chain_file(context.get(), files.certificate.c_str()) != 1) {
    return refused("certificate", files.certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return refused("private key", files.key);
  }
  if (SSL_CTX_check_private_key(context.get()) != 1) {
    return refused("private key", files.key);
  }
  if (!files.authorities.empty()) {
    if (SSL_CTX_load_verify_locations(context.get(), files.authorities.c_str(), nullptr) != 1) {
      return refused("certificates of authorities", files.authorities);
    }
    SSL_CTX_set_client_CA_list(context.get(), SSL_load_client_CA_file(files.authorities.c_str()));
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    constexpr unsigned char kSessions[] = "nacre-server";
    SSL_CTX_set_session_id_context(context.get(), kSessions, sizeof kSessions - 1);
  }
  auto library = std::make_unique<Library>();
  library->context = std::move(context);
  tls->reset(new ServerTls(std::move(library)));
  return Status::OK();
}

std::unique_ptr<ClientStream> ServerTls::Accept(int socket) const {
  SslPtr ssl = NewSsl(library_->context.get(), socket);
  if (ssl == nullptr) return nullptr;
  SSL_set_accept_state(ssl.get());
  return std::make_unique<TlsClientStream>(std::move(ssl));
}

bool SpeaksTls(int socket, const Deadline& deadline) {
  StartOpenssl();
  const ContextPtr context(SSL_CTX_new(TLS_client_method()));
  const SslPtr ssl = context == nullptr ? nullptr : NewSsl(context.get(), socket);
  if (ssl == nullptr) return false;
  for (;;) {
    ERR_clear_error();
    const int result = SSL_connect(ssl.get());
    if (result == 1) return true;
    const int error = SSL_get_error(ssl.get(), result);
    ERR_clear_error();
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return false;
    const short wanted = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    if (!AwaitSocket(socket, wanted, deadline)) return false;
  }
}

}  // namespace nacre::server
