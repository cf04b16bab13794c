#include "tests/support/rdma/rdma_peer.h"

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "rdma/unique_fd.h"
#include "tests/support/rdma/rdma_requests.h"
#include "util/coding.h"
#include "util/threads/thread.h"

extern char** environ;

namespace nacre::rdma {

namespace {

constexpr int kChildFd = 3;
constexpr char kPeerFlag[] = "--rdma-peer";

/// Carries commands out; the far side's only state is its Endpoint.
class PeerEndpoint {
 public:
  explicit PeerEndpoint(const DeviceSpec& spec) : endpoint_(spec) {}

  PeerAnswer Execute(const PeerRequest& request);

 private:
  QueuePair* Pair(uint64_t number) { return endpoint_.queue_pairs[number].get(); }
  LocalBuffer Buffer(uint64_t region, uint64_t offset, uint64_t size) {
    return endpoint_.Buffer(static_cast<int>(region), offset, size);
  }
  Status Post(const std::vector<uint64_t>& n);
  Status AddRemotely(const std::vector<uint64_t>& n, bool by_swap);

  Endpoint endpoint_;
  std::vector<std::unique_ptr<RegionGrant>> grants_;
};

PeerAnswer PeerEndpoint::Execute(const PeerRequest& request) {
  const std::vector<uint64_t>& n = request.numbers;
  PeerAnswer answer;
  switch (request.command) {
    case PeerCommand::kAllocate: {
      const int region = endpoint_.Allocate(n[0], static_cast<Access>(n[1]));
      const RemoteKey key = endpoint_.regions.back()->remote_key();
      answer.numbers = {static_cast<uint64_t>(region), key.address, key.size, key.key};
      break;
    }
    case PeerCommand::kFree:
      endpoint_.regions[n[0]].reset();
      break;
    case PeerCommand::kStore:
      request.bytes.copy(endpoint_.Data(static_cast<int>(n[0])) + n[1], request.bytes.size());
      break;
    case PeerCommand::kLoad:
      answer.bytes.assign(endpoint_.Data(static_cast<int>(n[0])) + n[1], n[2]);
      break;
    case PeerCommand::kListen:
      answer.status = endpoint_.Listen(request.bytes);
      if (answer.status.ok()) answer.bytes = endpoint_.listener->address();
      break;
    case PeerCommand::kAccept:
      answer.status = endpoint_.Accept(request.bytes, &answer.bytes);
      break;
    case PeerCommand::kReject:
      answer.status = endpoint_.Reject(request.bytes);
      break;
    case PeerCommand::kConnect:
      answer.status = endpoint_.Connect(request.bytes, request.more_bytes,
                                        {.send = static_cast<int>(n[0]),
                                         .receive = static_cast<int>(n[1]),
                                         .control = n.size() > 2 && n[2] != 0},
                                        &answer.bytes);
      break;
    case PeerCommand::kPost:
      answer.status = Post(n);
      break;
    case PeerCommand::kPostRecv:
      answer.status = Pair(n[0])->PostRecv(n[1], Buffer(n[2], n[3], n[4]));
      break;
    case PeerCommand::kNext: {
      Completion c;
      const bool found = endpoint_.Next(&c, std::chrono::milliseconds(n[0]));
      answer.numbers = {found,
                        c.id,
                        c.bytes,
                        c.immediate,
                        static_cast<uint64_t>(c.opcode),
                        static_cast<uint64_t>(c.code)};
      break;
    }
    case PeerCommand::kDropQueuePair:
      endpoint_.queue_pairs[n[0]].reset();
      break;
    case PeerCommand::kAddRemotely:
      answer.status = AddRemotely(n, false);
      break;
    case PeerCommand::kSwapRemotely:
      answer.status = AddRemotely(n, true);
      break;
    case PeerCommand::kAddLocally: {
      char* const word = endpoint_.Data(static_cast<int>(n[0])) + n[1];
      for (uint64_t i = 0; i < n[2]; i++) {
        std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(word)).fetch_add(1);
      }
      break;
    }
    case PeerCommand::kServeRequests:
      answer.status =
          ServeRequests(&endpoint_, Pair(n[0]), static_cast<int>(n[1]), static_cast<int>(n[2]));
      break;
    case PeerCommand::kEcho:
      answer.status = Echo(&endpoint_, Pair(n[0]), static_cast<int>(n[1]), static_cast<int>(n[2]));
      break;
    case PeerCommand::kTraffic: {
      const TrafficCounters traffic = endpoint_.device->traffic();
      answer.numbers = {traffic.bytes_read, traffic.bytes_written, traffic.reads,
                        traffic.writes,     traffic.peers_refused, traffic.frames_malformed};
      break;
    }
    case PeerCommand::kGrant: {
      grants_.emplace_back();
      answer.status =
          endpoint_.regions[n[0]]->Grant(n[1], n[2], static_cast<Access>(n[3]), &grants_.back());
      if (!answer.status.ok()) break;
      const RemoteKey key = grants_.back()->remote_key();
      answer.numbers = {grants_.size() - 1, key.address, key.size, key.key};
      break;
    }
    case PeerCommand::kDropGrant:
      grants_[n[0]].reset();
      break;
    case PeerCommand::kExit:
      break;
  }
  return answer;
}

Status PeerEndpoint::Post(const std::vector<uint64_t>& n) {
  QueuePair* const pair = Pair(n[1]);
  const LocalBuffer local = n[5] == 0 ? LocalBuffer() : Buffer(n[3], n[4], n[5]);
  const RemoteBuffer remote{n[6], static_cast<uint32_t>(n[7])};
  const auto flags = static_cast<uint8_t>(n[8]);
  switch (static_cast<Opcode>(n[0])) {
    case Opcode::kRead:
      return pair->PostRead(n[2], local, remote, flags);
    case Opcode::kWrite:
      return pair->PostWrite(n[2], local, remote, flags);
    case Opcode::kWriteWithImm:
      return pair->PostWriteWithImm(n[2], local, remote, static_cast<uint32_t>(n[9]), flags);
    case Opcode::kCompareSwap:
      return pair->PostCompareSwap(n[2], local, remote, n[9], n[10], flags);
    case Opcode::kFetchAdd:
      return pair->PostFetchAdd(n[2], local, remote, n[9], flags);
    case Opcode::kSend:
      return pair->PostSend(n[2], local, flags);
    default:
      return Status::InvalidArgument("no request");
  }
}

Status PeerEndpoint::AddRemotely(const std::vector<uint64_t>& n, bool by_swap) {
  const RemoteBuffer target{n[2], static_cast<uint32_t>(n[3])};
  return AddTo(&endpoint_, Pair(n[0]), endpoint_.Buffer(static_cast<int>(n[1]), 0, 8), target,
               static_cast<int>(n[4]), by_swap);
}

class LocalPeer final : public Peer {
 public:
  explicit LocalPeer(const DeviceSpec& spec) : endpoint_(spec) {}
  ~LocalPeer() override {
    if (thread_.joinable()) thread_.Join();
  }

