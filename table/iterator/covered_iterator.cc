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

  bool Valid() const override { return base_->Valid(); }
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
  void Next() override {
    base_->Next();
    SkipForward();
  }
  void Prev() override {
    base_->Prev();
    SkipBackward();
  }
  Slice user_key() const override { return base_->user_key(); }
  uint64_t tag() const override { return base_->tag(); }
  Slice value() const override { return base_->value(); }
  Status status() const override { return base_->status(); }

 private:
  void SkipForward() {
    while (base_->Valid() && cover_.Of(base_->user_key()) > 0) SeekTo(cover_.swath_end());
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

  bool Valid() const override { return false; }
  void SeekToFirst() override {}
  void SeekToLast() override {}
  void Seek(const Slice&) override {}
  void SeekForPrev(const Slice&) override {}
  void Next() override {}
  void Prev() override {}
  Slice user_key() const override { return {}; }
  uint64_t tag() const override { return 0; }
  Slice value() const override { return {}; }
  Status status() const override { return status_; }

 private:
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
