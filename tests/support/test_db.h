#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "nacre/options.h"
#include "pool/pool_impl.h"
#include "pool/wire/node_stats.h"
#include "util/clock.h"

namespace nacre {

struct TestPoolOptions {
  int nodes = 4;
  uint64_t node_bytes = 256 << 20;
  uint64_t slab_bytes = 1 << 20;
  std::chrono::milliseconds operation_timeout{10'000};
  /// 0: no node counts as slow, however busy the machine.
  std::chrono::milliseconds slow_node_patience_max = PoolOptions().slow_node_patience_max;
  std::vector<std::string> domains{};  ///< Domains of the nodes.
  std::shared_ptr<Logger> log{};       ///< The pool's log.
  Clock* clock = Clock::System();      ///< Outlives the pool.
  pool::ProtocolSupport protocol{};    ///< What the client speaks and knows.
  bool map = true;                     ///< The nodes' memory is loaded, instead of being read.
};

/// An embedded pool with slabs so small that many are leased and returned. Fails the test and
/// answers null if it cannot be opened.
std::shared_ptr<pool::PoolImpl> OpenTestPool(const TestPoolOptions& options = {});

/// The same for nodes that run elsewhere; `nodes` and `node_bytes` are not used.
std::shared_ptr<pool::PoolImpl> ConnectTestPool(const std::string& uri,
                                                const TestPoolOptions& options = {});

/// Options under which a few megabytes make many tables in several levels.
Options SmallTableOptions(std::shared_ptr<Pool> pool);

/// With the log off, as everywhere until there is one.
WriteOptions NoLog();

/// Sums over all nodes of the pool. A node that does not answer fails the test.
uint64_t SumOverNodes(pool::PoolImpl* pool, uint64_t pool::NodeStats::*number);

/// "" for a property that is not there.
std::string GetTextProperty(DB* db, const std::string& name);
/// Fails the test for a property that is not there.
uint64_t GetNumber(DB* db, const std::string& name);

/// Whether `done` came true before a time far beyond what it takes.
bool Eventually(const std::function<bool()>& done);

/// `size` bytes that depend on `seed` and differ from one position to the next.
std::string TestValue(uint64_t seed, size_t size);

}  // namespace nacre
