#include "db/db_iterator.h"

#include <optional>
#include <string>
#include <utility>

namespace nacre {

namespace {

/// Going forward, `internal_` stands on the entry that is shown. Going backward, it stands before
/// all entries of the key that is shown, which `saved_key_` and `saved_value_` hold.
class DBIterator final : public Iterator {
 public:
  DBIterator(const InternalKeyComparator& comparator, std::unique_ptr<InternalIterator> internal,
             SequenceNumber snapshot, const ReadOptions& options,
             std::shared_ptr<const ReadView> pinned)
      : comparator_(comparator),
        pinned_(std::move(pinned)),
        internal_(std::move(internal)),
        snapshot_(snapshot) {
    if (options.iterate_lower_bound != nullptr) lower_ = options.iterate_lower_bound->ToString();
    if (options.iterate_upper_bound != nullptr) upper_ = options.iterate_upper_bound->ToString();
  }

  bool Valid() const override { return valid_; }
  Status status() const override { return internal_->status(); }

  Slice key() const override {
    assert(valid_);
    return forward_ ? internal_->user_key() : Slice(saved_key_);
  }
  Slice value() const override {
    assert(valid_);
    return forward_ ? internal_->value() : Slice(saved_value_);
  }

  void SeekToFirst() override {
    if (lower_.has_value()) {
      Seek(*lower_);
      return;
    }
    forward_ = true;
    internal_->SeekToFirst();
    FindVisibleForward(/*skip_saved=*/false);
  }

  void Seek(const Slice& target) override {
    Slice from = target;
    if (lower_.has_value() && comparator_.CompareUserKeys(from, *lower_) < 0) from = *lower_;
    forward_ = true;
    seek_key_.clear();
    AppendInternalKey(&seek_key_, from, PackTag(snapshot_, kValueTypeForSeek));
    internal_->Seek(seek_key_);
    FindVisibleForward(/*skip_saved=*/false);
  }

  void SeekToLast() override {
    forward_ = false;
    if (upper_.has_value()) {
      SeekBefore(*upper_);
    } else {
      internal_->SeekToLast();
    }
    FindVisibleBackward();
  }

  void SeekForPrev(const Slice& target) override {
    forward_ = false;
    if (upper_.has_value() && comparator_.CompareUserKeys(target, *upper_) >= 0) {
      SeekBefore(*upper_);
    } else {
      seek_key_.clear();
      AppendInternalKey(&seek_key_, target, 0);  // Behind every version of the key.
      internal_->SeekForPrev(seek_key_);
    }
    FindVisibleBackward();
  }

  void Next() override {
    assert(valid_);
    if (forward_) {
      const Slice current = internal_->user_key();
      saved_key_.assign(current.data(), current.size());
      internal_->Next();
    } else {
      forward_ = true;
      if (internal_->Valid()) {
        internal_->Next();
      } else {
        internal_->SeekToFirst();
      }
    }
    FindVisibleForward(/*skip_saved=*/true);
  }

  void Prev() override {
    assert(valid_);
    if (forward_) {
      const Slice current = internal_->user_key();
      saved_key_.assign(current.data(), current.size());
      forward_ = false;
    }
    // Step over what is left of the current key's versions.
    while (internal_->Valid() && internal_->user_key() == Slice(saved_key_)) internal_->Prev();
    FindVisibleBackward();
  }

 private:
  /// Stops at the first visible value at or after the current entry; with `skip_saved`, of a key
  /// other than saved_key_.
  void FindVisibleForward(bool skip_saved) {
    valid_ = false;
    for (; internal_->Valid(); internal_->Next()) {
      const Slice user_key = internal_->user_key();
      if (upper_.has_value() && comparator_.CompareUserKeys(user_key, *upper_) >= 0) return;
      const uint64_t tag = internal_->tag();
      if (TagSequence(tag) > snapshot_) continue;
      if (skip_saved && user_key == Slice(saved_key_)) continue;
      if (TagType(tag) == ValueType::kDeletion) {
        saved_key_.assign(user_key.data(), user_key.size());
        skip_saved = true;
        continue;
      }
      valid_ = true;
      return;
    }
  }

  /// Collects, going backward, the newest visible version of the nearest key that has a value.
  void FindVisibleBackward() {
    valid_ = false;
    bool found = false;
    for (; internal_->Valid(); internal_->Prev()) {
      const Slice user_key = internal_->user_key();
      // Versions of one key come oldest first here; another key means the last one is complete.
      if (found && !(user_key == Slice(saved_key_))) break;
      if (lower_.has_value() && comparator_.CompareUserKeys(user_key, *lower_) < 0) break;
      const uint64_t tag = internal_->tag();
      if (TagSequence(tag) > snapshot_) continue;
      if (TagType(tag) == ValueType::kDeletion) {
        found = false;
        continue;
      }
      if (!found) saved_key_.assign(user_key.data(), user_key.size());
      const Slice value = internal_->value();
      saved_value_.assign(value.data(), value.size());
      found = true;
    }
    valid_ = found && internal_->status().ok();
  }

  void SeekBefore(const Slice& user_key) {
    seek_key_.clear();
    AppendInternalKey(&seek_key_, user_key, PackTag(kMaxSequenceNumber, kValueTypeForSeek));
    internal_->SeekForPrev(seek_key_);
    while (internal_->Valid() &&
           comparator_.CompareUserKeys(internal_->user_key(), user_key) >= 0) {
      internal_->Prev();
    }
  }

  const InternalKeyComparator comparator_;
  const std::shared_ptr<const ReadView> pinned_;  // Outlives internal_.
  const std::unique_ptr<InternalIterator> internal_;
  const SequenceNumber snapshot_;
  std::optional<std::string> lower_;
  std::optional<std::string> upper_;
  bool valid_ = false;
  bool forward_ = true;
  std::string saved_key_;
  std::string saved_value_;
  std::string seek_key_;
};

class ErrorIterator final : public Iterator {
 public:
  explicit ErrorIterator(Status status) : status_(std::move(status)) {}
  bool Valid() const override { return false; }
  void SeekToFirst() override {}
  void SeekToLast() override {}
  void Seek(const Slice&) override {}
  void SeekForPrev(const Slice&) override {}
  void Next() override { assert(false); }
  void Prev() override { assert(false); }
  Slice key() const override { return {}; }
  Slice value() const override { return {}; }
  Status status() const override { return status_; }

 private:
  const Status status_;
};

}  // namespace

std::unique_ptr<Iterator> NewDBIterator(const InternalKeyComparator& comparator,
                                        std::unique_ptr<InternalIterator> internal,
                                        SequenceNumber snapshot, const ReadOptions& options,
                                        std::shared_ptr<const ReadView> pinned) {
  return std::make_unique<DBIterator>(comparator, std::move(internal), snapshot, options,
                                      std::move(pinned));
}

std::unique_ptr<Iterator> NewErrorIterator(Status status) {
  return std::make_unique<ErrorIterator>(std::move(status));
}

}  // namespace nacre
