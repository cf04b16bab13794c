#include <span>

#include "db_bench/key_generator.h"
#include "db_bench/scan.h"
#include "db_bench/workload.h"

namespace nacre::bench {
namespace {

Status ReadKeys(Worker* worker, bool missing) {
  OpBudget budget = worker->Budget(worker->config.reads);
  KeyGenerator keys(worker->config.key_size, 1, missing);
  uint64_t lookups = 0;
  uint64_t found = 0;
  uint64_t bytes = 0;
  while (budget.Take() != 0) {
    const Slice key = keys.Set(worker->RandomNumber());
    Slice value;
    const Status status = worker->session->Get(key, &value);
    ++lookups;
    if (status.ok()) {
      ++found;
      bytes += key.size() + value.size();
    } else if (!status.IsNotFound()) {
      return status;
    }
    worker->recorder->FinishedOps(1, OpType::kRead);
  }
  worker->recorder->AddBytes(bytes);
  worker->recorder->AddLookups(lookups, found);
  return Status::OK();
}

enum class Direction : uint8_t { kForward, kBackward };

Status ReadInOrder(Worker* worker, Direction direction) {
  const bool forward = direction == Direction::kForward;
  OpBudget budget = worker->Budget(worker->config.reads, false);
  Cursor* cursor = worker->session->NewCursor();
  uint64_t entries = 0;
  uint64_t bytes = 0;
  bool valid = forward ? cursor->SeekToFirst() : cursor->SeekToLast();
  while (valid && budget.Take() != 0) {
    ++entries;
    bytes += cursor->key().size() + cursor->value().size();
    worker->recorder->FinishedOps(1, OpType::kRead);
    valid = forward ? cursor->Next() : cursor->Prev();
  }
  worker->recorder->AddBytes(bytes);
  worker->recorder->AddLookups(entries, entries);
  Status status = cursor->status();
  worker->session->CloseCursor();
  return status;
}

}  // namespace

Status ReadRandom(Worker* worker) { return ReadKeys(worker, false); }

Status ReadMissing(Worker* worker) { return ReadKeys(worker, true); }

Status MultiReadRandom(Worker* worker) {
  const uint64_t batch = worker->config.multiread_batch;
  OpBudget budget = worker->Budget(worker->config.reads);
  KeyGenerator keys(worker->config.key_size, batch);
  uint64_t lookups = 0;
  uint64_t found = 0;
  uint64_t bytes = 0;
  while (const uint64_t count = budget.Take(batch)) {
    for (uint64_t i = 0; i < count; ++i) keys.Set(worker->RandomNumber(), i);
    MultiGetResult result;
    NACRE_RETURN_IF_ERROR(worker->session->MultiGet(std::span(keys.keys(), count), &result));
    lookups += count;
    found += result.found;
    bytes += result.found * worker->config.key_size + result.value_bytes;
    worker->recorder->FinishedOps(count, OpType::kRead);
  }
  worker->recorder->AddBytes(bytes);
  worker->recorder->AddLookups(lookups, found);
  return Status::OK();
}

Status AsyncReadRandom(Worker* worker) {
  class Lookups final : public ConcurrentLookups {
   public:
    explicit Lookups(Worker* owner)
        : worker(owner),
          budget(owner->Budget(owner->config.reads)),
          keys(owner->config.key_size, owner->config.async_reads) {}
    const Slice* Next(size_t reader) override {
      return budget.Take() == 0 ? nullptr : &keys.Set(worker->RandomNumber(), reader);
    }
    void Found(const Slice& value) override {
      ++found;
      bytes += worker->config.key_size + value.size();
      Missed();
    }
    void Missed() override {
      ++lookups;
      worker->recorder->FinishedOps(1, OpType::kRead);
    }

    Worker* const worker;
    OpBudget budget;
    KeyGenerator keys;
    uint64_t lookups = 0;
    uint64_t found = 0;
    uint64_t bytes = 0;
  };
  Lookups lookups(worker);
  const Status status = worker->session->GetConcurrently(worker->config.async_reads, &lookups);
  worker->recorder->AddBytes(lookups.bytes);
  worker->recorder->AddLookups(lookups.lookups, lookups.found);
  return status;
}

Status ReadSequential(Worker* worker) { return ReadInOrder(worker, Direction::kForward); }

Status ReadReverse(Worker* worker) { return ReadInOrder(worker, Direction::kBackward); }

Status SeekRandom(Worker* worker) {
  const auto steps = static_cast<uint64_t>(worker->config.seek_nexts);
  OpBudget budget = worker->Budget(worker->config.seeks);
  KeyGenerator keys(worker->config.key_size);
  uint64_t lookups = 0;
  uint64_t found = 0;
  uint64_t bytes = 0;
  while (budget.Take() != 0) {
    const Slice key = keys.Set(worker->RandomNumber());
    Cursor* cursor = worker->session->NewCursor();
    ++lookups;
    bool valid = cursor->Seek(key);
    if (valid) {
      if (cursor->key() == key) ++found;
      valid = ReadEntries(cursor, steps, worker->config.reverse_iterator, &bytes);
    }
    if (!valid) NACRE_RETURN_IF_ERROR(cursor->status());
    worker->recorder->FinishedOps(1, OpType::kSeek);
  }
  worker->session->CloseCursor();
  worker->recorder->AddBytes(bytes);
  worker->recorder->AddLookups(lookups, found);
  return Status::OK();
}

}  // namespace nacre::bench
