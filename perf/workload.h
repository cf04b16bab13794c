#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "nacre/status.h"
#include "rdma/transport.h"
#include "util/clock.h"
#include "util/histogram.h"

namespace nacre::perf {

enum class Operation : uint8_t { kRead, kWrite, kCas, kSend };

/// "read", "write", "cas", "send"; false for anything else.
bool ParseOperation(const std::string& name, Operation* operation);

struct Workload {
  Operation operation = Operation::kRead;
  size_t size = 512;    ///< Bytes an operation moves; a cas moves 8.
  int depth = 1;        ///< Operations under way, by each thread.
  int batch = 1;        ///< How many are posted with one doorbell.
  int threads = 1;      ///< Each with a connection of its own.
  double seconds = 2;   ///< Time of measuring, after a tenth as much of warming up.
  bool random = false;  ///< Anywhere in the peer's region, else at its start.
};

struct Result {
  uint64_t operations = 0;
  double seconds = 0;
  /// Nanoseconds from the post to its completion seen; of a send, to the echo's arrival.
  Histogram latency;
};

/// Runs the workload against the peer (perf/peer.h) at `address`. `InvalidArgument` for a workload
/// that makes no sense or does not fit the peer's region, else the transport's failure.
Status Run(const Workload& workload, rdma::Device* device, const std::string& address, Clock* clock,
           Result* result);

}  // namespace nacre::perf
