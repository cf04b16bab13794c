#include "sqlite/commit_order.h"

#include <algorithm>
#include <utility>

namespace nacre::sqlite {

uint64_t CommitOrder::Begin(uint64_t snapshot_number, std::vector<uint64_t> key_hashes,
                            const std::vector<uint64_t>& watched_hashes) {
  if (last_ > snapshot_number) {
    std::sort(key_hashes.begin(), key_hashes.end());
    for (auto commit = commits_.rbegin(); commit != commits_.rend(); ++commit) {
      if (commit->number <= snapshot_number) break;
      for (uint64_t hash : commit->key_hashes) {
        if (std::binary_search(key_hashes.begin(), key_hashes.end(), hash)) return 0;
        if (std::find(watched_hashes.begin(), watched_hashes.end(), hash) != watched_hashes.end()) {
          return 0;
        }
      }
    }
  }
  in_flight_.insert(++last_);
  commits_.push_back({last_, std::move(key_hashes)});
  return last_;
}

void CommitOrder::End(uint64_t number) {
  in_flight_.erase(number);
  uint64_t oldest = BeginNumber();
  if (!snapshots_.empty()) oldest = std::min(oldest, *snapshots_.begin());
  while (!commits_.empty() && commits_.front().number <= oldest) commits_.pop_front();
}

}  // namespace nacre::sqlite
