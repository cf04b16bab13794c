#include "db/version/unread_tables.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "table/format/internal_key.h"

namespace nacre {
namespace {

class UnreadTables final : public InternalIterator {
 public:
  UnreadTables(std::shared_ptr<const Version> version, const ReadOptions& options)
      : version_(std::move(version)),
        lower_(options.iterate_lower_bound),
        upper_(options.iterate_upper_bound) {}

  void SeekToFirst() override { Look(lower_, upper_); }
  void SeekToLast() override { Look(lower_, upper_); }
  void Seek(const Slice& internal_key) override {
    const Slice user_key = ExtractUserKey(internal_key);
    Look(&user_key, upper_);
  }
  void SeekForPrev(const Slice& internal_key) override {
    const Slice user_key = ExtractUserKey(internal_key);
    Look(lower_, &user_key);
  }
  Status status() const override { return status_; }

 private:
  void NextRun() override { assert(false); }
  void PrevRun() override { assert(false); }
  /// Checks the user keys [begin, end]; null: open.
  void Look(const Slice* begin, const Slice* end) {
    status_ = AnyTable(begin, end) ? Status::Incomplete("the tables are not read") : Status::OK();
  }
  bool AnyTable(const Slice* begin, const Slice* end) const {
    const InternalKeyComparator& comparator = version_->comparator();
    const bool in_level0 =
        std::ranges::any_of(version_->level0(), [&](const std::shared_ptr<TableHandle>& table) {
          const TableMeta& meta = table->meta();
          return (begin == nullptr ||
                  comparator.CompareUserKeys(meta.largest_user_key(), *begin) >= 0) &&
                 (end == nullptr ||
                  comparator.CompareUserKeys(meta.smallest_user_key(), *end) <= 0);
        });
    if (in_level0) return true;
    for (int level = 1; level < version_->depth(); ++level) {
      if (!version_->sorted_level(level).Overlapping(begin, end).empty()) return true;
    }
    return false;
  }

  const std::shared_ptr<const Version> version_;
  const Slice* const lower_;
  const Slice* const upper_;
  Status status_;
};

}  // namespace

std::unique_ptr<InternalIterator> NewUnreadTables(std::shared_ptr<const Version> version,
                                                  const ReadOptions& options) {
  return std::make_unique<UnreadTables>(std::move(version), options);
}

}  // namespace nacre
