#include "rdma/mixed_device.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>
#include <utility>

namespace nacre::rdma {

namespace {

using std::chrono::nanoseconds;

class MixedRegion final : public MemoryRegion {
 public:
  /// One a device, all of the same memory; that of `owner` owns it.
  MixedRegion(std::vector<std::unique_ptr<MemoryRegion>> parts, size_t owner)
      : parts_(std::move(parts)), owner_(owner) {}
  ~MixedRegion() override {
    // The memory goes last.
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (i != owner_) parts_[i].reset();
    }
  }

  char* data() const override { return parts_[owner_]->data(); }
  size_t size() const override { return parts_[owner_]->size(); }
  RemoteKey remote_key() const override { return parts_[owner_]->remote_key(); }
  Status Grant(size_t /*offset*/, size_t /*size*/, Access /*access*/,
               std::unique_ptr<RegionGrant>* /*grant*/) override {
    return Status::InvalidArgument("a region of several transports is local");
  }
  Status Populate() override { return parts_[owner_]->Populate(); }

  const MemoryRegion* part(size_t device) const { return parts_[device].get(); }

 private:
  std::vector<std::unique_ptr<MemoryRegion>> parts_;
  const size_t owner_;
};

class MixedCompletionQueue final : public CompletionQueue {
 public:
  MixedCompletionQueue(std::vector<std::unique_ptr<CompletionQueue>> parts, Clock* clock)
      : parts_(std::move(parts)), users_(parts_.size(), 0), clock_(clock) {}

  CompletionQueue* part(size_t device) const { return parts_[device].get(); }

  void Attach(size_t device, const QueuePair* inner, QueuePair* outer) {
    outer_of_[inner] = outer;
    ++users_[device];
  }
  void Detach(size_t device, const QueuePair* inner) {
    outer_of_.erase(inner);
    --users_[device];
  }

  int Poll(Completion* completions, int n) override {
    int taken = 0;
    for (size_t turn = 0; turn < parts_.size() && taken < n; ++turn) {
      const size_t device = (first_ + turn) % parts_.size();
      if (users_[device] == 0) continue;
      const int more = parts_[device]->Poll(completions + taken, n - taken);
      for (int i = taken; i < taken + more; ++i) {
        completions[i].queue_pair = outer_of_.at(completions[i].queue_pair);
      }
      taken += more;
    }
    first_ = (first_ + 1) % parts_.size();
    return taken;
  }

  Status Wait(nanoseconds timeout) override {
    const auto in_use = std::count_if(users_.begin(), users_.end(), [](int n) { return n > 0; });
    if (in_use <= 1) {
      const auto only = std::find_if(users_.begin(), users_.end(), [](int n) { return n > 0; });
      const size_t device = in_use == 0 ? 0 : static_cast<size_t>(only - users_.begin());
      return parts_[device]->Wait(timeout);
    }
    constexpr nanoseconds kTurn = std::chrono::milliseconds(2);
    const Deadline deadline = Deadline::After(clock_, timeout);
    while (true) {
      for (size_t device = 0; device < parts_.size(); ++device) {
        if (users_[device] == 0) continue;
        const Status status =
            parts_[device]->Wait(std::min<nanoseconds>(kTurn, deadline.Remaining()));
        if (!status.IsTimedOut()) return status;
      }
      if (deadline.Expired()) return Status::TimedOut("no completion");
    }
  }

  /// Whichever part a Wait is at, or comes to.
  void Wake() override {
    for (const auto& part : parts_) part->Wake();
  }

 private:
  const std::vector<std::unique_ptr<CompletionQueue>> parts_;  ///< One a device.
  std::vector<int>
      users_;  ///< For each device, queue pairs, counted once for every queue they use.
  std::unordered_map<const QueuePair*, QueuePair*> outer_of_;
  Clock* const clock_;
  size_t first_ = 0;  ///< Poll begins here, so that no queue is left out for long.
};

class MixedQueuePair final : public QueuePair {
 public:
  MixedQueuePair(std::unique_ptr<QueuePair> inner, size_t device, MixedCompletionQueue* sends,
                 MixedCompletionQueue* receives)
      : inner_(std::move(inner)), device_(device), sends_(sends), receives_(receives) {
    sends_->Attach(device_, inner_.get(), this);
    if (receives_ != sends_) receives_->Attach(device_, inner_.get(), this);
  }
  ~MixedQueuePair() override {
    // No thread polls meanwhile, and inner_ takes its completions along.
    sends_->Detach(device_, inner_.get());
    if (receives_ != sends_) receives_->Detach(device_, inner_.get());
  }

