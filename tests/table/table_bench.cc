// Records, tables, iterators and the merge kernel over db_bench-like data: keys of 20 bytes whose
// first 8 are a big-endian number, values of 400 bytes. Tables are in place unless said otherwise.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "table/format/record.h"
#include "table/iterator/merging_iterator.h"
#include "table/merge/merge_kernel.h"
#include "table/table_builder.h"
#include "table/table_reader.h"
#include "tests/support/table/memory_extent.h"
#include "util/codes/crc32c.h"
#include "util/random.h"

namespace nacre {
namespace {

constexpr size_t kKeyBytes = 20;
constexpr size_t kValueBytes = 400;
constexpr size_t kChunkBytes = 256 << 10;

void Check(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::abort();
}

void SetKey(uint64_t number, char* key) {
  for (int i = 7; i >= 0; --i, number >>= 8) key[i] = static_cast<char>(number);
  std::memset(key + 8, '0', kKeyBytes - 8);
}

/// Drops the bytes, so that a benchmark does not measure a growing string.
class DiscardingWriter final : public ExtentWriter {
 public:
  DiscardingWriter() : buffer_(new char[kChunkBytes]) {}
  size_t chunk_size() const override { return kChunkBytes; }
  uint64_t capacity() const override { return uint64_t{80} << 20; }
  Status NextChunk(char** buffer) override {
    *buffer = buffer_.get();
    return Status::OK();
  }
  Status Commit(size_t) override { return Status::OK(); }
  Status Finish(const Slice&) override { return Status::OK(); }

