#include "rdma/tcp/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "rdma/wait.h"
#include "util/crypto/start_openssl.h"

namespace nacre::rdma {

namespace {

/// Both ends know which key there is; TLS wants a name for it.
constexpr char kIdentity[] = "nacre";
constexpr char kCipherName[] = "TLS_AES_128_GCM_SHA256";
/// Its two bytes on the wire.
constexpr unsigned char kCipher[] = {0x13, 0x01};
/// AES-GCM bears 24 million records with one key (RFC 8446, section 5.5).
constexpr uint32_t kRecordsPerKey = 1 << 23;

// OpenSSL's own socket BIO raises SIGPIPE when the peer has gone.

TlsStream::Library* LibraryOf(BIO* bio) {
  return static_cast<TlsStream::Library*>(BIO_get_data(bio));
}

bool MayTryAgain() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS; }

int WriteToSocket(BIO* bio, const char* bytes, int size);
int ReadFromSocket(BIO* bio, char* bytes, int size);

long ControlSocket(BIO* bio, int command, long /*number*/, void* /*pointer*/) {
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

/// The session that the pre-shared key stands for; the caller's to free. Null if it fails.
SSL_SESSION* MakeSession(SSL* ssl) {
  const auto* const key = static_cast<const Proof*>(SSL_get_app_data(ssl));
  SSL_SESSION* const session = SSL_SESSION_new();
  const SSL_CIPHER* const cipher = SSL_CIPHER_find(ssl, kCipher);
  if (session != nullptr && cipher != nullptr &&
      SSL_SESSION_set1_master_key(session, reinterpret_cast<const unsigned char*>(key->data()),
                                  key->size()) == 1 &&
      SSL_SESSION_set_cipher(session, cipher) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1) {
    return session;
  }
  SSL_SESSION_free(session);
  return nullptr;
}

int OfferKey(SSL* ssl, const EVP_MD* /*digest*/, const unsigned char** identity,
             size_t* identity_size, SSL_SESSION** session) {
  *session = MakeSession(ssl);
  *identity = reinterpret_cast<const unsigned char*>(kIdentity);
  *identity_size = std::strlen(kIdentity);
  return *session != nullptr ? 1 : 0;
}

int FindKey(SSL* ssl, const unsigned char* identity, size_t identity_size, SSL_SESSION** session) {
  *session = nullptr;
  const bool known = identity_size == std::strlen(kIdentity) &&
                     std::memcmp(identity, kIdentity, identity_size) == 0;
  if (!known) return 1;  // It goes on without, and so fails: there is no certificate.
  *session = MakeSession(ssl);
  return *session != nullptr ? 1 : 0;
}

Status LibraryError() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return Status::IOError(std::string("TLS cannot be set up: ") +
                         (reason == nullptr ? "OpenSSL does not say why" : reason));
}

}  // namespace

struct TlsContext::Library {
  SSL_CTX* context = nullptr;
  BIO_METHOD* socket_method = nullptr;

  ~Library() {
    SSL_CTX_free(context);
    BIO_meth_free(socket_method);
  }
};

struct TlsStream::Library {
  SSL* ssl = nullptr;
  int socket = -1;
  Ahead* ahead = nullptr;  ///< The turn's, while it receives.
  Proof key{};             ///< OpenSSL's callbacks find it by SSL_get_app_data.

  ~Library() {
    SSL_free(ssl);
    OPENSSL_cleanse(key.data(), key.size());
  }
};

