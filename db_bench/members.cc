#include "db_bench/members.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "db_bench/process_usage.h"
#include "db_bench/engine/keyspace.h"
#include "db_bench/key_generator.h"
#include "util/random.h"

namespace nacre::bench {
namespace {

/// Long enough for what has waited for one move to end before the next one.
constexpr std::chrono::milliseconds kBetweenMoves{50};
constexpr std::chrono::seconds kFailoverPatience{60};

MemberFigure FigureOf(std::string name, std::string text, std::vector<uint64_t> nanos) {
  std::ranges::sort(nanos);
  return {.name = std::move(name), .text = std::move(text), .nanos = std::move(nanos)};
}

/// How far the moves are. Move k begins when `phase` becomes 2k + 1, and ends when it becomes
/// 2k + 2.
struct MoveProgress {
  std::atomic<uint64_t> phase{0};  ///< Release by the mover, acquire by the threads.
  std::atomic<bool> done{false};   ///< Release by the mover, or by a thread that failed.
};

/// A thread that reads and writes meanwhile.
class MovesThread {
 public:
  MovesThread(const MemberBench& bench, MoveProgress* progress, uint64_t seed)
      : bench_(bench),
        progress_(progress),
        session_(bench.engine->NewSession()),
        keys_(bench.config.key_size),
        random_(seed),
        values_(bench.config, bench.values, ~seed),
        longest_(bench.config.moves) {}

  /// Until the moves are done. `*begun` is counted down when the first operation has ended.
  void Run(std::latch* begun) {
    const uint64_t cpu = ThreadCpuNanos();
    const uint64_t start = bench_.clock->NowNanos();
    status_ = Operate();
    begun->count_down();
    while (status_.ok() && !progress_->done.load(std::memory_order_acquire)) status_ = Operate();
    if (!status_.ok()) progress_->done.store(true, std::memory_order_release);
    nanos_ = bench_.clock->NowNanos() - start;
    cpu_nanos_ = ThreadCpuNanos() - cpu;
  }

  const Status& status() const { return status_; }
  /// Adds what it has done, and what it knows of each move's longest operation.
  void AddTo(BenchmarkResult* result, std::vector<uint64_t>* longest) const {
    for (size_t type = 0; type < kOpTypes; ++type) {
      if (latencies_[type].count() == 0) continue;
      result->ops += latencies_[type].count();
      result->latencies.Merge(latencies_[type]);
      if (!result->latencies_by_type[type].has_value()) result->latencies_by_type[type].emplace();
      result->latencies_by_type[type]->Merge(latencies_[type]);
    }
    result->lookups += latencies_[static_cast<size_t>(OpType::kRead)].count();
    result->found += found_;
    result->thread_seconds += static_cast<double>(nanos_) * 1e-9;
    result->cpu_seconds += static_cast<double>(cpu_nanos_) * 1e-9;
    for (size_t i = 0; i < longest->size(); ++i) {
      (*longest)[i] = std::max((*longest)[i], longest_[i]);
    }
  }

 private:
  Status Operate() {
    const Slice key = keys_.Set(bench_.keys->Next(&random_));
    const bool read = random_.Uniform(100) < static_cast<uint64_t>(bench_.config.readwritepercent);
    const uint64_t before = progress_->phase.load(std::memory_order_acquire);
    const uint64_t start = bench_.clock->NowNanos();
    if (read) {
      Slice value;
      const Status status = session_->Get(key, &value);
      if (!status.ok() && !status.IsNotFound()) return status;
      found_ += status.ok();
    } else {
      NACRE_RETURN_IF_ERROR(session_->Put(key, values_.Next()));
    }
    const uint64_t nanos = bench_.clock->NowNanos() - start;
    const uint64_t after = progress_->phase.load(std::memory_order_acquire);
    latencies_[static_cast<size_t>(read ? OpType::kRead : OpType::kWrite)].Add(nanos);
    // The odd ones of the phases that it has seen.
    for (uint64_t move = before / 2; move < (after + 1) / 2; ++move) {
      longest_[move] = std::max(longest_[move], nanos);
    }
    return Status::OK();
  }