  void Start(PeerRequest request) override {
    thread_ = Thread(
        "peer", [this, request = std::move(request)] { answer_ = endpoint_.Execute(request); });
  }
  PeerAnswer Finish() override {
    thread_.Join();
    return std::move(answer_);
  }
  bool Kill() override { return false; }
  pid_t process() const override { return -1; }

 private:
  PeerEndpoint endpoint_;
  PeerAnswer answer_;
  Thread thread_;
};

bool WriteAll(int fd, const std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = send(fd, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (written <= 0) return false;
    done += static_cast<size_t>(written);
  }
  return true;
}

bool ReadAll(int fd, char* bytes, size_t size) {
  size_t done = 0;
  while (done < size) {
    const ssize_t count = read(fd, bytes + done, size - done);
    if (count <= 0) return false;
    done += static_cast<size_t>(count);
  }
  return true;
}

/// A packet between test and child: lists of numbers and strings, trusted.
struct Packet {
  std::vector<uint64_t> numbers;
  std::vector<std::string> strings;
};

bool WritePacket(int fd, const Packet& packet) {
  std::string body;
  PutFixed64(&body, packet.numbers.size());
  for (const uint64_t number : packet.numbers) PutFixed64(&body, number);
  PutFixed64(&body, packet.strings.size());
  for (const std::string& string : packet.strings) {
    PutFixed64(&body, string.size());
    body += string;
  }
  return WriteAll(fd, body);
}

bool ReadNumber(int fd, uint64_t* number) {
  char bytes[8];
  if (!ReadAll(fd, bytes, sizeof(bytes))) return false;
  *number = DecodeFixed64(bytes);
  return true;
}

bool ReadPacket(int fd, Packet* packet) {
  uint64_t count;
  if (!ReadNumber(fd, &count)) return false;
  packet->numbers.resize(count);
  for (uint64_t& number : packet->numbers) {
    if (!ReadNumber(fd, &number)) return false;
  }
  if (!ReadNumber(fd, &count)) return false;
  packet->strings.resize(count);
  for (std::string& string : packet->strings) {
    uint64_t size;
    if (!ReadNumber(fd, &size)) return false;
    string.resize(size);
    if (!ReadAll(fd, string.data(), size)) return false;
  }
  return true;
}

class ChildPeer final : public Peer {
 public:
  explicit ChildPeer(const DeviceSpec& spec) {
    int sockets[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    socket_ = UniqueFd(sockets[0]);
    const UniqueFd theirs(sockets[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, theirs.get(), kChildFd);
    std::vector<std::string> arguments{"peer",      kPeerFlag,
                                       spec.scheme, spec.with_faults ? "faults" : "",
                                       spec.secret, std::to_string(spec.ring.size())};
    for (const SecretTerms& terms : spec.ring) {
      arguments.insert(arguments.end(), {terms.secret, terms.may_write ? "write" : "read"});
    }
    for (const auto& [name, value] : spec.parameters) {
      arguments.insert(arguments.end(), {name, value});
    }
    std::vector<char*> pointers(arguments.size() + 1, nullptr);
    std::transform(arguments.begin(), arguments.end(), pointers.begin(),
                   [](std::string& argument) { return argument.data(); });
    EXPECT_EQ(posix_spawn(&process_, "/proc/self/exe", &actions, nullptr, pointers.data(), environ),
              0);
    posix_spawn_file_actions_destroy(&actions);
  }

  ~ChildPeer() override {
    socket_.Reset();  // The child ends when its commands do.
    if (process_ > 0) waitpid(process_, nullptr, 0);
  }

  void Start(PeerRequest request) override {
    std::vector<uint64_t> numbers{static_cast<uint64_t>(request.command)};
    numbers.insert(numbers.end(), request.numbers.begin(), request.numbers.end());
    EXPECT_TRUE(WritePacket(socket_.get(), {numbers, {request.bytes, request.more_bytes}}));
  }

  PeerAnswer Finish() override {
    Packet packet;
    if (!ReadPacket(socket_.get(), &packet) || packet.numbers.empty()) {
      return {.status = Status::IOError("the peer process ended")};
    }
    PeerAnswer answer;
    const int code = static_cast<int>(packet.numbers[0]);
    if (code != 0) answer.status = Status::FromCode(code, packet.strings[0]);
    answer.numbers.assign(packet.numbers.begin() + 1, packet.numbers.end());
    answer.bytes = packet.strings[1];
    return answer;
  }

  bool Kill() override {
    kill(process_, SIGKILL);
    waitpid(std::exchange(process_, -1), nullptr, 0);
    return true;
  }
  pid_t process() const override { return process_; }

 private:
  UniqueFd socket_;
  pid_t process_ = -1;
};

}  // namespace

int Peer::Allocate(size_t size, Access access, RemoteKey* key) {
  const PeerAnswer answer =
      Run({.command = PeerCommand::kAllocate, .numbers = {size, static_cast<uint64_t>(access)}});
  EXPECT_TRUE(answer.status.ok()) << answer.status.ToString();
  if (answer.numbers.size() != 4) return -1;
  *key = {answer.numbers[1], answer.numbers[2], static_cast<uint32_t>(answer.numbers[3])};
  return static_cast<int>(answer.numbers[0]);
}

void Peer::Free(int region) {
  const PeerAnswer answer =
      Run({.command = PeerCommand::kFree, .numbers = {static_cast<uint64_t>(region)}});
  EXPECT_TRUE(answer.status.ok()) << answer.status.ToString();
}

void Peer::Store(int region, size_t offset, const std::string& bytes) {
  const PeerAnswer answer = Run({.command = PeerCommand::kStore,
                                 .numbers = {static_cast<uint64_t>(region), offset},
                                 .bytes = bytes});
  EXPECT_TRUE(answer.status.ok()) << answer.status.ToString();
}

std::string Peer::Load(int region, size_t offset, size_t size) {
  PeerAnswer answer = Run(
      {.command = PeerCommand::kLoad, .numbers = {static_cast<uint64_t>(region), offset, size}});
  EXPECT_TRUE(answer.status.ok()) << answer.status.ToString();
  return std::move(answer.bytes);
}

void Peer::PostRecv(int queue_pair, uint64_t id, int region, size_t offset, size_t size) {
  const PeerAnswer answer = Run({.command = PeerCommand::kPostRecv,
                                 .numbers = {static_cast<uint64_t>(queue_pair), id,
                                             static_cast<uint64_t>(region), offset, size}});
  EXPECT_TRUE(answer.status.ok()) << answer.status.ToString();
}

Status Peer::Post(Opcode opcode, int queue_pair, uint64_t id, int region, size_t offset,
                  size_t size, RemoteBuffer remote, uint8_t flags, uint64_t argument,
                  uint64_t argument2) {
  return Run({.command = PeerCommand::kPost,
              .numbers = {static_cast<uint64_t>(opcode), static_cast<uint64_t>(queue_pair), id,
                          static_cast<uint64_t>(region), offset, size, remote.address, remote.key,
                          flags, argument, argument2}})
      .status;
}

bool Peer::Next(Completion* completion, std::chrono::milliseconds timeout) {
  const PeerAnswer answer =
      Run({.command = PeerCommand::kNext, .numbers = {static_cast<uint64_t>(timeout.count())}});
  EXPECT_TRUE(answer.status.ok()) << answer.status.ToString();
  const std::vector<uint64_t>& n = answer.numbers;
  if (n.size() != 6 || n[0] == 0) return false;
  *completion = {.id = n[1],
                 .queue_pair = nullptr,
                 .bytes = static_cast<uint32_t>(n[2]),
                 .immediate = static_cast<uint32_t>(n[3]),
                 .opcode = static_cast<Opcode>(n[4]),
                 .code = static_cast<CompletionCode>(n[5])};
  return true;
}

Completion Peer::Next() {
  Completion completion;
  EXPECT_TRUE(Next(&completion, Endpoint::kPatience)) << "the peer saw no completion";
  return completion;
}

void Peer::DropQueuePair(int queue_pair) {
  const PeerAnswer answer =
      Run({.command = PeerCommand::kDropQueuePair, .numbers = {static_cast<uint64_t>(queue_pair)}});
  EXPECT_TRUE(answer.status.ok()) << answer.status.ToString();
}

TrafficCounters Peer::Traffic() {
  const PeerAnswer answer = Run({.command = PeerCommand::kTraffic});
  EXPECT_TRUE(answer.status.ok()) << answer.status.ToString();
  const std::vector<uint64_t>& n = answer.numbers;
  if (n.size() != 6) return {};
  return {.bytes_read = n[0],
          .bytes_written = n[1],
          .reads = n[2],
          .writes = n[3],
          .peers_refused = n[4],
          .frames_malformed = n[5]};
}

int Peer::Grant(int region, size_t offset, size_t size, Access access, RemoteKey* key) {
  const PeerAnswer answer = Run(
      {.command = PeerCommand::kGrant,
       .numbers = {static_cast<uint64_t>(region), offset, size, static_cast<uint64_t>(access)}});
  EXPECT_TRUE(answer.status.ok()) << answer.status.ToString();
  if (answer.numbers.size() != 4) return -1;
  *key = {answer.numbers[1], answer.numbers[2], static_cast<uint32_t>(answer.numbers[3])};
  return static_cast<int>(answer.numbers[0]);
}

void Peer::DropGrant(int grant) {
  const PeerAnswer answer =
      Run({.command = PeerCommand::kDropGrant, .numbers = {static_cast<uint64_t>(grant)}});
  EXPECT_TRUE(answer.status.ok()) << answer.status.ToString();
}

std::unique_ptr<Peer> MakeLocalPeer(const DeviceSpec& spec) {
  return std::make_unique<LocalPeer>(spec);
}

std::unique_ptr<Peer> MakeChildPeer(const DeviceSpec& spec) {
  return std::make_unique<ChildPeer>(spec);
}

bool RunPeerProcess(int argc, char** argv) {
  if (argc < 6 || std::strcmp(argv[1], kPeerFlag) != 0) return false;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  DeviceSpec spec;
  spec.scheme = argv[2];
  spec.with_faults = std::strcmp(argv[3], "faults") == 0;
  spec.secret = argv[4];
  int next = 6;
  for (int left = std::atoi(argv[5]); left > 0 && next + 1 < argc; left--, next += 2) {
    spec.ring.push_back(
        {.secret = argv[next], .may_write = std::strcmp(argv[next + 1], "write") == 0});
  }
  for (; next + 1 < argc; next += 2) spec.parameters[argv[next]] = argv[next + 1];
  PeerEndpoint endpoint(spec);
  Packet packet;
  while (ReadPacket(kChildFd, &packet)) {
    PeerRequest request{.command = static_cast<PeerCommand>(packet.numbers[0]),
                        .numbers = {packet.numbers.begin() + 1, packet.numbers.end()},
                        .bytes = packet.strings[0],
                        .more_bytes = packet.strings[1]};
    const PeerAnswer answer = endpoint.Execute(request);
    std::vector<uint64_t> numbers{static_cast<uint64_t>(answer.status.code())};
    numbers.insert(numbers.end(), answer.numbers.begin(), answer.numbers.end());
    if (!WritePacket(kChildFd, {numbers, {std::string(answer.status.message()), answer.bytes}})) {
      break;
    }
  }
  return true;
}

}  // namespace nacre::rdma
