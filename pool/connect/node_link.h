#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nacre/status.h"
#include "pool/connect/client_context.h"
#include "pool/connect/node_pace.h"
#include "pool/connect/request_channel.h"
#include "pool/wire/messages.h"
#include "pool/wire/protocol.h"
#include "pool/wire/versions.h"
#include "rdma/transport.h"
#include "table/format/placement.h"
#include "util/clock.h"
#include "util/mutex.h"

namespace nacre::pool {

/// How long a connection attempt may take: a dead node must not hold its callers up as long as an
/// operation on a slow one may take.
inline constexpr std::chrono::milliseconds kConnectTimeout{5000};

/// The failure that a completion with `code` means to the caller.
Status StatusOfCompletion(const std::string& address, rdma::CompletionCode code);

/// One node of the pool as this client knows it: where it is, how its region is addressed, whether
/// it is there.
///
///     kUnconnected --> kUp <--> kDown --> kLost
///
/// The monitor thread of the client (node_monitor.h) makes all transitions save kUp -> kDown, which
/// any thread makes that sees a connection to the node end. A node comes back from kDown when the
/// same instance of it can be reached again, and still has what this client's databases have there.
///
/// Thread safety: all methods may be called from many threads at once.
class NodeLink {
 public:
  enum class State : uint8_t { kUnconnected, kUp, kDown, kLost };

  NodeLink(const ClientContext* context, NodeId id, std::string address)
      : context_(context), id_(id), address_(std::move(address)) {}

  NodeId id() const { return id_; }
  const std::string& address() const { return address_; }
  bool is_self() const { return id_ == context_->options.self; }

  /// Acquire: pairs with SetUp, so that the description may be read when this is kUp.
  State state() const { return state_.load(std::memory_order_acquire); }
  /// Whether the node has ended what it did for this client, or will once it notices: the lifeline
  /// has ended.
  bool cut_off() const {
    return state() == State::kLost || cut_off_.load(std::memory_order_acquire);
  }
  bool alive() const { return state_.load(std::memory_order_relaxed) <= State::kUp; }
  /// Alive, neither slow nor about to leave: what has a choice goes there.
  bool prompt() const { return alive() && !pace_.avoided(); }
  const NodePace& pace() const { return pace_; }
  NodePace* mutable_pace() { return &pace_; }

  // ---- The node's region. Set before the first kUp, then constant, except where the process that
  // ---- serves it has it: a node whose memory outlives it comes back with it elsewhere. A queue
  // ---- pair reaches one process. A caller that has one before it translates is never misled: one
  // ---- of an earlier process is dead, and one of a later one was made with its translation.

  uint64_t instance_id() const { return instance_id_.load(std::memory_order_relaxed); }
  uint32_t start_id() const {
    const Place* at = place();
    return at == nullptr ? 0 : at->start_id;
  }
  uint64_t region_bytes() const { return region_bytes_.load(std::memory_order_relaxed); }
  uint64_t slab_bytes() const { return slab_bytes_; }
  bool single_piece() const { return place()->pieces.size() == 1; }
  /// What the node speaks with this client, and which features it knows; 0 as long as it was never
  /// connected. Set by each lifeline.
  uint16_t protocol() const { return protocol_.load(std::memory_order_relaxed); }
  FeatureSet features() const { return features_.load(std::memory_order_relaxed); }
  /// The node's failure domain; empty: one of its own, or not known yet.
  std::string domain() const EXCLUDES(mutex_);

  /// The transport's name for the byte at `offset` (< region_bytes()); `*contiguous` bytes from
  /// there on belong to one registration.
  rdma::RemoteBuffer Translate(uint64_t offset, uint64_t* contiguous) const;

  // ---- The keys to write into slabs, by slab. Set with a lease, taken away before the return. --

  /// As Translate, to write there. False if this client has no key to the slab.
  bool TranslateWrite(uint64_t offset, rdma::RemoteBuffer* to, uint64_t* contiguous) const;
  /// What the node answered; `Corruption` if it makes no sense.
  Status SetWriteKeys(const control::Slabs& slabs);
  /// The keys that there were, one for each offset; 0 where there was none.
  control::Slabs TakeWriteKeys(const std::vector<uint64_t>& offsets);
  /// Those that were taken, save where there are others by now.
  void GiveBackWriteKeys(const control::Slabs& taken);

  // ---- State --------------------------------------------------------------------------------

