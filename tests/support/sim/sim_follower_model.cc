#include "tests/support/sim/sim_follower_model.h"

#include <fmt/format.h>

#include <algorithm>

namespace nacre::sim {

void FollowerModel::Fail(size_t group, const char* what, const std::string& why) const {
  model_->Fail(group, fmt::format("follower {}: {}: {}", number_, what, why));
}

FollowerModel::Bounds FollowerModel::Begin(bool latest) const {
  Bounds bounds{.floors = floors_, .moment = moment_};
  for (size_t group = 0; latest && group < floors_.size(); ++group) {
    bounds.floors[group] = std::max(bounds.floors[group], model_->floor(group));
  }
  return bounds;
}

void FollowerModel::CaughtUp(const Bounds& bounds) {
  for (size_t group = 0; group < floors_.size(); ++group) {
    floors_[group] = std::max(floors_[group], bounds.floors[group]);
  }
}

std::vector<uint64_t> FollowerModel::Resolve(const Bounds& bounds,
                                             const std::vector<Model::Sight>& sights,
                                             uint64_t* moment, const char* what) const {
  std::vector<uint64_t> attempts(sights.size());
  *moment = bounds.moment;
  // What one group shows tells of others what they have to show.
  for (bool stable = false; !stable;) {
    stable = true;
    for (size_t i = 0; i < sights.size(); ++i) {
      const Model::Sight& sight = sights[i];
      const uint64_t floor = model_->KeptOf(sight.group, bounds.floors[sight.group]);
      const uint64_t before = model_->AcknowledgedBefore(sight.group, *moment);
      uint64_t attempt = sight.attempt;
      if (!sight.found) {
        bool deleted = false;
        attempt = model_->DeletionFrom(sight.group, std::max(floor, before), &deleted);
        if (!deleted) Fail(sight.group, what, "is not there");
      }
      if (attempt < floor) {
        Fail(sight.group, what, fmt::format("shows attempt {} after {}", attempt, floor));
      }
      if (attempt < before) {
        Fail(
            sight.group, what,
            fmt::format("shows attempt {} without {}, and what began after that", attempt, before));
      }
      attempts[i] = attempt;
      const uint64_t begun = model_->BegunAt(sight.group, attempt);
      if (begun > bounds.end) {
        Fail(sight.group, what, fmt::format("shows attempt {}, which began later", attempt));
      }
      if (sight.found && model_->forbidden(sight.group, attempt)) {
        Fail(sight.group, what,
             fmt::format("shows attempt {}, of an owner that had been replaced", attempt));
      }
      if (begun > *moment) {
        *moment = begun;
        stable = false;
      }
    }
  }
  return attempts;
}

void FollowerModel::Judge(const Bounds& bounds, const std::vector<Model::Sight>& sights,
                          const char* what) {
  uint64_t moment = 0;
  const std::vector<uint64_t> attempts = Resolve(bounds, sights, &moment, what);
  for (size_t i = 0; i < sights.size(); ++i) {
    uint64_t& floor = floors_[sights[i].group];
    if (attempts[i] < bounds.floors[sights[i].group]) {
      ++lost_;
      // Another look may have seen more meanwhile.
      if (floor == bounds.floors[sights[i].group]) floor = attempts[i];
    }
    floor = std::max(floor, attempts[i]);
  }
  moment_ = std::max(moment_, moment);
}

}  // namespace nacre::sim
