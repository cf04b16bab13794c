#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "nacre/logger.h"
#include "nacre/status.h"
#include "util/clock.h"
#include "util/memory/loadable_memory.h"

namespace nacre::rdma {

class Credential;
class SecretRing;

// The transport contract, in verbs vocabulary. Every backend (`shm`, `tcp`, `verbs`, `sim`) and
// every decorator (`fault`, `nic`) meets it; tests/rdma/*_contract_test.cc are its executable form.
//
// Ownership. A buffer named by a work request belongs to the transport from the Post call until its
// completion has been polled (for an unsignalled request: until a later signalled request of the
// same queue pair completes). A receive buffer belongs to the transport from PostRecv until its
// completion. Regions and completion queues outlive the queue pairs that use them.
//
// Order. Requests of one queue pair are executed and complete in the order in which they were
// posted. Writes of one queue pair become visible at the target in order; of a single write, the
// last bytes (at most 8, not across a multiple of 8) become visible after all others. Nothing is
// said about requests of different queue pairs.
//
// Atomicity. Compare-and-swap and fetch-and-add are atomic, on 8 aligned bytes, with respect to one
// another and, save over `verbs`, to the target's own std::atomic_ref operations on those bytes:
// cards keep their own operations apart only, so an owner that takes part does so by requests too.
// Reads and writes are atomic for 8 aligned bytes only.
//
// Failure. A Post call that answers an error has posted nothing. A request that fails completes
// with a code other than kSuccess; the queue pair is then broken, at both ends: every outstanding
// and later request completes with kFlushed (signalled or not, in order), and nothing is ever
// asserted or exited. A peer that dies or destroys its end breaks the queue pair: the first request
// to notice completes with kPeerGone, outstanding receives with kFlushed; messages that the peer
// sent before and that find a receive posted are delivered first. A broken queue pair is replaced
// by connecting again.
//
// Bounds. A Post call answers `Busy` while the queue pair has as many requests outstanding as its
// depth (an unsignalled one counts until a later signalled one of the queue pair was polled), while
// the completion queue could not hold one more completion (any request may need one: failures are
// always reported), or while the peer takes no more messages. A message waits for a receive to be
// posted; how many may wait, and whether the next is answered `Busy` or completes with
// kReceiverNotReady after retries, is up to the backend: a caller that posts as many receives as
// messages may be under way meets neither.
//
// Requests of 0 bytes name no memory: their buffers are not looked at.
//
// Threads. A device and its regions may be used from many threads. A completion queue and the queue
// pairs attached to it are used by one thread at a time (connecting, accepting and destroying a
// queue pair use its queues), save that `CompletionQueue::Wake` may be called from any.

/// What a region's owner grants its peers. Local access is always granted.
enum class Access : uint8_t { kLocalOnly, kRemoteReadOnly, kRemoteAll };

/// Names a region to its peers. Travels in control messages.
struct RemoteKey {
  /// The address of the region's first byte; requests add their offset to it.
  uint64_t address = 0;
  uint64_t size = 0;  ///< Bytes.
  uint32_t key = 0;
};

/// A key of its own to a part of a region. Revoked on destruction. The region outlives it.
///
/// Thread safety: none.
class RegionGrant {
 public:
  /// Revokes, where no caller learns of a failure.
  virtual ~RegionGrant() = default;
  virtual RemoteKey remote_key() const = 0;
  /// Ends the grant: requests that name the key afterwards fail. On success no write under it, of a
  /// peer that is connected or was, lands any more: the memory may be reused. As a rule it takes
  /// microseconds. `shm` kills a process that was stopped inside a write, and waits for its death.
  ///
  /// `Unavailable` if one cannot be killed: its write may land at any time, so the memory must be
  /// left alone. Another call then tells whether the write has ended since.
  virtual Status Revoke() = 0;
};

/// Registered memory. Unregistered and freed on destruction, after which the peers' requests that
/// name it fail. Those under way then fail or have read what it held.
class MemoryRegion {
 public:
  virtual ~MemoryRegion() = default;
  virtual char* data() const = 0;
  virtual size_t size() const = 0;
  /// The key of the whole region, or of its first piece if there are several.
  virtual RemoteKey remote_key() const = 0;
  /// A region larger than the adapter can register at once has several pieces of this many bytes,
  /// a power of two (the last one may be shorter), each with a key of its own. A peer's request
  /// stays within one piece. Local buffers know no pieces.
  virtual size_t piece_bytes() const { return size(); }
  virtual RemoteKey piece_key(size_t /*piece*/) const { return remote_key(); }
  /// Lets each peer that learns the grant's key use `size` bytes from `offset` on with `access`,
  /// whatever the region's own key allows. The key's address is that of the first of them: the
  /// region's plus `offset`. Thread-safe. `InvalidArgument` for what is not within the region, and,
  /// as the backend may choose, for a grant that is local only or of a region that is; `NoSpace`
  /// when the device is out of keys.
  virtual Status Grant(size_t offset, size_t size, Access access,
                       std::unique_ptr<RegionGrant>* grant) = 0;
  /// Has the system give all of the memory now, in huge pages where it can, so that no access waits
  /// for it later; contents stay. Registering memory with hardware does as much, so the default
  /// does nothing. It takes a second or so for a few gigabytes.
  virtual Status Populate() { return Status::OK(); }
};

enum class Opcode : uint8_t {
  kRead,
  kWrite,
  kWriteWithImm,
  kCompareSwap,
  kFetchAdd,
  kSend,
  kRecv,         ///< A SEND arrived.
  kRecvWithImm,  ///< A WRITE WITH IMMEDIATE arrived; its bytes are already in place.
};

enum class CompletionCode : uint8_t {
  kSuccess,
  kFlushed,            ///< The queue pair was already broken.
  kRemoteAccessError,  ///< Unknown key, out of bounds, no permission, or misaligned atomic.
  kLocalError,         ///< The local buffer is not within its region, or is too small for a SEND.
  kPeerGone,           ///< The peer died, closed, or did not answer in time.
  kReceiverNotReady,   ///< No receive was posted within the transport's retries.
};

const char* ToString(CompletionCode code);

struct Completion {
  uint64_t id = 0;  ///< The id of the work request.
  class QueuePair* queue_pair = nullptr;
  uint32_t bytes = 0;  ///< Received or written, for kRecv and kRecvWithImm; else of the request.
  uint32_t immediate = 0;
  Opcode opcode = Opcode::kRead;
  CompletionCode code = CompletionCode::kSuccess;
};

/// Receives completions. It is bounded: it holds as many as were asked for at creation.
class CompletionQueue {
 public:
  virtual ~CompletionQueue() = default;

