// Whatever comes over a control connection that speaks TLS, before or after it is established, ends
// it or is what the other end sent: nothing else is ever received, and nothing waits for ever. The
// first byte chooses: bytes by a peer that has no key, or a stream of two good ends whose bytes are
// changed, dropped or doubled on their way.

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "rdma/tcp/tls.h"
#include "rdma/unique_fd.h"

namespace nacre::rdma {

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

/// An end that has its socket, whose other end the test has.
struct End {
  explicit End(Role role) {
    static TlsContext* const context = [] {
      std::unique_ptr<TlsContext> made;
      Require(TlsContext::Create(&made).ok());
      return made.release();
    }();
    int sockets[2];
    Require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets) == 0);
    own = UniqueFd(sockets[0]);
    far = UniqueFd(sockets[1]);
    Require(TlsStream::Create(*context, role, Proof{}, own.get(), &stream).ok());
  }

  /// What it has sent since.
  std::string Take() const {
    std::string bytes(1 << 16, '\0');
    const ssize_t size = read(far.get(), bytes.data(), bytes.size());
    bytes.resize(size > 0 ? static_cast<size_t>(size) : 0);
    return bytes;
  }
  void Give(std::string_view bytes) const {
    // More than a socket takes ends here: the far side does not read so much.
    [[maybe_unused]] const ssize_t size =
        send(far.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  UniqueFd own;
  UniqueFd far;
  std::unique_ptr<TlsStream> stream;
};

/// Changes what passes as the input says: at the place, in bytes of all that passes, of which the
/// next three bytes tell.
class Meddler {
 public:
  explicit Meddler(std::string_view input) : input_(input) { Next(); }

  std::string Pass(std::string bytes) {
    const size_t size = bytes.size();
    if (armed_ && place_ < passed_ + size) {
      const size_t at = std::max(place_, passed_) - passed_;
      switch (kind_ % 3) {
        case 0:
          bytes[at] = static_cast<char>(bytes[at] ^ (kind_ | 1));
          break;
        case 1:
          bytes.erase(at, 1 + kind_ / 8U);
          break;
        default:
          bytes.insert(at, bytes.substr(at, 1 + kind_ / 8U));
          break;
      }
      meddled_ = true;
      Next();
    }
    passed_ += size;
    return bytes;
  }
  bool meddled() const { return meddled_; }

 private:
  void Next() {
    armed_ = input_.size() >= 3;
    if (!armed_) return;
    const auto byte = [this](size_t i) { return static_cast<uint8_t>(input_[i]); };
    place_ += byte(0) + 256U * (byte(1) % 8U);
    kind_ = byte(2);
    input_.remove_prefix(3);
  }

  std::string_view input_;
  size_t passed_ = 0;
  size_t place_ = 0;
  uint8_t kind_ = 0;
  bool armed_ = false;
  bool meddled_ = false;
};

void BeStranger(Role role, std::string_view input) {
  End end(role);
  if (role == Role::kConnector) (void)end.stream->Advance();
  end.Give(input);
  for (int i = 0; i < 8 && end.stream->Advance(); i++) {
  }
  Require(!end.stream->established());
}

void Meddle(std::string_view input) {
  End ends[2] = {End(Role::kConnector), End(Role::kListener)};
  Meddler meddler(input);
  const auto carry = [&] {
    for (size_t i = 0; i < 2; i++) {
      const std::string bytes = ends[i].Take();
      if (!bytes.empty()) ends[1 - i].Give(meddler.Pass(bytes));
    }
  };
  for (int i = 0; i < 8; i++) {
    for (const End& end : ends) {
      if (!end.stream->Advance()) {
        Require(meddler.meddled());
        return;
      }
    }
    carry();
  }
  if (!ends[0].stream->established() || !ends[1].stream->established()) {
    Require(meddler.meddled());
    return;
  }
  // Each says something to the other.
  const std::string said(300 + input.size() % 1000, 's');
  for (size_t i = 0; i < 2; i++) {
    const iovec vector{.iov_base = const_cast<char*>(said.data()), .iov_len = said.size()};
    Require(ends[i].stream->Send(&vector, 1) == static_cast<ssize_t>(said.size()));
    carry();
    std::string heard(2 * said.size(), '\0');
    const ssize_t size = ends[1 - i].stream->Receive(heard.data(), heard.size());
    if (size > 0) {
      Require(heard.substr(0, static_cast<size_t>(size)) == said);
      continue;
    }
    Require(meddler.meddled() && (size == 0 || errno == EAGAIN || errno == EBADMSG));
    return;
  }
}

}  // namespace

}  // namespace nacre::rdma

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nacre::rdma;
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      BeStranger(Role::kListener, input);
      break;
    case 1:
      BeStranger(Role::kConnector, input);
      break;
    default:
      Meddle(input);
      break;
  }
  return 0;
}
