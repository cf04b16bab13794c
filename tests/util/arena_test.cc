// Goal: pieces of an arena never overlap, are aligned as asked, belong to their thread's chunks and
// are all given back, also through a pool of blocks.
// Method: random sizes and alignments from several threads, each piece filled with its number and
// checked after all are taken.

#include "util/memory/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "tests/support/arena_blocks.h"
#include "tests/support/seed.h"
#include "util/memory/arena_block_pool.h"
#include "util/random.h"

namespace nacre {
namespace {

struct Piece {
  char* data;
  size_t size;
  char fill;
};

/// Takes `count` pieces and fills each.
std::vector<Piece> TakePieces(ConcurrentArena* arena, uint64_t seed, int count, int max_size_bits) {
  Random random(seed);
  std::vector<Piece> pieces;
  size_t usage_before = 0;
  for (int i = 0; i < count; ++i) {
    const size_t size = random.Skewed(max_size_bits);
    const size_t same_line = 8 * (1 + random.Uniform(8));
    bool new_chunk = false;
    char* data = arena->Allocate(size, &new_chunk, same_line);
    EXPECT_NE(nullptr, data);
    const auto address = reinterpret_cast<uintptr_t>(data);
    EXPECT_EQ(0U, address % 8);
    EXPECT_LE(address % 64 + same_line, 64U);
    if (new_chunk) {
      EXPECT_GT(arena->MemoryUsage(), usage_before);
    }
    usage_before = arena->MemoryUsage();
    pieces.push_back({data, size, static_cast<char>(random.Next())});
    std::memset(data, pieces.back().fill, size);
  }
  return pieces;
}

void ExpectIntact(std::vector<Piece> pieces) {
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& a, const Piece& b) { return a.data < b.data; });
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    if (i > 0) {
      ASSERT_LE(pieces[i - 1].data + pieces[i - 1].size, piece.data);
    }
    for (size_t at = 0; at < piece.size; ++at) ASSERT_EQ(piece.fill, piece.data[at]);
  }
}