  Status PostRead(uint64_t id, LocalBuffer to, RemoteBuffer from, uint8_t flags) override {
    return inner_->PostRead(id, Inner(to), from, flags);
  }
  Status PostWrite(uint64_t id, LocalBuffer from, RemoteBuffer to, uint8_t flags) override {
    return inner_->PostWrite(id, Inner(from), to, flags);
  }
  Status PostWriteWithImm(uint64_t id, LocalBuffer from, RemoteBuffer to, uint32_t immediate,
                          uint8_t flags) override {
    return inner_->PostWriteWithImm(id, Inner(from), to, immediate, flags);
  }
  Status PostCompareSwap(uint64_t id, LocalBuffer result, RemoteBuffer target, uint64_t expected,
                         uint64_t desired, uint8_t flags) override {
    return inner_->PostCompareSwap(id, Inner(result), target, expected, desired, flags);
  }
  Status PostFetchAdd(uint64_t id, LocalBuffer result, RemoteBuffer target, uint64_t addend,
                      uint8_t flags) override {
    return inner_->PostFetchAdd(id, Inner(result), target, addend, flags);
  }
  Status PostSend(uint64_t id, LocalBuffer from, uint8_t flags) override {
    return inner_->PostSend(id, Inner(from), flags);
  }
  Status PostRecv(uint64_t id, LocalBuffer to) override { return inner_->PostRecv(id, Inner(to)); }
  bool broken() const override { return inner_->broken(); }
  bool peer_hung_up() const override { return inner_->peer_hung_up(); }
  void LookAtPeer() override { inner_->LookAtPeer(); }
  const std::string& peer() const override { return inner_->peer(); }

 private:
  LocalBuffer Inner(LocalBuffer buffer) const {
    if (buffer.region != nullptr) {
      // All regions of a caller that meets the contract are this device's.
      buffer.region = static_cast<const MixedRegion*>(buffer.region)->part(device_);
    }
    return buffer;
  }

  const std::unique_ptr<QueuePair> inner_;
  const size_t device_;
  MixedCompletionQueue* const sends_;
  MixedCompletionQueue* const receives_;
};

class MixedDevice final : public Device {
 public:
  MixedDevice(std::vector<std::unique_ptr<Device>> devices, Clock* clock)
      : devices_(std::move(devices)), clock_(clock) {}

  Status AllocateRegion(size_t size, Access access,
                        std::unique_ptr<MemoryRegion>* region) override {
    if (access != Access::kLocalOnly) {
      return Status::InvalidArgument("a region of several transports is local");
    }
    std::vector<std::unique_ptr<MemoryRegion>> parts(devices_.size());
    NACRE_RETURN_IF_ERROR(devices_[0]->AllocateRegion(size, access, &parts[0]));
    for (size_t i = 1; i < devices_.size(); ++i) {
      NACRE_RETURN_IF_ERROR(devices_[i]->RegisterLocal(parts[0]->data(), size, &parts[i]));
    }
    *region = std::make_unique<MixedRegion>(std::move(parts), 0);
    return Status::OK();
  }

  Status RegisterLocal(char* data, size_t size, std::unique_ptr<MemoryRegion>* region) override {
    std::vector<std::unique_ptr<MemoryRegion>> parts(devices_.size());
    for (size_t i = 0; i < devices_.size(); ++i) {
      NACRE_RETURN_IF_ERROR(devices_[i]->RegisterLocal(data, size, &parts[i]));
    }
    *region = std::make_unique<MixedRegion>(std::move(parts), 0);
    return Status::OK();
  }

