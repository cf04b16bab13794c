#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nacre/comparator.h"

namespace nacre {

/// What a database has to answer: an ordered map that remembers its past.
///
/// Time is the number of updates so far; a snapshot is a time.
class ModelDB {
 public:
  using Value = std::shared_ptr<const std::string>;  ///< Null: absent.
  using Pairs = std::vector<std::pair<std::string, Value>>;

  explicit ModelDB(const Comparator* comparator) : keys_(Less{comparator}) {}

  void Put(const std::string& key, std::string value);
  void Delete(const std::string& key);
  /// As the operator `stringappend` does.
  void Merge(const std::string& key, const std::string& operand);
  /// All in [begin, end), at one moment.
  void DeleteRange(const std::string& begin, const std::string& end);
  uint64_t Now() const { return now_; }

  Value Get(const std::string& key, uint64_t time) const;
  /// The pairs in [lower, upper) at `time`, in order.
  Pairs Visible(uint64_t time, const std::optional<std::string>& lower = {},
                const std::optional<std::string>& upper = {}) const;

  /// Forgets what is visible neither now nor at any of `times`.
  void Forget(const std::set<uint64_t>& times);

 private:
  struct Less {
    const Comparator* comparator;
    bool operator()(const std::string& a, const std::string& b) const {
      return comparator->Compare(a, b) < 0;
    }
  };
  struct Version {
    uint64_t time;
    Value value;
  };
  using Versions = std::vector<Version>;  ///< Oldest first.

  static Value At(const Versions& versions, uint64_t time);

  uint64_t now_ = 0;
  std::map<std::string, Versions, Less> keys_;
};

}  // namespace nacre
