#include "db/read/db_iterator.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "db/read/iterator_bounds.h"
#include "table/merge/merge_operands.h"
#include "util/exceptions.h"
#include "util/perf_step.h"

namespace nacre {

namespace {

/// Whether both are the same key, by words: most keys are too short for a call of memcmp to pay.
inline bool IsSameKey(const Slice& a, const Slice& b) {
  const size_t n = a.size();
  if (n != b.size()) return false;
  if (n < sizeof(uint64_t)) return a == b;
  for (size_t at = 0; at < n; at += sizeof(uint64_t)) {
    // The last word overlaps the one before it.
    const size_t from = std::min(at, n - sizeof(uint64_t));
    if (std::memcmp(a.data() + from, b.data() + from, sizeof(uint64_t)) != 0) return false;
  }
  return true;
}

/// As a rule `internal_` stands on the entry that is shown. Of a value that was merged going
/// forward, it stands behind what that was made of; and going backward, before all entries of the
/// key that is shown, if it had to look at them to know that this is the newest one. In these two
/// cases `saved_key_` and `saved_value_` hold what is shown (`saved_`).
///
/// An entry is shown by a step within a run of `internal_` if its neighbour in the run is another
/// key's, and nothing hides it.
class DBIterator final : public Iterator {
 public:
  DBIterator(const InternalKeyComparator& comparator, const ReadRules& rules,
             std::unique_ptr<InternalIterator> internal, RangeCover cover, SequenceNumber snapshot,
             const ReadOptions& options, std::shared_ptr<const ReadView> pinned)
      : comparator_(comparator),
        rules_(rules),
        pinned_(std::move(pinned)),
        internal_(std::move(internal)),
        cover_(std::move(cover)),
        snapshot_(snapshot),
        bounds_(options),
        keep_prefix_(options.prefix_same_as_start && !options.total_order_seek &&
                     rules.prefix_extractor != nullptr) {}

  bool Valid() const override { return valid_; }
  Status status() const override {
    return merge_status_.ok() ? internal_->status() : merge_status_;
  }

  Slice key() const override {
    assert(valid_);
    return saved_ ? Slice(saved_key_) : internal_->user_key();
  }
  Slice value() const override {
    assert(valid_);
    return saved_ ? Slice(saved_value_) : internal_->value();
  }

  void SeekToFirst() override try {
    bounds_.CopyTo(&lower_, &upper_);
    ForgetPrefix();
    if (lower_.has_value()) {
      SeekForward(*lower_);
      if (valid_) SetPrefix(key());
      return;
    }
    forward_ = true;
    internal_->SeekToFirst();
    FindVisibleForward(/*skip_saved=*/false);
    if (valid_) SetPrefix(key());
  } catch (...) {
    Fail();
  }

  void Seek(const Slice& target) override try {
    bounds_.CopyTo(&lower_, &upper_);
    SetPrefix(target);
    SeekForward(target);
  } catch (...) {
    Fail();
  }

  void SeekToLast() override try {
    bounds_.CopyTo(&lower_, &upper_);
    ForgetPrefix();
    forward_ = false;
    if (upper_.has_value()) {
      SeekBefore(*upper_);
    } else {
      internal_->SeekToLast();
    }
    FindVisibleBackward();
    if (valid_) SetPrefix(key());
  } catch (...) {
    Fail();
  }

  void SeekForPrev(const Slice& target) override try {
    bounds_.CopyTo(&lower_, &upper_);
    SetPrefix(target);
    forward_ = false;
    if (upper_.has_value() && comparator_.CompareUserKeys(target, *upper_) >= 0) {
      SeekBefore(*upper_);
    } else {
      seek_key_.clear();
      AppendInternalKey(&seek_key_, target, 0);  // Behind every version of the key.
      internal_->SeekForPrev(seek_key_);
    }
    FindVisibleBackward();
  } catch (...) {
    Fail();
  }

  void Next() override try {
    assert(valid_);
    if (!saved_) [[likely]] {
      const InternalEntry* const current = internal_->at();
      if (current + 1 < internal_->run_end() && ShowsNext(*current, current[1])) [[likely]] {
        return Show(current + 1);
      }
      saved_key_.assign(current->user_key.data(), current->user_key.size());
      internal_->Next();
    } else if (!forward_) {
      forward_ = true;
      if (internal_->Valid()) {
        internal_->Next();
      } else {
        internal_->SeekToFirst();
      }
    }
    FindVisibleForward(/*skip_saved=*/true);
  } catch (...) {
    Fail();
  }

