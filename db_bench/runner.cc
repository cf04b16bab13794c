#include "db_bench/runner.h"

#include <algorithm>
#include <cstdio>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "db_bench/process_usage.h"
#include "db_bench/engine/plain_writing.h"
#include "db_bench/members.h"
#include "db_bench/report/progress.h"
#include "db_bench/report/report.h"
#include "db_bench/takeover.h"
#include "db_bench/workload.h"
#include "db_bench/write_rate_limiter.h"

namespace nacre::bench {
namespace {

/// Which calls to time. A call with many operations is long beside a look at the clock.
uint64_t SamplePeriod(const BenchmarkSpec& spec, const BenchConfig& config) {
  const bool batched = spec.fixed_batch > 1 || (spec.batch != nullptr && config.*spec.batch > 1);
  if (config.target_ops_per_second > 0) return 1;
  if (config.latency_sample_period == 0) return 0;
  return config.histogram || batched ? 1 : config.latency_sample_period;
}

/// Streams from one seed: keys, sizes of values, and times of arrival.
constexpr uint64_t kValueStream = 0x9e3779b97f4a7c15;
constexpr uint64_t kArrivalStream = 0xbf58476d1ce4e5b9;

void Merge(const OpRecorder& recorder, BenchmarkResult* result) {
  result->ops += recorder.done();
  result->bytes += recorder.bytes();
  result->lookups += recorder.lookups();
  result->found += recorder.found();
  result->thread_seconds +=
      static_cast<double>(recorder.finish_nanos() - recorder.start_nanos()) * 1e-9;
  result->cpu_seconds += static_cast<double>(recorder.cpu_nanos()) * 1e-9;
  result->latencies.Merge(recorder.latencies());
  for (size_t type = 0; type < kOpTypes; ++type) {
    if (const LatencyCounts* counts = recorder.latencies(static_cast<OpType>(type))) {
      if (!result->latencies_by_type[type].has_value()) result->latencies_by_type[type].emplace();
      result->latencies_by_type[type]->Merge(*counts);
    }
    const ReadCounts& reads = recorder.remote_reads(static_cast<OpType>(type));
    for (size_t i = 0; i < reads.size(); ++i) result->remote_reads[type][i] += reads[i];
    const Histogram* histogram = recorder.histogram(static_cast<OpType>(type));
    if (histogram == nullptr) continue;
    if (!result->histograms[type].has_value()) result->histograms[type].emplace();
    result->histograms[type]->Merge(*histogram);
  }
}

}  // namespace

Runner::Runner(const BenchConfig& config, Engine* engine, Clock* clock, std::atomic<bool>* stop)
    : config_(config),
      engine_(engine),
      clock_(clock),
      stop_(stop),
      cycles_(clock),
      values_(config),
      timeline_(config, engine, clock),
      kill_(config, clock),
      key_chooser_(config),
      ycsb_records_(config.num) {}

Status Runner::Run() {
  for (const std::string& name : config_.benchmarks) {
    const Status status = RunOne(*FindBenchmark(name));
    if (stop_->load(std::memory_order_relaxed) && status.ok()) {
      return Status::Aborted("interrupted in " + name);
    }
    if (!status.ok()) return status.WithContext(name);
  }
  return Status::OK();
}

Status Runner::RunOne(const BenchmarkSpec& spec) {
  if (spec.meta == MetaOperation::kTakeover) return RunTakeover();
  bool skip = false;
  NACRE_RETURN_IF_ERROR(Prepare(spec, &skip));
  if (skip) {
    // Its threads count all the same, so that the seeds of the others do not depend on it.
    threads_started_ += static_cast<uint64_t>(config_.threads);
    std::printf("%-12s : skipped (--use_existing_db is true)\n", std::string(spec.name).c_str());
    std::fflush(stdout);
    return Status::OK();
  }
  TrafficCounters before;
  NACRE_RETURN_IF_ERROR(engine_->Traffic(&before));
  BenchmarkResult result;
  result.name = spec.name;
  result.note = spec.note;
  const uint64_t cpu_nanos = ProcessCpuNanos();
  NACRE_RETURN_IF_ERROR(spec.workload != nullptr ? RunThreads(spec, &result)
                        : spec.of_members        ? RunMembers(spec, &result)
                                                 : RunMeta(spec, &result));
  result.process_cpu_seconds = static_cast<double>(ProcessCpuNanos() - cpu_nanos) * 1e-9;
  if (result.ops == 0 && spec.workload == nullptr) return Status::OK();
  TrafficCounters after;
  NACRE_RETURN_IF_ERROR(engine_->Traffic(&after));
  result.traffic = after - before;
  result.durability = engine_->DurabilityCounters();
  PrintResult(stdout, result);
  results_.push_back(std::move(result));
  return Status::OK();
}

Status Runner::Prepare(const BenchmarkSpec& spec, bool* skip) {
  *skip = spec.fresh_db && config_.use_existing_db;
  if (*skip) return Status::OK();
  if (spec.background_writer && OwnsNothing(config_)) {
    return Status::InvalidArgument(
        "only the owner writes: run it there, or with --followers, and readrandom here");
  }
  if (!spec.fresh_db && open_) return Status::OK();
  open_ = true;
  NACRE_RETURN_IF_ERROR(config_.use_existing_db ? engine_->OpenExisting() : engine_->OpenFresh());
  return engine_->StartCounting();
}

Status Runner::RunThreads(const BenchmarkSpec& spec, BenchmarkResult* result) {
  const int foreground = config_.threads;
  const int total = foreground + (spec.background_writer ? 1 : 0);
  result->open_loop = spec.timed && config_.target_ops_per_second > 0;
  if (result->open_loop && spec.keeps_many_in_flight) {
    return Status::InvalidArgument("it keeps many operations in flight, at no rate");
  }
  WriteRateLimiter limiter(config_.benchmark_write_rate_limit);
  SharedState shared;
  shared.stop = stop_;
  shared.foreground_running = foreground;
  shared.write_limiter = &limiter;
  shared.key_chooser = &key_chooser_;
  shared.ycsb_records = &ycsb_records_;
  std::optional<RecordVersions> record_versions;
  if (spec.workload == Twitter) shared.record_versions = &record_versions.emplace(config_.num);
  if (spec.fresh_db) ycsb_records_.Reset(0);
  shared.ycsb_records_before = ycsb_records_.count();

  std::vector<std::unique_ptr<OpRecorder>> recorders;
  std::vector<const OpRecorder*> foreground_recorders;
  for (int i = 0; i < total; ++i) {
    recorders.push_back(std::make_unique<OpRecorder>(
        OpRecorder::Options{.clock = clock_,
                            .cycles = &cycles_,
                            .sample_period = SamplePeriod(spec, config_),
                            .histogram = config_.histogram,
                            .count_remote_reads = config_.count_remote_reads,
                            .stats_interval = config_.stats_interval,
                            .thread = i}));
    if (i < foreground) foreground_recorders.push_back(recorders.back().get());
  }

  std::vector<Status> statuses(static_cast<size_t>(total));
  std::latch ready(total);
  const auto run_thread = [&](int index, uint64_t seed) {
    const bool background = index >= foreground;
    OpRecorder* recorder = recorders[static_cast<size_t>(index)].get();
    const std::unique_ptr<Session> session = engine_->NewSession();
    std::optional<OpenLoop> open_loop;
    if (result->open_loop && !background) {
      open_loop.emplace(config_, seed ^ kArrivalStream, &cycles_, clock_, stop_, recorder);
    }
    Worker worker{.config = config_,
                  .clock = clock_,
                  .shared = &shared,
                  .session = session.get(),
                  .recorder = recorder,
                  .random = Random(seed),
                  .values = ValueGenerator(config_, &values_, seed ^ kValueStream),
                  .open_loop = open_loop.has_value() ? &*open_loop : nullptr};
    ready.arrive_and_wait();
    recorder->Start();
    Status status = background ? WriteInBackground(&worker) : spec.workload(&worker);
    recorder->Stop();
    if (!background) shared.foreground_running.fetch_sub(1, std::memory_order_relaxed);
    if (!status.ok()) stop_->store(true, std::memory_order_relaxed);
    statuses[static_cast<size_t>(index)] = std::move(status);
  };

  {
    const bool timed = config_.duration_seconds > 0 && spec.timed;
    const uint64_t total_ops = timed ? 0
                                     : config_.*spec.ops_per_thread *
                                           static_cast<uint64_t>(spec.shares_ops ? 1 : foreground);
    NACRE_RETURN_IF_ERROR(timeline_.Begin(spec.name, foreground_recorders));
    Progress progress(config_, clock_, spec.name, total_ops, foreground_recorders);
    if (timed) kill_.Arm();
    std::vector<std::thread> threads;
    threads.reserve(static_cast<size_t>(total));
    for (int i = 0; i < total; ++i) {
      threads.emplace_back(run_thread, i, config_.seed + threads_started_++);
    }
    for (std::thread& thread : threads) thread.join();
    kill_.Disarm();
    timeline_.End();
  }
  for (Status& status : statuses) {
    if (!status.ok()) return std::move(status);
  }
  if (spec.fresh_db) ycsb_records_.Reset(config_.num);
  if (spec.verify != nullptr) {
    NACRE_RETURN_IF_ERROR(spec.verify(config_, engine_->NewSession().get()));
  }

  uint64_t start = UINT64_MAX;
  uint64_t finish = 0;
  for (int i = 0; i < foreground; ++i) {
    const OpRecorder& recorder = *recorders[static_cast<size_t>(i)];
    Merge(recorder, result);
    start = std::min(start, recorder.start_nanos());
    finish = std::max(finish, recorder.finish_nanos());
  }
  result->seconds = static_cast<double>(finish - start) * 1e-9;
  if (spec.background_writer) {
    result->background_ops = recorders.back()->done();
    result->background_latencies.Merge(recorders.back()->latencies());
  }
  return Status::OK();
}

Status Runner::RunTakeover() {
  if (!config_.use_existing_db) return Status::InvalidArgument("it needs --use_existing_db");
  if (open_) return Status::InvalidArgument("it needs a process of its own, and to be the first");
  open_ = true;
  BenchmarkResult result;
  result.name = "takeover";
  result.takeover.emplace();
  NACRE_RETURN_IF_ERROR(MeasureTakeover(config_, engine_, clock_, &*result.takeover));
  NACRE_RETURN_IF_ERROR(engine_->StartCounting());
  std::printf("%-12s : %10.3f ms to the first Get, %.3f ms to the first Put\n", result.name.c_str(),
              static_cast<double>(result.takeover->first_get_micros) * 1e-3,
              static_cast<double>(result.takeover->first_put_micros) * 1e-3);
  for (const auto& [step, micros] : result.takeover->steps) {
    std::printf("  %-12s %10.3f ms\n", step.c_str(), static_cast<double>(micros) * 1e-3);
  }
  std::fflush(stdout);
  result.ops = 1;
  result.seconds = result.thread_seconds =
      static_cast<double>(result.takeover->first_get_micros) * 1e-6;
  results_.push_back(std::move(result));
  return Status::OK();
}

Status Runner::RunMembers(const BenchmarkSpec& spec, BenchmarkResult* result) {
  const MemberBench bench{.config = config_,
                          .engine = engine_,
                          .clock = clock_,
                          .stop = stop_,
                          .values = &values_,
                          .keys = &key_chooser_,
                          .seed = config_.seed + threads_started_};
  threads_started_ += static_cast<uint64_t>(config_.threads);
  if (spec.meta == MetaOperation::kMoves) return MeasureMoves(bench, result);
  if (spec.meta == MetaOperation::kSplits) return MeasureSplits(bench, result);
  return MeasureFailover(bench, result);
}

Status Runner::RunMeta(const BenchmarkSpec& spec, BenchmarkResult* result) {
  const uint64_t start = clock_->NowNanos();
  const uint64_t cpu_start = ThreadCpuNanos();
  std::string text;
  RepairWork repair;
  switch (spec.meta) {
    case MetaOperation::kNone:
    case MetaOperation::kTakeover:
    case MetaOperation::kMoves:
    case MetaOperation::kSplits:
    case MetaOperation::kFailover:
      break;
    case MetaOperation::kFlush:
      NACRE_RETURN_IF_ERROR(engine_->Flush());
      break;
    case MetaOperation::kCompact:
      NACRE_RETURN_IF_ERROR(engine_->CompactAll());
      break;
    case MetaOperation::kWaitForCompaction:
      NACRE_RETURN_IF_ERROR(engine_->WaitForCompaction());
      break;
    case MetaOperation::kWaitForRepair:
      NACRE_RETURN_IF_ERROR(engine_->WaitForRepair(&repair));
      break;
    case MetaOperation::kVerifyChecksum:
      NACRE_RETURN_IF_ERROR(engine_->VerifyChecksum());
      break;
    case MetaOperation::kCheckpoint:
      if (config_.checkpoint_dir.empty())
        return Status::InvalidArgument("it needs --checkpoint_dir");
      NACRE_RETURN_IF_ERROR(engine_->Checkpoint(&result->bytes));
      break;
    case MetaOperation::kRestore:
      if (config_.checkpoint_dir.empty())
        return Status::InvalidArgument("it needs --checkpoint_dir");
      NACRE_RETURN_IF_ERROR(engine_->Restore(&result->bytes));
      break;
    case MetaOperation::kStats:
      NACRE_RETURN_IF_ERROR(engine_->Stats(&text));
      break;
    case MetaOperation::kLevelStats:
      NACRE_RETURN_IF_ERROR(engine_->LevelStats(&text));
      break;
    case MetaOperation::kSpace:
      NACRE_RETURN_IF_ERROR(engine_->SpaceText(&text));
      break;
    case MetaOperation::kKill:
      NACRE_RETURN_IF_ERROR(kill_.KillNow());
      break;
    case MetaOperation::kTail:
      NACRE_RETURN_IF_ERROR(WriteTail(config_, engine_));
      break;
    case MetaOperation::kAwaitKill:
      AwaitKill(clock_, *stop_);
      break;
  }
  if (!text.empty()) {
    std::printf("\n%s\n", text.c_str());
    std::fflush(stdout);
    return Status::OK();
  }
  uint64_t nanos = clock_->NowNanos() - start;
  uint64_t cpu_nanos = ThreadCpuNanos() - cpu_start;
  if (spec.meta == MetaOperation::kWaitForRepair) {
    nanos = repair.nanos;
    cpu_nanos = repair.cpu_nanos;
    result->bytes = repair.bytes;
  }
  if (spec.meta == MetaOperation::kCheckpoint) {
    NACRE_RETURN_IF_ERROR(MeasurePlainWriting(config_.checkpoint_dir, result->bytes, clock_,
                                              &result->plain_mb_per_second));
  }
  if (spec.meta == MetaOperation::kRestore) NACRE_RETURN_IF_ERROR(engine_->DropRestored());
  result->ops = 1;
  result->seconds = result->thread_seconds = static_cast<double>(nanos) * 1e-9;
  result->cpu_seconds = static_cast<double>(cpu_nanos) * 1e-9;
  result->latencies.Add(nanos);
  return Status::OK();
}

}  // namespace nacre::bench
