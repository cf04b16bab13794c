#include "db/wal/kept_log.h"

#include <algorithm>
#include <iterator>

#include "util/planted_bug.h"

namespace nacre {

void KeptLog::Add(LogSegment segment, SequenceNumber through) {
  const uint64_t number = segment.number;
  const uint64_t bytes = segment.copies.front().length;
  const bool added =
      segments_.try_emplace(number, Kept{.segment = std::move(segment), .through = through}).second;
  if (added) bytes_ += bytes;
  const auto newest = std::prev(segments_.end());
  for (auto it = segments_.begin(); it != newest; ++it) Mark(&it->second);
}

void KeptLog::Mark(Kept* kept) {
  if (kept->segment.kept) return;
  kept->segment.kept = true;
  kept->recorded = false;
}

LogSegment KeptLog::TakeOldest() {
  auto oldest = segments_.extract(segments_.begin());
  bytes_ -= oldest.mapped().segment.copies.front().length;
  return std::move(oldest.mapped().segment);
}

std::vector<LogSegment> KeptLog::TakeUnneeded(const Limits& limits) {
  std::vector<LogSegment> unneeded;
  while (!segments_.empty() && bytes_ > limits.bytes) {
    const bool needed = segments_.begin()->second.through > limits.needed &&
                        !NACRE_PLANTED_BUG("archive.log-not-kept-for-it");
    if (needed && bytes_ <= limits.readers_bytes) break;
    unneeded.push_back(TakeOldest());
  }
  return unneeded;
}

std::vector<LogSegment> KeptLog::LeaveNodes(const std::function<bool(NodeId)>& leave) {
  uint64_t lost = 0;  // The latest one that has no copy left.
  for (auto& [number, kept] : segments_) {
    std::vector<ExtentAddr>& copies = kept.segment.copies;
    const auto left = std::stable_partition(
        copies.begin(), copies.end(),
        [&](const ExtentAddr& copy) { return !leave(static_cast<NodeId>(copy.start.node)); });
    if (left == copies.end()) continue;
    if (left == copies.begin()) {
      lost = number;
      continue;
    }
    given_up_.insert(given_up_.end(), left, copies.end());
    copies.erase(left, copies.end());
    kept.segment.kept = true;
    kept.recorded = false;
  }
  std::vector<LogSegment> unneeded;
  while (!segments_.empty() && segments_.begin()->first <= lost) unneeded.push_back(TakeOldest());
  return unneeded;
}

std::vector<LogSegment> KeptLog::Unrecorded() const {
  std::vector<LogSegment> unrecorded;
  for (const auto& [number, kept] : segments_) {
    if (!kept.recorded) unrecorded.push_back(kept.segment);
  }
  return unrecorded;
}

std::vector<ExtentAddr> KeptLog::Recorded() {
  for (auto& [number, kept] : segments_) kept.recorded = true;
  return std::exchange(given_up_, {});
}

}  // namespace nacre
