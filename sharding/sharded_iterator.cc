#include "sharding/sharded_iterator.h"

#include <optional>
#include <string>
#include <utility>

#include "db/read/iterator_bounds.h"
#include "sharding/local_shard.h"

namespace nacre {
namespace {

class ShardedIterator final : public Iterator {
 public:
  ShardedIterator(const ReadOptions& options, std::shared_ptr<const ShardedSnapshot> snapshot,
                  std::shared_ptr<const SliceTransform> extractor, NewShardIterator make)
      : options_(options),
        bounds_(options),
        snapshot_(std::move(snapshot)),
        map_(&snapshot_->view().map),
        extractor_(options.prefix_same_as_start && !options.total_order_seek ? std::move(extractor)
                                                                             : nullptr),
        make_(std::move(make)) {
    // Prefixes are looked at here: that of a shard's first key is not the one that was sought.
    options_.prefix_same_as_start = false;
  }

  bool Valid() const override { return valid_; }
  void SeekToFirst() override {
    Begin();
    const size_t first = lower_.has_value() ? map_->Find(*lower_) : 0;
    In(first)->SeekToFirst();
    SettleForward();
  }
  void SeekToLast() override {
    Begin();
    const size_t last = upper_.has_value() ? map_->Find(*upper_) : map_->size() - 1;
    In(last)->SeekToLast();
    SettleBackward();
  }
  void Seek(const Slice& target) override {
    Begin();
    KeepPrefix(target);
    const bool before = lower_.has_value() && map_->comparator()->Compare(target, *lower_) < 0;
    In(map_->Find(before ? Slice(*lower_) : target))->Seek(target);
    SettleForward();
  }
  void SeekForPrev(const Slice& target) override {
    Begin();
    KeepPrefix(target);
    const bool behind = upper_.has_value() && map_->comparator()->Compare(target, *upper_) > 0;
    In(map_->Find(behind ? Slice(*upper_) : target))->SeekForPrev(target);
    SettleBackward();
  }
  void Next() override {
    current_->Next();
    if (!IsSettled()) [[unlikely]]
      SettleForward();
  }
  void Prev() override {
    current_->Prev();
    if (!IsSettled()) [[unlikely]]
      SettleBackward();
  }
  Slice key() const override { return current_->key(); }
  Slice value() const override { return current_->value(); }
  Status status() const override {
    const Status status = current_ == nullptr ? Status::OK() : current_->status();
    const LocalShard* const shard =
        status.ok() ? nullptr : snapshot_->view().shards[index_]->local();
    if (shard == nullptr || !shard->may_move()) return status;
    // Its database was closed, or belongs to another process.
    return shard->left() || status.IsFenced() ? Status::Aborted(status.ToString()) : status;
  }

 private:
  void Begin() {
    bounds_.CopyTo(&lower_, &upper_);
    prefix_.reset();
  }
  void KeepPrefix(const Slice& target) {
    if (extractor_ == nullptr || !extractor_->InDomain(target)) return;
    prefix_ = extractor_->Transform(target).ToString();
  }
  bool HasPrefix(const Slice& key) const {
    return !prefix_.has_value() ||
           (extractor_->InDomain(key) && extractor_->Transform(key) == Slice(*prefix_));
  }
  /// After a step from a valid entry: it is at another one of the same shard, as nearly always.
  bool IsSettled() const { return current_->Valid() && !prefix_.has_value(); }
  /// The iterator of that shard.
  Iterator* In(size_t index) {
    if (current_ == nullptr || index_ != index) {
      ReadOptions options = options_;
      options.snapshot = snapshot_->of_shard(index);
      current_.reset();  // Its memory goes before the next one takes some.
      current_ = make_(options, index);
      index_ = index;
    }
    return current_.get();
  }
  void SettleForward() {
    while (!current_->Valid() && current_->status().ok() && index_ + 1 < map_->size()) {
      // Nothing is sought in shards beyond the bound.
      const Slice begin(map_->shards()[index_ + 1].begin);
      if (upper_.has_value() && map_->comparator()->Compare(begin, *upper_) >= 0) break;
      In(index_ + 1)->SeekToFirst();
    }
    valid_ = current_->Valid() && HasPrefix(current_->key());
  }
  void SettleBackward() {
    while (!current_->Valid() && current_->status().ok() && index_ > 0) {
      const Slice begin(map_->shards()[index_].begin);
      if (lower_.has_value() && map_->comparator()->Compare(begin, *lower_) <= 0) break;
      In(index_ - 1)->SeekToLast();
    }
    valid_ = current_->Valid() && HasPrefix(current_->key());
  }

  ReadOptions options_;
  const IteratorBounds bounds_;
  const std::shared_ptr<const ShardedSnapshot> snapshot_;
  const ShardMap* const map_;
  const std::shared_ptr<const SliceTransform> extractor_;  ///< Null: prefixes do not matter.
  const NewShardIterator make_;
  std::optional<std::string> lower_;  ///< As of the latest seek.
  std::optional<std::string> upper_;
  std::optional<std::string> prefix_;
  std::unique_ptr<Iterator> current_;
  size_t index_ = 0;
  bool valid_ = false;
};

}  // namespace

std::unique_ptr<Iterator> NewShardedIterator(const ReadOptions& options,
                                             std::shared_ptr<const ShardedSnapshot> snapshot,
                                             std::shared_ptr<const SliceTransform> extractor,
                                             NewShardIterator make) {
  return std::make_unique<ShardedIterator>(options, std::move(snapshot), std::move(extractor),
                                           std::move(make));
}

}  // namespace nacre