  /// OK when the node is up; else `Unavailable`, naming it and saying why.
  Status CheckUp() const EXCLUDES(mutex_);
  /// A connection to the node ended or could not be made: takes it for down until the monitor has
  /// had a look at its lifeline.
  void Suspect(const Status& why) EXCLUDES(mutex_);
  /// By the monitor.
  void SetUp();
  void SetDown(const Status& why) EXCLUDES(mutex_);
  /// The lifeline has ended: kDown, and cut off until the next SetUp.
  void SetCutOff(const Status& why) EXCLUDES(mutex_);
  void SetLost(const Status& why) EXCLUDES(mutex_);
  /// Takes over what the node says of its region; `Corruption` if it makes no sense, `Unavailable`
  /// if it is another instance than before. The write keys of an earlier process are forgotten. By
  /// the monitor.
  Status SetDescription(const control::Description& description);
  void ExpectInstance(uint64_t instance_id) { instance_id_.store(instance_id); }

  // ---- Connections --------------------------------------------------------------------------

  /// A further connection of this client, on a queue of `device`, which is the client's or the one
  /// among those it is made of that leads to the node. `connection`: see Hello.
  Status Connect(rdma::Device* device, ConnectionKind kind, rdma::QueueDepths depths,
                 rdma::CompletionQueue* queue, Deadline deadline,
                 std::unique_ptr<rdma::QueuePair>* queue_pair, uint32_t connection = 0) const;
  /// The same for the client's lifeline. `*features_on`, if not null: features that are on in the
  /// pool, as far as the node has heard.
  Status ConnectLifeline(rdma::Device* device, rdma::QueueDepths depths,
                         rdma::CompletionQueue* queue, Deadline deadline,
                         std::unique_ptr<rdma::QueuePair>* queue_pair,
                         FeatureSet* features_on = nullptr);

  /// An idle request channel, or null. Give it back after use unless it broke.
  std::unique_ptr<RequestChannel> TakeIdleChannel() EXCLUDES(mutex_);
  /// The same, or a new one.
  Status TakeChannel(Deadline deadline, std::unique_ptr<RequestChannel>* channel) EXCLUDES(mutex_);
  void GiveChannel(std::unique_ptr<RequestChannel> channel) EXCLUDES(mutex_);
  void CloseChannels() EXCLUDES(mutex_);

 private:
  struct Piece {
    uint64_t address = 0;
    uint64_t length = 0;
    uint32_t key = 0;
  };
  /// Where a process has the region.
  struct Place {
    uint32_t start_id = 0;
    uint32_t piece_shift = 0;
    std::vector<Piece> pieces;
  };
  static constexpr size_t kMaxIdleChannels = 64;

  /// Marks a key that there is.
  static constexpr uint64_t kHasKey = uint64_t{1} << 32;

  /// Acquire: pairs with SetDescription, which has forgotten the keys of the place before.
  const Place* place() const { return place_.load(std::memory_order_acquire); }
  /// Fills in what all connections say, and has the node answer with a welcome.
  Status Greet(rdma::Device* device, Hello hello, rdma::QueueDepths depths,
               rdma::CompletionQueue* queue, Deadline deadline,
               std::unique_ptr<rdma::QueuePair>* queue_pair, Welcome* welcome) const;
  Status GreetOnce(rdma::Device* device, const Hello& hello, rdma::QueueDepths depths,
                   rdma::CompletionQueue* queue, Deadline deadline,
                   std::unique_ptr<rdma::QueuePair>* queue_pair, Welcome* welcome) const;
  void Leave(State to, const Status& why) EXCLUDES(mutex_);
  /// slab_count_ if no slab starts there.
  uint64_t SlabAt(uint64_t offset) const;

  const ClientContext* const context_;
  const NodeId id_;
  const std::string address_;
  std::atomic<State> state_{State::kUnconnected};
  std::atomic<bool> cut_off_{false};
  NodePace pace_;

  std::atomic<uint16_t> protocol_{0};
  std::atomic<FeatureSet> features_{0};
  std::atomic<uint64_t> instance_id_{0};
  std::atomic<uint64_t> region_bytes_{0};
  uint64_t slab_bytes_ = 0;
  uint64_t slab_area_ = 0;
  std::atomic<const Place*> place_{nullptr};
  /// One for each start of the node. All are kept, as one may still be in use.
  std::vector<std::unique_ptr<const Place>> places_;
  uint64_t slab_count_ = 0;
  /// kHasKey and the key, or 0. Each is a value of its own, so no order is needed: a thread that
  /// may write has heard of the lease from the thread that set the key.
  std::unique_ptr<std::atomic<uint64_t>[]> write_keys_;

  mutable Mutex mutex_;
  Status why_ GUARDED_BY(mutex_);  ///< Why it is kDown or kLost.
  std::string domain_ GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<RequestChannel>> idle_channels_ GUARDED_BY(mutex_);
};

}  // namespace nacre::pool
