#include "sqlite/merged_iterator.h"

#include <utility>

namespace nacre::sqlite {

void MergedIterator::Open(const ReadView& view, std::string begin, std::string end,
                          bool backwards) {
  if (view_.state != view.state) Close();
  view_ = view;
  if (stored_ == nullptr) stored_ = view_.state->TakeIterator();
  begin_ = std::move(begin);
  end_ = std::move(end);
  backwards_ = backwards;
  SeekStart();
  Settle();
}

void MergedIterator::Close() {
  if (stored_ != nullptr) view_.state->GiveBack(std::move(stored_));
  stored_ = nullptr;
  view_ = ReadView();
  valid_ = false;
}

bool MergedIterator::StoredInRange() const {
  if (!stored_->Valid()) return false;
  return backwards_ ? stored_->key().compare(begin_) >= 0
                    : end_.empty() || stored_->key().compare(end_) < 0;
}

bool MergedIterator::OwnInRange() const {
  if (!own_valid_) return false;
  return backwards_ ? own_->first.compare(begin_) >= 0
                    : end_.empty() || own_->first.compare(end_) < 0;
}

void MergedIterator::StepOwn() {
  const Overlay::Map& entries = view_.overlay->entries();
  if (!backwards_) {
    own_valid_ = ++own_ != entries.end();
  } else if (own_ == entries.begin()) {
    own_valid_ = false;
  } else {
    --own_;
  }
}

void MergedIterator::SeekOwn(const Slice& key, bool strictly) {
  const Overlay& overlay = *view_.overlay;
  const Overlay::Map& entries = overlay.entries();
  version_ = overlay.version();
  if (entries.empty()) {
    own_valid_ = false;
    return;
  }
  if (!backwards_) {
    own_ = strictly ? entries.upper_bound(key) : entries.lower_bound(key);
    own_valid_ = own_ != entries.end();
    return;
  }
  own_ = strictly ? entries.lower_bound(key) : entries.upper_bound(key);
  own_valid_ = own_ != entries.begin();
  if (own_valid_) --own_;
}

void MergedIterator::SeekStart() {
  if (!backwards_) {
    stored_->Seek(begin_);
    SeekOwn(begin_, /*strictly=*/false);
    return;
  }
  if (end_.empty()) {
    stored_->SeekToLast();
    SeekOwn(std::string(8, '\xff'), /*strictly=*/false);
    return;
  }
  stored_->SeekForPrev(end_);
  if (stored_->Valid() && stored_->key() == Slice(end_)) stored_->Prev();
  SeekOwn(end_, /*strictly=*/true);
}

void MergedIterator::Settle() {
  while (true) {
    const bool stored = StoredInRange();
    const bool own = OwnInRange();
    valid_ = (stored || own) && stored_->status().ok();
    if (!valid_) return;
    int order = stored ? -1 : 1;
    if (stored && own) {
      order = stored_->key().compare(own_->first);
      if (backwards_) order = -order;
    }
    from_overlay_ = order >= 0;
    if (!from_overlay_) return;
    if (order == 0) StepStored();
    if (!own_->second.deleted) return;
    StepOwn();
  }
}

void MergedIterator::Next() {
  if (view_.overlay->version() == version_) {
    from_overlay_ ? StepOwn() : StepStored();
  } else {
    const Slice key = this->key();
    here_.assign(key.data(), key.size());
    if (!from_overlay_) StepStored();
    SeekOwn(here_, /*strictly=*/true);
  }
  Settle();
}

}  // namespace nacre::sqlite
