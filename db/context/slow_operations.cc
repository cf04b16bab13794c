#include "db/context/slow_operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "util/log.h"
#include "util/perf_step.h"

namespace nacre {

namespace {

constexpr uint64_t kSecondNanos = 1'000'000'000;
constexpr int kDescribedASecond = 10;
constexpr size_t kShownOfKey = 64;

/// What an operation spends its time with, in the order in which it is told.
struct Part {
  uint64_t PerfContext::*nanos;
  const char* text;
};
constexpr Part kParts[] = {
    {&PerfContext::write_delay_time, "stalled"},
    {&PerfContext::write_wal_time, "for the log"},
    {&PerfContext::write_thread_wait_nanos, "for earlier writes"},
    {&PerfContext::write_memtable_time, "to fill the MemTable"},
    {&PerfContext::get_from_memtable_time, "in MemTables"},
    {&PerfContext::remote_read_wait_nanos, "for reads of nodes"},
};

/// What is 0 unless times are measured.
constexpr uint64_t PerfContext::*kTimes[] = {
    &PerfContext::get_from_memtable_time,  &PerfContext::get_from_output_files_time,
    &PerfContext::seek_internal_seek_time, &PerfContext::find_next_user_entry_time,
    &PerfContext::write_wal_time,          &PerfContext::write_memtable_time,
    &PerfContext::write_delay_time,        &PerfContext::write_thread_wait_nanos,
    &PerfContext::remote_read_wait_nanos,
};

std::string Milliseconds(uint64_t nanos) {
  return fmt::format("{:.3f} ms", static_cast<double>(nanos) / 1e6);
}

/// In quotes, with escapes for all but printable ASCII.
std::string Quoted(const Slice& key) {
  std::string text = "\"";
  for (size_t i = 0; i < std::min(key.size(), kShownOfKey); ++i) {
    const auto byte = static_cast<unsigned char>(key[i]);
    if (byte < 0x20 || byte > 0x7e) {
      text += fmt::format("\\x{:02x}", byte);
    } else {
      if (byte == '"' || byte == '\\') text += '\\';
      text += static_cast<char>(byte);
    }
  }
  return text + (key.size() > kShownOfKey ? "\"..." : "\"");
}

/// What `after` has more than `before`.
PerfContext Difference(const PerfContext& after, const PerfContext& before) {
  PerfContext difference;
  for (const Part& part : kParts) difference.*part.nanos = after.*part.nanos - before.*part.nanos;
  difference.remote_read_count = after.remote_read_count - before.remote_read_count;
  difference.remote_read_bytes = after.remote_read_bytes - before.remote_read_bytes;
  return difference;
}

}  // namespace

// ---- SlowOperations -----------------------------------------------------------------------------

SlowOperations::SlowOperations(std::string name, Clock* clock, Logger* log,
                               const std::atomic<std::chrono::microseconds>* threshold,
                               std::function<std::string(NodeId)> address)
    : name_(std::move(name)),
      clock_(clock),
      log_(log),
      threshold_(threshold),
      address_(std::move(address)) {}

bool SlowOperations::MayDescribe(uint64_t* left_out) {
  MutexLock lock(&mutex_);
  const uint64_t second = clock_->NowNanos() / kSecondNanos;
  if (second != second_) described_ = 0;
  second_ = second;
  if (described_ == kDescribedASecond) {
    ++left_out_;
    return false;
  }
  ++described_;
  *left_out = std::exchange(left_out_, 0);
  return true;
}

std::string SlowOperations::Describe(const Operation& operation) const {
  std::string text = fmt::format("{} of ", operation.kind);
  if (operation.keys != 1) text += fmt::format("{} keys from ", operation.keys);
  text += Quoted(operation.key);
  if (!operation.family.empty()) text += fmt::format(" in {}", operation.family);
  text += fmt::format(" took {}", Milliseconds(operation.nanos));
  const char* before = ": ";
  for (const Part& part : kParts) {
    if (operation.did.*part.nanos == 0) continue;
    text += fmt::format("{}{} {}", before, Milliseconds(operation.did.*part.nanos), part.text);
    before = ", ";
  }
  if (operation.did.remote_read_count > 0) {
    text += fmt::format("; {} reads of {} bytes", operation.did.remote_read_count,
                        operation.did.remote_read_bytes);
  }
  before = "; waited for ";
  for (const pool::NodeWaits::Wait& wait : operation.waits.waits()) {
    const char* const what = wait.what == pool::NodeWaits::What::kLog ? "log" : "reads";
    text +=
        fmt::format("{}{} {} ({})", before, address_(wait.node), Milliseconds(wait.nanos), what);
    before = ", ";
  }
  return text;
}

void SlowOperations::Add(const Operation& operation) {
  count_.fetch_add(1, std::memory_order_relaxed);
  uint64_t left_out = 0;
  if (!MayDescribe(&left_out)) return;
  Line line{.at_nanos = clock_->NowNanos(), .text = Describe(operation)};
  if (left_out > 0) line.text += fmt::format("; {} more were slow before it", left_out);
  Log(log_, LogLevel::kWarn, "{}: slow operation: {}", name_, line.text);
  MutexLock lock(&mutex_);
  latest_.push_back(std::move(line));
  if (latest_.size() > kRemembered) latest_.pop_front();
}

std::vector<SlowOperations::Line> SlowOperations::Latest() const {
  MutexLock lock(&mutex_);
  return {latest_.begin(), latest_.end()};
}

// ---- SlowOperationWatch -------------------------------------------------------------------------

struct SlowOperationWatch::Active {
  SlowOperations* operations;
  SlowOperations::Operation operation;
  PerfLevel level;  ///< The thread's, which counts for the caller.
  PerfContext before;
  uint64_t start_nanos;
};

void SlowOperationWatch::Begin(SlowOperations* operations, std::string_view kind,
                               std::string_view family, const Slice& key, uint64_t keys) {
  if (pool::CurrentNodeWaits() != nullptr) return;
  auto active = std::make_unique<Active>();
  active->operations = operations;
  active->operation.kind = kind;
  active->operation.family = family;
  active->operation.key = key;
  active->operation.keys = keys;
  active->level = perf_internal::level;
  active->before = perf_internal::context;
  perf_internal::level = std::max(active->level, kEnableTimeExceptForMutex);
  active->start_nanos = operations->clock()->NowNanos();
  active_ = active.release();
  pool::SetCurrentNodeWaits(&active_->operation.waits);
}

void SlowOperationWatch::End() {
  const std::unique_ptr<Active> active(active_);
  SlowOperations::Operation& operation = active->operation;
  operation.nanos = active->operations->clock()->NowNanos() - active->start_nanos;
  operation.did = Difference(perf_internal::context, active->before);
  pool::SetCurrentNodeWaits(nullptr);
  // The caller sees no more than it counts itself.
  if (active->level < kEnableCount) perf_internal::context = active->before;
  if (active->level == kEnableCount) {
    for (uint64_t PerfContext::*const time : kTimes) {
      perf_internal::context.*time = active->before.*time;
    }
  }
  perf_internal::level = active->level;
  const std::chrono::nanoseconds took(operation.nanos);
  if (took < active->operations->threshold()) return;
  try {
    active->operations->Add(operation);
  } catch (...) {
    // The lack of memory costs the line and nothing else.
  }
}

}  // namespace nacre
