#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rdma/transport.h"
#include "util/clock.h"

namespace nacre::rdma {

// The common part of the decorators: a device that wraps another one and decides, request by
// request, when it completes and whether it takes place at all. It meets the contract over any
// backend that does; regions are the wrapped device's own.

inline constexpr uint64_t kNever = ~uint64_t{0};

/// What becomes of a request.
struct Verdict {
  enum class Action : uint8_t {
    kPass,          ///< Carried out.
    kFail,          ///< The request is not carried out and completes with `code`.
    kLose,          ///< The request is not carried out, and nothing comes back.
    kLoseResponse,  ///< Carried out, but nothing comes back.
  };
  Action action = Action::kPass;
  CompletionCode code = CompletionCode::kPeerGone;
  /// The request does not complete before this time of the device's clock. A lost one is given up
  /// then with kPeerGone.
  uint64_t due_nanos = 0;
};

/// What a decorator decides. Thread safety: called from all threads that use the device.
class Interposer {
 public:
  virtual ~Interposer() = default;
  /// Called before a request is posted to the wrapped device, which may still answer Busy.
  virtual Verdict BeforePost(const std::string& peer) = 0;
  /// Called after that; returns when the completion is due at the earliest.
  virtual uint64_t AfterPost(const std::string& peer, Opcode opcode, uint64_t bytes) = 0;
  /// A message has arrived: when its receive completes at the earliest.
  virtual uint64_t OnArrival() = 0;
  /// While true, messages of this peer do not arrive, and connecting to it meets silence.
  virtual bool Blocks(const std::string& peer) = 0;
};

class InterposedDevice : public Device {
 public:
  /// `clock` outlives the device; so does `interposer`, which a subclass may keep.
  InterposedDevice(std::unique_ptr<Device> inner, std::shared_ptr<Interposer> interposer,
                   Clock* clock);

  Status AllocateRegion(size_t size, Access access, std::unique_ptr<MemoryRegion>* region) override;
  Status MapRegion(int fd, size_t size, Access access,
                   std::unique_ptr<MemoryRegion>* region) override;
  Status RegisterLocal(char* data, size_t size, std::unique_ptr<MemoryRegion>* region) override;
  Status CreateCompletionQueue(int capacity, std::unique_ptr<CompletionQueue>* queue) override;
  Status Listen(const std::string& address, std::unique_ptr<Listener>* listener) override;
  Status Connect(const std::string& address, const std::string& private_data, QueueDepths depths,
                 CompletionQueue* send_queue, CompletionQueue* receive_queue, Deadline deadline,
                 std::string* reply, std::unique_ptr<QueuePair>* queue_pair) override;
  bool callers_move_bytes() const override { return inner_->callers_move_bytes(); }
  TrafficCounters traffic() const override { return inner_->traffic(); }
  const char* scheme() const override { return inner_->scheme(); }

 private:
  const std::unique_ptr<Device> inner_;
  const std::shared_ptr<Interposer> interposer_;
  Clock* const clock_;
};

}  // namespace nacre::rdma
