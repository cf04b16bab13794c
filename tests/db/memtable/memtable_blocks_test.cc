// Goal: blocks of arenas that are gone serve again, within the bound, and those that are expected
// to be asked for are made ready, no more. Method: arenas that take blocks, and blocks taken one by
// one; what the kernel says of their pages.

#include "db/memtable/memtable_blocks.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/arena_blocks.h"
#include "util/memory/arena.h"

namespace nacre {
namespace {

TEST(MemTableBlocksTest, ArenasOfSeveralThreadsShareIt) {
  constexpr size_t kBlock = MemTableBlocks::kBlockSize;
  TaskThreads task_threads;
  const auto pool = std::make_shared<MemTableBlocks>(&task_threads, 4 * kBlock, 8 * kBlock);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      for (int round = 0; round < 10; ++round) {
        ConcurrentArena arena(pool);
        bool new_chunk = false;
        constexpr size_t kPiece = ConcurrentArena::kChunkSize / 8;
        const std::string content(kPiece, static_cast<char>('a' + t));
        std::vector<const char*> pieces;
        while (arena.MemoryUsage() < kBlock + kBlock / 2) {
          char* const piece = arena.Allocate(kPiece, &new_chunk);
          std::memcpy(piece, content.data(), kPiece);
          pieces.push_back(piece);
        }
        for (const char* piece : pieces) EXPECT_EQ(0, std::memcmp(piece, content.data(), kPiece));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(pool->FreeBytes(), 4 * kBlock);
}

/// Whether it came to that within a minute.
bool ComesToBeFree(const MemTableBlocks& pool, size_t bytes) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (pool.FreeBytes() != bytes) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

bool IsResident(const ArenaBlock& block) {
  constexpr size_t kPage = 4 << 10;
  std::vector<unsigned char> pages(block.size() / kPage);
  if (mincore(block.data(), block.size(), pages.data()) != 0) return false;
  return std::all_of(pages.begin(), pages.end(), [](unsigned char page) { return page & 1; });
}

TEST(MemTableBlocksTest, MakesBlocksReadyUntilAsManyAreThereAsExpected) {
  constexpr size_t kBlock = MemTableBlocks::kBlockSize;
  TaskThreads task_threads;
  MemTableBlocks pool(&task_threads, 8 * kBlock, 5 * kBlock);
  EXPECT_EQ(0U, pool.FreeBytes());
  std::vector<ArenaBlock> blocks;
  blocks.push_back(pool.Take());
  ASSERT_TRUE(ComesToBeFree(pool, 3 * kBlock));
  blocks.push_back(pool.Take());
  EXPECT_TRUE(IsResident(blocks.back()));
  ASSERT_TRUE(ComesToBeFree(pool, 3 * kBlock));
  // All that are expected are there now.
  for (size_t left = 3; left > 0; --left) {
    blocks.push_back(pool.Take());
    EXPECT_TRUE(IsResident(blocks.back()));
    EXPECT_EQ((left - 1) * kBlock, pool.FreeBytes());
  }
  blocks.push_back(pool.Take());
  EXPECT_EQ(0U, pool.FreeBytes());
  pool.Return(&blocks);
  EXPECT_EQ(6 * kBlock, pool.FreeBytes());
}

TEST(MemTableBlocksTest, MakesNoMoreReadyThanItMayKeep) {
  constexpr size_t kBlock = MemTableBlocks::kBlockSize;
  TaskThreads task_threads;
  MemTableBlocks pool(&task_threads, kBlock, 8 * kBlock);
  std::vector<ArenaBlock> blocks;
  blocks.push_back(pool.Take());
  ASSERT_TRUE(ComesToBeFree(pool, kBlock));
  pool.Return(&blocks);
  EXPECT_EQ(kBlock, pool.FreeBytes());
}

TEST(MemTableBlocksTest, MayEndWhileItMakesBlocksReady) {
  constexpr size_t kBlock = MemTableBlocks::kBlockSize;
  for (int round = 0; round < 10; ++round) {
    TaskThreads task_threads;
    const auto pool = std::make_shared<MemTableBlocks>(&task_threads, 4 * kBlock, 8 * kBlock);
    ConcurrentArena arena(pool);
    FirstOfABlock(&arena);
  }
}

}  // namespace
}  // namespace nacre
