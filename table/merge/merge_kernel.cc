#include "table/merge/merge_kernel.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "table/format/record.h"
#include "table/merge/merge_operands.h"
#include "util/exceptions.h"

namespace nacre {
namespace {

/// So that a merge ends within milliseconds of being cancelled.
constexpr uint64_t kEntriesBetweenChecks = 256;
constexpr uint64_t kBytesAsAnEntry = 4096;
constexpr size_t kNoStripe = SIZE_MAX;

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
  void Filter(const Slice& user_key, uint64_t* tag, Slice* value);
  Status EmitVersion(const Slice& user_key, size_t stripe, uint64_t tag, const Slice& value);
  Status Emit(const Slice& user_key, uint64_t tag, const Slice& value);
  Status MakeRoom(const Slice& user_key, const Slice& value);
  Status OpenTable(size_t key_size, size_t value_size);
  Status FinishTable(bool last, const Slice& limit);

  // Range tombstones.
  void PrepareFragments();
  bool IsCovered(SequenceNumber sequence, size_t stripe) const;
  void FindFragment(const Slice& user_key);
  void GiveFragments(bool last, const Slice& limit);
  Status FinishWithFragments();

  InternalIterator* const input_;
  const MergeOptions& options_;
  const InternalKeyComparator comparator_;
  const NewOutput& new_output_;
  std::vector<TableMeta>* const outputs_;
  MergeStats* const stats_;
  TableBuilderOptions table_options_;

  std::unique_ptr<TableBuilder> builder_;
  /// The table may grow by so much before its size has to be looked at again.
  uint64_t sure_room_ = 0;
  size_t deeper_next_ = 0;  ///< First range that does not end before the current key.
  /// Those of the input, by number: the first that does not end before the current key, and that
  /// which covers it.
  size_t fragment_next_ = 0;
  bool has_fragment_ = false;                          ///< The next one covers the key at hand.
  std::vector<RangeTombstones::ListedFragment> kept_;  ///< What the outputs get.
  size_t kept_next_ = 0;                               ///< The first that is in no finished table.

  // Entries whose fate hangs on what follows them.
  enum class Held : uint8_t { kNothing, kSingleDeletion, kOperands };
  void Hold(size_t stripe, uint64_t tag, const Slice& value);
  Status Meet(size_t stripe, uint64_t tag, const Slice& value, bool* consumed);
  Status MeetSingleDeletion(ValueType type, bool* consumed);
  Status MeetOperands(uint64_t tag, const Slice& value, bool* consumed);
  Status Release();
  Status EmitOperands();
  Status EmitMerged(const Slice* existing, bool* merged);
  bool IsRoomFor(const Slice& merged) const {
    return RecordBytes(user_key_.size(), held_tag_, merged.size()) <= options_.merged_bytes_max;
  }