  /// Takes up to `n` completions; never blocks.
  virtual int Poll(Completion* completions, int n) = 0;

  /// Blocks until a Poll may find something, `Wake` is called, or the timeout passes (TimedOut).
  virtual Status Wait(std::chrono::nanoseconds timeout) = 0;

  /// Ends one current or future Wait. Any thread.
  virtual void Wake() = 0;

  /// Whether Wait itself looks for completions for as long as that pays before it sleeps, so that
  /// its callers need not poll for a while first.
  virtual bool waits_awake() const { return false; }
};

/// Part of a local region.
struct LocalBuffer {
  char* data = nullptr;
  uint32_t size = 0;
  const MemoryRegion* region = nullptr;
};

/// Part of a peer's region.
struct RemoteBuffer {
  uint64_t address = 0;  ///< RemoteKey::address plus an offset.
  uint32_t key = 0;
};

enum PostFlags : uint8_t {
  kSignaled = 1,  ///< Report success. Failures are always reported.
  /// Another request of this queue pair follows at once: this one may wait for it. A batch ends
  /// with a request without kMore. Batched reads overlap their latencies on each backend.
  kMore = 2,
};

/// One end of a reliable connection. Its destruction takes its completions out of their queues.
class QueuePair {
 public:
  virtual ~QueuePair() = default;

  /// remote -> local.
  virtual Status PostRead(uint64_t id, LocalBuffer to, RemoteBuffer from, uint8_t flags) = 0;
  /// A hint: a read of these bytes is posted next, but for reads of other queue pairs. A backend
  /// that copies them itself may have them come near meanwhile.
  virtual void ExpectRead(RemoteBuffer /*from*/, uint32_t /*size*/) {}
  /// local -> remote.
  virtual Status PostWrite(uint64_t id, LocalBuffer from, RemoteBuffer to, uint8_t flags) = 0;
  /// A write that has ended when this returns, where this process can store to the peer's memory by
  /// itself: in the order of the requests that were posted before, but with no completion, and
  /// without counting against any bound. Answers how it ended; as after a request that failed, the
  /// queue pair is broken then. Nothing, and nothing was done, where writes have to be posted.
  virtual std::optional<CompletionCode> WriteNow(LocalBuffer /*from*/, RemoteBuffer /*to*/) {
    return std::nullopt;
  }
  /// As PostWrite (`from.size` may be 0); then consumes a receive of the peer, which sees
  /// `immediate`.
  virtual Status PostWriteWithImm(uint64_t id, LocalBuffer from, RemoteBuffer to,
                                  uint32_t immediate, uint8_t flags) = 0;
  /// The 8 bytes at `target` become `desired` if they were `expected`; what they were goes to
  /// `result` (8 bytes).
  virtual Status PostCompareSwap(uint64_t id, LocalBuffer result, RemoteBuffer target,
                                 uint64_t expected, uint64_t desired, uint8_t flags) = 0;
  virtual Status PostFetchAdd(uint64_t id, LocalBuffer result, RemoteBuffer target, uint64_t addend,
                              uint8_t flags) = 0;
  /// Into the buffer of the peer's oldest posted receive; at most `Device::kMaxSendBytes`.
  virtual Status PostSend(uint64_t id, LocalBuffer from, uint8_t flags) = 0;
  virtual Status PostRecv(uint64_t id, LocalBuffer to) = 0;