  const MemberBench& bench_;
  MoveProgress* const progress_;
  const std::unique_ptr<Session> session_;
  KeyGenerator keys_;
  Random random_;
  ValueGenerator values_;
  std::array<LatencyCounts, kOpTypes> latencies_;
  std::vector<uint64_t> longest_;  ///< By move.
  uint64_t found_ = 0;
  uint64_t nanos_ = 0;
  uint64_t cpu_nanos_ = 0;
  Status status_;
};

/// What is done the `number`th time.
using ShardChange = std::function<Status(const KeyspaceMembers& members, uint64_t number)>;

/// Gives a shard to the member that follows its owner.
Status MoveOn(const KeyspaceMembers& members, uint64_t number) {
  const std::vector<ShardInfo> shards = members.db()->GetShards();
  const ShardInfo& shard = shards[number % shards.size()];
  std::vector<ShardMember> servers;
  NACRE_RETURN_IF_ERROR(members.Servers(&servers));
  const auto next = std::ranges::upper_bound(servers, shard.owner, {}, &ShardMember::id);
  return members.db()
      ->MoveShard(shard.id, next == servers.end() ? servers.front().id : next->id)
      .WithContext("shard " + std::to_string(shard.id));
}

/// Splits the first shard, and merges what came of that again.
Status SplitOrMerge(const KeyspaceMembers& members, uint64_t number) {
  constexpr std::chrono::milliseconds kPause{10};
  for (;;) {
    const std::vector<ShardInfo> shards = members.db()->GetShards();
    const Status status = number % 2 == 0 ? members.db()->SplitShard(shards[0].id, Slice())
                                          : members.db()->MergeShards(shards[0].id, shards[1].id);
    // Until what was reshaped before is known to be whole.
    if (!status.IsBusy()) return status;
    std::this_thread::sleep_for(kPause);
  }
}

/// `*nanos`: the time of each change.
Status ChangeShards(const MemberBench& bench, const KeyspaceMembers& members,
                    const ShardChange& change, MoveProgress* progress,
                    std::vector<uint64_t>* nanos) {
  for (uint64_t move = 0; move < bench.config.moves; ++move) {
    bench.clock->SleepFor(kBetweenMoves);
    if (bench.stop->load(std::memory_order_relaxed)) return Status::OK();
    if (progress->done.load(std::memory_order_acquire)) return Status::OK();
    const uint64_t start = bench.clock->NowNanos();
    progress->phase.store(2 * move + 1, std::memory_order_release);
    NACRE_RETURN_IF_ERROR(change(members, move));
    progress->phase.store(2 * move + 2, std::memory_order_release);
    nanos->push_back(bench.clock->NowNanos() - start);
  }
  bench.clock->SleepFor(kBetweenMoves);
  return Status::OK();
}

/// Reads until the shard answers; `*nanos` is how long that took since `start`.
Status AwaitShard(const MemberBench& bench, const ShardInfo& shard, uint64_t start,
                  uint64_t* nanos) {
  const std::unique_ptr<Session> session = bench.engine->NewSession();
  const Deadline deadline = Deadline::After(bench.clock, kFailoverPatience);
  KeyGenerator keys(bench.config.key_size);
  const Slice key = shard.begin.empty() ? keys.Set(0) : Slice(shard.begin);
  for (;;) {
    Slice value;
    Status status = session->Get(key, &value);
    *nanos = bench.clock->NowNanos() - start;
    if (status.ok() || status.IsNotFound()) return Status::OK();
    if (deadline.Expired()) return status.WithContext("shard " + std::to_string(shard.id));
    bench.clock->SleepFor(std::chrono::milliseconds(1));
  }
}

Status MeasureChanges(const MemberBench& bench, const char* what, const ShardChange& change,
                      BenchmarkResult* result) {
  const auto count = static_cast<size_t>(bench.config.threads);
  MoveProgress progress;
  std::vector<std::unique_ptr<MovesThread>> workers;
  std::vector<std::thread> threads;
  std::latch begun(static_cast<std::ptrdiff_t>(count));
  const uint64_t start = bench.clock->NowNanos();
  for (size_t i = 0; i < count; ++i) {
    workers.push_back(std::make_unique<MovesThread>(bench, &progress, bench.seed + i));
  }
  for (const auto& worker : workers) {
    threads.emplace_back([&begun, work = worker.get()] { work->Run(&begun); });
  }
  begun.wait();
  std::vector<uint64_t> move_nanos;
  const Status moved =
      ChangeShards(bench, *bench.engine->members(), change, &progress, &move_nanos);
  progress.done.store(true, std::memory_order_release);
  for (std::thread& thread : threads) thread.join();
  result->seconds = static_cast<double>(bench.clock->NowNanos() - start) * 1e-9;
  NACRE_RETURN_IF_ERROR(moved);
  std::vector<uint64_t> longest(move_nanos.size());
  for (const auto& worker : workers) {
    NACRE_RETURN_IF_ERROR(worker->status());
    worker->AddTo(result, &longest);
  }
  result->note = ResultNote::kMixed;
  result->member_figures.push_back(FigureOf("longest_operation",
                                            std::string("longest operation in a ") + what + ":",
                                            std::move(longest)));
  result->member_figures.push_back(
      FigureOf(what, std::string("a ") + what + ":", std::move(move_nanos)));
  return Status::OK();
}

}  // namespace

Status MeasureMoves(const MemberBench& bench, BenchmarkResult* result) {
  return MeasureChanges(bench, "move", MoveOn, result);
}

Status MeasureSplits(const MemberBench& bench, BenchmarkResult* result) {
  return MeasureChanges(bench, "split", SplitOrMerge, result);
}

Status MeasureFailover(const MemberBench& bench, BenchmarkResult* result) {
  KeyspaceMembers* const members = bench.engine->members();
  ShardMember killed;
  std::vector<ShardInfo> shards;
  const uint64_t start = bench.clock->NowNanos();
  NACRE_RETURN_IF_ERROR(members->KillOne(&killed, &shards));
  std::vector<uint64_t> nanos(shards.size());
  std::vector<Status> statuses(shards.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < shards.size(); ++i) {
    threads.emplace_back([&, i] { statuses[i] = AwaitShard(bench, shards[i], start, &nanos[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  result->seconds = static_cast<double>(bench.clock->NowNanos() - start) * 1e-9;
  for (Status& status : statuses) NACRE_RETURN_IF_ERROR(status);
  result->ops = shards.size();
  for (const uint64_t time : nanos) {
    result->latencies.Add(time);
    result->thread_seconds += static_cast<double>(time) * 1e-9;
  }
  result->member_figures.push_back(FigureOf(
      "failover",
      killed.leads ? "first Get, the leader died:" : "first Get of a shard:", std::move(nanos)));
  return members->Replace();
}

}  // namespace nacre::bench
