#include "db_bench/key_generator.h"
#include "db_bench/scan.h"
#include "db_bench/workload.h"
#include "db_bench/ycsb/ycsb_keys.h"

namespace nacre::bench {
namespace {

enum class Choice : uint8_t { kZipfian, kLatest };

/// Shares of operations; what is left of 1 are reads.
struct Mix {
  Choice choice = Choice::kZipfian;
  double updates = 0;
  double inserts = 0;
  double scans = 0;
  double read_modify_writes = 0;
};

constexpr uint64_t kScanEntriesMax = 100;

/// The operations of one thread.
class YcsbClient {
 public:
  YcsbClient(Worker* worker, const Mix& mix)
      : worker_(worker),
        mix_(mix),
        records_(worker->shared->ycsb_records),
        zipfian_items_(worker->shared->ycsb_records_before + ExpectedInserts(worker->config, mix)),
        keys_(worker->config.key_size) {}

  Status Run() {
    OpBudget budget = worker_->Budget(worker_->config.readwrites);
    Status status;
    while (status.ok() && budget.Take() != 0) status = RunOne();
    worker_->session->CloseCursor();
    worker_->recorder->AddBytes(bytes_);
    worker_->recorder->AddLookups(lookups_, found_);
    return status;
  }

 private:
  /// CoreWorkload spreads records over twice as many new ones as it expects, and draws again while
  /// it has drawn one that is not there yet.
  static uint64_t ExpectedInserts(const BenchConfig& config, const Mix& mix) {
    const auto ops = static_cast<double>(config.readwrites) * static_cast<double>(config.threads);
    return static_cast<uint64_t>(2 * ops * mix.inserts);
  }

  Status RunOne() {
    double draw = worker_->random.NextDouble();
    const auto falls_into = [&draw](double share) {
      draw -= share;
      return draw < 0;
    };
    if (falls_into(mix_.updates)) return Finish(Write(ChooseRecord()), OpType::kWrite);
    if (falls_into(mix_.inserts)) return Finish(Insert(), OpType::kWrite);
    if (falls_into(mix_.scans)) return Finish(Scan(), OpType::kSeek);
    if (falls_into(mix_.read_modify_writes)) {
      const uint64_t record = ChooseRecord();
      NACRE_RETURN_IF_ERROR(Read(record));
      return Finish(Write(record), OpType::kReadModifyWrite);
    }
    return Finish(Read(ChooseRecord()), OpType::kRead);
  }

  Status Finish(Status status, OpType type) {
    if (status.ok()) worker_->recorder->FinishedOps(1, type);
    return status;
  }

  uint64_t ChooseRecord() {
    if (mix_.choice == Choice::kLatest) return latest_.Next(&worker_->random, records_->count());
    while (true) {
      const uint64_t record = zipfian_.Next(&worker_->random, zipfian_items_);
      if (record < records_->count()) return record;
    }
  }
  const Slice& KeyOf(uint64_t record) { return keys_.Set(YcsbHash(record)); }

  Status Read(uint64_t record) {
    Slice value;
    const Status status = worker_->session->Get(KeyOf(record), &value);
    ++lookups_;
    if (status.IsNotFound()) return Status::OK();
    NACRE_RETURN_IF_ERROR(status);
    ++found_;
    bytes_ += worker_->config.key_size + value.size();
    return Status::OK();
  }
  Status Write(uint64_t record) {
    const Slice value = worker_->values.Next();
    bytes_ += worker_->config.key_size + value.size();
    return worker_->session->Put(KeyOf(record), value);
  }
  Status Insert() {
    const uint64_t record = records_->Begin();
    NACRE_RETURN_IF_ERROR(Write(record));
    records_->End(record);
    return Status::OK();
  }
  Status Scan() {
    const Slice& first = KeyOf(ChooseRecord());
    const uint64_t entries = 1 + worker_->random.Uniform(kScanEntriesMax);
    Cursor* cursor = worker_->session->NewCursor();
    ++lookups_;
    bool valid = cursor->Seek(first);
    if (valid) {
      if (cursor->key() == first) ++found_;
      valid = ReadEntries(cursor, entries, /*backward=*/false, &bytes_);
    }
    return valid ? Status::OK() : cursor->status();
  }

  Worker* const worker_;
  const Mix mix_;
  YcsbRecords* const records_;
  const uint64_t zipfian_items_;
  const YcsbZipfian zipfian_;
  YcsbLatest latest_;
  KeyGenerator keys_;
  uint64_t lookups_ = 0;
  uint64_t found_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace

Status YcsbLoad(Worker* worker) {
  KeyGenerator keys(worker->config.key_size);
  OpBudget budget = worker->Budget(worker->config.num, false);
  YcsbRecords* const records = worker->shared->ycsb_records;
  while (budget.Take() != 0) {
    const uint64_t record = records->Begin();
    if (record >= worker->config.num) break;
    const Slice& key = keys.Set(YcsbHash(record));
    const Slice value = worker->values.Next();
    NACRE_RETURN_IF_ERROR(worker->session->Put(key, value));
    worker->recorder->AddBytes(key.size() + value.size());
    worker->recorder->FinishedOps(1, OpType::kWrite);
  }
  return Status::OK();
}

Status YcsbA(Worker* worker) { return YcsbClient(worker, {.updates = 0.5}).Run(); }
Status YcsbB(Worker* worker) { return YcsbClient(worker, {.updates = 0.05}).Run(); }
Status YcsbC(Worker* worker) { return YcsbClient(worker, {}).Run(); }
Status YcsbD(Worker* worker) {
  return YcsbClient(worker, {.choice = Choice::kLatest, .inserts = 0.05}).Run();
}
Status YcsbE(Worker* worker) { return YcsbClient(worker, {.inserts = 0.05, .scans = 0.95}).Run(); }
Status YcsbF(Worker* worker) { return YcsbClient(worker, {.read_modify_writes = 0.5}).Run(); }

}  // namespace nacre::bench