  /// Lets this process load `size` bytes of the peer's region from `from` on by itself, where both
  /// are on one machine or share a memory device. What is copied so counts as long as a read that
  /// is posted to this queue pair would succeed. May outlive the queue pair; it does not count
  /// then. `NotSupported` where the peer's memory cannot be loaded, `InvalidArgument` if the key
  /// names no such bytes.
  virtual Status Map(RemoteBuffer /*from*/, uint64_t /*size*/,
                     std::shared_ptr<const LoadableMemory>* /*memory*/) {
    return Status::NotSupported(peer() + ": its memory cannot be loaded from here");
  }

  /// True once a request failed or the peer is known to be gone. May lag behind the fact.
  virtual bool broken() const = 0;
  /// For a broken control connection: true if the peer has ended it, by destroying its end or by
  /// ending itself; false if it is unknown whether the peer lives. If true, a peer that lives has
  /// destroyed its end itself: no backend tells the peer of a connection that broke for want of
  /// answers before the queue pair is destroyed.
  virtual bool peer_hung_up() const = 0;
  /// Takes in what the system has heard from the peer by now, which the backend's own threads may
  /// be late to: broken and peer_hung_up tell it afterwards. A system call. `verbs` hears of a
  /// peer's end by its threads alone, and does nothing here.
  virtual void LookAtPeer() {}
  /// "shm:/run/n0.sock", for messages.
  virtual const std::string& peer() const = 0;
};

/// Traffic of a device since it was opened, in bytes of payload and in requests. Exact when no
/// request is outstanding.
struct TrafficCounters {
  uint64_t bytes_read = 0;     ///< Bytes read by this device's PostRead.
  uint64_t bytes_written = 0;  ///< Bytes written by this device's writes and sends.
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t peers_refused = 0;     ///< Peers without the secret, of another protocol, or silent.
  uint64_t frames_malformed = 0;  ///< Each of which ended a connection.
};

/// What a connection is to be; both ends get the same.
struct QueueDepths {
  int send = 256;    ///< Requests outstanding.
  int receive = 64;  ///< Receives posted.
  /// Says that it carries control messages: a device that encrypts ("tls" of tcp) encrypts this
  /// connection, and takes messages over such ones only. It also detects its peer's end: it breaks
  /// within about the time after which a peer is taken for dead, even if the peer's host has
  /// vanished and the connection carries nothing, provided that both its queues are polled or
  /// waited for.
  bool control = false;
};

/// A request to connect that a listener took up: accept it by `Listener::Accept`'s caller giving
/// it completion queues, or destroy it to refuse.
class IncomingConnection {
 public:
  virtual ~IncomingConnection() = default;
  /// What the connecting side passed; at most Device::kMaxPrivateData bytes.
  virtual const std::string& private_data() const = 0;
  /// What the connecting side asked for; the queue pair of this side gets the same.
  virtual QueueDepths depths() const = 0;
  /// What the connecting side has proven to know (rdma/secret_ring.h); never null. If that may not
  /// write, one-sided requests of the connecting side that change memory complete with
  /// kRemoteAccessError there, whatever key they name; those of this side are free.
  virtual std::shared_ptr<const Credential> credential() const = 0;
  /// Completes the connection. `reply` (same limit) is handed to the connecting side.
  virtual Status Accept(CompletionQueue* send_queue, CompletionQueue* receive_queue,
                        const std::string& reply, std::unique_ptr<QueuePair>* queue_pair) = 0;
  /// The connecting side gets `InvalidArgument` with `reason` (cut to kMaxReasonBytes).
  virtual void Reject(const std::string& reason) = 0;
};

class Listener {
 public:
  virtual ~Listener() = default;
  /// Waits for the next request; TimedOut when none came, ShutdownInProgress after Close.
  virtual Status Accept(std::chrono::nanoseconds timeout,
                        std::unique_ptr<IncomingConnection>* incoming) = 0;
  /// Ends a current Accept from another thread.
  virtual void Close() = 0;
  /// What peers pass to Connect (a port chosen by the system is filled in).
  virtual const std::string& address() const = 0;
};

/// One adapter of this process.
class Device {
 public:
  /// RDMA CM carries 56 bytes to the listener; the rest is the handshake's (rdma/handshake.h).
  static constexpr size_t kMaxPrivateData = 32;
  static constexpr size_t kMaxReasonBytes = 120;
  static constexpr size_t kMaxSendBytes = 4096;

