#include "table/merge_kernel.h"

#include <algorithm>
#include <cassert>

namespace nacre {
namespace {

constexpr uint64_t kEntriesBetweenChecks = 256;

class Merge {
 public:
  Merge(InternalIterator* input, const MergeOptions& options, const NewOutput& new_output,
        std::vector<TableMeta>* outputs, MergeStats* stats)
      : input_(input),
        options_(options),
        comparator_(options.comparator),
        new_output_(new_output),
        outputs_(outputs),
        stats_(stats),
        table_options_(options.table) {
    table_options_.comparator = options.comparator;
    assert(std::is_sorted(options.snapshots.begin(), options.snapshots.end()));
  }

  Status Run();

 private:
  size_t StripeOf(SequenceNumber sequence) const;
  bool MayBeDeeper(const Slice& user_key);
  Status Consider(const Slice& user_key, uint64_t tag);
  Status Emit(const Slice& user_key, uint64_t tag, const Slice& value);
  Status OpenTable(size_t key_size, size_t value_size);
  Status FinishTable(bool last);

  InternalIterator* const input_;
  const MergeOptions& options_;
  const InternalKeyComparator comparator_;
  const NewOutput& new_output_;
  std::vector<TableMeta>* const outputs_;
  MergeStats* const stats_;
  TableBuilderOptions table_options_;

  std::unique_ptr<TableBuilder> builder_;
  size_t deeper_next_ = 0;  ///< First range that does not end before the current key.

  // The user key at hand.
  std::string user_key_;
  bool has_user_key_ = false;
  bool emitted_ = false;  ///< One of its versions went to an output.
  size_t stripe_ = 0;     ///< Of its version before.
};

Status Merge::Run() {
  if (options_.begin.has_value()) {
    std::string start;
    AppendInternalKey(&start, *options_.begin, PackTag(kMaxSequenceNumber, kValueTypeForSeek));
    input_->Seek(start);
  } else {
    input_->SeekToFirst();
  }
  uint64_t until_check = kEntriesBetweenChecks;
  for (; input_->Valid(); input_->Next()) {
    if (--until_check == 0) {
      until_check = kEntriesBetweenChecks;
      if (options_.cancelled != nullptr && options_.cancelled->load(std::memory_order_relaxed)) {
        return Status::Aborted("merge was cancelled");
      }
    }
    const Slice user_key = input_->user_key();
    if (!has_user_key_ || user_key != Slice(user_key_)) {
      if (options_.end.has_value() && comparator_.CompareUserKeys(user_key, *options_.end) >= 0) {
        break;
      }
      user_key_.assign(user_key.data(), user_key.size());
      has_user_key_ = true;
      emitted_ = false;
      stripe_ = SIZE_MAX;
    }
    NACRE_RETURN_IF_ERROR(Consider(user_key, input_->tag()));
  }
  NACRE_RETURN_IF_ERROR(input_->status());
  return builder_ != nullptr ? FinishTable(/*last=*/true) : Status::OK();
}

/// Snapshots cut the sequences into stripes: the versions in one stripe are seen by the same
/// snapshots, so that all but the newest of them are seen by none. Stripe 0 is seen by all.
size_t Merge::StripeOf(SequenceNumber sequence) const {
  const auto& snapshots = options_.snapshots;
  if (snapshots.empty()) return 0;
  return static_cast<size_t>(std::lower_bound(snapshots.begin(), snapshots.end(), sequence) -
                             snapshots.begin());
}

/// Keys come in order, so the ranges are walked once.
bool Merge::MayBeDeeper(const Slice& user_key) {
  const auto& deeper = options_.deeper;
  while (deeper_next_ < deeper.size() &&
         comparator_.CompareUserKeys(deeper[deeper_next_].largest, user_key) < 0) {
    ++deeper_next_;
  }
  return deeper_next_ < deeper.size() &&
         comparator_.CompareUserKeys(deeper[deeper_next_].smallest, user_key) <= 0;
}

Status Merge::Consider(const Slice& user_key, uint64_t tag) {
  const Slice value = input_->value();
  ++stats_->entries_read;
  stats_->bytes_read += user_key.size() + value.size();
  const size_t stripe = StripeOf(TagSequence(tag));
  if (stripe == stripe_) {
    ++stats_->entries_shadowed;
    return Status::OK();
  }
  stripe_ = stripe;
  if (stripe == 0 && !MayBeDeeper(user_key)) {
    // Nothing older is left below: a tombstone has nothing to hide, and a value needs no sequence
    // to be older than what comes above.
    if (TagType(tag) == ValueType::kDeletion) {
      ++stats_->tombstones_dropped;
      return Status::OK();
    }
    tag = PackTag(0, TagType(tag));
  }
  return Emit(user_key, tag, value);
}

Status Merge::Emit(const Slice& user_key, uint64_t tag, const Slice& value) {
  if (builder_ != nullptr) {
    const bool cut = !emitted_ && builder_->EstimatedSize() >= options_.target_table_bytes;
    if (cut || !builder_->Fits(user_key.size(), value.size())) {
      NACRE_RETURN_IF_ERROR(FinishTable(/*last=*/false));
    }
  }
  if (builder_ == nullptr) NACRE_RETURN_IF_ERROR(OpenTable(user_key.size(), value.size()));
  emitted_ = true;
  ++stats_->entries_written;
  return builder_->Add(user_key, tag, value);
}

Status Merge::OpenTable(size_t key_size, size_t value_size) {
  TableMeta identity;
  std::unique_ptr<ExtentWriter> writer;
  NACRE_RETURN_IF_ERROR(new_output_(&identity, &writer));
  identity.part = static_cast<uint32_t>(outputs_->size());
  builder_ = std::make_unique<TableBuilder>(table_options_, std::move(identity), std::move(writer));
  if (builder_->Fits(key_size, value_size)) return Status::OK();
  return Status::NoSpace("record of " + std::to_string(key_size + value_size) +
                         " bytes is too large for an empty table");
}

Status Merge::FinishTable(bool last) {
  TableMeta meta;
  NACRE_RETURN_IF_ERROR(builder_->Finish(&meta, last));
  builder_.reset();
  stats_->bytes_written += meta.size;
  outputs_->push_back(std::move(meta));
  return Status::OK();
}

}  // namespace

Status MergeTables(InternalIterator* input, const MergeOptions& options,
                   const NewOutput& new_output, std::vector<TableMeta>* outputs,
                   MergeStats* stats) {
  return Merge(input, options, new_output, outputs, stats).Run();
}

}  // namespace nacre
