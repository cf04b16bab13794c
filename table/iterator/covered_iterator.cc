#include "table/iterator/covered_iterator.h"

#include <string>
#include <utility>

namespace nacre {
namespace {

class UncoveredIterator final : public InternalIterator {
 public:
  UncoveredIterator(const InternalKeyComparator& comparator, std::unique_ptr<InternalIterator> base,
                    RangeCover cover)
      : comparator_(comparator), base_(std::move(base)), cover_(std::move(cover)) {}

  void SeekToFirst() override {
    base_->SeekToFirst();
    SkipForward();
  }
  void SeekToLast() override {
    base_->SeekToLast();
    SkipBackward();
  }
  void PrepareSeek(const Slice& internal_key, const Slice* upper_bound) override {
    base_->PrepareSeek(internal_key, upper_bound);
  }
  void Seek(const Slice& internal_key) override {
    base_->Seek(internal_key);
    SkipForward();
  }
  void SeekForPrev(const Slice& internal_key) override {
    base_->SeekForPrev(internal_key);
    SkipBackward();
  }
  Status status() const override { return base_->status(); }

 private:
  void NextRun() override {
    base_->Next();
    SkipForward();
  }
  void PrevRun() override {
    base_->Prev();
    SkipBackward();
  }
  /// Neighbours of the base's entry may be covered.
  void Show() { base_->Valid() ? ShowOne(base_->at()) : ShowNothing(); }
  void SkipForward() {
    while (base_->Valid() && cover_.Of(base_->user_key()) > 0) SeekTo(cover_.swath_end());
    Show();
  }
  /// What is covered is at or behind the beginning.
  void SkipBackward() {
    while (base_->Valid() && cover_.Of(base_->user_key()) > 0) {
      const std::string& begin = cover_.swath_begin();
      seek_key_.clear();
      AppendInternalKey(&seek_key_, begin, kGreatestTag);
      base_->SeekForPrev(seek_key_);
      while (base_->Valid() && comparator_.CompareUserKeys(base_->user_key(), begin) >= 0) {
        base_->Prev();
      }
    }
    Show();
  }
  void SeekTo(const std::string& user_key) {
    seek_key_.clear();
    AppendInternalKey(&seek_key_, user_key, kGreatestTag);
    base_->Seek(seek_key_);
  }

  const InternalKeyComparator comparator_;
  const std::unique_ptr<InternalIterator> base_;
  RangeCover cover_;
  std::string seek_key_;
};

class FailedIterator final : public InternalIterator {
 public:
  explicit FailedIterator(Status status) : status_(std::move(status)) {}

  void SeekToFirst() override {}
  void SeekToLast() override {}
  void Seek(const Slice&) override {}
  void SeekForPrev(const Slice&) override {}
  Status status() const override { return status_; }

 private:
  void NextRun() override {}
  void PrevRun() override {}

  const Status status_;
};

}  // namespace

std::unique_ptr<InternalIterator> NewFailedInternalIterator(Status status) {
  return std::make_unique<FailedIterator>(std::move(status));
}

std::unique_ptr<InternalIterator> NewUncoveredIterator(const InternalKeyComparator& comparator,
                                                       std::unique_ptr<InternalIterator> base,
                                                       RangeCover cover) {
  return std::make_unique<UncoveredIterator>(comparator, std::move(base), std::move(cover));
}

}  // namespace nacre
