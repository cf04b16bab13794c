#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/sim/sim_model.h"

namespace nacre::sim {

/// What one follower may show. Each look is of one moment in the history of writes: with whatever
/// it shows it shows all that was acknowledged before that began; later looks are of the same or a
/// later moment; and after it has caught up, nothing is missing that was acknowledged before.
///
/// A write that the owner has not acknowledged yet may be shown, and lost, when the owner ends at
/// that moment (docs/durability.md, section 11); then later looks may be without it.
///
/// Thread safety: as Simulation.
class FollowerModel {
 public:
  /// `model` outlives this.
  FollowerModel(Model* model, uint32_t number)
      : model_(model), number_(number), floors_(model->size()) {}

  /// What a look shows at least, and at most.
  struct Bounds {
    std::vector<uint64_t> floors{};  ///< Attempts, by group.
    uint64_t moment = 0;             ///< Whatever was acknowledged before is there.
    uint64_t end = UINT64_MAX;       ///< Nothing is there that began later.
  };
  /// Bounds of a look that begins now; `latest`: it has to show all that was acknowledged before.
  Bounds Begin(bool latest) const;
  /// The look has its moment.
  void Fix(Bounds* bounds) const { bounds->end = model_->moment(); }
  /// Judges what was seen at one moment, and from then on knows that it was. `what`: of a look.
  void Judge(const Bounds& bounds, const std::vector<Model::Sight>& sights, const char* what);
  /// All that was acknowledged before the call to which these bounds belong is seen from now on.
  void CaughtUp(const Bounds& bounds);

  /// How often something was seen that later looks did not show any more.
  uint64_t lost() const { return lost_; }

 private:
  /// The attempts that the sights stand for, the oldest that they may be.
  std::vector<uint64_t> Resolve(const Bounds& bounds, const std::vector<Model::Sight>& sights,
                                uint64_t* moment, const char* what) const;
  void Fail(size_t group, const char* what, const std::string& why) const;

  Model* const model_;
  const uint32_t number_;
  std::vector<uint64_t> floors_;  ///< What was seen last, by group.
  uint64_t moment_ = 0;           ///< The latest at which anything that was seen began.
  uint64_t lost_ = 0;
};

}  // namespace nacre::sim
