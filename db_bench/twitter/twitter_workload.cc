#include <optional>

#include "db_bench/key_generator.h"
#include "db_bench/keys/zipf_distribution.h"
#include "db_bench/twitter/expiry.h"
#include "db_bench/twitter/twitter_clusters.h"
#include "db_bench/workload.h"
#include "db_bench/ycsb/ycsb_keys.h"

namespace nacre::bench {
namespace {

/// A smaller exponent cannot be told from a uniform distribution.
constexpr double kAlphaMin = 0.01;

/// The operations of one thread. Ranks of records are their numbers: their keys, which are hashed,
/// are scattered.
class TwitterClient {
 public:
  TwitterClient(Worker* worker, const TwitterCluster& cluster)
      : worker_(worker),
        cluster_(cluster),
        keys_(worker->config.key_size),
        expiry_(worker->config.ttl_ops / static_cast<uint64_t>(worker->config.threads),
                worker->shared->record_versions) {
    if (cluster.zipf_alpha >= kAlphaMin) zipf_.emplace(worker->config.num, cluster.zipf_alpha);
  }

  Status Run() {
    OpBudget budget = worker_->Budget(worker_->config.readwrites);
    Status status;
    for (; status.ok() && budget.Take() != 0; ++done_) status = RunOne();
    worker_->recorder->AddBytes(bytes_);
    worker_->recorder->AddLookups(lookups_, found_);
    return status;
  }

 private:
  Status RunOne() {
    if (const std::optional<uint64_t> expired = expiry_.TakeExpired(done_)) {
      return Delete(*expired);
    }
    const uint64_t record = zipf_.has_value() ? zipf_->Next(&worker_->random)
                                              : worker_->random.Uniform(worker_->config.num);
    const double draw = worker_->random.NextDouble();
    if (draw < cluster_.sets) return Set(record);
    return draw < cluster_.sets + cluster_.deletes ? Delete(record) : Get(record);
  }

  Status Finish(Status status, OpType type) {
    if (status.ok()) worker_->recorder->FinishedOps(1, type);
    return status;
  }
  const Slice& KeyOf(uint64_t record) { return keys_.Set(YcsbHash(record)); }

  Status Get(uint64_t record) {
    Slice value;
    Status status = worker_->session->Get(KeyOf(record), &value);
    ++lookups_;
    if (status.ok()) {
      ++found_;
      bytes_ += worker_->config.key_size + value.size();
    } else if (status.IsNotFound()) {
      status = Status::OK();
    }
    return Finish(status, OpType::kRead);
  }
  Status Set(uint64_t record) {
    const Slice value = worker_->values.Next();
    bytes_ += worker_->config.key_size + value.size();
    expiry_.Written(record, done_);
    return Finish(worker_->session->Put(KeyOf(record), value), OpType::kWrite);
  }
  Status Delete(uint64_t record) {
    worker_->shared->record_versions->Advance(record);
    return Finish(worker_->session->Delete(KeyOf(record)), OpType::kDelete);
  }

  Worker* const worker_;
  const TwitterCluster& cluster_;
  KeyGenerator keys_;
  std::optional<ZipfDistribution> zipf_;  ///< None: uniform.
  ExpiryQueue expiry_;
  uint64_t done_ = 0;
  uint64_t lookups_ = 0;
  uint64_t found_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace

Status Twitter(Worker* worker) {
  return TwitterClient(worker, *FindTwitterCluster(worker->config.twitter_cluster)).Run();
}

}  // namespace nacre::bench
