// Goal: when RegionGrant::Revoke has returned over shm, no write under the key lands any more,
// whatever its writer was doing: copying, standing still, dying; and no process is killed without
// need.
// Method: child processes that write 64 MiB at a time, so that a signal finds them in the middle;
// threads of this process that write all the time. What the memory holds after the revocation must
// stay. Where a child was too quick for the signal, the test begins anew with another.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

#include "tests/support/rdma/rdma_endpoint.h"
#include "tests/support/rdma/rdma_peer.h"

namespace nacre::rdma {

namespace {

constexpr size_t kLong = 64 << 20;
constexpr int kAttempts = 20;
constexpr uint64_t kWriteId = 7;

bool IsDead(pid_t process) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == process;
}

/// The owner of memory in this process, and a child that has a key to it.
class Owner {
 public:
  Owner() : peer_(MakeChildPeer({})), near_({}) {
    near_.Allocate(kLong, Access::kRemoteReadOnly);
    const Status granted = near_.regions[0]->Grant(0, kLong, Access::kRemoteAll, &grant_);
    EXPECT_TRUE(granted.ok()) << granted.ToString();
    RemoteKey unused;
    peer_region_ = peer_->Allocate(kLong, Access::kRemoteReadOnly, &unused);
    peer_->Store(peer_region_, 0, std::string(kLong, 'x'));
    EXPECT_TRUE(near_.Listen(FreshAddress()).ok());
    peer_->Start({.command = PeerCommand::kConnect,
                  .numbers = {16, 16},
                  .bytes = near_.listener->address()});
    EXPECT_TRUE(near_.Accept("").ok());
    EXPECT_TRUE(peer_->Finish().status.ok());
  }
  ~Owner() {
    if (peer_->process() > 0) kill(peer_->process(), SIGKILL);
  }

  Peer* peer() { return peer_.get(); }
  pid_t process() const { return peer_->process(); }
  char* data() const { return near_.Data(0); }
  std::string Content() const { return {data(), kLong}; }
  void Disconnect() { near_.queue_pairs.clear(); }

  /// The child begins to write all of the memory; returns when the first bytes are there.
  void BeginWrite() {
    const RemoteKey key = grant_->remote_key();
    peer_->Start({.command = PeerCommand::kPost,
                  .numbers = {static_cast<uint64_t>(Opcode::kWrite), 0, kWriteId,
                              static_cast<uint64_t>(peer_region_), 0, kLong, key.address, key.key,
                              kSignaled, 0, 0}});
    while (std::atomic_ref<char>(data()[0]).load() == 0) std::this_thread::yield();
  }
  void Stop() {
    kill(process(), SIGSTOP);
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(process()), &info, WSTOPPED | WEXITED | WNOWAIT);
  }
  bool WriteIsOver() const { return std::atomic_ref<char>(data()[kLong - 1]).load() != 0; }
  Status Revoke() { return grant_->Revoke(); }

  /// A short write of the child under the key.
  CompletionCode WriteShortly() {
    const RemoteKey key = grant_->remote_key();
    EXPECT_TRUE(peer_
                    ->Post(Opcode::kWrite, 0, kWriteId, peer_region_, 0, 64, {key.address, key.key},
                           kSignaled)
                    .ok());
    return peer_->Next().code;
  }

 private:
  const std::unique_ptr<Peer> peer_;
  Endpoint near_;
  std::unique_ptr<RegionGrant> grant_;
  int peer_region_ = -1;
};

/// Tries until an attempt has met the child in the middle of its write.
void Attempt(const std::function<bool(Owner*)>& met) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Owner owner;
    owner.BeginWrite();
    if (met(&owner)) return;
    if (testing::Test::HasFatalFailure()) return;
  }
  FAIL() << "the child was always too quick";
}

/// Stopped inside a write, it does not outlive the key.
bool RevokesFromStopped(Owner* owner, bool disconnect) {
  owner->Stop();
  if (owner->WriteIsOver()) return false;
  if (disconnect) owner->Disconnect();
  const Status revoked = owner->Revoke();
  EXPECT_TRUE(revoked.ok()) << revoked.ToString();
  const std::string content = owner->Content();
  // Between two steps of its write it does no harm, and lives.
  const bool died = IsDead(owner->process());
  kill(owner->process(), SIGCONT);
  if (died) {
    owner->peer()->Kill();
  } else {
    EXPECT_TRUE(owner->peer()->Finish().status.ok());
  }
  EXPECT_TRUE(owner->Content() == content);
  return died;
}

TEST(ShmRevokeTest, AProcessStoppedInsideAWriteIsKilled) {
  Attempt([](Owner* owner) { return RevokesFromStopped(owner, /*disconnect=*/false); });
}

TEST(ShmRevokeTest, SoItIsWhenItsConnectionHasEnded) {
  Attempt([](Owner* owner) { return RevokesFromStopped(owner, /*disconnect=*/true); });
}

TEST(ShmRevokeTest, AProcessThatWritesLearnsThatItsKeyHasEnded) {
  Attempt([](Owner* owner) {
    const Status revoked = owner->Revoke();
    EXPECT_TRUE(revoked.ok()) << revoked.ToString();
    if (owner->WriteIsOver()) return false;
    const std::string content = owner->Content();
    EXPECT_TRUE(owner->peer()->Finish().status.ok());
    EXPECT_EQ(owner->peer()->Next().code, CompletionCode::kRemoteAccessError);
    EXPECT_TRUE(owner->Content() == content);
    return true;
  });
}

