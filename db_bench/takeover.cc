#include "db_bench/takeover.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <sstream>

#include "db_bench/key_generator.h"

namespace nacre::bench {
namespace {

/// A prime: with a number of keys that it does not divide, its multiples meet each key once.
constexpr uint64_t kStride = 2'654'435'761;

/// The records of a tail, which both processes make from the same flags.
class TailRecords {
 public:
  explicit TailRecords(const BenchConfig& config)
      : num_(config.num),
        count_(std::min(num_, std::max<uint64_t>(1, config.tail_bytes / (config.key_size +
                                                                         config.value_size_max)))),
        keys_(config.key_size),
        value_(config.value_size_max, 't') {}

  uint64_t count() const { return count_; }
  const Slice& Key(uint64_t record) { return keys_.Set(record % num_ * kStride % num_); }
  /// Stays until the next call.
  Slice Value(uint64_t record) {
    std::memcpy(value_.data(), &record, std::min(sizeof(record), value_.size()));
    return Slice(value_);
  }
  /// A key that the tail leaves alone; the last one if there is none.
  const Slice& KeyOfTables() { return Key(num_ - 1); }

  Status Check(Session* session, uint64_t record) {
    Slice found;
    Status status = session->Get(Key(record), &found);
    if (status.ok() && found != Value(record)) status = Status::Corruption("another value");
    return status.WithContext("record " + std::to_string(record) + " of the tail");
  }

 private:
  const uint64_t num_;
  const uint64_t count_;
  KeyGenerator keys_;
  std::string value_;
};

}  // namespace

Status WriteTail(const BenchConfig& config, Engine* engine) {
  TailRecords records(config);
  const std::unique_ptr<Session> session = engine->NewSession();
  for (uint64_t i = 0; i < records.count(); ++i) {
    NACRE_RETURN_IF_ERROR(session->Put(records.Key(i), records.Value(i)));
  }
  std::printf("ready: %llu records\n", static_cast<unsigned long long>(records.count()));
  std::fflush(stdout);
  return Status::OK();
}

void AwaitKill(Clock* clock, const std::atomic<bool>& stop) {
  while (!stop.load(std::memory_order_relaxed)) clock->SleepFor(std::chrono::milliseconds(20));
}

Status MeasureTakeover(const BenchConfig& config, Engine* engine, Clock* clock,
                       TakeoverResult* result) {
  constexpr uint64_t kNanosPerMicro = 1000;
  TailRecords records(config);
  const uint64_t start = clock->NowNanos();
  NACRE_RETURN_IF_ERROR(engine->OpenExisting());
  const std::unique_ptr<Session> session = engine->NewSession();
  NACRE_RETURN_IF_ERROR(records.Check(session.get(), records.count() - 1));
  Slice value;
  NACRE_RETURN_IF_ERROR(session->Get(records.KeyOfTables(), &value));
  result->first_get_micros = (clock->NowNanos() - start) / kNanosPerMicro;
  if (value.size() != config.value_size_max) return Status::Corruption("a value of another size");

  NACRE_RETURN_IF_ERROR(session->Put(records.Key(0), records.Value(0)));
  result->first_put_micros = (clock->NowNanos() - start) / kNanosPerMicro;
  for (uint64_t i = 0; i < records.count(); ++i) {
    NACRE_RETURN_IF_ERROR(records.Check(session.get(), i));
  }

  std::string timeline;
  NACRE_RETURN_IF_ERROR(engine->OpenTimeline(&timeline));
  std::istringstream lines(timeline);
  std::string step;
  for (uint64_t micros = 0; lines >> step >> micros;) result->steps.emplace_back(step, micros);
  return Status::OK();
}

}  // namespace nacre::bench
