// Goal: our Bloom filter is no slower than RocksDB's and lets no more keys through than LevelDB's,
// at 10 bits a key.
//
// Method: the same keys and probes for all three, in a filter that fits the cache and in one that
// does not; the counter `positive` is the share of keys let through. LevelDB's is its public
// FilterPolicy. RocksDB's public headers make the builder and the reader but do not define their
// types, so their interface is declared here as RocksDB 7.8 has it, and left out with any other
// version. Ours is timed with the hash of the key included, as the others are; in a lookup that
// asks several filters it is computed once.

#include <benchmark/benchmark.h>
#include <leveldb/filter_policy.h>
#include <leveldb/slice.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/version.h>

#include <memory>
#include <string>
#include <vector>

#include "util/codes/bloom.h"
#include "util/coding.h"
#include "util/hash.h"

#define NACRE_KNOWN_ROCKSDB (ROCKSDB_MAJOR == 7 && ROCKSDB_MINOR == 8)

#if NACRE_KNOWN_ROCKSDB
namespace rocksdb {

class FilterBitsBuilder {
 public:
  virtual ~FilterBitsBuilder() = default;
  virtual void AddKey(const Slice& key) = 0;
  virtual size_t EstimateEntriesAdded() = 0;
  virtual Slice Finish(std::unique_ptr<const char[]>* buffer) = 0;
};

class FilterBitsReader {
 public:
  virtual ~FilterBitsReader() = default;
  virtual bool MayMatch(const Slice& key) = 0;
};

}  // namespace rocksdb
#endif

namespace nacre {
namespace {

constexpr int kBitsPerKey = 10;
constexpr size_t kKeyBytes = 20;

/// Keys of db_bench, one behind the other.
std::string MakeKeys(uint64_t first, uint64_t count) {
  std::string keys(count * kKeyBytes, '0');
  for (uint64_t i = 0; i < count; ++i) {
    EncodeFixed64(keys.data() + i * kKeyBytes, __builtin_bswap64(first + i));
  }
  return keys;
}

class OurFilter {
 public:
  explicit OurFilter(const std::string& keys) {
    BloomBuilder builder(kBitsPerKey);
    for (size_t i = 0; i < keys.size(); i += kKeyBytes) {
      builder.Add(Hash64(Slice(keys.data() + i, kKeyBytes)));
    }
    builder.Finish(&bytes_);
  }
  class Reader {
   public:
    explicit Reader(const OurFilter& filter) : filter_(filter.bytes_) {}
    bool MayContain(const char* key) const {
      return filter_.MayContain(Hash64(Slice(key, kKeyBytes)));
    }

   private:
    BloomFilter filter_;
  };

 private:
  std::string bytes_;
};

class LevelDbFilter {
 public:
  explicit LevelDbFilter(const std::string& keys)
      : policy_(leveldb::NewBloomFilterPolicy(kBitsPerKey)) {
    std::vector<leveldb::Slice> slices;
    for (size_t i = 0; i < keys.size(); i += kKeyBytes) {
      slices.emplace_back(keys.data() + i, kKeyBytes);
    }
    policy_->CreateFilter(slices.data(), static_cast<int>(slices.size()), &bytes_);
  }
  class Reader {
   public:
    explicit Reader(const LevelDbFilter& filter) : filter_(filter) {}
    bool MayContain(const char* key) const {
      return filter_.policy_->KeyMayMatch(leveldb::Slice(key, kKeyBytes), filter_.bytes_);
    }

   private:
    const LevelDbFilter& filter_;
  };

 private:
  std::unique_ptr<const leveldb::FilterPolicy> policy_;
  std::string bytes_;
};

#if NACRE_KNOWN_ROCKSDB
class RocksDbFilter {
 public:
  explicit RocksDbFilter(const std::string& keys)
      : policy_(rocksdb::NewBloomFilterPolicy(kBitsPerKey)) {
    const rocksdb::BlockBasedTableOptions options;
    const std::unique_ptr<rocksdb::FilterBitsBuilder> builder(
        policy_->GetBuilderWithContext(rocksdb::FilterBuildingContext(options)));
    for (size_t i = 0; i < keys.size(); i += kKeyBytes) {
      builder->AddKey(rocksdb::Slice(keys.data() + i, kKeyBytes));
    }
    bytes_ = builder->Finish(&memory_);
  }
  class Reader {
   public:
    explicit Reader(const RocksDbFilter& filter)
        : reader_(filter.policy_->GetFilterBitsReader(filter.bytes_)) {}
    bool MayContain(const char* key) const {
      return reader_->MayMatch(rocksdb::Slice(key, kKeyBytes));
    }

   private:
    std::unique_ptr<rocksdb::FilterBitsReader> reader_;
  };

 private:
  std::unique_ptr<const rocksdb::FilterPolicy> policy_;
  std::unique_ptr<const char[]> memory_;
  rocksdb::Slice bytes_;
};
#endif

template <typename Filter>
void BM_Build(benchmark::State& state) {
  const std::string keys = MakeKeys(0, static_cast<uint64_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(Filter(keys));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

template <typename Filter>
void Probe(benchmark::State& state, uint64_t first) {
  const auto count = static_cast<uint64_t>(state.range(0));
  const Filter filter(MakeKeys(0, count));
  const typename Filter::Reader reader(filter);
  const std::string keys = MakeKeys(first, count);
  uint64_t positives = 0;
  size_t at = 0;
  for (auto _ : state) {
    positives += reader.MayContain(keys.data() + at);
    at += kKeyBytes;
    if (at == keys.size()) at = 0;
  }
  state.SetItemsProcessed(state.iterations());
  state.counters["positive"] =
      static_cast<double>(positives) / static_cast<double>(state.iterations());
}

template <typename Filter>
void BM_Present(benchmark::State& state) {
  Probe<Filter>(state, 0);
}

template <typename Filter>
void BM_Absent(benchmark::State& state) {
  Probe<Filter>(state, uint64_t{1} << 32);
}

// 125 kB, and 5 MB, which is more than a core has cache of its own.
#define NACRE_COMPARE(filter)                                           \
  BENCHMARK_TEMPLATE(BM_Build, filter)->Arg(100'000);                   \
  BENCHMARK_TEMPLATE(BM_Present, filter)->Arg(100'000)->Arg(4'000'000); \
  BENCHMARK_TEMPLATE(BM_Absent, filter)->Arg(100'000)->Arg(4'000'000)

NACRE_COMPARE(OurFilter);
NACRE_COMPARE(LevelDbFilter);
#if NACRE_KNOWN_ROCKSDB
NACRE_COMPARE(RocksDbFilter);
#endif

}  // namespace
}  // namespace nacre
