// Whatever a peer sends over tcp, in its greeting or as frames, is decoded or ends the connection.
// The session that is fed has requests of all kinds outstanding, so that replies may meet some.

#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "rdma/memory.h"
#include "rdma/tcp/completion_queue.h"
#include "rdma/tcp/greeting.h"
#include "rdma/tcp/outbox.h"
#include "rdma/tcp/region.h"
#include "rdma/tcp/session.h"
#include "util/codes/crc32c.h"
#include "util/coding.h"

namespace nacre::rdma {

namespace {

constexpr size_t kRegionBytes = 1 << 20;
constexpr QueueDepths kDepths{.send = 16, .receive = 4};

void DecodeGreetings(const std::string& bytes) {
  GreetingType type;
  TcpHello hello;
  TcpChallenge challenge;
  Proof proof;
  std::string text;
  DecodeGreetingHeader(bytes, &type).IgnoreError();
  DecodeHello(bytes, &hello).IgnoreError();
  DecodeChallenge(bytes, &challenge).IgnoreError();
  DecodeIntroduction(bytes, &proof).IgnoreError();
  DecodeAnswer(bytes, &type, &text).IgnoreError();
}

/// Two regions: one that the peer may use, one that this end's requests use.
struct Target {
  Target() {
    for (uint64_t i = 0; i < 2; i++) {
      UniqueFd no_fd;
      CreateMemory({NewDeviceId(), i}, kRegionBytes, MemoryKind::kPrivate, &no_fd, &memory[i])
          .IgnoreError();
      regions
          .Add(memory[i], 0, kRegionBytes, i == 0 ? Access::kRemoteAll : Access::kLocalOnly,
               &keys[i])
          .IgnoreError();
    }
  }

  RegionTable regions;
  std::shared_ptr<Mapping> memory[2];
  uint32_t keys[2] = {};
};

class Harness {
 public:
  explicit Harness(Target* target)
      : target_(target),
        queue_(256, UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), std::chrono::nanoseconds(0)),
        session_({.depths = kDepths,
                  .regions = &target->regions,
                  .counters = &counters_,
                  .send_queue = &queue_,
                  .receive_queue = &queue_,
                  .queue_pair = nullptr,
                  .broken = &broken_}) {
    char* const local = target->memory[1]->data();
    constexpr Opcode kOpcodes[] = {Opcode::kRead,     Opcode::kWrite, Opcode::kWriteWithImm,
                                   Opcode::kFetchAdd, Opcode::kSend,  Opcode::kCompareSwap};
    for (uint64_t i = 0; i < 12; i++) {
      TcpRequest request;
      request.id = i;
      request.local = local;
      request.opcode = kOpcodes[i % std::size(kOpcodes)];
      const bool is_word =
          request.opcode == Opcode::kFetchAdd || request.opcode == Opcode::kCompareSwap;
      request.size = is_word || i == 10 ? 8 : i < 6 ? 300000 : 100;
      if (request.opcode == Opcode::kSend) request.size = 100;
      request.flags = kSignaled;
      queue_.Promise();
      session_.Post(request);
    }
    for (uint64_t i = 0; i < 2; i++) {
      queue_.Promise();
      session_.PostReceive(i, {local, 64, nullptr});
    }
    SendAll();
  }

  /// False once nothing matters any more.
  bool Feed(std::string_view bytes, size_t piece) {
    while (!bytes.empty()) {
      const size_t size = std::min(std::max<size_t>(1, piece), bytes.size());
      size_t place_size;
      char* const place = session_.open() ? session_.reader().place(&place_size) : nullptr;
      if (place != nullptr) {
        const size_t in_place = std::min(place_size, size);
        bytes.copy(place, in_place);
        session_.Advance(in_place);
        bytes.remove_prefix(in_place);
        continue;
      }
      if (!session_.Take(bytes.data(), size)) return false;
      bytes.remove_prefix(size);
      SendAll();
    }
    return session_.open();
  }

  /// A frame out of the next bytes of the input, with checksums that are right.
  std::string MakeFrame(std::string_view* input) const {
    const auto take = [input](size_t size) {
      std::string bytes(input->substr(0, size));
      bytes.resize(size);
      input->remove_prefix(std::min(size, input->size()));
      return bytes;
    };
    const std::string fields = take(16);
    FrameHeader header;
    header.type = static_cast<FrameType>(fields[0]);
    header.flags = static_cast<uint8_t>(fields[1]);
    header.number = static_cast<uint8_t>(fields[2]);
    const auto choice = static_cast<uint8_t>(fields[3]);
    header.key = target_->keys[choice & 1] + ((choice & 2) >> 1);
    header.address = reinterpret_cast<uint64_t>(target_->memory[choice & 1]->data()) +
                     DecodeFixed32(fields.data() + 4) % (2 * kRegionBytes);
    header.length = DecodeFixed32(fields.data() + 8) % (kWriteFragmentBytes + 2);
    header.consumed = static_cast<uint8_t>(fields[12]) % 8;
    header.argument = static_cast<uint8_t>(fields[13]);
    std::string frame(kFrameHeaderBytes, '\0');
    std::string payload(PayloadBytes(header), fields[14]);
    const std::string start = take(std::min<size_t>(payload.size(), 16));
    payload.replace(0, start.size(), start);
    header.payload_crc = Crc32c(payload.data(), payload.size());
    EncodeFrameHeader(header, frame.data());
    return frame + payload;
  }

  /// As when the socket closes, and then the queue pair.
  void Finish() {
    session_.PeerGone();
    session_.Detach();
    queue_.Detach(nullptr, nullptr);
  }

 private:
  void SendAll() {
    session_.FillOutbox();
    iovec vectors[16];
    while (!session_.broken() && session_.outbox()->Gather(vectors, 16, 1 << 20) > 0) {
      session_.outbox()->Sent(std::min<size_t>(session_.outbox()->size(), 100000));
      session_.FillOutbox();
    }
    session_.AfterSending();
  }

  Target* const target_;
  TcpCounters counters_;
  std::atomic<bool> broken_{false};
  TcpCompletionQueue queue_;
  Session session_;
};

void Run(std::string_view input) {
  static Target* const target = new Target;
  if (input.size() < 2) return;
  const auto kind = static_cast<uint8_t>(input[0]) % 4;
  const size_t piece = static_cast<uint8_t>(input[1]);
  input.remove_prefix(2);
  if (kind == 0) {
    DecodeGreetings(std::string(input));
    return;
  }
  Harness harness(target);
  if (kind == 1) {
    harness.Feed(input, piece);
  } else {
    while (!input.empty()) {
      if (!harness.Feed(harness.MakeFrame(&input), piece * 64)) break;
    }
  }
  harness.Finish();
}

}  // namespace

}  // namespace nacre::rdma

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  nacre::rdma::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}
