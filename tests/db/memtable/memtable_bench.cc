// Goal: the MemTable is no slower than RocksDB's skip list, for inserts and lookups, from one
// thread and from two.
//
// Method: both hold the same entries (20-byte keys, 400-byte values, one write buffer full) put in
// the same order by the same driver. RocksDB's list is reached through its public headers: a DB is
// opened with a MemTableRepFactory that hands out, and remembers, what SkipListFactory makes for
// the DB's own comparator and allocator; entries then go into that list directly, without the rest
// of RocksDB's write path. Its fastest call for the case is used: `Insert` from one thread,
// `InsertConcurrently` from several, lookups by `Seek` of an iterator that is made once.

#include <benchmark/benchmark.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/memtablerep.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "db/memtable/memtable.h"
#include "table/iterator/internal_iterator.h"
#include "util/coding.h"
#include "util/hash.h"
#include "util/memory/arena_block_pool.h"
#include "util/random.h"

namespace nacre {
namespace {

constexpr size_t kEntries = 150'000;  // About 64 MiB.
constexpr size_t kValueBytes = 400;

enum class Keys {
  kBenchTool,   ///< Keys of db_bench: a big-endian number, then '0's.
  kLongPrefix,  ///< "user" and 16 decimal digits: the first bytes decide nothing.
  kSequential,  ///< The same keys, inserted in ascending order.
};

std::vector<std::string> MakeKeys(Keys kind) {
  Random random(7);
  std::vector<std::string> keys;
  for (size_t i = 0; i < kEntries; ++i) {
    const uint64_t number = kind == Keys::kSequential ? i : random.Uniform(100 * kEntries);
    std::string key;
    if (kind == Keys::kLongPrefix) {
      key = std::to_string(number);
      key = "user" + std::string(16 - key.size(), '0') + key;
    } else {
      char big_endian[8];
      EncodeFixed64(big_endian, __builtin_bswap64(number));
      key.assign(big_endian, sizeof(big_endian)).append(12, '0');
    }
    keys.push_back(key);
  }
  return keys;
}

class OurTable {
 public:
  explicit OurTable(bool /*several_writers*/)
      : table_(BytewiseComparator(), 1, MemTable::IndexBytes(64 << 20), Blocks()) {}

  void Insert(const std::string& key, uint64_t sequence, const std::string& value) {
    bool new_chunk = false;
    table_.Add(sequence, ValueType::kValue, key, value, &new_chunk);
  }

  MemTable* memtable() { return &table_; }

  class Reader {
   public:
    explicit Reader(OurTable* table) : table_(&table->table_) {}
    bool Contains(const std::string& key) {
      Slice value;
      SequenceNumber sequence;
      return table_->Get(key, Hash64(key), kMaxSequenceNumber, &value, &sequence) ==
             MemTable::LookupResult::kFound;
    }

   private:
    MemTable* table_;
  };

 private:
  /// Blocks of flushed MemTables serve again, as in a database.
  static const std::shared_ptr<ArenaBlockPool>& Blocks() {
    static const auto blocks = std::make_shared<ArenaBlockPool>(128 << 20);
    return blocks;
  }

  MemTable table_;
};

/// Remembers the list that the DB gets.
class CapturingFactory : public rocksdb::MemTableRepFactory {
 public:
  const char* Name() const override { return "CapturingFactory"; }
  bool IsInsertConcurrentlySupported() const override { return true; }
  bool CanHandleDuplicatedKey() const override { return true; }
  rocksdb::MemTableRep* CreateMemTableRep(const rocksdb::MemTableRep::KeyComparator& comparator,
                                          rocksdb::Allocator* allocator,
                                          const rocksdb::SliceTransform* transform,
                                          rocksdb::Logger* logger) override {
    last = skip_list_.CreateMemTableRep(comparator, allocator, transform, logger);
    return last;
  }

  rocksdb::MemTableRep* last = nullptr;

 private:
  rocksdb::SkipListFactory skip_list_;
};

class RocksTable {
 public:
  explicit RocksTable(bool several_writers)
      : env_(rocksdb::NewMemEnv(rocksdb::Env::Default())), several_writers_(several_writers) {
    auto factory = std::make_shared<CapturingFactory>();
    rocksdb::Options options;
    options.create_if_missing = true;
    options.env = env_.get();
    options.memtable_factory = factory;
    options.write_buffer_size = 64 << 20;
    rocksdb::DB* db = nullptr;
    const rocksdb::Status status = rocksdb::DB::Open(options, "/memtable_bench", &db);
    if (!status.ok()) throw std::runtime_error(status.ToString());
    db_.reset(db);
    list_ = factory->last;
  }

  void Insert(const std::string& key, uint64_t sequence, const std::string& value) {
    const auto key_size = static_cast<uint32_t>(key.size() + 8);
    const auto value_size = static_cast<uint32_t>(value.size());
    const size_t bytes = static_cast<size_t>(VarintLength(key_size)) + key_size +
                         static_cast<size_t>(VarintLength(value_size)) + value_size;
    char* p = nullptr;
    const rocksdb::KeyHandle handle = list_->Allocate(bytes, &p);
    p = EncodeVarint32(p, key_size);
    std::memcpy(p, key.data(), key.size());
    p += key.size();
    EncodeFixed64(p, PackTag(sequence, ValueType::kValue));
    p = EncodeVarint32(p + 8, value_size);
    std::memcpy(p, value.data(), value.size());
    if (several_writers_) {
      list_->InsertKeyConcurrently(handle);
    } else {
      list_->InsertKey(handle);
    }
  }

