#include "server/net/client_stream.h"

#include <sys/socket.h>

#include <cerrno>

namespace nacre::server {
namespace {

class PlainStream final : public ClientStream {
 public:
  explicit PlainStream(int socket) : socket_(socket) {}

  Outcome Receive(std::span<char> bytes, size_t* got) override {
    const ssize_t received = ::recv(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (received == 0) return Outcome::kEnded;
    return OutcomeOf(received, Outcome::kNeedsInput, got);
  }
  Outcome Send(std::string_view bytes, size_t* sent) override {
    const ssize_t done = ::send(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return OutcomeOf(done, Outcome::kNeedsRoom, sent);
  }
  void End() override {}

 private:
  static Outcome OutcomeOf(ssize_t result, Outcome later, size_t* bytes) {
    if (result < 0) {
      return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? later : Outcome::kFailed;
    }
    *bytes = static_cast<size_t>(result);
    return Outcome::kSome;
  }

  const int socket_;
};

}  // namespace

std::unique_ptr<ClientStream> NewPlainStream(int socket) {
  return std::make_unique<PlainStream>(socket);
}

}  // namespace nacre::server
