#pragma once

#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "nacre/status.h"

namespace nacre::rdma {

/// Deletes what libibverbs made. The result of the call is dropped: it fails only for what still
/// has users, which is a bug of the owner's order.
template <auto kDestroy>
struct VerbsDelete {
  template <typename Object>
  void operator()(Object* object) const {
    [[maybe_unused]] const int result = kDestroy(object);
  }
};
using UniqueContext = std::unique_ptr<ibv_context, VerbsDelete<ibv_close_device>>;
using UniqueProtectionDomain = std::unique_ptr<ibv_pd, VerbsDelete<ibv_dealloc_pd>>;
using UniqueMemoryRegion = std::unique_ptr<ibv_mr, VerbsDelete<ibv_dereg_mr>>;
using UniqueCompletionChannel =
    std::unique_ptr<ibv_comp_channel, VerbsDelete<ibv_destroy_comp_channel>>;
using UniqueCompletionQueue = std::unique_ptr<ibv_cq, VerbsDelete<ibv_destroy_cq>>;
using UniqueQueuePair = std::unique_ptr<ibv_qp, VerbsDelete<ibv_destroy_qp>>;

/// "ibv_create_qp on rxe0: Cannot allocate memory": what libibverbs and librdmacm refuse.
Status VerbsError(const std::string& what, int error);

/// Parameters of a pool's URI. "device=mlx5_0", "port=1", "gid=3": see Adapter; "timeout_ms=5000":
/// after about this time without an answer a peer is taken for dead; "piece_mib=1024": regions are
/// registered in pieces of at most so much, a power of two (0: as large as the device takes);
/// "relaxed_ordering=1": lets the bus reorder what peers write, which is faster on some machines
/// but breaks the contract's order of writes, so only for regions that are not polled.
struct VerbsParameters {
  std::string device{};
  int port = 0;  ///< 0: the first that is active.
  int gid = -1;  ///< -1: the connection manager's choice for the address.
  std::chrono::milliseconds timeout{5000};
  uint64_t piece_bytes = 0;
  bool relaxed_ordering = false;
};

/// `InvalidArgument` naming the culprit for a parameter that is unknown or malformed.
Status ParseVerbsParameters(const std::map<std::string, std::string>& parameters,
                            VerbsParameters* parsed);

/// An RDMA device of this machine, opened. Immutable.
///
/// Without `device` it is the first that has an active port. The GID, hence RoCE v1 or v2, is
/// chosen per connection by the kernel's connection manager: the one of the local address that
/// routes to the peer, in the device's default RoCE mode, which is v2 wherever the device can do it
/// (an administrator's choice, /sys/kernel/config/rdma_cm). A number compiled in, or the first
/// entry of the table, is wrong on the next machine.
class Adapter {
 public:
  /// `Unavailable` saying what was looked for, what was found, and the remedy; `InvalidArgument`
  /// for a GID index that the port has not got.
  static Status Open(const VerbsParameters& parameters, std::unique_ptr<Adapter>* adapter);

  ibv_context* context() const { return context_.get(); }
  ibv_pd* protection_domain() const { return protection_domain_.get(); }
  const VerbsParameters& parameters() const { return parameters_; }
  const ibv_device_attr& attributes() const { return attributes_; }
  const std::string& name() const { return name_; }
  uint8_t port() const { return port_; }
  /// Whether the kernel plays the adapter on the processors of those that post (soft-RoCE).
  bool is_software() const { return attributes_.vendor_id == kSoftRoceVendor; }
  bool has_atomics() const { return attributes_.atomic_cap != IBV_ATOMIC_NONE; }
  /// Largest message: a longer read or write takes several work requests.
  uint32_t max_message_bytes() const { return max_message_bytes_; }
  /// Asks the system. While the port is down nothing should be sent through the connection manager:
  /// soft-RoCE's then stays mute after the port has come up again.
  bool PortIsActive() const;
  /// Finds an entry of the port's table. False if there is no such entry.
  bool FindGid(int index, ibv_gid_entry* entry) const;

 private:
  static constexpr uint32_t kSoftRoceVendor = 0xffffff;  ///< RXE_VENDOR_ID in the kernel.

  Adapter() = default;
  static Status OpenPort(ibv_device* device, const VerbsParameters& parameters, Adapter* adapter);

  VerbsParameters parameters_;
  std::string name_;
  UniqueContext context_;
  UniqueProtectionDomain protection_domain_;
  ibv_device_attr attributes_{};
  uint32_t max_message_bytes_ = 0;
  uint8_t port_ = 0;
};

/// "RoCE v2", "RoCE v1", "InfiniBand", for messages.
const char* GidTypeName(const ibv_gid_entry& entry);

}  // namespace nacre::rdma
