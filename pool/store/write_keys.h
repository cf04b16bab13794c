#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "pool/connect/node_link.h"
#include "rdma/transport.h"
#include "table/format/placement.h"

namespace nacre::pool {

/// The keys with which one job writes to other nodes. They were granted for this job alone and end
/// with it, so a job that was given up cannot write under keys that its node has for another one.
///
/// Thread safety: none while keys are added; afterwards all methods may be called from many
/// threads at once.
class WriteKeys {
 public:
  void Add(const ExtentAddr& extent, uint32_t key);
  /// As NodeLink::TranslateWrite. False if the job has no key to write there.
  bool Translate(const NodeLink& link, uint64_t offset, rdma::RemoteBuffer* to,
                 uint64_t* contiguous) const;

 private:
  struct Range {
    uint64_t end = 0;
    uint32_t key = 0;
  };

  std::map<std::pair<NodeId, uint64_t>, Range> ranges_;  ///< Keyed by node and first byte.
};

}  // namespace nacre::pool