  Status CreateCompletionQueue(int capacity, std::unique_ptr<CompletionQueue>* queue) override {
    std::vector<std::unique_ptr<CompletionQueue>> parts(devices_.size());
    for (size_t i = 0; i < devices_.size(); ++i) {
      NACRE_RETURN_IF_ERROR(devices_[i]->CreateCompletionQueue(capacity, &parts[i]));
    }
    *queue = std::make_unique<MixedCompletionQueue>(std::move(parts), clock_);
    return Status::OK();
  }

  Status Listen(const std::string& address, std::unique_ptr<Listener>* /*listener*/) override {
    return Status::NotSupported(address + ": one listens over one transport at a time");
  }

  Status Connect(const std::string& address, const std::string& private_data, QueueDepths depths,
                 CompletionQueue* send_queue, CompletionQueue* receive_queue, Deadline deadline,
                 std::string* reply, std::unique_ptr<QueuePair>* queue_pair) override {
    const size_t device = IndexOf(address);
    if (device == devices_.size()) {
      return Status::InvalidArgument(address + ": names none of this device's transports");
    }
    auto* const sends = static_cast<MixedCompletionQueue*>(send_queue);
    auto* const receives = static_cast<MixedCompletionQueue*>(receive_queue);
    std::unique_ptr<QueuePair> inner;
    NACRE_RETURN_IF_ERROR(devices_[device]->Connect(address, private_data, depths,
                                                    sends->part(device), receives->part(device),
                                                    deadline, reply, &inner));
    *queue_pair = std::make_unique<MixedQueuePair>(std::move(inner), device, sends, receives);
    return Status::OK();
  }

  Device* ForPeer(const std::string& address) override {
    const size_t device = IndexOf(address);
    return device == devices_.size() ? this : devices_[device].get();
  }

  bool callers_move_bytes() const override {
    return std::any_of(devices_.begin(), devices_.end(),
                       [](const auto& device) { return device->callers_move_bytes(); });
  }
  TrafficCounters traffic() const override {
    TrafficCounters sum;
    for (const auto& device : devices_) {
      const TrafficCounters part = device->traffic();
      sum.bytes_read += part.bytes_read;
      sum.bytes_written += part.bytes_written;
      sum.reads += part.reads;
      sum.writes += part.writes;
      sum.peers_refused += part.peers_refused;
      sum.frames_malformed += part.frames_malformed;
    }
    return sum;
  }
  const char* scheme() const override { return "mixed"; }

 private:
  /// The index of the device whose scheme `address` begins with; the number of devices if there is
  /// none.
  size_t IndexOf(const std::string& address) const {
    size_t i = 0;
    while (i < devices_.size() && !address.starts_with(devices_[i]->scheme() + std::string(":"))) {
      ++i;
    }
    return i;
  }

  const std::vector<std::unique_ptr<Device>> devices_;
  Clock* const clock_;
};

}  // namespace

Status OpenMixedDevice(const std::vector<std::string>& schemes, const DeviceOptions& options,
                       Clock* clock, std::unique_ptr<Device>* device) {
  if (schemes.empty()) return Status::InvalidArgument("a device over no transport");
  std::vector<std::unique_ptr<Device>> devices;
  for (const auto& [name, value] : options.parameters) {
    const size_t dot = name.find('.');
    if (dot == std::string::npos) continue;
    if (std::find(schemes.begin(), schemes.end(), name.substr(0, dot)) == schemes.end()) {
      return Status::InvalidArgument("transport parameter '" + name + "': no node is reached so");
    }
  }
  for (const std::string& scheme : schemes) {
    DeviceOptions part = options;
    part.parameters.clear();
    for (const auto& [name, value] : options.parameters) {
      const size_t dot = name.find('.');
      if (dot == std::string::npos) {
        part.parameters[name] = value;
      } else if (name.substr(0, dot) == scheme) {
        part.parameters[name.substr(dot + 1)] = value;
      }
    }
    NACRE_RETURN_IF_ERROR(
        OpenDevice(scheme, part, clock, &devices.emplace_back()).WithContext(scheme));
  }
  *device = std::make_unique<MixedDevice>(std::move(devices), clock);
  return Status::OK();
}

}  // namespace nacre::rdma
