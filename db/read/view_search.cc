#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/read/view_reads.h"
#include "table/index/point_index.h"
#include "table/merge/merge_operands.h"
#include "util/hash.h"

namespace nacre {
namespace {

/// The versions of one key, on the way from the newest to the one that says what it is.
class VersionWalk {
 public:
  VersionWalk(const ReadView& view, const ReadOptions& options, const Slice& key,
              SequenceNumber snapshot, PinnableSlice* value)
      : view_(view), key_(key), snapshot_(snapshot), hash_(Hash64(key)), value_(value) {
    options_.verify_checksums = options.verify_checksums;
    AppendInternalKey(&target_, key, PackTag(snapshot, kValueTypeForSeek));
  }

  /// Leaves in `value` what the key is.
  Status Value() {
    Walk();
    NACRE_RETURN_IF_ERROR(std::move(status_));
    if (operands_.empty()) return found_ ? Status::OK() : Status::NotFound();
    const Slice base(base_);
    std::string merged;
    NACRE_RETURN_IF_ERROR(operands_.Apply(view_.rules.merge_operator, key_,
                                          found_ ? &base : nullptr, view_.rules.logger, &merged));
    value_->PinSelf(merged);
    return Status::OK();
  }

  /// What `Value` makes that of, from the oldest.
  Status Operands(std::vector<std::string>* operands) {
    Walk();
    NACRE_RETURN_IF_ERROR(std::move(status_));
    operands->clear();
    if (found_) operands->push_back(operands_.empty() ? value_->ToString() : std::move(base_));
    const auto& newest_first = operands_.operands();
    for (auto operand = newest_first.rbegin(); operand != newest_first.rend(); ++operand) {
      operands->push_back(operand->value);
    }
    return operands->empty() ? Status::NotFound() : Status::OK();
  }

 private:
  void Walk() {
    for (const auto& memtable : view_.memtables) {
      if (InMemTable(*memtable)) return;
    }
    const Version& version = *view_.version;
    const TableList& level0 = version.level0();
    for (size_t i = 0; i < level0.size(); ++i) {
      if (version.Level0Holds(i, key_) && InTable(*level0[i])) return;
    }
    for (int level = 1; level < version.depth(); ++level) {
      for (const auto& table : version.sorted_level(level).FindAll(key_)) {
        if (InTable(*table)) return;
      }
    }
  }

  // Each of these is true once older sources do not count.

  bool InMemTable(const MemTable& memtable) {
    if (const RangeTombstoneList::Runs* runs = memtable.range_tombstones(); runs != nullptr) {
      cover_ = runs->Covering(key_, snapshot_);
    }
    SequenceNumber sequence = 0;
    for (SequenceNumber up_to = snapshot_;; up_to = sequence - 1) {
      Slice found;
      switch (memtable.Get(key_, hash_, up_to, &found, &sequence)) {
        case MemTable::LookupResult::kAbsent:
          return cover_ > 0;
        case MemTable::LookupResult::kFound:
          if (Take(PackTag(sequence, ValueType::kValue), found)) return true;
          break;
        case MemTable::LookupResult::kDeleted:
          if (Take(PackTag(sequence, ValueType::kDeletion), found)) return true;
          break;
        case MemTable::LookupResult::kOperand:
          if (Take(PackTag(sequence, ValueType::kMerge), found)) return true;
          break;
      }
    }
  }

  bool InTable(const TableHandle& table) {
    if (table.meta().has_range_deletions()) {
      if (status_ = table.reader().LoadRangeTombstones(); !status_.ok()) return true;
      cover_ = table.reader().range_tombstones()->Covering(key_, snapshot_);
    }
    if (!MayHave(table)) return cover_ > 0;
    const std::unique_ptr<InternalIterator> iterator = table.reader().NewIterator(options_);
    for (iterator->Seek(target_); iterator->Valid() && iterator->user_key() == key_;
         iterator->Next()) {
      if (Take(iterator->tag(), iterator->value())) return true;
    }
    status_ = iterator->status();
    return !status_.ok() || cover_ > 0;
  }

  bool MayHave(const TableHandle& table) const {
    const PointTier* const tier = table.tier();
    if (tier == nullptr) return true;
    if (tier->kind() != PointTier::Kind::kIndex) return tier->MayContain(hash_);
    RecordCandidate candidates[kMaxCandidates];
    return tier->index().Lookup(hash_, candidates) > 0;
  }

  /// The next older version.
  bool Take(uint64_t tag, const Slice& value) {
    const ValueType type = TagType(tag);
    if (TagSequence(tag) < cover_ || IsDeletion(type)) return true;
    if (type == ValueType::kMerge) {
      operands_.Add(tag, value);
      return false;
    }
    found_ = true;
    if (operands_.empty()) {
      value_->PinSelf(value);
    } else {
      base_ = value.ToString();
    }
    return true;
  }

  const ReadView& view_;
  const Slice key_;
  const SequenceNumber snapshot_;
  const uint64_t hash_;
  PinnableSlice* const value_;
  TableIteratorOptions options_;
  std::string target_;
  SequenceNumber cover_ = 0;  ///< The sequence of the current source's range tombstones.
  MergeOperands operands_{MergeOperands::Order::kNewestFirst};
  bool found_ = false;  ///< A value, to which operands apply if there are any.
  std::string base_;
  Status status_;
};

}  // namespace

Status SearchView(const ReadView& view, const ReadOptions& options, const Slice& key,
                  SequenceNumber snapshot, PinnableSlice* value) {
  return VersionWalk(view, options, key, snapshot, value).Value();
}

Status OperandsOf(const ReadView& view, const ReadOptions& options, const Slice& key,
                  SequenceNumber snapshot, std::vector<std::string>* operands) {
  PinnableSlice value;
  return VersionWalk(view, options, key, snapshot, &value).Operands(operands);
}

Status CheckOperandsCall(const PinnableSlice* merge_operands,
                         const GetMergeOperandsOptions* options, const int* number) {
  if (merge_operands != nullptr && options != nullptr && number != nullptr) return Status::OK();
  return Status::InvalidArgument("GetMergeOperands: merge_operands, options or number is null");
}

Status GiveOperands(const std::vector<std::string>& operands,
                    const GetMergeOperandsOptions& options, PinnableSlice* merge_operands,
                    int* number) {
  *number = static_cast<int>(operands.size());
  if (*number > options.expected_max_number_of_operands) {
    return Status::Incomplete(fmt::format("GetMergeOperands: there are {}, with room for {}",
                                          *number, options.expected_max_number_of_operands));
  }
  for (size_t i = 0; i < operands.size(); ++i) merge_operands[i].PinSelf(operands[i]);
  return Status::OK();
}

}  // namespace nacre