TEST(ShmRevokeTest, AProcessThatDiesInsideAWriteIsNotWaitedFor) {
  Attempt([](Owner* owner) {
    kill(owner->process(), SIGKILL);
    const Status revoked = owner->Revoke();
    EXPECT_TRUE(revoked.ok()) << revoked.ToString();
    if (owner->WriteIsOver()) return false;
    const std::string content = owner->Content();
    owner->peer()->Kill();  // Reaped: surely over.
    EXPECT_TRUE(owner->Content() == content);
    return true;
  });
}

TEST(ShmRevokeTest, AProcessStoppedOutsideOfWritesLives) {
  Owner owner;
  EXPECT_EQ(owner.WriteShortly(), CompletionCode::kSuccess);
  owner.Stop();
  const Status revoked = owner.Revoke();
  EXPECT_TRUE(revoked.ok()) << revoked.ToString();
  EXPECT_FALSE(IsDead(owner.process()));
  std::memset(owner.data(), 0, 64);
  kill(owner.process(), SIGCONT);
  EXPECT_EQ(owner.WriteShortly(), CompletionCode::kRemoteAccessError);
  EXPECT_EQ(std::string(owner.data(), 64), std::string(64, '\0'));
}

/// Threads of this process, each with a device of its own, that write for as long as they may.
/// Round by round: a queue pair ends with its key.
class Writers {
 public:
  static constexpr int kThreads = 2;
  static constexpr int kRounds = 40;
  static constexpr size_t kBytes = 3 << 20;

  explicit Writers(Endpoint* far) {
    for (std::unique_ptr<Endpoint>& near : nears_) {
      near = std::make_unique<Endpoint>(DeviceSpec{});
      near->Allocate(kBytes);
      std::memset(near->Data(0), 'x', kBytes);
      for (int round = 0; round < kRounds; ++round) {
        ConnectEndpoints(near.get(), far, far->listener->address());
      }
    }
    for (size_t i = 0; i < kThreads; ++i) threads_[i] = std::thread([this, i] { Run(i); });
  }
  ~Writers() {
    round_.store(kRounds);  // Where a round has failed, those after it meet keys that have ended.
    for (std::thread& thread : threads_) thread.join();
  }

  /// All of them write under the key; returns once each has.
  void Begin(int round, const RemoteKey& key) {
    key_ = key;
    written_.store(0);
    round_.store(round);
    Await(&written_);
  }
  void AwaitFailures() { Await(&failed_); }

 private:
  static void Await(std::atomic<int>* count) {
    while (count->load() < kThreads) std::this_thread::yield();
    count->store(0);
  }

  void Run(size_t number) {
    Endpoint* const near = nears_[number].get();
    for (int round = 0; round < kRounds; ++round) {
      while (round_.load() < round) std::this_thread::yield();
      QueuePair* const pair = near->queue_pairs[static_cast<size_t>(round)].get();
      // One writes at length, the others shortly.
      const size_t size = number == 0 ? kBytes : 4096;
      CompletionCode code = CompletionCode::kSuccess;
      for (bool first = true; code == CompletionCode::kSuccess; first = false) {
        EXPECT_TRUE(
            pair->PostWrite(1, near->Buffer(0, 0, size), {key_.address, key_.key}, kSignaled).ok());
        code = near->Next().code;
        if (first) written_.fetch_add(1);
      }
      EXPECT_TRUE(code == CompletionCode::kRemoteAccessError || code == CompletionCode::kPeerGone);
      failed_.fetch_add(1);
    }
  }

  std::array<std::unique_ptr<Endpoint>, kThreads> nears_;
  std::array<std::thread, kThreads> threads_;
  RemoteKey key_;  ///< Published by round_.
  std::atomic<int> round_{-1};
  std::atomic<int> written_{0};
  std::atomic<int> failed_{0};
};

TEST(ShmRevokeTest, ThreadsOfThisProcessAreWaitedFor) {
  Endpoint far({});
  far.Allocate(Writers::kBytes, Access::kRemoteReadOnly);
  ASSERT_TRUE(far.Listen(FreshAddress()).ok());
  Writers writers(&far);
  for (int round = 0; round < Writers::kRounds; ++round) {
    std::unique_ptr<RegionGrant> grant;
    ASSERT_TRUE(far.regions[0]->Grant(0, Writers::kBytes, Access::kRemoteAll, &grant).ok());
    writers.Begin(round, grant->remote_key());
    if (round % 4 == 3) {
      // The connections of this round end before the key.
      far.queue_pairs[static_cast<size_t>(round)].reset();
      far.queue_pairs[static_cast<size_t>(Writers::kRounds + round)].reset();
    }
    const Status revoked = grant->Revoke();
    ASSERT_TRUE(revoked.ok()) << revoked.ToString();
    std::memset(far.Data(0), 0, Writers::kBytes);
    writers.AwaitFailures();
    const char* const data = far.Data(0);
    ASSERT_EQ(std::count(data, data + Writers::kBytes, '\0'), Writers::kBytes) << round;
  }
}

}  // namespace

}  // namespace nacre::rdma
