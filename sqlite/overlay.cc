#include "sqlite/overlay.h"

#include <cstring>

namespace nacre::sqlite {

Overlay::Overlay() : memory_(first_bytes_.data(), first_bytes_.size()), entries_(&memory_) {}

const Overlay::Entry* Overlay::Find(const Slice& key) const {
  if (entries_.empty()) return nullptr;
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

Slice Overlay::Copy(const Slice& bytes) {
  if (bytes.empty()) return {};
  char* const copy = static_cast<char*>(memory_.allocate(bytes.size(), 1));
  std::memcpy(copy, bytes.data(), bytes.size());
  return {copy, bytes.size()};
}

void Overlay::Write(const Slice& key, const Entry& entry) {
  ++version_;
  auto position = entries_.end();
  // Keys often come in order.
  if (!entries_.empty() && std::prev(position)->first.compare(key) >= 0) {
    position = entries_.lower_bound(key);
  }
  if (position != entries_.end() && position->first == key) {
    if (keep_undo_) undo_.push_back({position, position->second, true});
    position->second = entry;
    return;
  }
  position = entries_.emplace_hint(position, Copy(key), entry);
  if (keep_undo_) undo_.push_back({position, {}, false});
}

void Overlay::Clear() {
  if (!families_.empty()) families_.clear();
  if (entries_.empty() && !keep_undo_) return;
  ++version_;
  entries_.clear();
  undo_.clear();
  keep_undo_ = false;
  memory_.release();
}

size_t Overlay::Mark() {
  keep_undo_ = true;
  return undo_.size();
}

void Overlay::UndoTo(size_t mark) {
  ++version_;
  while (undo_.size() > mark) {
    const Undo& last = undo_.back();
    if (last.was_there) {
      last.position->second = last.before;
    } else {
      entries_.erase(last.position);
    }
    undo_.pop_back();
  }
}

}  // namespace nacre::sqlite
