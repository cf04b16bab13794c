#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "nacre/db.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "sharding/shard.h"

namespace nacre {

/// The first answer that says that a shard has moved; or OK.
inline Status MovedOf(std::span<const Status> answers) {
  const auto moved = std::ranges::find_if(answers, [](const Status& status) {
    return IsOfClosedDatabase(status) || status.IsAborted();
  });
  return moved == answers.end() ? Status::OK() : *moved;
}

/// Some of the keys of a MultiGet, to be looked up by themselves, with what they are answered.
class SomeKeys {
 public:
  /// Those for whose place `wanted` is true.
  template <typename Wanted>
  SomeKeys(std::span<const Slice> all, const Wanted& wanted) {
    for (size_t i = 0; i < all.size(); ++i) {
      if (!wanted(i)) continue;
      places_.push_back(i);
      keys_.push_back(all[i]);
    }
    values_.resize(keys_.size());
    statuses_.resize(keys_.size());
  }

  size_t size() const { return keys_.size(); }
  const std::vector<size_t>& places() const { return places_; }
  std::span<const Slice> keys() const { return keys_; }
  PinnableSlice* values() { return values_.data(); }
  Status* statuses() { return statuses_.data(); }
  std::span<const PinnableSlice> found() const { return values_; }
  std::span<const Status> answers() const { return statuses_; }

  /// Gives the answers to the places that the keys had.
  void GiveBack(PinnableSlice* values, Status* statuses) {
    for (size_t i = 0; i < places_.size(); ++i) {
      values[places_[i]] = std::move(values_[i]);
      statuses[places_[i]] = std::move(statuses_[i]);
    }
  }

 private:
  std::vector<size_t> places_;
  std::vector<Slice> keys_;
  std::vector<PinnableSlice> values_;
  std::vector<Status> statuses_;
};

}  // namespace nacre
