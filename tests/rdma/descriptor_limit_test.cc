// Goal: a process that has no file descriptor left says so, to peers that connect and to its own
// callers, at once; nothing ends, no thread spins, and all is well when descriptors are free again.
// Method: the limit of this process is lowered to what is open, while a child calls a listener
// here, or this process calls.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "rdma/acceptor.h"
#include "tests/support/rdma/rdma_endpoint.h"
#include "tests/support/rdma/rdma_peer.h"

namespace nacre::rdma {
namespace {

using std::chrono::milliseconds;

/// No descriptor can be opened while it lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    // The lowest one that is free: all below are open.
    const UniqueFd next(eventfd(0, EFD_CLOEXEC));
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(next.get());
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoDescriptors() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

class DescriptorLimitTest : public testing::TestWithParam<const char*> {
 protected:
  const DeviceSpec spec_{.scheme = GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Schemes, DescriptorLimitTest, testing::Values("shm", "tcp"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(DescriptorLimitTest, AListenerWithoutDescriptorsTellsWhoCalls) {
  const auto child = MakeChildPeer(spec_);
  Endpoint here(spec_);
  ASSERT_TRUE(here.Listen(AnyAddress(GetParam())).ok());
  const PeerRequest connect = {.command = PeerCommand::kConnect,
                               .numbers = {16, 16},
                               .bytes = here.listener->address(),
                               .more_bytes = ""};
  {
    std::atomic<bool> answered{false};
    std::atomic<int> taken{0};
    std::thread accepting([&] {
      while (!answered.load()) {
        std::unique_ptr<IncomingConnection> incoming;
        if (here.listener->Accept(milliseconds(20), &incoming).ok()) taken.fetch_add(1);
      }
    });
    {
      const NoDescriptors none;
      for (int call = 0; call < 3; ++call) {
        const PeerAnswer answer = child->Run(connect);
        EXPECT_NE(answer.status.ToString().find(Acceptor::kWhy), std::string::npos)
            << answer.status.ToString();
      }
    }
    answered = true;
    accepting.join();
    EXPECT_EQ(taken.load(), 0);
  }
  child->Start(connect);
  EXPECT_TRUE(here.Accept("").ok());
  const PeerAnswer answer = child->Finish();
  EXPECT_TRUE(answer.status.ok()) << answer.status.ToString();
}

TEST_P(DescriptorLimitTest, ACallerWithoutDescriptorsIsTold) {
  Endpoint near(spec_);
  Endpoint far(spec_);
  ASSERT_TRUE(far.Listen(AnyAddress(GetParam())).ok());
  {
    const NoDescriptors none;
    std::string reply;
    const Status status = near.Connect(far.listener->address(), "", {}, &reply);
    EXPECT_NE(status.ToString().find("Too many open files"), std::string::npos)
        << status.ToString();
  }
  ConnectEndpoints(&near, &far, far.listener->address());
}

class AcceptorTest : public testing::Test {
 protected:
  AcceptorTest() : listening_(Socket()), caller_(Socket()), late_caller_(Socket()) {
    sockaddr_un any{.sun_family = AF_UNIX, .sun_path = {}};
    EXPECT_EQ(bind(listening_.get(), reinterpret_cast<sockaddr*>(&any), sizeof(any.sun_family)), 0);
    EXPECT_EQ(listen(listening_.get(), 8), 0);
  }

  static UniqueFd Socket() {
    return UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  }
  void Call(const UniqueFd& from) {
    sockaddr_un address{};
    socklen_t size = sizeof(address);
    ASSERT_EQ(getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    ASSERT_EQ(connect(from.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  }

  const UniqueFd listening_;
  const UniqueFd caller_;
  const UniqueFd late_caller_;
};

TEST_F(AcceptorTest, TheReserveIsTakenAndComesBack) {
  Acceptor acceptor(listening_.get());
  UniqueFd taken;
  EXPECT_EQ(acceptor.Take(&taken), Acceptor::Taken::kNobody);
  {
    const NoDescriptors none;
    EXPECT_EQ(acceptor.Take(&taken), Acceptor::Taken::kNobody);
    Call(caller_);
    EXPECT_EQ(acceptor.Take(&taken), Acceptor::Taken::kToRefuse);
    // It is held for longer than it should be: no descriptor is left to accept a caller with.
    Call(late_caller_);
    UniqueFd second;
    EXPECT_EQ(acceptor.Take(&second), Acceptor::Taken::kNobody);
    EXPECT_TRUE(acceptor.exhausted());
    taken.Reset();
    EXPECT_EQ(acceptor.Take(&second), Acceptor::Taken::kToRefuse);
    EXPECT_FALSE(acceptor.exhausted());
  }
  EXPECT_EQ(acceptor.Take(&taken), Acceptor::Taken::kNobody);
}

}  // namespace
}  // namespace nacre::rdma
