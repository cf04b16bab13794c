#include "tests/support/sim_transport/device.h"

#include <sys/mman.h>

#include <string_view>
#include <utility>

#include "rdma/queue_depths.h"
#include "tests/support/sim_transport/listener.h"
#include "tests/support/sim_transport/queue_pair.h"

namespace nacre::rdma {

namespace {

constexpr std::string_view kScheme = "sim:";
constexpr size_t kMaxNameBytes = 64;
/// Simulated machines are small.
constexpr size_t kMaxRegionBytes = size_t{1} << 34;

Status CheckPrivateData(const std::string& data) {
  if (data.size() <= Device::kMaxPrivateData) return Status::OK();
  return Status::InvalidArgument("private data of " + std::to_string(data.size()) +
                                 " bytes; at most " + std::to_string(Device::kMaxPrivateData) +
                                 " are possible");
}

Status ParseName(const std::string& address, std::string* name) {
  *name = address.starts_with(kScheme) ? address.substr(kScheme.size()) : address;
  if (!name->empty() && name->size() <= kMaxNameBytes) return Status::OK();
  return Status::InvalidArgument("address '" + address + "': a name of 1 to " +
                                 std::to_string(kMaxNameBytes) + " bytes is expected");
}

}  // namespace

SimDevice::SimDevice(SimNetwork* network, SimHost host, std::string secret)
    : network_(network),
      host_(host),
      secret_(std::move(secret)),
      keys_(std::make_shared<SimKeys>()) {
  network_->AddKeys(host_, keys_);
}

Status SimDevice::Open(const DeviceOptions& options, std::unique_ptr<Device>* device) {
  SimNetwork* const network = SimNetwork::Current();
  if (network == nullptr) return Status::NotSupported("'sim' exists in simulations only");
  if (!options.parameters.empty()) {
    return Status::InvalidArgument("unknown transport parameter '" +
                                   options.parameters.begin()->first + "'");
  }
  device->reset(new SimDevice(network, network->simulation()->process(), options.secret));
  return Status::OK();
}

Status SimDevice::AllocateRegion(size_t size, Access access,
                                 std::unique_ptr<MemoryRegion>* region) {
  if (size == 0) return Status::InvalidArgument("a region of 0 bytes");
  void* const data = size > kMaxRegionBytes
                         ? MAP_FAILED
                         : ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    return Status::NoSpace("a region of " + std::to_string(size) +
                           " bytes exceeds the memory of the machine");
  }
  *region = std::make_unique<SimRegion>(keys_, static_cast<char*>(data), size, access,
                                        /*owned=*/true);
  return Status::OK();
}

Status SimDevice::RegisterLocal(char* data, size_t size, std::unique_ptr<MemoryRegion>* region) {
  if (size == 0) return Status::InvalidArgument("a region of 0 bytes");
  *region = std::make_unique<SimRegion>(keys_, data, size, Access::kLocalOnly, /*owned=*/false);
  return Status::OK();
}

Status SimDevice::CreateCompletionQueue(int capacity, std::unique_ptr<CompletionQueue>* queue) {
  if (capacity < 1) {
    return Status::InvalidArgument("a completion queue for " + std::to_string(capacity) +
                                   " completions");
  }
  *queue = std::make_unique<SimCompletionQueue>(network_->simulation(), capacity);
  return Status::OK();
}

Status SimDevice::Listen(const std::string& address, std::unique_ptr<Listener>* listener) {
  std::string name;
  NACRE_RETURN_IF_ERROR(ParseName(address, &name));
  if (name == "@") name = network_->NewAddress();
  auto state = std::make_shared<SimListenerState>();
  state->host = host_;
  state->secret = secret_;
  if (!network_->AddListener(name, state)) {
    return Status::Busy("sim:" + name + ": another listener is there already");
  }
  *listener = std::make_unique<SimListener>(network_, std::move(name), std::move(state), keys_);
  return Status::OK();
}

Status SimDevice::Connect(const std::string& address, const std::string& private_data,
                          QueueDepths depths, CompletionQueue* send_queue,
                          CompletionQueue* receive_queue, Deadline deadline, std::string* reply,
                          std::unique_ptr<QueuePair>* queue_pair) {
  std::string name;
  NACRE_RETURN_IF_ERROR(ParseName(address, &name));
  NACRE_RETURN_IF_ERROR(CheckPrivateData(private_data));
  NACRE_RETURN_IF_ERROR(CheckDepths(depths));
  Simulation* const simulation = network_->simulation();
  const std::string peer = std::string(kScheme) + name;

  auto call = std::make_shared<SimCall>();
  call->host = host_;
  call->caller = "sim:" + std::to_string(host_);
  call->private_data = private_data;
  call->secret = secret_;
  call->keys = keys_;
  call->depths = depths;
  network_->Call(name, call);
  while (call->state == SimCall::State::kWaiting && !deadline.Expired()) {
    simulation->Park(call.get(), deadline.Remaining(), "an answer to a call");
  }
  if (call->state == SimCall::State::kRefused) return call->refusal;
  if (call->state == SimCall::State::kWaiting) {
    call->abandoned = true;
    if (call->connection != nullptr) call->connection->ends[0]->Detach();
    return Status::Unavailable(peer + ": no answer");
  }
  *reply = call->reply;
  *queue_pair = std::make_unique<SimQueuePair>(call->connection, call->connection->ends[0],
                                               static_cast<SimCompletionQueue*>(send_queue),
                                               static_cast<SimCompletionQueue*>(receive_queue));
  call->connection.reset();
  return Status::OK();
}

TrafficCounters SimDevice::traffic() const { return keys_->traffic; }

}  // namespace nacre::rdma
