#include "db_bench/key_generator.h"
#include "db_bench/workload.h"

namespace nacre::bench {

Status ReadRandomWriteRandom(Worker* worker) {
  constexpr int kCycle = 100;
  const int reads_per_cycle = worker->config.readwritepercent;
  OpBudget budget = worker->Budget(worker->config.readwrites);
  KeyGenerator keys(worker->config.key_size);
  int position = 0;
  uint64_t reads = 0;
  uint64_t found = 0;
  while (budget.Take() != 0) {
    const Slice key = keys.Set(worker->RandomNumber());
    // First all reads of a cycle, then its writes, as in RocksDB.
    const bool read = position < reads_per_cycle;
    position = position + 1 == kCycle ? 0 : position + 1;
    if (read) {
      Slice value;
      const Status status = worker->session->Get(key, &value);
      ++reads;
      if (status.ok()) {
        ++found;
      } else if (!status.IsNotFound()) {
        return status;
      }
      worker->recorder->FinishedOps(1, OpType::kRead);
    } else {
      NACRE_RETURN_IF_ERROR(worker->session->Put(key, worker->values.Next()));
      worker->recorder->FinishedOps(1, OpType::kWrite);
    }
  }
  worker->recorder->AddLookups(reads, found);
  return Status::OK();
}

}  // namespace nacre::bench