  void Prev() override try {
    assert(valid_);
    // The newest version of the key before the current one, if it has but one.
    const InternalEntry* const at = internal_->at();
    const ptrdiff_t before = at - internal_->run_begin() - (saved_ ? 0 : 1);
    if (before > 0 && !(saved_ && forward_)) [[likely]] {
      const InternalEntry* const newest = internal_->run_begin() + before;
      if (ShowsPrevious(newest[-1], *newest)) [[likely]] {
        saved_ = false;
        forward_ = true;
        return Show(newest);
      }
    }
    if (!saved_) {
      const Slice current = internal_->user_key();
      saved_key_.assign(current.data(), current.size());
    } else if (forward_) {
      seek_key_.clear();
      AppendInternalKey(&seek_key_, saved_key_, PackTag(kMaxSequenceNumber, kValueTypeForSeek));
      internal_->SeekForPrev(seek_key_);
    }
    forward_ = false;
    // Step over what is left of the current key's versions.
    while (internal_->Valid() && internal_->user_key() == Slice(saved_key_)) internal_->Prev();
    FindVisibleBackward();
  } catch (...) {
    Fail();
  }

 private:
  void SeekForward(const Slice& target) {
    Slice from = target;
    if (lower_.has_value() && comparator_.CompareUserKeys(from, *lower_) < 0) from = *lower_;
    forward_ = true;
    seek_key_.clear();
    AppendInternalKey(&seek_key_, from, PackTag(snapshot_, kValueTypeForSeek));
    {
      const PerfTimer timer(&PerfContext::seek_internal_seek_time);
      const Slice upper = upper_.has_value() ? Slice(*upper_) : Slice();
      internal_->PrepareSeek(seek_key_, upper_.has_value() ? &upper : nullptr);
      internal_->Seek(seek_key_);
    }
    FindVisibleForward(/*skip_saved=*/false);
  }

  /// What the application's comparator or operator has thrown ends the position, until it is sent
  /// elsewhere.
  void Fail() {
    valid_ = false;
    merge_status_ = StatusOfException();
  }

  /// With `prefix_same_as_start`: keys with other prefixes than the target are beyond the end.
  void SetPrefix(const Slice& target) {
    ForgetPrefix();
    if (keep_prefix_ && rules_.prefix_extractor->InDomain(target)) {
      prefix_ = rules_.prefix_extractor->Transform(target).ToString();
    }
    plain_ = plain_ && !prefix_.has_value();
  }
  void ForgetPrefix() {
    prefix_.reset();
    plain_ = cover_.empty();
  }
  bool HasOtherPrefix(const Slice& user_key) const {
    if (!prefix_.has_value()) return false;
    return !rules_.prefix_extractor->InDomain(user_key) ||
           !(rules_.prefix_extractor->Transform(user_key) == Slice(*prefix_));
  }

  /// Whether no operand, tombstone or snapshot stands between an entry and the user.
  bool IsPlainValue(const InternalEntry& entry) const {
    return plain_ && TagType(entry.tag) == ValueType::kValue && TagSequence(entry.tag) <= snapshot_;
  }
  /// Whether `next`, behind the entry that is shown, is to be shown after it.
  bool ShowsNext(const InternalEntry& shown, const InternalEntry& next) const {
    return IsPlainValue(next) && !IsSameKey(shown.user_key, next.user_key) &&
           (!upper_.has_value() || comparator_.CompareUserKeys(next.user_key, *upper_) < 0);
  }
  /// Whether `newest`, the last entry before those of the key that is shown, is to be shown before
  /// it. `before` comes before that.
  bool ShowsPrevious(const InternalEntry& before, const InternalEntry& newest) const {
    return IsPlainValue(newest) && !IsSameKey(before.user_key, newest.user_key) &&
           (!lower_.has_value() || comparator_.CompareUserKeys(newest.user_key, *lower_) >= 0);
  }
  void Show(const InternalEntry* entry) {
    internal_->MoveTo(entry);
    CountPerf(&PerfContext::iter_read_bytes, entry->user_key.size() + entry->value.size());
  }

  /// Stops at the first visible value at or after the current entry; with `skip_saved`, of a key
  /// other than saved_key_.
  void FindVisibleForward(bool skip_saved) {
    const PerfTimer timer(&PerfContext::find_next_user_entry_time);
    valid_ = false;
    saved_ = false;
    merge_status_ = Status::OK();
    for (; internal_->Valid(); internal_->Next()) {
      const Slice user_key = internal_->user_key();
      if (upper_.has_value() && comparator_.CompareUserKeys(user_key, *upper_) >= 0) return;
      if (!plain_ && HasOtherPrefix(user_key)) return;
      const uint64_t tag = internal_->tag();
      if (TagSequence(tag) > snapshot_ || (skip_saved && user_key == Slice(saved_key_))) {
        CountPerf(&PerfContext::internal_key_skipped_count);
        continue;
      }
      const ValueType type = plain_ ? TagType(tag) : TypeOf(user_key, tag);
      if (type == ValueType::kValue) [[likely]] {
        CountPerf(&PerfContext::iter_read_bytes, user_key.size() + internal_->value().size());
        valid_ = true;
        return;
      }
      saved_key_.assign(user_key.data(), user_key.size());
      if (type == ValueType::kMerge) {
        MergeForward();
        return;
      }
      CountPerf(&PerfContext::internal_delete_skipped_count);
      skip_saved = true;
    }
  }

