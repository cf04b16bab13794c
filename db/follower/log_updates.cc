#include "db/follower/log_updates.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "db/follower/follower_state.h"
#include "pool/reports.h"
#include "table/format/write_batch_format.h"
#include "util/coding.h"
#include "util/exceptions.h"
#include "util/planted_bug.h"

namespace nacre {
namespace {

/// Keeps what the log had when it was looked at last, which is at most what it has at all: its
/// length is bounded by the owner's MemTables, and by what it is to keep beyond them.
class LogUpdates final : public TransactionLogIterator, private FollowerState::LogObserver {
 public:
  LogUpdates(std::shared_ptr<pool::PoolImpl> pool, std::shared_ptr<const TableKeys> keys,
             const std::string& name, SequenceNumber since)
      : pool_(std::move(pool)),
        keys_(std::move(keys)),
        shown_(since == 0 ? 0 : since - 1),
        state_(name, pool_->client(), {.keys = keys_.get()}) {}

  Status Open() {
    NACRE_RETURN_IF_ERROR(state_.OpenLog(this));
    TakeShown();
    return Status::OK();
  }

  bool Valid() const override { return !records_.empty(); }
  void Next() override {
    if (!records_.empty()) records_.pop_front();
    if (!records_.empty()) return;
    status_ = CatchAll([this] { return state_.CatchUp(FollowerState::Goal::kRecent); });
    TakeShown();
  }
  Status status() const override { return Valid() ? Status::OK() : status_; }
  BatchResult GetBatch() override {
    Batch& batch = records_.front();
    return {.sequence = batch.first,
            .write_batch = std::make_unique<WriteBatch>(std::move(batch.bytes))};
  }
  uint64_t LatestSequence() const override { return shown_; }

  Status Acknowledge(uint64_t reader, uint64_t sequence, bool restorable) override {
    if (reader == 0) return Status::InvalidArgument("Acknowledge: the reader's number is 0");
    // The owner asks all nodes: that a few know it outlasts the loss of most of these.
    constexpr size_t kNodesTold = 8;
    std::vector<NodeId> nodes = pool::LiveNodes(*pool_->client());
    if (nodes.size() > kNodesTold) nodes.resize(kNodesTold);
    std::vector<pool::LogReader> others;
    return CatchAll([&] {
      return pool::AcknowledgeLog(pool_->client(), nodes, state_.database_id(), reader, sequence,
                                  restorable, &others);
    });
  }

 private:
  struct Batch {
    SequenceNumber first;
    std::string bytes;  ///< As WriteBatch::Data has it.
  };

  void Record(SequenceNumber first, uint32_t count, const Slice& updates) override {
    if (first + count - 1 <= shown_) return;
    Batch& batch = pending_.emplace_back(Batch{.first = first, .bytes = {}});
    batch.bytes.reserve(kWriteBatchHeader + updates.size());
    PutFixed64(&batch.bytes, first);
    PutFixed32(&batch.bytes, count);
    batch.bytes.append(updates.data(), updates.size());
  }
  void Forget() override {
    if (!NACRE_PLANTED_BUG("updates.kept-of-a-log-that-is-forgotten")) pending_.clear();
  }
  /// A follower's view is never taken back: what it shows may be given out.
  void TakeShown() {
    const auto view = state_.View();
    if (view == nullptr) return;
    for (; !pending_.empty() && pending_.front().first <= view->sequence; pending_.pop_front()) {
      records_.push_back(std::move(pending_.front()));
    }
    shown_ = std::max(shown_, view->sequence);
  }

  const std::shared_ptr<pool::PoolImpl> pool_;
  const std::shared_ptr<const TableKeys> keys_;
  SequenceNumber shown_;  ///< All up to here is in records_, was given out, or is not wanted.
  FollowerState state_;
  std::deque<Batch> pending_;  ///< The log has them, and the view does not show them yet.
  std::deque<Batch> records_;
  Status status_;
};

}  // namespace

Status NewLogUpdates(std::shared_ptr<pool::PoolImpl> pool, std::shared_ptr<const TableKeys> keys,
                     const std::string& name, SequenceNumber since,
                     std::unique_ptr<TransactionLogIterator>* updates) {
  updates->reset();
  // A database that is closed has none either, until it is opened.
  if (pool->uri().starts_with("embedded:")) {
    return Status::NotSupported("database " + name + ": there is no log in an embedded pool");
  }
  auto opened = std::make_unique<LogUpdates>(std::move(pool), std::move(keys), name, since);
  NACRE_RETURN_IF_ERROR(CatchAll([&] { return opened->Open(); }).WithContext("database " + name));
  *updates = std::move(opened);
  return Status::OK();
}

}  // namespace nacre
