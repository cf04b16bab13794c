#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "nacre/status.h"
#include "rdma/handshake.h"
#include "util/clock.h"

namespace nacre::rdma {

/// What the TLS connections of a device share.
/// Thread safety: constant once made.
class TlsContext {
 public:
  /// `IOError` if the library refuses.
  static Status Create(std::unique_ptr<TlsContext>* context);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  struct Library;  ///< Keeps OpenSSL's headers out of those that include this one.
  const Library& library() const { return *library_; }

 private:
  explicit TlsContext(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

/// What a device encrypts.
enum class TcpEncryption : uint8_t { kNone, kControl, kAll };

/// TLS 1.3 over a connected socket that does not block. It begins when both ends have proved to one
/// another that they know the pool's secret (greeting.h), and is keyed by what only they can know:
/// a key derived from the secret and both nonces, as an external pre-shared key, and a
/// Diffie-Hellman exchange, so that learning the secret later does not decrypt what was recorded.
/// There are no certificates.
///
/// Thread safety: none.
class TlsStream {
 public:
  /// What one record carries.
  static constexpr size_t kRecordBytes = 16 << 10;

  /// `key`: derived at both ends from the greeting (DeriveKey). `IOError` if the library refuses.
  static Status Create(const TlsContext& context, Role role, const Proof& key, int socket,
                       std::unique_ptr<TlsStream>* stream);
  ~TlsStream();

  /// Goes on with the handshake as far as the socket allows. False, with errno, if it failed.
  bool Advance();
  bool established() const { return established_; }

  // Blocking. `TimedOut` at the deadline, `Unavailable` if the peer closed, `InvalidArgument` for
  // what is no TLS of ours.

  /// Performs the handshake, by the deadline.
  Status Establish(const Deadline& deadline);
  Status SendAllBy(const Deadline& deadline, const char* bytes, size_t size);
  Status ReceiveAllBy(const Deadline& deadline, char* bytes, size_t size);

  // Once it is established.

  // As recv and sendmsg: what is negative leaves errno, EAGAIN where the socket has nothing or
  // takes nothing, EBADMSG where the peer sent what is no TLS of ours.

  /// What a turn has taken from the socket beyond the record that it decrypts, so that short
  /// records cost one call each, or less. A turn goes on until it is empty.
  struct Ahead {
    bool holds_bytes() const { return begin < end; }

    char bytes[kRecordBytes];
    size_t begin = 0;
    size_t end = 0;
    bool drained = false;  ///< The socket had nothing more.
    bool closed = false;   ///< Nothing more is to be taken from it.
  };

  /// 0 when the peer has ended.
  ssize_t Receive(void* to, size_t size, Ahead* ahead = nullptr);
  /// Sends at most kRecordBytes. After EAGAIN the next call begins with the same bytes.
  ssize_t Send(const iovec* vectors, int count);

  /// Bytes that were taken from the socket and not received yet: epoll does not know of them.
  bool has_pending() const;
  /// The socket did not take what the library had to say.
  bool wants_to_send() const { return wants_to_send_; }

  struct Library;

 private:
  TlsStream(std::unique_ptr<Library> library, int socket);
  /// After a call that left errno: OK once the socket is ready for the next one.
  Status Await(const Deadline& deadline);
  /// Maps a call that answered `result` as Receive does.
  ssize_t Failure(int result);

  std::unique_ptr<Library> library_;
  const int socket_;
  bool established_ = false;
  int failure_ = 0;  ///< The errno of a stream that has come to nothing.
  bool wants_to_send_ = false;
  uint32_t sent_records_ = 0;  ///< With the present key.
};

}  // namespace nacre::rdma
