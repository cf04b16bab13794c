#pragma once

#include <atomic>
#include <cstdint>

#include "rdma/transport.h"

namespace nacre::rdma {

/// The traffic of a device. Any thread adds, any thread reads; nothing is ordered by it.
struct TcpCounters {
  std::atomic<uint64_t> bytes_read{0};
  std::atomic<uint64_t> bytes_written{0};
  std::atomic<uint64_t> reads{0};
  std::atomic<uint64_t> writes{0};

  TrafficCounters Read() const {
    return {.bytes_read = bytes_read.load(std::memory_order_relaxed),
            .bytes_written = bytes_written.load(std::memory_order_relaxed),
            .reads = reads.load(std::memory_order_relaxed),
            .writes = writes.load(std::memory_order_relaxed)};
  }
};

}  // namespace nacre::rdma