  virtual ~Device() = default;

  /// Allocates and registers `size` bytes, page-aligned and zeroed, in huge pages where there are.
  /// `NoSpace` if the machine has not got them, `InvalidArgument` if `size` is 0.
  virtual Status AllocateRegion(size_t size, Access access,
                                std::unique_ptr<MemoryRegion>* region) = 0;
  /// Offset of a word in each region of MapRegion that is 0, until a process that moves the content
  /// of the file elsewhere sets it for good (and makes every processor see that before it copies).
  /// Requests under keys that were not revoked, since their owner was killed, then count as failed
  /// unless they were done before: the device looks at the word after each request.
  static constexpr size_t kMovedAwayAt = 4088;
  /// As AllocateRegion, but maps the first `size` bytes of the file `fd`, whose blocks are all
  /// allocated. The contents are the file's and stay there when the region is gone. The file must
  /// not shrink while this process or a peer has it mapped. The caller keeps `fd`. `IOError` if it
  /// cannot be mapped, `NotSupported` by a device whose memory cannot be a file's.
  virtual Status MapRegion(int /*fd*/, size_t /*size*/, Access /*access*/,
                           std::unique_ptr<MemoryRegion>* /*region*/) {
    return Status::NotSupported(std::string(scheme()) + ": memory of a file");
  }
  /// Registers memory of the caller's, which outlives the region, for local access.
  virtual Status RegisterLocal(char* data, size_t size, std::unique_ptr<MemoryRegion>* region) = 0;
  /// `capacity`: completions it can hold.
  virtual Status CreateCompletionQueue(int capacity, std::unique_ptr<CompletionQueue>* queue) = 0;
  virtual Status Listen(const std::string& address, std::unique_ptr<Listener>* listener) = 0;
  /// `Unavailable` if no process listens there (at once) or none answers by the deadline,
  /// `InvalidArgument` with the reason if the peer refused. Both ends get `depths`. `*reply`
  /// receives what the peer's Accept passed.
  virtual Status Connect(const std::string& address, const std::string& private_data,
                         QueueDepths depths, CompletionQueue* send_queue,
                         CompletionQueue* receive_queue, Deadline deadline, std::string* reply,
                         std::unique_ptr<QueuePair>* queue_pair) = 0;
  /// The device that connects to `address`: itself, or one of those it is made of. Regions that
  /// the peer there is to reach, and queues for connections to it alone, are that one's.
  virtual Device* ForPeer(const std::string& /*address*/) { return this; }
  /// Whether QueuePair::Map may succeed, so that a connection for it is worth making.
  virtual bool may_map() const { return false; }
  /// Whether the threads that post requests and poll move their bytes, because there is no adapter
  /// that does. Another thread can then do so for one that has other work.
  virtual bool callers_move_bytes() const { return false; }
  virtual TrafficCounters traffic() const = 0;
  /// "shm", "verbs", ...
  virtual const char* scheme() const = 0;
};

/// How a device is opened.
struct DeviceOptions {
  /// Parameters of the URI: "rtt_us" and "gbps" add the NIC model (rdma/nic_device.h); "map=0" of
  /// "shm", "cxl" and "embedded" refuses QueuePair::Map; the rest is the backend's.
  std::map<std::string, std::string> parameters{};
  /// Shared by all members of a pool. Both ends of a connection prove that they know it before
  /// anything else is said (rdma/handshake.h); empty: none is asked for, none is known.
  std::string secret{};
  /// Receives reports of refused peers, malformed frames and the like. May be null.
  std::shared_ptr<Logger> logger{};
  /// What counts instead of `secret` where there are several secrets (rdma/secret_ring.h): its
  /// owner may replace them at any time. May be null.
  std::shared_ptr<SecretRing> ring{};
};

/// The ring of the options, or one of their secret.
Status RingOf(const DeviceOptions& options, std::shared_ptr<SecretRing>* ring);

/// Opens the device for a URI scheme: "shm", "cxl", "tcp", "verbs", or "embedded" for peers all
/// in this process. `InvalidArgument` for an unknown scheme or parameter, `NotSupported` for a
/// scheme that this build lacks. `clock` outlives the device.
Status OpenDevice(const std::string& scheme, const DeviceOptions& options, Clock* clock,
                  std::unique_ptr<Device>* device);

}  // namespace nacre::rdma
