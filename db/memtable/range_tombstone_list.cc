#include "db/memtable/range_tombstone_list.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace nacre {

RangeTombstoneList::Runs::Runs(const Comparator* comparator,
                               const std::vector<const RangeTombstones*>& runs)
    : numbered_(comparator == BytewiseComparator()) {
  if (numbered_) {
    std::string_view first = runs.front()->fragments().front().begin;
    std::string_view last = runs.front()->fragments().back().end;
    for (const RangeTombstones* run : runs) {
      first = std::min<std::string_view>(first, run->fragments().front().begin);
      last = std::max<std::string_view>(last, run->fragments().back().end);
    }
    common_ = CommonPrefix(Slice(first), Slice(last));
  }
  runs_.reserve(runs.size());
  for (const RangeTombstones* run : runs) {
    Bounded bounded{.first = 0,
                    .last = UINT64_MAX,
                    .newest = run->newest(),
                    .tombstones = run,
                    .numbers_alike = false};
    if (numbered_) {
      bounded.numbers_alike = run->common().size() == common_.size();
      bounded.first = common_.Number(run->fragments().front().begin);
      bounded.last = common_.Number(run->fragments().back().end);
    }
    runs_.push_back(bounded);
  }
}

SequenceNumber RangeTombstoneList::Runs::Covering(const Slice& user_key, SequenceNumber snapshot,
                                                  SequenceNumber sequence) const {
  uint64_t number = 0;
  // What begins otherwise lies before or behind all of them.
  if (numbered_ && common_.Find(user_key, &number) != CommonPrefix::Place::kAmong) return 0;
  SequenceNumber covering = 0;
  for (const Bounded& run : runs_) {
    if (number < run.first || number > run.last) continue;
    if (run.newest <= std::max(covering, sequence)) continue;
    covering =
        std::max(covering, run.numbers_alike ? run.tombstones->Covering(user_key, number, snapshot)
                                             : run.tombstones->Covering(user_key, snapshot));
  }
  return covering > sequence ? covering : 0;
}

std::vector<const RangeTombstones*> RangeTombstoneList::Runs::All() const {
  std::vector<const RangeTombstones*> all;
  for (const Bounded& run : runs_) all.push_back(run.tombstones);
  return all;
}

void RangeTombstoneList::Add(SequenceNumber sequence, const Slice& begin, const Slice& end) {
  auto added = std::make_unique<const RangeTombstones>(
      comparator_, std::vector<RangeTombstone>{{begin.ToString(), end.ToString(), sequence}});
  MutexLock lock(&mutex_);
  size_t count = 1;
  std::vector<const RangeTombstones*> taken_in;
  while (!current_.empty() && all_[current_.back()].count < kRatio * count) {
    taken_in.push_back(all_[current_.back()].tombstones.get());
    count += all_[current_.back()].count;
    current_.pop_back();
  }
  if (!taken_in.empty()) {
    taken_in.push_back(added.get());
    added = std::make_unique<const RangeTombstones>(RangeTombstones::Merge(comparator_, taken_in));
  }
  size_t bytes = added->MemoryUsage();
  current_.push_back(all_.size());
  all_.push_back({std::move(added), count});
  // The newest ones first: an answer of these spares the others.
  std::vector<const RangeTombstones*> newest_first;
  for (size_t i = current_.size(); i-- > 0;) {
    newest_first.push_back(all_[current_[i]].tombstones.get());
  }
  auto runs = std::make_unique<const Runs>(comparator_, newest_first);
  bytes += runs->MemoryUsage();
  memory_.fetch_add(bytes, std::memory_order_relaxed);
  runs_.store(runs.get(), std::memory_order_release);  // Pairs with runs().
  published_.push_back(std::move(runs));
}

}  // namespace nacre
