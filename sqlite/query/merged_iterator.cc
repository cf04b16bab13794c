#include "sqlite/query/merged_iterator.h"

#include <utility>

#include "sqlite/row/key_encoding.h"

namespace nacre::sqlite {
void MergedIterator::Open(const ReadView& view, std::string begin, std::string end,
                          bool backwards) {
  const uint32_t space = SpaceOf(begin);
  if (view_.state != view.state || (family_ != nullptr && family_->space() != space)) Close();
  view_ = view;
  family_ = view_.FamilyOf(space);
  valid_ = false;
  if (family_ == nullptr) return;
  if (stored_ == nullptr) stored_ = view_.state->TakeIterator(*family_);
  begin_ = std::move(begin);
  end_ = std::move(end);
  backwards_ = backwards;
  ends_with_family_ = !family_->has_all_spaces() &&
                      !Slice(end_).starts_with(Slice(begin_.data(), kSpaceBytes));
  here_.assign(begin_, 0, kSpaceBytes);
  SeekStart();
  ChooseCurrent();
}

void MergedIterator::Close() {
  if (stored_ != nullptr) view_.state->GiveBack(*family_, std::move(stored_));
  stored_ = nullptr;
  family_ = nullptr;
  view_ = ReadView();
  valid_ = false;
}

Status MergedIterator::status() const {
  if (stored_ != nullptr) return view_.state->Explain(stored_->status());
  return view_.state == nullptr ? Status::OK() : ReadView::FamilyIsGone();
}

Slice MergedIterator::OwnKey() const { return WithoutSpace(own_->first); }

bool MergedIterator::StoredInRange() {
  if (!stored_->Valid()) return false;
  const Slice stored = stored_->key();
  const bool in_range = backwards_ ? stored.compare(family_->KeyIn(begin_)) >= 0
                                   : ends_with_family_ || stored.compare(family_->KeyIn(end_)) < 0;
  if (in_range) stored_key_ = family_->KeyOfSpace(stored);
  return in_range;
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
    stored_->Seek(family_->KeyIn(begin_));
    SeekOwn(begin_, /*strictly=*/false);
    return;
  }
  if (ends_with_family_) {
    stored_->SeekToLast();
  } else {
    const Slice end = family_->KeyIn(end_);
    stored_->SeekForPrev(end);
    if (stored_->Valid() && stored_->key() == end) stored_->Prev();
  }
  SeekOwn(end_, /*strictly=*/true);
}

void MergedIterator::ChooseCurrent() {
  while (true) {
    const bool stored = StoredInRange();
    const bool own = OwnInRange();
    // One that is valid has not failed.
    valid_ = stored || (own && stored_->status().ok());
    if (!valid_) return;
    int order = stored ? -1 : 1;
    if (stored && own) {
      order = stored_key_.compare(OwnKey());
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
    here_.resize(kSpaceBytes);
    here_.append(key.data(), key.size());
    if (!from_overlay_) StepStored();
    SeekOwn(here_, /*strictly=*/true);
  }
  ChooseCurrent();
}

}  // namespace nacre::sqlite
