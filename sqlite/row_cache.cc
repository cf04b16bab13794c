#include "sqlite/row_cache.h"

#include <utility>

#include "util/hash.h"

namespace nacre::sqlite {
namespace {

constexpr size_t kPlacesMin = 64;

}  // namespace

void RowCache::Use(uint64_t state) {
  if (state == state_) return;
  state_ = state;
  if (added_ == 0) return;
  ++generation_;
  added_ = 0;
}

bool RowCache::Find(const Slice& key, Slice* value) const {
  if (added_ == 0) return false;
  const uint64_t hash = Hash64(key);
  const Place& place = places_[hash & (places_.size() - 1)];
  if (!Has(place, hash, key)) return false;
  *value = place.bytes;
  value->remove_prefix(place.key_bytes);
  return true;
}

void RowCache::Fill(Place* place, uint64_t hash, const Slice& key, const Slice& value) const {
  place->hash = hash;
  place->generation = generation_;
  place->key_bytes = key.size();
  place->bytes.assign(key.data(), key.size());
  place->bytes.append(value.data(), value.size());
}

void RowCache::Grow() {
  std::vector<Place> before(places_.empty() ? kPlacesMin : 2 * places_.size());
  places_.swap(before);
  added_ = 0;
  for (Place& old : before) {
    if (old.generation != generation_) continue;
    Place& place = PlaceOf(old.hash);
    added_ += place.generation != generation_ ? 1 : 0;
    place = std::move(old);
  }
}

void RowCache::Add(const Slice& key, const Slice& value) {
  if (key.size() + value.size() > kBytesMax) return;
  if (places_.empty() || (added_ >= places_.size() && places_.size() < kPlacesMax)) Grow();
  const uint64_t hash = Hash64(key);
  ++added_;
  Fill(&PlaceOf(hash), hash, key, value);
}

void RowCache::Write(const Slice& key, const Slice& value) {
  if (added_ == 0) return;
  const uint64_t hash = Hash64(key);
  Place& place = PlaceOf(hash);
  if (!Has(place, hash, key)) return;
  if (key.size() + value.size() > kBytesMax) {
    place.generation = 0;
  } else {
    Fill(&place, hash, key, value);
  }
}

void RowCache::Delete(const Slice& key) {
  if (added_ == 0) return;
  const uint64_t hash = Hash64(key);
  Place& place = PlaceOf(hash);
  if (Has(place, hash, key)) place.generation = 0;
}

}  // namespace nacre::sqlite
