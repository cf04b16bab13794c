#include "db/range_tombstone_list.h"

#include <utility>

namespace nacre {

void RangeTombstoneList::Add(SequenceNumber sequence, const Slice& begin, const Slice& end) {
  auto added = std::make_unique<const RangeTombstones>(
      comparator_, std::vector<RangeTombstone>{{begin.ToString(), end.ToString(), sequence}});
  MutexLock lock(&mutex_);
  size_t count = 1;
  while (!current_.empty() && all_[current_.back()].count == count) {
    added = std::make_unique<const RangeTombstones>(
        RangeTombstones::Merge(comparator_, {added.get(), all_[current_.back()].tombstones.get()}));
    current_.pop_back();
    count *= 2;
  }
  size_t bytes = added->MemoryUsage();
  current_.push_back(all_.size());
  all_.push_back({std::move(added), count});
  auto runs = std::make_unique<Runs>();
  for (const size_t run : current_) runs->tombstones.push_back(all_[run].tombstones.get());
  newest_ = std::max(newest_, sequence);
  runs->newest = newest_;
  bytes += sizeof(*runs) + runs->tombstones.capacity() * sizeof(void*);
  memory_.fetch_add(bytes, std::memory_order_relaxed);
  runs_.store(runs.get(), std::memory_order_release);  // Pairs with runs().
  published_.push_back(std::move(runs));
}

}  // namespace nacre
