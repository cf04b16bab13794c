#pragma once

#include <cstdint>
#include <string>

#include "tests/support/rdma/rdma_endpoint.h"

namespace nacre::rdma {

// Clients of the transport that both sides of the tests share.

/// Adds 1 to the target, `count` times, each waited for; by fetch-and-add or by compare-and-swap.
Status AddTo(Endpoint* endpoint, QueuePair* queue_pair, LocalBuffer result, RemoteBuffer target,
             int count, bool by_swap);

/// Sends each of `count` messages back. One receive is posted already, at the region's beginning.
Status Echo(Endpoint* endpoint, QueuePair* queue_pair, int count, int region);

// The request scheme of design.md, section 3, at its smallest. A request is one SEND; its reply
// comes by WRITE into a buffer that the requester named, whose last byte it polls. A requester
// that sleeps meanwhile is woken by WRITE WITH IMMEDIATE. An argument too large for a SEND stays in
// the requester's memory and is fetched by READ. The example's service is to add up bytes.

struct SumRequest {
  uint64_t reply_address = 0;     ///< Address of a SumReply.
  uint64_t argument_address = 0;  ///< If the bytes do not follow this request.
  uint64_t argument_size = 0;
  uint32_t key = 0;   ///< Key of the region that holds both.
  uint32_t wake = 0;  ///< Nonzero: sleep; the immediate to wake with.
};

struct SumReply {
  uint64_t sum = 0;
  uint64_t done = 0;  ///< Last, hence visible last.
};

/// Serves `count` requests; receives and replies are kept in `region`.
Status ServeRequests(Endpoint* endpoint, QueuePair* queue_pair, int count, int region);

}  // namespace nacre::rdma