  class Reader {
   public:
    explicit Reader(RocksTable* table) : iterator_(table->list_->GetIterator()) {}
    bool Contains(const std::string& key) {
      char target[64];
      char* p = EncodeVarint32(target, static_cast<uint32_t>(key.size() + 8));
      const char* start = p;
      std::memcpy(p, key.data(), key.size());
      p += key.size();
      EncodeFixed64(p, PackTag(kMaxSequenceNumber, ValueType::kValue));
      iterator_->Seek(rocksdb::Slice(start, key.size() + 8), target);
      if (!iterator_->Valid()) return false;
      // RocksDB's MemTable decodes the entry's length and compares the user keys.
      const char* entry = iterator_->key();
      uint32_t size = 0;
      const char* found = DecodeVarint32(entry, entry + 5, &size);
      return Slice(found, size - 8) == Slice(key);
    }

   private:
    std::unique_ptr<rocksdb::MemTableRep::Iterator> iterator_;
  };

 private:
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::MemTableRep* list_ = nullptr;
  const bool several_writers_;
};

/// Runs `work(thread)` on `threads` threads that start together; seconds until the last is done.
template <typename Work>
double Together(size_t threads, const Work& work) {
  std::atomic<size_t> waiting = threads;
  std::vector<std::thread> pool;
  std::atomic<bool> go = false;
  for (size_t t = 0; t < threads; ++t) {
    pool.emplace_back([&, t] {
      --waiting;
      while (!go.load()) {
      }
      work(t);
    });
  }
  while (waiting.load() > 0) std::this_thread::yield();
  const auto start = std::chrono::steady_clock::now();
  go = true;
  for (std::thread& thread : pool) thread.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <typename Table>
void InsertAll(Table* table, const std::vector<std::string>& keys, size_t thread, size_t threads) {
  const std::string value(kValueBytes, 'v');
  for (size_t i = thread; i < keys.size(); i += threads) table->Insert(keys[i], i + 1, value);
}

template <typename Table, Keys kind>
void BM_Insert(benchmark::State& state) {
  const auto threads = static_cast<size_t>(state.range(0));
  const std::vector<std::string> keys = MakeKeys(kind);
  for (auto _ : state) {
    Table table(threads > 1);
    state.SetIterationTime(
        Together(threads, [&](size_t thread) { InsertAll(&table, keys, thread, threads); }));
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * keys.size()));
}

template <typename Table, Keys kind>
void BM_Lookup(benchmark::State& state) {
  const auto threads = static_cast<size_t>(state.range(0));
  std::vector<std::string> keys = MakeKeys(kind);
  Table table(false);
  InsertAll(&table, keys, 0, 1);
  Random random(8);
  for (size_t i = keys.size() - 1; i > 0; --i) std::swap(keys[i], keys[random.Uniform(i + 1)]);
  for (auto _ : state) {
    std::atomic<size_t> found = 0;
    state.SetIterationTime(Together(threads, [&](size_t thread) {
      typename Table::Reader reader(&table);
      size_t mine = 0;
      for (size_t i = thread; i < keys.size(); i += threads) mine += reader.Contains(keys[i]);
      found += mine;
    }));
    if (found != keys.size()) state.SkipWithError("an entry is missing");
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * keys.size()));
}

/// What a flush does with a MemTable besides writing it: putting it in order, and taking each entry
/// out of memory.
template <Keys kind>
void BM_SealAndWalk(benchmark::State& state) {
  const std::vector<std::string> keys = MakeKeys(kind);
  const auto copy = std::make_unique<char[]>(kValueBytes);
  for (auto _ : state) {
    OurTable table(false);
    InsertAll(&table, keys, 0, 1);
    const auto start = std::chrono::steady_clock::now();
    table.memtable()->Seal();
    const auto iterator = table.memtable()->NewIterator();
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      // A constant length would make it a string move, which no flush does.
      const Slice value = iterator->value();
      std::memcpy(copy.get(), value.data(), value.size());
      benchmark::DoNotOptimize(copy.get());
      benchmark::ClobberMemory();
    }
    state.SetIterationTime(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * keys.size()));
}
BENCHMARK_TEMPLATE(BM_SealAndWalk, Keys::kBenchTool)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_TEMPLATE(BM_SealAndWalk, Keys::kSequential)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

#define NACRE_COMPARE(function, keys)            \
  BENCHMARK_TEMPLATE(function, OurTable, keys)   \
      ->Arg(1)                                   \
      ->Arg(2)                                   \
      ->UseManualTime()                          \
      ->Unit(benchmark::kMillisecond);           \
  BENCHMARK_TEMPLATE(function, RocksTable, keys) \
      ->Arg(1)                                   \
      ->Arg(2)                                   \
      ->UseManualTime()                          \
      ->Unit(benchmark::kMillisecond)

NACRE_COMPARE(BM_Insert, Keys::kBenchTool);
NACRE_COMPARE(BM_Insert, Keys::kLongPrefix);
NACRE_COMPARE(BM_Insert, Keys::kSequential);
NACRE_COMPARE(BM_Lookup, Keys::kBenchTool);
NACRE_COMPARE(BM_Lookup, Keys::kLongPrefix);

}  // namespace
}  // namespace nacre