TEST(ArenaTest, PiecesAreDisjointAndAligned) {
  const uint64_t seed = TestSeed(310);
  ConcurrentArena arena;
  EXPECT_EQ(0U, arena.MemoryUsage());
  const std::vector<Piece> pieces = TakePieces(&arena, seed, 20'000, 12);
  size_t bytes = 0;
  for (const Piece& piece : pieces) bytes += piece.size;
  EXPECT_GE(arena.MemoryUsage(), bytes);
  ExpectIntact(pieces);
}

TEST(ArenaTest, TakesSmallPiecesFromOneChunk) {
  ConcurrentArena arena;
  bool new_chunk = false;
  arena.Allocate(8, &new_chunk);
  ASSERT_TRUE(new_chunk);
  EXPECT_EQ(ConcurrentArena::kFirstChunkSize, arena.MemoryUsage());
  new_chunk = false;
  for (size_t i = 1; i < ConcurrentArena::kFirstChunkSize / 8; ++i) arena.Allocate(8, &new_chunk);
  EXPECT_FALSE(new_chunk);
  arena.Allocate(8, &new_chunk);
  EXPECT_TRUE(new_chunk);
  // Where much is taken a chunk is as large as it may be.
  size_t usage = 0;
  for (size_t taken = 0; taken < (4 << 20); taken += 8) {
    new_chunk = false;
    const size_t before = arena.MemoryUsage();
    arena.Allocate(8, &new_chunk);
    if (new_chunk) usage = arena.MemoryUsage() - before;
  }
  EXPECT_EQ(ConcurrentArena::kChunkSize, usage);
}

TEST(ArenaTest, WhatIsTakenFollowsWhatIsStored) {
  for (const size_t piece : {size_t{24}, size_t{100}, size_t{500}, size_t{5000}}) {
    for (const size_t bytes_each : {size_t{1} << 10, size_t{32} << 10, size_t{1} << 20}) {
      ConcurrentArena arena;
      constexpr size_t kThreads = 32;
      std::vector<std::thread> threads;
      for (size_t t = 0; t < kThreads; ++t) {
        threads.emplace_back([&] {
          bool new_chunk = false;
          for (size_t bytes = 0; bytes < bytes_each; bytes += piece) {
            arena.Allocate(piece, &new_chunk);
          }
          // The others have indexes of their own as long as this one has not ended.
          while (arena.MemoryUsage() < kThreads * bytes_each) std::this_thread::yield();
        });
      }
      for (std::thread& thread : threads) thread.join();
      // Alignment, the chunk at hand and the ends of those before.
      EXPECT_LT(arena.MemoryUsage(),
                kThreads * (bytes_each + bytes_each + piece + ConcurrentArena::kFirstChunkSize))
          << piece << " " << bytes_each;
    }
  }
}

TEST(ArenaTest, LargePiecesDoNotWasteTheChunk) {
  ConcurrentArena arena;
  bool new_chunk = false;
  char* first = arena.Allocate(8, &new_chunk);
  for (const size_t size : {ConcurrentArena::kChunkSize, ArenaBlockSource::kBlockSize / 4,
                            ArenaBlockSource::kBlockSize, 3 * ArenaBlockSource::kBlockSize + 1}) {
    new_chunk = false;
    char* large = arena.Allocate(size, &new_chunk);
    EXPECT_TRUE(new_chunk);
    large[0] = large[size - 1] = 'x';
  }
  new_chunk = false;
  EXPECT_EQ(first + 8, arena.Allocate(8, &new_chunk));
  EXPECT_FALSE(new_chunk);
}

TEST(ArenaTest, SeveralThreads) {
  const uint64_t seed = TestSeed(311);
  ConcurrentArena arena;
  std::vector<std::vector<Piece>> of_thread(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < of_thread.size(); ++t) {
    threads.emplace_back([&, t] { of_thread[t] = TakePieces(&arena, seed + t, 5000, 14); });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Piece> all;
  for (const auto& pieces : of_thread) all.insert(all.end(), pieces.begin(), pieces.end());
  ExpectIntact(all);
}

TEST(ArenaBlockPoolTest, ASmallArenaTakesNoBlock) {
  const auto pool = std::make_shared<ArenaBlockPool>(ArenaBlockPool::kBlockSize);
  {
    ConcurrentArena arena(pool);
    bool new_chunk = false;
    // The last chunk is as large as they get.
    while (arena.MemoryUsage() < kArenaBytesBeforeBlocks - ConcurrentArena::kChunkSize) {
      arena.Allocate(8, &new_chunk);
    }
  }
  EXPECT_EQ(0U, pool->FreeBytes());
}

TEST(ArenaBlockPoolTest, BlocksServeAgainUpToTheBound) {
  constexpr size_t kBlock = ArenaBlockPool::kBlockSize;
  const auto pool = std::make_shared<ArenaBlockPool>(2 * kBlock);
  bool new_chunk = false;
  char* first = nullptr;
  {
    ConcurrentArena arena(pool);
    first = FirstOfABlock(&arena);
    EXPECT_EQ(0U, pool->FreeBytes());
  }
  EXPECT_EQ(kBlock, pool->FreeBytes());
  {
    ConcurrentArena arena(pool);
    EXPECT_EQ(first, FirstOfABlock(&arena));
    EXPECT_EQ(0U, pool->FreeBytes());
    // Three more blocks, and one of another size, which the pool does not keep.
    while (arena.MemoryUsage() < 4 * kBlock + kArenaBytesBeforeBlocks)
      arena.Allocate(32 << 10, &new_chunk);
    arena.Allocate(kBlock / 2, &new_chunk);
  }
  EXPECT_EQ(2 * kBlock, pool->FreeBytes());
}

TEST(ArenaBlockPoolTest, ArenasOfSeveralThreadsShareIt) {
  const uint64_t seed = TestSeed(312);
  const auto pool = std::make_shared<ArenaBlockPool>(4 * ArenaBlockPool::kBlockSize);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t round = 0; round < 10; ++round) {
        ConcurrentArena arena(pool);
        ExpectIntact(TakePieces(&arena, seed + 10 * t + round, 500, 13));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(pool->FreeBytes(), 4 * ArenaBlockPool::kBlockSize);
}

}  // namespace
}  // namespace nacre