  // The user key at hand.
  std::string user_key_;
  bool has_user_key_ = false;
  bool emitted_ = false;    ///< One of its versions went to an output.
  bool is_newest_ = false;  ///< Its newest version is yet to be asked for.
  std::string new_value_;   ///< Value that the filter made.
  /// The stripe of the key's version before; other versions in it are invisible.
  size_t stripe_ = kNoStripe;
  Held held_ = Held::kNothing;
  size_t held_stripe_ = 0;
  uint64_t held_tag_ = 0;  ///< The tag of the single deletion, or of the newest operand.
  MergeOperands operands_{MergeOperands::Order::kNewestFirst};
};

Status Merge::Run() {
  if (options_.begin.has_value()) {
    std::string start;
    AppendInternalKey(&start, *options_.begin, PackTag(kMaxSequenceNumber, kValueTypeForSeek));
    input_->Seek(start);
  } else {
    input_->SeekToFirst();
  }
  if (options_.range_tombstones != nullptr) PrepareFragments();
  uint64_t until_check = kEntriesBetweenChecks;
  for (; input_->Valid(); input_->Next()) {
    const uint64_t cost = 1 + input_->value().size() / kBytesAsAnEntry;
    until_check -= std::min(until_check, cost);
    if (until_check == 0) {
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
      if (held_ != Held::kNothing) [[unlikely]]
        NACRE_RETURN_IF_ERROR(Release());
      user_key_.assign(user_key.data(), user_key.size());
      has_user_key_ = true;
      emitted_ = false;
      is_newest_ = true;
      stripe_ = kNoStripe;
      if (options_.range_tombstones != nullptr) [[unlikely]]
        FindFragment(user_key_);
    }
    NACRE_RETURN_IF_ERROR(Consider(user_key, input_->tag()));
  }
  NACRE_RETURN_IF_ERROR(input_->status());
  NACRE_RETURN_IF_ERROR(Release());
  if (builder_ != nullptr) return FinishTable(/*last=*/true, Slice());
  return kept_.empty() ? Status::OK() : FinishWithFragments();
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
  Slice value = input_->value();
  ++stats_->entries_read;
  stats_->bytes_read += user_key.size() + value.size();
  const size_t stripe = StripeOf(TagSequence(tag));
  if (has_fragment_ && IsCovered(TagSequence(tag), stripe)) [[unlikely]] {
    // As if there were a deletion in its place, but that nothing needs to be written of it.
    bool consumed = false;
    if (held_ != Held::kNothing) {
      NACRE_RETURN_IF_ERROR(
          Meet(stripe, PackTag(TagSequence(tag), ValueType::kDeletion), Slice(), &consumed));
    }
    ++stats_->entries_shadowed;
    return Status::OK();
  }
  if (held_ != Held::kNothing) [[unlikely]] {
    bool consumed = false;
    NACRE_RETURN_IF_ERROR(Meet(stripe, tag, value, &consumed));
    if (consumed) return Status::OK();
  }
  if (options_.compaction_filter != nullptr && is_newest_) [[unlikely]] {
    is_newest_ = false;
    if (TagType(tag) == ValueType::kValue && stripe == options_.snapshots.size()) {
      Filter(user_key, &tag, &value);
    }
  }
  const ValueType type = TagType(tag);
  // A single deletion that is not seen may have its value below, which must not be seen either once
  // what hides them both is deleted.
  if (type > ValueType::kValue && (stripe != stripe_ || type == ValueType::kSingleDeletion))
      [[unlikely]] {
    Hold(stripe, tag, value);
    return Status::OK();
  }
  if (stripe == stripe_) {
    ++stats_->entries_shadowed;
    return Status::OK();
  }
  stripe_ = stripe;
  return EmitVersion(user_key, stripe, tag, value);
}

/// As the filter wants the newest version of a key.
void Merge::Filter(const Slice& user_key, uint64_t* tag, Slice* value) {
  new_value_.clear();
  std::string skip_until;
  switch (options_.compaction_filter->FilterV2(options_.level, user_key,
                                               CompactionFilter::ValueType::kValue, *value,
                                               &new_value_, &skip_until)) {
    case CompactionFilter::Decision::kKeep:
      return;
    case CompactionFilter::Decision::kRemove:
      // Older versions below must not come back.
      *tag = PackTag(TagSequence(*tag), ValueType::kDeletion);
      *value = Slice();
      return;
    case CompactionFilter::Decision::kChangeValue:
      *value = new_value_;
  }
}

/// What is not shadowed.
Status Merge::EmitVersion(const Slice& user_key, size_t stripe, uint64_t tag, const Slice& value) {
  if (stripe == 0 && !MayBeDeeper(user_key)) {
    // Nothing older is left below: a tombstone has nothing to hide, and a value needs no sequence
    // to be older than what comes above.
    if (IsDeletion(TagType(tag))) {
      ++stats_->tombstones_dropped;
      return Status::OK();
    }
    // Range tombstones that are kept cover what is older than they are.
    if (!has_fragment_) [[likely]]
      tag = PackTag(0, TagType(tag));
  }
  return Emit(user_key, tag, value);
}

// ---- Single deletions and operands --------------------------------------------------------------

void Merge::Hold(size_t stripe, uint64_t tag, const Slice& value) {
  held_stripe_ = stripe;
  held_tag_ = tag;
  held_ = TagType(tag) == ValueType::kMerge ? Held::kOperands : Held::kSingleDeletion;
  if (held_ == Held::kOperands) operands_.Add(tag, value);
}

/// The next older version of the key at hand, beside what is held. `*consumed`: nothing more is to
/// be done with it.
Status Merge::Meet(size_t stripe, uint64_t tag, const Slice& value, bool* consumed) {
  if (stripe != held_stripe_) return Release();
  if (held_ == Held::kSingleDeletion) return MeetSingleDeletion(TagType(tag), consumed);
  return MeetOperands(tag, value, consumed);
}

Status Merge::MeetSingleDeletion(ValueType type, bool* consumed) {
  switch (type) {
    case ValueType::kSingleDeletion:  // Which takes its place.
    case ValueType::kDeletion:        // Which does what it does and more.
      ++stats_->tombstones_dropped;
      held_ = Held::kNothing;
      return Status::OK();
    case ValueType::kValue:
      // Both vanish, and what comes then is seen, unless something newer hides it.
      ++stats_->tombstones_dropped;
      ++stats_->entries_shadowed;
      held_ = Held::kNothing;
      *consumed = true;
      return Status::OK();
    default:
      return Release();
  }
}

Status Merge::MeetOperands(uint64_t tag, const Slice& value, bool* consumed) {
  if (TagType(tag) == ValueType::kMerge) {
    operands_.Add(tag, value);
    *consumed = true;
    return Status::OK();
  }
  bool merged = false;
  const Slice* existing = TagType(tag) == ValueType::kValue ? &value : nullptr;
  NACRE_RETURN_IF_ERROR(EmitMerged(existing, &merged));
  if (merged) {
    ++stats_->entries_shadowed;
    *consumed = true;
    return Status::OK();
  }
  NACRE_RETURN_IF_ERROR(EmitOperands());
  // They need what they apply to, which is seen through them.
  *consumed = true;
  return EmitVersion(user_key_, held_stripe_, tag, value);
}

/// Nothing more comes that has to do with what is held.
Status Merge::Release() {
  const Held held = std::exchange(held_, Held::kNothing);
  if (held == Held::kNothing) return Status::OK();
  if (held == Held::kSingleDeletion) {
    stripe_ = held_stripe_;
    return EmitVersion(user_key_, held_stripe_, held_tag_, Slice());
  }
  if (held_stripe_ == 0 && !MayBeDeeper(user_key_)) {
    bool merged = false;
    NACRE_RETURN_IF_ERROR(EmitMerged(nullptr, &merged));
    if (merged) return Status::OK();
  }
  std::string combined;
  if (options_.merge_operator != nullptr && operands_.size() > 1 &&
      operands_.Combine(*options_.merge_operator, user_key_, nullptr, &combined) &&
      IsRoomFor(combined)) {
    stats_->entries_shadowed += operands_.size() - 1;
    operands_.Clear();
    stripe_ = held_stripe_;
    return Emit(user_key_, held_tag_, combined);
  }
  return EmitOperands();
}

/// Emits the operands unmerged; their sequences tell them apart.
Status Merge::EmitOperands() {
  held_ = Held::kNothing;
  stripe_ = held_stripe_;
  for (const MergeOperands::Operand& operand : operands_.operands()) {
    NACRE_RETURN_IF_ERROR(Emit(user_key_, operand.tag, operand.value));
  }
  operands_.Clear();
  return Status::OK();
}

/// A value instead of the operands, if it can be made.
Status Merge::EmitMerged(const Slice* existing, bool* merged) {
  if (options_.merge_operator == nullptr) return Status::OK();
  std::string value;
  const Status status =
      operands_.Apply(options_.merge_operator, user_key_, existing, nullptr, &value);
  if (!status.ok() || !IsRoomFor(value)) return Status::OK();
  *merged = true;
  stats_->entries_shadowed += operands_.size() - 1;
  operands_.Clear();
  held_ = Held::kNothing;
  stripe_ = held_stripe_;
  return EmitVersion(user_key_, held_stripe_, PackTag(TagSequence(held_tag_), ValueType::kValue),
                     value);
}

// ---- Range tombstones ---------------------------------------------------------------------------

/// What is left of the fragments: within the bounds of the merge, one sequence for each stripe,
/// none where nothing older is left.
void Merge::PrepareFragments() {
  const auto before = [this](const Slice& a, const Slice& b) {
    return comparator_.CompareUserKeys(a, b) < 0;
  };
  const RangeTombstones& tombstones = *options_.range_tombstones;
  for (size_t i = 0; i < tombstones.fragments().size(); ++i) {
    const RangeTombstones::Fragment& fragment = tombstones.fragments()[i];
    RangeTombstones::ListedFragment kept{
        .begin = fragment.begin, .end = fragment.end, .sequences = {}};
    if (options_.begin.has_value() && before(kept.begin, *options_.begin)) {
      kept.begin = *options_.begin;
    }
    if (options_.end.has_value() && before(*options_.end, kept.end)) kept.end = *options_.end;
    if (!before(kept.begin, kept.end)) continue;
    const bool deeper =
        std::any_of(options_.deeper.begin(), options_.deeper.end(), [&](const KeyRange& range) {
          return before(range.smallest, kept.end) && !before(range.largest, kept.begin);
        });
    for (SequenceNumber sequence = fragment.newest; sequence > 0;) {
      const size_t stripe = StripeOf(sequence);
      if (stripe > 0 || deeper) kept.sequences.push_back(sequence);
      if (stripe == 0) break;
      sequence = tombstones.Newest(i, options_.snapshots[stripe - 1]);
    }
    if (kept.sequences.empty()) {
      ++stats_->tombstones_dropped;
    } else {
      kept_.push_back(std::move(kept));
    }
  }
  std::string encoded;
  RangeTombstones::Encode(kept_, &encoded);
  table_options_.range_deletion_bytes = encoded.size();
}

/// Keys come in order, so the fragments are walked once.
void Merge::FindFragment(const Slice& user_key) {
  const auto& fragments = options_.range_tombstones->fragments();
  while (fragment_next_ < fragments.size() &&
         comparator_.CompareUserKeys(fragments[fragment_next_].end, user_key) <= 0) {
    ++fragment_next_;
  }
  has_fragment_ = fragment_next_ < fragments.size() &&
                  comparator_.CompareUserKeys(fragments[fragment_next_].begin, user_key) <= 0;
}

/// Whether every reader of an entry of the current key, with this sequence, sees that it is
/// deleted.
bool Merge::IsCovered(SequenceNumber sequence, size_t stripe) const {
  const SequenceNumber last =
      stripe < options_.snapshots.size() ? options_.snapshots[stripe] : kMaxSequenceNumber;
  return options_.range_tombstones->Newest(fragment_next_, last) > sequence;
}

/// Gives the current table the fragments before `limit`, the user key with which the next one
/// begins, or with `last` all the rest.
void Merge::GiveFragments(bool last, const Slice& limit) {
  std::vector<RangeTombstones::ListedFragment> given;
  for (; kept_next_ < kept_.size(); ++kept_next_) {
    RangeTombstones::ListedFragment& fragment = kept_[kept_next_];
    if (!last && comparator_.CompareUserKeys(fragment.begin, limit) >= 0) break;
    const bool whole = last || comparator_.CompareUserKeys(fragment.end, limit) <= 0;
    given.push_back(fragment);
    if (whole) continue;
    given.back().end = limit.ToString();
    fragment.begin = limit.ToString();
    break;
  }
  if (!given.empty()) builder_->SetRangeTombstones(given);
}

/// No entry is left. A table has one at least: a deletion of the first key, which is covered
/// anyway.
Status Merge::FinishWithFragments() {
  const std::string first = kept_.front().begin;
  const uint64_t tag = PackTag(kept_.front().sequences.front(), ValueType::kDeletion);
  NACRE_RETURN_IF_ERROR(Emit(first, tag, Slice()));
  return FinishTable(/*last=*/true, Slice());
}

// ---- Outputs ------------------------------------------------------------------------------------

Status Merge::Emit(const Slice& user_key, uint64_t tag, const Slice& value) {
  const auto growth_bound = [&] { return builder_->GrowthBound(user_key.size(), value.size()); };
  uint64_t growth = builder_ == nullptr ? UINT64_MAX : growth_bound();
  if (growth >= sure_room_) [[unlikely]] {
    NACRE_RETURN_IF_ERROR(MakeRoom(user_key, value));
    growth = growth_bound();
  }
  assert(builder_->Fits(user_key.size(), value.size()));
  assert(emitted_ || builder_->entries() == 0 ||
         builder_->EstimatedSize() < options_.target_table_bytes);
  sure_room_ -= std::min(sure_room_, growth);
  emitted_ = true;
  ++stats_->entries_written;
  return builder_->Add(user_key, tag, value);
}

/// Ends the table if the record is to go to the next one, and sees to it that there is a table.
Status Merge::MakeRoom(const Slice& user_key, const Slice& value) {
  if (builder_ != nullptr) {
    const bool cut = !emitted_ && builder_->EstimatedSize() >= options_.target_table_bytes;
    if (cut || !builder_->Fits(user_key.size(), value.size())) {
      NACRE_RETURN_IF_ERROR(FinishTable(/*last=*/false, user_key));
    }
  }
  if (builder_ == nullptr) NACRE_RETURN_IF_ERROR(OpenTable(user_key.size(), value.size()));
  sure_room_ = builder_->RoomUntil(options_.target_table_bytes);
  return Status::OK();
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

Status Merge::FinishTable(bool last, const Slice& limit) {
  TableMeta meta;
  if (kept_next_ < kept_.size()) GiveFragments(last, limit);
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
  return CatchAll([&] { return Merge(input, options, new_output, outputs, stats).Run(); });
}

}  // namespace nacre
