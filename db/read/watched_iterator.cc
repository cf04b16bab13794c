#include "db/read/watched_iterator.h"

#include <utility>

namespace nacre {
namespace {

class WatchedIterator final : public Iterator {
 public:
  WatchedIterator(std::unique_ptr<Iterator> iterator, SlowOperations* operations,
                  std::string family)
      : iterator_(std::move(iterator)), operations_(operations), family_(std::move(family)) {}

  bool Valid() const override { return iterator_->Valid(); }
  void SeekToFirst() override {
    const SlowOperationWatch watch(operations_, "SeekToFirst", family_, Slice());
    iterator_->SeekToFirst();
  }
  void SeekToLast() override {
    const SlowOperationWatch watch(operations_, "SeekToLast", family_, Slice());
    iterator_->SeekToLast();
  }
  void Seek(const Slice& target) override {
    const SlowOperationWatch watch(operations_, "Seek", family_, target);
    iterator_->Seek(target);
  }
  void SeekForPrev(const Slice& target) override {
    const SlowOperationWatch watch(operations_, "SeekForPrev", family_, target);
    iterator_->SeekForPrev(target);
  }
  void Next() override {
    Move("Next", [this] { iterator_->Next(); });
  }
  void Prev() override {
    Move("Prev", [this] { iterator_->Prev(); });
  }
  Slice key() const override { return iterator_->key(); }
  Slice value() const override { return iterator_->value(); }
  Status status() const override { return iterator_->status(); }

 private:
  /// The key from which it moves is gone when the move has ended.
  template <typename Moving>
  void Move(const char* kind, const Moving& move) {
    const std::string from = iterator_->key().ToString();
    const SlowOperationWatch watch(operations_, kind, family_, from);
    move();
  }

  const std::unique_ptr<Iterator> iterator_;
  SlowOperations* const operations_;
  const std::string family_;
};

}  // namespace

std::unique_ptr<Iterator> NewWatchedIterator(std::unique_ptr<Iterator> iterator,
                                             SlowOperations* operations, std::string family) {
  return std::make_unique<WatchedIterator>(std::move(iterator), operations, std::move(family));
}

}  // namespace nacre