 private:
  std::unique_ptr<char[]> buffer_;
};

struct BenchTable {
  std::shared_ptr<const TableMeta> meta;
  std::shared_ptr<MemoryExtent> extent;
  std::unique_ptr<TableReader> reader;
};

/// Keys first, first + step, ...
BenchTable MakeBenchTable(uint64_t id, uint64_t first, uint64_t step, uint64_t count, bool in_place,
                          uint64_t stretch = 1) {
  TableBuilderOptions options;
  options.comparator = BytewiseComparator();
  TableMeta identity;
  identity.id = id;
  MemoryTable table;
  TableBuilder builder(
      options, identity,
      std::make_unique<MemoryExtentWriter>(&table, kChunkBytes, uint64_t{80} << 20));
  std::string key(kKeyBytes, '\0');
  const std::string value(kValueBytes, 'v');
  for (uint64_t i = 0; i < count; ++i) {
    SetKey((first + i * step) * stretch, key.data());
    Check(builder.Add(key, PackTag(1 + i, ValueType::kValue), value));
  }
  TableMeta meta;
  Check(builder.Finish(&meta));
  BenchTable made;
  made.meta = std::make_shared<const TableMeta>(meta);
  made.extent = std::make_shared<MemoryExtent>(
      std::move(table.bytes),
      MemoryExtentOptions{in_place ? BytesPlace::kInPlace : BytesPlace::kFetched});
  Check(TableReader::Open(made.meta, BytewiseComparator(), made.extent, &made.reader));
  return made;
}

constexpr uint64_t kTableEntries = 140'000;  // About 60 MB.

// ---- Records ----------------------------------------------------------------------------------

void BM_Crc32cOfRecord(benchmark::State& state) {
  const std::string bytes(428, 'x');
  for (auto _ : state) benchmark::DoNotOptimize(Crc32c(bytes.data(), bytes.size()));
}
BENCHMARK(BM_Crc32cOfRecord);

void BM_RecordEncode(benchmark::State& state) {
  std::string key(kKeyBytes, 'k');
  const std::string value(kValueBytes, 'v');
  std::string buffer(1024, '\0');
  const RecordSeed seed(7);
  for (auto _ : state) {
    EncodeRecord(buffer.data(), seed, key, PackTag(1'000'000, ValueType::kValue), value);
    benchmark::DoNotOptimize(buffer.data());
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_RecordEncode);

void BM_RecordParse(benchmark::State& state) {
  std::string key(kKeyBytes, 'k');
  const std::string value(kValueBytes, 'v');
  std::string buffer(1024, '\0');
  const RecordSeed seed(7);
  EncodeRecord(buffer.data(), seed, key, PackTag(1'000'000, ValueType::kValue), value);
  Record record;
  for (auto _ : state) {
    benchmark::DoNotOptimize(ParseRecord(buffer, seed, state.range(0) != 0, &record));
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_RecordParse)->ArgName("verify")->Arg(0)->Arg(1);

// ---- Tables -----------------------------------------------------------------------------------

void BM_TableBuild(benchmark::State& state) {
  TableBuilderOptions options;
  options.comparator = BytewiseComparator();
  const std::string value(kValueBytes, 'v');
  std::string key(kKeyBytes, '\0');
  TableMeta meta;
  for (auto _ : state) {
    TableBuilder builder(options, TableMeta(), std::make_unique<DiscardingWriter>());
    for (uint64_t i = 0; i < kTableEntries; ++i) {
      SetKey(i, key.data());
      Check(builder.Add(key, PackTag(1 + i, ValueType::kValue), value));
    }
    Check(builder.Finish(&meta));
  }
  const double entries = static_cast<double>(meta.entries);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(meta.user_bytes));
  state.counters["time_per_entry"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * entries,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["point_bytes_per_key"] = static_cast<double>(meta.point_index.length) / entries;
  state.counters["range_bytes_per_key"] = static_cast<double>(meta.range_index.length) / entries;
}
BENCHMARK(BM_TableBuild)->Unit(benchmark::kMillisecond);

void BM_TableOpen(benchmark::State& state) {
  const BenchTable table = MakeBenchTable(1, 0, 7, kTableEntries, true);
  for (auto _ : state) {
    std::unique_ptr<TableReader> reader;
    Check(TableReader::Open(table.meta, BytewiseComparator(), table.extent, &reader));
    state.counters["memory_per_key"] =
        static_cast<double>(reader->MemoryUsage()) / static_cast<double>(kTableEntries);
  }
}
BENCHMARK(BM_TableOpen)->Unit(benchmark::kMicrosecond);

void ReportPerEntry(benchmark::State& state, uint64_t entries) {
  state.SetItemsProcessed(static_cast<int64_t>(entries));
  state.counters["time_per_entry"] = benchmark::Counter(
      static_cast<double>(entries), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void BM_IteratorNext(benchmark::State& state) {
  const BenchTable table = MakeBenchTable(1, 0, 7, kTableEntries, state.range(0) != 0);
  TableIteratorOptions options;
  options.verify_checksums = state.range(1) != 0;
  uint64_t entries = 0;
  for (auto _ : state) {
    const auto iterator = table.reader->NewIterator(options);
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      benchmark::DoNotOptimize(iterator->value());
      ++entries;
    }
  }
  ReportPerEntry(state, entries);
}
BENCHMARK(BM_IteratorNext)->ArgNames({"in_place", "verify"})->ArgsProduct({{1, 0}, {1, 0}});

void BM_IteratorPrev(benchmark::State& state) {
  const BenchTable table = MakeBenchTable(1, 0, 7, kTableEntries, state.range(0) != 0);
  uint64_t entries = 0;
  for (auto _ : state) {
    const auto iterator = table.reader->NewIterator({});
    for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) {
      benchmark::DoNotOptimize(iterator->value());
      ++entries;
    }
  }
  ReportPerEntry(state, entries);
}
BENCHMARK(BM_IteratorPrev)->ArgName("in_place")->Arg(1)->Arg(0);

void BM_IteratorSeek(benchmark::State& state) {
  const BenchTable table = MakeBenchTable(1, 0, 7, kTableEntries, state.range(0) != 0);
  const auto iterator = table.reader->NewIterator({});
  Random random(1);
  std::string key(kKeyBytes + kTagBytes, '\0');
  EncodeFixed64(key.data() + kKeyBytes, PackTag(kMaxSequenceNumber, kValueTypeForSeek));
  const uint64_t step = state.range(1) != 0 ? 7 : 1;  // Present keys, or any.
  const uint64_t reads_before = table.extent->reads_started();
  for (auto _ : state) {
    SetKey(random.Uniform(kTableEntries * 7 / step) * step, key.data());
    iterator->Seek(key);
    benchmark::DoNotOptimize(iterator->Valid());
  }
  state.counters["reads_per_seek"] =
      static_cast<double>(table.extent->reads_started() - reads_before) /
      static_cast<double>(state.iterations());
}
BENCHMARK(BM_IteratorSeek)->ArgNames({"in_place", "present"})->ArgsProduct({{1, 0}, {1, 0}});

// ---- Merging ----------------------------------------------------------------------------------

std::vector<BenchTable> MakeRuns(uint64_t runs, uint64_t entries_each, bool interleaved) {
  std::vector<BenchTable> tables;
  Random random(9);
  for (uint64_t i = 0; i < runs; ++i) {
    tables.push_back(interleaved ? MakeBenchTable(i + 1, i, runs, entries_each, true)
                                 : MakeBenchTable(i + 1, i * entries_each, 1, entries_each, true));
  }
  return tables;
}

std::unique_ptr<InternalIterator> MergeOf(const std::vector<BenchTable>& tables) {
  std::vector<std::unique_ptr<InternalIterator>> children;
  children.reserve(tables.size());
  for (const BenchTable& table : tables) children.push_back(table.reader->NewIterator({}));
  return NewMergingIterator(InternalKeyComparator(BytewiseComparator()), std::move(children));
}

void BM_MergingNext(benchmark::State& state) {
  const auto runs = static_cast<uint64_t>(state.range(0));
  const auto tables = MakeRuns(runs, kTableEntries / runs, state.range(1) != 0);
  uint64_t entries = 0;
  for (auto _ : state) {
    const auto iterator = MergeOf(tables);
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      benchmark::DoNotOptimize(iterator->user_key());
      ++entries;
    }
  }
  ReportPerEntry(state, entries);
}
BENCHMARK(BM_MergingNext)
    ->ArgNames({"children", "interleaved"})
    ->Args({1, 1})
    ->Args({5, 0})
    ->Args({5, 1})
    ->Args({15, 1});

void BM_MergeTables(benchmark::State& state) {
  const auto runs = static_cast<uint64_t>(state.range(0));
  const auto tables = MakeRuns(runs, kTableEntries / runs, true);
  MergeOptions options;
  options.comparator = BytewiseComparator();
  MergeStats stats;
  for (auto _ : state) {
    const auto input = MergeOf(tables);
    std::vector<TableMeta> outputs;
    Check(MergeTables(
        input.get(), options,
        [](TableMeta* identity, std::unique_ptr<ExtentWriter>* writer) {
          identity->id = 99;
          *writer = std::make_unique<DiscardingWriter>();
          return Status::OK();
        },
        &outputs, &stats));
  }
  state.SetBytesProcessed(static_cast<int64_t>(stats.bytes_read));
  ReportPerEntry(state, stats.entries_read);
}
BENCHMARK(BM_MergeTables)
    ->ArgName("inputs")
    ->Arg(1)
    ->Arg(5)
    ->Arg(15)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace nacre