  /// The type of an entry, as the range tombstones let it be seen.
  ValueType TypeOf(const Slice& user_key, uint64_t tag) {
    return TagSequence(tag) < cover_.Of(user_key) ? ValueType::kDeletion : TagType(tag);
  }

  /// From the newest visible operand of saved_key_, on which `internal_` stands, to what they apply
  /// to.
  void MergeForward() {
    MergeOperands newest_first(MergeOperands::Order::kNewestFirst);
    for (; internal_->Valid() && internal_->user_key() == Slice(saved_key_); internal_->Next()) {
      const uint64_t tag = internal_->tag();
      const ValueType type = TypeOf(saved_key_, tag);
      const Slice value = internal_->value();
      if (type == ValueType::kMerge) {
        newest_first.Add(tag, value);
        continue;
      }
      Merge(newest_first, type == ValueType::kValue ? &value : nullptr);
      return;
    }
    if (internal_->status().ok()) Merge(newest_first, nullptr);
  }

  void Merge(const MergeOperands& operands, const Slice* existing) {
    merge_status_ =
        operands.Apply(rules_.merge_operator, saved_key_, existing, rules_.logger, &saved_value_);
    valid_ = saved_ = merge_status_.ok();
    if (valid_) CountPerf(&PerfContext::iter_read_bytes, saved_key_.size() + saved_value_.size());
  }

  /// Collects, going backward, the newest visible version of the nearest key that has a value.
  void FindVisibleBackward() {
    valid_ = false;
    saved_ = true;
    merge_status_ = Status::OK();
    bool has_value = false;
    operands_.Clear();
    for (; internal_->Valid(); internal_->Prev()) {
      const Slice user_key = internal_->user_key();
      const bool found = has_value || !operands_.empty();
      // Versions of one key come oldest first here; another key means the last one is complete.
      if (found && !(user_key == Slice(saved_key_))) break;
      if (lower_.has_value() && comparator_.CompareUserKeys(user_key, *lower_) < 0) break;
      if (HasOtherPrefix(user_key)) break;
      const uint64_t tag = internal_->tag();
      if (TagSequence(tag) > snapshot_) continue;
      const ValueType type = TypeOf(user_key, tag);
      if (!found) saved_key_.assign(user_key.data(), user_key.size());
      const Slice value = internal_->value();
      if (type == ValueType::kMerge) {
        operands_.Add(tag, value);
        continue;
      }
      operands_.Clear();
      has_value = type == ValueType::kValue;
      if (has_value) saved_value_.assign(value.data(), value.size());
    }
    if (!internal_->status().ok()) return;
    if (operands_.empty()) {
      valid_ = has_value;
      const size_t bytes = saved_key_.size() + saved_value_.size();
      CountPerf(&PerfContext::iter_read_bytes, valid_ ? bytes : 0);
      return;
    }
    const std::string existing = std::move(saved_value_);
    const Slice existing_slice(existing);
    Merge(operands_, has_value ? &existing_slice : nullptr);
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
  const ReadRules rules_;
  const std::shared_ptr<const ReadView> pinned_;  // Outlives internal_.
  const std::unique_ptr<InternalIterator> internal_;
  RangeCover cover_;
  const SequenceNumber snapshot_;
  const IteratorBounds bounds_;
  std::optional<std::string> lower_;
  std::optional<std::string> upper_;
  const bool keep_prefix_;
  std::optional<std::string> prefix_;  ///< That keys have to have.
  bool plain_ = true;                  ///< There is no such prefix, and no range tombstone.
  bool valid_ = false;
  bool forward_ = true;
  bool saved_ = false;
  std::string saved_key_;
  std::string saved_value_;
  std::string seek_key_;
  MergeOperands operands_{MergeOperands::Order::kOldestFirst};  ///< Going backward.
  Status merge_status_;
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
                                        const ReadRules& rules,
                                        std::unique_ptr<InternalIterator> internal,
                                        RangeCover cover, SequenceNumber snapshot,
                                        const ReadOptions& options,
                                        std::shared_ptr<const ReadView> pinned) {
  return std::make_unique<DBIterator>(comparator, rules, std::move(internal), std::move(cover),
                                      snapshot, options, std::move(pinned));
}

std::unique_ptr<Iterator> NewErrorIterator(Status status) {
  return std::make_unique<ErrorIterator>(std::move(status));
}

}  // namespace nacre
