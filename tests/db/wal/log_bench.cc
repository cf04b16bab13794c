// What the log costs a writer: a record appended and awaited, against the bare write of as many
// bytes to as many copies; replay of a long log.

#include <benchmark/benchmark.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "db/wal/log_reader.h"
#include "db/wal/log_space.h"
#include "db/wal/log_writer.h"
#include "pool/databases.h"
#include "pool/pool_impl.h"
#include "pool/space/space_allocator.h"
#include "pool/store/mirrored_extent.h"

namespace nacre {
namespace {

constexpr int kCopies = 3;
constexpr size_t kRecordBytes = 420;
constexpr uint64_t kSegmentBytes = 16 << 20;

/// A pool in this process, and a log there.
class BenchLog : public LogSpace {
 public:
  explicit BenchLog(const std::string& parameters) {
    pool::OpenPool("embedded:?size=512MiB&nodes=3" + parameters, {}, Clock::System(), &pool_)
        .IgnoreError();
    pool::DatabaseLease lease;
    pool_->client()->databases()->Open("bench", {.create_if_missing = true}, &lease).IgnoreError();
    database_id_ = lease.database_id;
    space_ = std::make_unique<pool::SpaceAllocator>(pool_->client(), database_id_, 64 << 20,
                                                    256 << 10);
    OpenWriter();
  }
  ~BenchLog() override {
    writer_.reset();
    space_.reset();
  }

  Status NewSegment(uint64_t number, uint64_t bytes, LogSegment* segment) override {
    Placement placement;
    NACRE_RETURN_IF_ERROR(space_->Reserve(Redundancy::Copies(kCopies), bytes, kNoNode, &placement));
    segment->number = number;
    segment->copies = placement.fragments;
    segments_[number] = *segment;
    return Status::OK();
  }
  void OpenWriter() {
    LogWriter::Open({.client = pool_->client(),
                     .clock = Clock::System(),
                     .database_id = database_id_,
                     .segment_bytes = kSegmentBytes},
                    this, &writer_)
        .IgnoreError();
  }
  /// Has room for new segments, whichever records are in the old ones.
  void DropUpTo(uint64_t generation) {
    for (const LogSegment& segment : writer_->TakeUnneeded(generation)) {
      for (const ExtentAddr& copy : segment.copies) space_->Free(copy);
    }
  }

  std::shared_ptr<pool::PoolImpl> pool_;
  uint64_t database_id_ = 0;
  std::unique_ptr<pool::SpaceAllocator> space_;
  std::map<uint64_t, LogSegment> segments_;
  std::unique_ptr<LogWriter> writer_;
};

const char* ParametersOf(int64_t rtt) { return rtt == 0 ? "" : "&rtt_us=2"; }

/// Arguments: round trip in microseconds, whether each record is awaited.
void BM_AppendAndAwait(benchmark::State& state) {
  BenchLog log(ParametersOf(state.range(0)));
  const bool await = state.range(1) != 0;
  const std::string payload(kRecordBytes, 'p');
  const Slice part(payload);
  SequenceNumber next = 1 << 17;
  uint64_t position = 0;
  for (auto _ : state) {
    Status s = log.writer_->Append(next >> 16, next, 1, {&part, 1}, &position);
    if (s.ok() && await) s = log.writer_->Await(position);
    if (!s.ok()) {
      state.SkipWithError(s.ToString().c_str());
      break;
    }
    if ((++next & 0xffff) == 0) [[unlikely]] {
      state.PauseTiming();
      log.DropUpTo((next >> 16) - 2);
      state.ResumeTiming();
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(kRecordBytes));
}
BENCHMARK(BM_AppendAndAwait)->ArgsProduct({{0, 2}, {1}})->ArgNames({"rtt_us", "await"});
BENCHMARK(BM_AppendAndAwait)->Args({0, 0})->ArgNames({"rtt_us", "await"});

/// The same bytes, in one place.
void BM_RawWrite(benchmark::State& state) {
  BenchLog log(ParametersOf(state.range(0)));
  Placement placement;
  log.space_->Reserve(Redundancy::Copies(kCopies), kSegmentBytes, kNoNode, &placement)
      .IgnoreError();
  std::unique_ptr<pool::MirroredExtent> extent;
  pool::MirroredExtent::Open(log.pool_->client()->fabric(), placement.fragments, &extent)
      .IgnoreError();
  std::unique_ptr<rdma::MemoryRegion> buffer;
  pool::AllocateBuffer(log.pool_->client()->fabric(), 4096, &buffer).IgnoreError();
  constexpr uint32_t kBytes = LogRecordBytes(kRecordBytes);
  uint64_t offset = 0;
  uint64_t ticket = 0;
  for (auto _ : state) {
    Status s = extent->Write(
        offset, {.data = buffer->data(), .size = kBytes, .region = buffer.get()}, &ticket);
    if (s.ok()) {
      s = extent->Await(ticket, Deadline::After(Clock::System(), std::chrono::seconds(10)));
    }
    if (!s.ok()) {
      state.SkipWithError(s.ToString().c_str());
      break;
    }
    offset = offset + 2 * kBytes <= kSegmentBytes ? offset + kBytes : 0;
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(kRecordBytes));
}
BENCHMARK(BM_RawWrite)->Arg(0)->Arg(2)->ArgName("rtt_us");

/// 64 MiB of records.
void BM_ReadLog(benchmark::State& state) {
  BenchLog log("");
  const std::string payload(kRecordBytes, 'p');
  const Slice part(payload);
  uint64_t position = 0;
  for (SequenceNumber next = 1; next <= (uint64_t{64} << 20) / kRecordBytes; ++next) {
    log.writer_->Append(1, next, 1, {&part, 1}, &position).IgnoreError();
  }
  log.writer_->Sync().IgnoreError();
  log.writer_->Close();
  std::vector<LogSegment> segments;
  for (const auto& [number, segment] : log.segments_) segments.push_back(segment);
  uint64_t records = 0;
  for (auto _ : state) {
    LogReadResult result;
    const Status s = ReadLog(
        log.pool_->client(), log.database_id_, segments, WALRecoveryMode::kPointInTimeRecovery,
        [&](SequenceNumber, uint32_t, const Slice&) {
          ++records;
          return Status::OK();
        },
        &result);
    if (!s.ok()) {
      state.SkipWithError(s.ToString().c_str());
      break;
    }
  }
  state.counters["records"] =
      benchmark::Counter(static_cast<double>(records) / static_cast<double>(state.iterations()));
}
BENCHMARK(BM_ReadLog)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace nacre
