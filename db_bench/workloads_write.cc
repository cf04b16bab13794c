#include "db_bench/key_generator.h"
#include "db_bench/workload.h"

namespace nacre::bench {
namespace {

enum class KeyOrder : uint8_t { kSequential, kUniform, kChosen };

uint64_t NextNumber(Worker* worker, KeyOrder order, uint64_t* next) {
  switch (order) {
    case KeyOrder::kSequential:
      return (*next)++;
    case KeyOrder::kUniform:
      return worker->random.Uniform(worker->config.num);
    case KeyOrder::kChosen:
      break;
  }
  return worker->RandomNumber();
}

/// One entry is written with the engine's fastest call for one, more as a batch.
Status WriteKeys(Worker* worker, KeyOrder order, uint64_t entries_per_batch) {
  OpBudget budget = worker->Budget(worker->config.writes, order != KeyOrder::kSequential);
  KeyGenerator keys(worker->config.key_size);
  uint64_t next = 0;
  while (const uint64_t entries = budget.Take(entries_per_batch)) {
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < entries; ++i) {
      const Slice key = keys.Set(NextNumber(worker, order, &next));
      const Slice value = worker->values.Next();
      bytes += key.size() + value.size();
      worker->shared->write_limiter->Request(key.size() + value.size());
      NACRE_RETURN_IF_ERROR(entries_per_batch == 1 ? worker->session->Put(key, value)
                                                   : worker->session->BatchPut(key, value));
    }
    if (entries_per_batch > 1) NACRE_RETURN_IF_ERROR(worker->session->BatchWrite());
    worker->recorder->AddBytes(bytes);
    worker->recorder->FinishedOps(entries, OpType::kWrite);
  }
  return Status::OK();
}

}  // namespace

Status FillSequential(Worker* worker) {
  return WriteKeys(worker, KeyOrder::kSequential, worker->config.batch_size);
}

Status FillRandom(Worker* worker) {
  return WriteKeys(worker, KeyOrder::kUniform, worker->config.batch_size);
}

Status Overwrite(Worker* worker) {
  return WriteKeys(worker, KeyOrder::kChosen, worker->config.batch_size);
}

Status FillBatch(Worker* worker) {
  return WriteKeys(worker, KeyOrder::kSequential, kFillBatchEntries);
}

Status DeleteRandom(Worker* worker) {
  const uint64_t entries_per_batch = worker->config.batch_size;
  OpBudget budget = worker->Budget(worker->config.deletes);
  KeyGenerator keys(worker->config.key_size);
  while (const uint64_t entries = budget.Take(entries_per_batch)) {
    for (uint64_t i = 0; i < entries; ++i) {
      const Slice key = keys.Set(worker->RandomNumber());
      NACRE_RETURN_IF_ERROR(entries_per_batch == 1 ? worker->session->Delete(key)
                                                   : worker->session->BatchDelete(key));
    }
    if (entries_per_batch > 1) NACRE_RETURN_IF_ERROR(worker->session->BatchWrite());
    worker->recorder->FinishedOps(entries, OpType::kDelete);
  }
  return Status::OK();
}

Status RawWrite(Worker* worker) {
  OpBudget budget = worker->Budget(worker->config.writes);
  while (budget.Take() != 0) {
    NACRE_RETURN_IF_ERROR(worker->session->RawWrite());
    worker->recorder->AddBytes(worker->config.key_size + worker->config.value_size_max);
    worker->recorder->FinishedOps(1, OpType::kWrite);
  }
  return Status::OK();
}

Status WriteInBackground(Worker* worker) {
  const bool finish_writes = worker->config.finish_after_writes;
  // Its work is bounded by the readers, so --duration is theirs to watch.
  OpBudget budget = worker->Budget(finish_writes ? worker->config.writes : UINT64_MAX, false);
  KeyGenerator keys(worker->config.key_size);
  while (budget.Take() != 0) {
    if (!finish_writes && worker->shared->foreground_running.load(std::memory_order_relaxed) == 0) {
      break;
    }
    const Slice key = keys.Set(worker->RandomNumber());
    const Slice value = worker->values.Next();
    worker->shared->write_limiter->Request(key.size() + value.size());
    NACRE_RETURN_IF_ERROR(worker->session->Put(key, value));
    worker->recorder->AddBytes(key.size() + value.size());
    worker->recorder->FinishedOps(1, OpType::kWrite);
  }
  return Status::OK();
}

}  // namespace nacre::bench