namespace {

int WriteToSocket(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  ssize_t sent;
  do {
    sent =
        send(LibraryOf(bio)->socket, bytes, static_cast<size_t>(size), MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0 && MayTryAgain()) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

/// As recv, into `bytes` and, what there is more, into `ahead`, which holds none.
ssize_t TakeFromSocket(int socket, char* bytes, size_t size, TlsStream::Ahead* ahead) {
  iovec vectors[2] = {{.iov_base = bytes, .iov_len = size},
                      {.iov_base = ahead->bytes, .iov_len = sizeof(ahead->bytes)}};
  msghdr message{};
  message.msg_iov = vectors;
  message.msg_iovlen = 2;
  const ssize_t received = recvmsg(socket, &message, MSG_DONTWAIT);
  const size_t taken = received > 0 ? static_cast<size_t>(received) : 0;
  ahead->drained = taken < size + sizeof(ahead->bytes);
  ahead->begin = 0;
  ahead->end = taken > size ? taken - size : 0;
  return received > 0 ? static_cast<ssize_t>(std::min(taken, size)) : received;
}

int ReadFromSocket(BIO* bio, char* bytes, int size) {
  const TlsStream::Library* const library = LibraryOf(bio);
  TlsStream::Ahead* const ahead = library->ahead;
  const auto wanted = static_cast<size_t>(size);
  BIO_clear_retry_flags(bio);
  if (ahead != nullptr && ahead->holds_bytes()) {
    const size_t taken = std::min(wanted, ahead->end - ahead->begin);
    std::memcpy(bytes, ahead->bytes + ahead->begin, taken);
    ahead->begin += taken;
    return static_cast<int>(taken);
  }
  if (ahead != nullptr && (ahead->drained || ahead->closed)) {
    BIO_set_retry_read(bio);
    errno = EAGAIN;
    return -1;
  }
  ssize_t received;
  do {
    received = ahead != nullptr ? TakeFromSocket(library->socket, bytes, wanted, ahead)
                                : recv(library->socket, bytes, wanted, MSG_DONTWAIT);
  } while (received < 0 && errno == EINTR);
  if (received < 0 && MayTryAgain()) BIO_set_retry_read(bio);
  if (received == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(received);
}

}  // namespace

TlsContext::TlsContext(std::unique_ptr<Library> library) : library_(std::move(library)) {}

TlsContext::~TlsContext() = default;

Status TlsContext::Create(std::unique_ptr<TlsContext>* context) {
  StartOpenssl();
  ERR_clear_error();
  auto library = std::make_unique<Library>();
  library->socket_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "nacre socket");
  library->context = SSL_CTX_new(TLS_method());
  SSL_CTX* const made = library->context;
  if (library->socket_method == nullptr || made == nullptr ||
      SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(made, kCipherName) != 1 || SSL_CTX_set_num_tickets(made, 0) != 1) {
    return LibraryError();
  }
  BIO_meth_set_write(library->socket_method, &WriteToSocket);
  BIO_meth_set_read(library->socket_method, &ReadFromSocket);
  BIO_meth_set_ctrl(library->socket_method, &ControlSocket);
  // The end of the stream needs no farewell: frames say where they end.
  SSL_CTX_set_options(made, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_TICKET);
  SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(made, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                             SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_psk_use_session_callback(made, &OfferKey);
  SSL_CTX_set_psk_find_session_callback(made, &FindKey);
  context->reset(new TlsContext(std::move(library)));
  return Status::OK();
}

TlsStream::TlsStream(std::unique_ptr<Library> library, int socket)
    : library_(std::move(library)), socket_(socket) {}

TlsStream::~TlsStream() = default;

Status TlsStream::Create(const TlsContext& context, Role role, const Proof& key, int socket,
                         std::unique_ptr<TlsStream>* stream) {
  ERR_clear_error();
  auto library = std::make_unique<Library>();
  library->key = key;
  library->ssl = SSL_new(context.library().context);
  BIO* const bio = BIO_new(context.library().socket_method);
  if (library->ssl == nullptr || bio == nullptr) {
    BIO_free(bio);
    return LibraryError();
  }
  library->socket = socket;
  BIO_set_data(bio, library.get());
  BIO_set_init(bio, 1);
  SSL_set_bio(library->ssl, bio, bio);
  SSL_set_app_data(library->ssl, &library->key);
  if (role == Role::kConnector) {
    // No certificate is ever right: a listener without the key has nothing to go on with.
    SSL_set_verify(library->ssl, SSL_VERIFY_PEER, nullptr);
    SSL_set_connect_state(library->ssl);
  } else {
    SSL_set_accept_state(library->ssl);
  }
  stream->reset(new TlsStream(std::move(library), socket));
  return Status::OK();
}

ssize_t TlsStream::Failure(int result) {
  const int system_error = errno;
  wants_to_send_ = false;
  switch (SSL_get_error(library_->ssl, result)) {
    case SSL_ERROR_WANT_WRITE:
      wants_to_send_ = true;
      errno = EAGAIN;
      return -1;
    case SSL_ERROR_WANT_READ:
      errno = EAGAIN;
      return -1;
    case SSL_ERROR_ZERO_RETURN:
      return 0;
    case SSL_ERROR_SYSCALL:
      errno = system_error == 0 ? ECONNRESET : system_error;
      return -1;
    default:
      failure_ = EBADMSG;
      errno = EBADMSG;
      return -1;
  }
}

bool TlsStream::Advance() {
  if (failure_ != 0) {
    errno = failure_;
    return false;
  }
  if (established_) return true;
  ERR_clear_error();
  errno = 0;
  wants_to_send_ = false;
  const int result = SSL_do_handshake(library_->ssl);
  if (result == 1) {
    // Keyed by what the peer proved to know, by nothing else.
    established_ = SSL_session_reused(library_->ssl) == 1;
    if (!established_) failure_ = EBADMSG;
  } else if (Failure(result) < 0 && errno == EAGAIN) {
    return true;
  } else if (failure_ == 0) {
    failure_ = ECONNRESET;
  }
  errno = failure_;
  return established_;
}

Status TlsStream::Await(const Deadline& deadline) {
  if (errno == EBADMSG) return Status::InvalidArgument("no TLS of this pool");
  if (errno != EAGAIN) return Status::Unavailable("the peer closed the connection");
  if (deadline.Expired()) return Status::TimedOut("the peer did not answer in time");
  WaitFor(socket_, wants_to_send_ ? POLLIN | POLLOUT : POLLIN, deadline.Remaining());
  return Status::OK();
}

Status TlsStream::Establish(const Deadline& deadline) {
  while (true) {
    if (Advance()) errno = EAGAIN;
    if (established_) return Status::OK();
    NACRE_RETURN_IF_ERROR(Await(deadline));
  }
}

Status TlsStream::SendAllBy(const Deadline& deadline, const char* bytes, size_t size) {
  while (size > 0) {
    const iovec vector{.iov_base = const_cast<char*>(bytes), .iov_len = size};
    const ssize_t sent = Send(&vector, 1);
    if (sent > 0) {
      bytes += sent;
      size -= static_cast<size_t>(sent);
    } else {
      NACRE_RETURN_IF_ERROR(Await(deadline));
    }
  }
  return Status::OK();
}

Status TlsStream::ReceiveAllBy(const Deadline& deadline, char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t received = Receive(bytes, size);
    if (received == 0) return Status::Unavailable("the peer closed the connection");
    if (received > 0) {
      bytes += received;
      size -= static_cast<size_t>(received);
    } else {
      NACRE_RETURN_IF_ERROR(Await(deadline));
    }
  }
  return Status::OK();
}

ssize_t TlsStream::Receive(void* to, size_t size, Ahead* ahead) {
  assert(established_);
  if (failure_ != 0) {
    errno = failure_;
    return -1;
  }
  ERR_clear_error();
  errno = 0;
  wants_to_send_ = false;
  size_t received = 0;
  library_->ahead = ahead;
  const int result = SSL_read_ex(library_->ssl, to, size, &received);
  library_->ahead = nullptr;
  return result == 1 ? static_cast<ssize_t>(received) : Failure(result);
}

ssize_t TlsStream::Send(const iovec* vectors, int count) {
  assert(established_);
  if (failure_ != 0) {
    errno = failure_;
    return -1;
  }
  char record[kRecordBytes];
  const char* bytes = static_cast<const char*>(vectors[0].iov_base);
  size_t size = std::min(vectors[0].iov_len, kRecordBytes);
  if (count > 1 && size < kRecordBytes) {
    // A header and its payload travel in one record.
    size = 0;
    for (int i = 0; i < count && size < kRecordBytes; i++) {
      const size_t step = std::min(vectors[i].iov_len, kRecordBytes - size);
      std::memcpy(record + size, vectors[i].iov_base, step);
      size += step;
    }
    bytes = record;
  }
  ERR_clear_error();
  errno = 0;
  wants_to_send_ = false;
  size_t sent = 0;
  const int result = SSL_write_ex(library_->ssl, bytes, size, &sent);
  if (result == 1) {
    // The next record tells the peer of the new key.
    if (++sent_records_ == kRecordsPerKey) {
      sent_records_ = 0;
      SSL_key_update(library_->ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
    }
    return static_cast<ssize_t>(sent);
  }
  if (Failure(result) == 0) errno = EPIPE;
  return -1;
}

bool TlsStream::has_pending() const { return SSL_pending(library_->ssl) > 0; }

}  // namespace nacre::rdma
