#include "transactions/key_tracker.h"

namespace nacre {

KeyTracker::Untracked KeyTracker::UntrackRead(uint32_t family, const Slice& key) {
  const auto keys = families_.find(family);
  if (keys == families_.end()) return Untracked::kNotTracked;
  const auto found = keys->second.find(key.ToString());
  if (found == keys->second.end()) return Untracked::kNotTracked;
  TrackedKey& tracked = found->second;
  if (tracked.reads == 0) return Untracked::kNotTracked;
  --tracked.reads;
  if (tracked.reads > 0 || tracked.writes > 0) return Untracked::kCounted;
  keys->second.erase(found);
  return Untracked::kRemoved;
}

bool KeyTracker::Subtract(uint32_t family, const std::string& key, const TrackedKey& later) {
  const auto keys = families_.find(family);
  if (keys == families_.end()) return false;
  const auto found = keys->second.find(key);
  if (found == keys->second.end()) return false;
  found->second.reads -= later.reads;
  found->second.writes -= later.writes;
  if (found->second.reads > 0 || found->second.writes > 0) return false;
  keys->second.erase(found);
  return true;
}

void KeyTracker::Merge(const KeyTracker& later) {
  later.ForEach([this](uint32_t family, const std::string& key, const TrackedKey&) {
    Reserve(family, key);  // Nothing takes memory from here on.
  });
  later.ForEach([this](uint32_t family, const std::string& key, const TrackedKey& more) {
    TrackedKey& tracked = families_.find(family)->second.find(key)->second;
    tracked.sequence = std::min(tracked.sequence, more.sequence);
    tracked.reads += more.reads;
    tracked.writes += more.writes;
    tracked.exclusive |= more.exclusive;
  });
}

const TrackedKey* KeyTracker::Find(uint32_t family, const Slice& key) const {
  const auto keys = families_.find(family);
  if (keys == families_.end()) return nullptr;
  const auto found = keys->second.find(key.ToString());
  return found == keys->second.end() ? nullptr : &found->second;
}

size_t KeyTracker::size() const {
  size_t size = 0;
  for (const auto& [family, keys] : families_) size += keys.size();
  return size;
}

}  // namespace nacre
