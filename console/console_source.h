#pragma once

#include <cstdint>
#include <string>

#include "nacre/status.h"

namespace nacre::console {

/// What an operator may order by the console.
struct Order {
  enum class Kind : uint8_t { kDrain, kUndrain, kPauseRepair, kResumeRepair };
  Kind kind = Kind::kDrain;
  std::string node;  ///< The address of the node to drain or undrain.
};

/// What the console shows, as JSON. Where a method answers a text, it is a whole value of JSON.
///
/// Thread safety: all methods may be called from many threads at once.
class ConsoleSource {
 public:
  virtual ~ConsoleSource() = default;

  /// How many samples of the pool were taken. Does not wait.
  virtual uint64_t samples() const = 0;
  /// The last sample: nodes, databases, directions and the latest events. Does not wait.
  virtual std::string PoolJson() const = 0;
  /// Figures of the pool over time. Does not wait.
  virtual std::string HistoryJson() const = 0;
  /// Levels of the databases, read from their manifests. Takes a few round trips for each database,
  /// unless it was asked for a moment ago.
  virtual std::string LevelsJson() = 0;
  /// What the doctor finds. Takes as long as that, at most one operation's time for each node.
  virtual std::string DoctorJson() = 0;
  /// `InvalidArgument` for a node that there is not; otherwise fails as nacre-ctl does.
  virtual Status Carry(const Order& order) = 0;
};

}  // namespace nacre::console
