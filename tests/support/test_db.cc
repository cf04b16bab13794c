#include "tests/support/test_db.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <utility>

#include "pool/reports.h"
#include "pool/wire/node_stats.h"
#include "tests/support/status_assert.h"
#include "util/clock.h"

namespace nacre {

std::shared_ptr<pool::PoolImpl> OpenTestPool(const TestPoolOptions& options) {
  return ConnectTestPool("embedded:?nodes=" + std::to_string(options.nodes) + "&size=" +
                             std::to_string(options.node_bytes) + (options.map ? "" : "&map=0"),
                         options);
}

std::shared_ptr<pool::PoolImpl> ConnectTestPool(const std::string& uri,
                                                const TestPoolOptions& options) {
  pool::PoolOpenOptions open;
  open.operation_timeout = options.operation_timeout;
  open.slab_bytes = options.slab_bytes;
  open.node_domains = options.domains;
  open.pool.info_log = options.log;
  open.protocol = options.protocol;
  open.pool.slow_node_patience_max = options.slow_node_patience_max;
  std::shared_ptr<pool::PoolImpl> pool;
  const Status status = pool::OpenPool(uri, open, options.clock, &pool);
  EXPECT_TRUE(status.ok()) << uri << ": " << status.ToString();
  return status.ok() ? pool : nullptr;
}

Options SmallTableOptions(std::shared_ptr<Pool> pool) {
  Options options;
  options.pool = std::move(pool);
  options.create_if_missing = true;
  options.write_buffer_size = 512 << 10;
  options.max_write_buffer_number = 3;
  options.level0_file_num_compaction_trigger = 2;
  options.level0_slowdown_writes_trigger = 8;
  options.level0_stop_writes_trigger = 12;
  options.target_file_size_base = 64 << 10;
  options.max_bytes_for_level_base = 256 << 10;
  options.max_bytes_for_level_multiplier = 4;
  options.max_background_jobs = 3;
  options.slab_size = 1 << 20;
  options.chunk_size = 8 << 10;
  // A scrub would keep the space of dropped tables for a while, at unforeseeable moments.
  options.scrub_bytes_per_second = 0;
  return options;
}

WriteOptions NoLog() {
  WriteOptions options;
  options.disable_wal = true;
  return options;
}

uint64_t SumOverNodes(pool::PoolImpl* pool, uint64_t pool::NodeStats::*number) {
  uint64_t sum = 0;
  for (int node = 0; node < pool->client()->node_count(); ++node) {
    pool::NodeStats stats;
    EXPECT_TRUE(IsOk(pool::GetStats(pool->client(), static_cast<NodeId>(node), &stats)));
    sum += stats.*number;
  }
  return sum;
}

std::string GetTextProperty(DB* db, const std::string& name) {
  std::string text;
  return db->GetProperty(name, &text) ? text : std::string();
}

uint64_t GetNumber(DB* db, const std::string& name) {
  uint64_t number = 0;
  EXPECT_TRUE(db->GetIntProperty(name, &number)) << name;
  return number;
}

std::string TestValue(uint64_t seed, size_t size) {
  std::string value(size, '\0');
  uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;
  size_t at = 0;
  for (; at + sizeof(state) <= size; at += sizeof(state)) {
    state = state * 6364136223846793005 + 1442695040888963407;
    std::memcpy(value.data() + at, &state, sizeof(state));
  }
  for (; at < size; ++at) value[at] = static_cast<char>(state >> (at % 8 * 8));
  return value;
}

bool Eventually(const std::function<bool()>& done) {
  const Deadline deadline = Deadline::After(Clock::System(), std::chrono::seconds(60));
  while (!done()) {
    if (deadline.Expired()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace nacre
