#include "console/history.h"

#include <fmt/format.h>

#include <cassert>
#include <cmath>
#include <utility>

#include "util/json_text.h"

namespace nacre::console {

History::History(std::vector<std::string> names, size_t capacity)
    : names_(std::move(names)), capacity_(capacity) {}

void History::Add(int64_t milliseconds, std::vector<double> values) {
  assert(values.size() == names_.size());
  MutexLock lock(&mutex_);
  points_.push_back({milliseconds, std::move(values)});
  if (points_.size() > capacity_) points_.pop_front();
}

size_t History::size() const {
  MutexLock lock(&mutex_);
  return points_.size();
}

std::string History::Json() const {
  std::string json = "{\"names\": [";
  for (size_t i = 0; i < names_.size(); ++i) json += (i > 0 ? ", " : "") + JsonString(names_[i]);
  json += "],\n\"points\": [";
  MutexLock lock(&mutex_);
  for (size_t i = 0; i < points_.size(); ++i) {
    json += fmt::format("{}[{}", i > 0 ? ",\n" : "", points_[i].milliseconds);
    for (const double value : points_[i].values) {
      json += std::isfinite(value) ? fmt::format(",{:.6g}", value) : ",null";
    }
    json += ']';
  }
  return json + "]}\n";
}

}  // namespace nacre::console
