#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/slice.h"
#include "nacre/status.h"

namespace nacre {

/// The most fragments of one table: those of rs(16,4).
inline constexpr int kMaxFragments = 20;

enum class RedundancyKind : uint8_t {
  kReplicated = 0,    ///< Whole copies. "none" is one copy.
  kErasureCoded = 1,  ///< Spread over `data` nodes, with Reed-Solomon parity on `parity` others.
};

/// How the bytes of a table are kept, so that any `parity` nodes may be lost.
struct Redundancy {
  RedundancyKind kind = RedundancyKind::kReplicated;
  uint8_t data = 1;    ///< k. Of copies: 1.
  uint8_t parity = 0;  ///< m. Of n copies: n - 1.

  static Redundancy Copies(int copies) { return {.parity = static_cast<uint8_t>(copies - 1)}; }

  bool striped() const { return kind == RedundancyKind::kErasureCoded; }
  /// Nodes that one table needs, and pieces it consists of.
  int fragments() const { return data + parity; }
  /// What it takes to keep that many bytes of tables, heads and rounding apart.
  uint64_t StoredBytes(uint64_t table_bytes) const {
    return (table_bytes * static_cast<uint64_t>(fragments()) + data - 1) / data;
  }
  /// The best that fewer than fragments() nodes allow, at least one: as many may be lost, if there
  /// is one to spare for each.
  Redundancy OnNodes(int nodes) const;
  std::string ToString() const;
  bool operator==(const Redundancy&) const = default;
};

/// Whether ParseRedundancy could have made it.
bool IsValid(const Redundancy& redundancy);

/// "none", "rep(n)" with 1 <= n <= 16, or "rs(k,m)" with 1 <= k <= 16 and 0 <= m <= 4. A single
/// data fragment is a copy: rs(1,m) is rep(m+1). `InvalidArgument` naming the text otherwise.
Status ParseRedundancy(const Slice& text, Redundancy* redundancy);

/// The redundancy of each level of a database.
class RedundancyPolicy {
 public:
  /// No redundancy anywhere.
  RedundancyPolicy() : rules_{{.level = kAnyLevel, .redundancy = {}}} {}

  /// One redundancy for all levels, or rules like "L0:rep(3),*:rs(4,2)", of which the first that
  /// fits a level holds; the last one must be for "*". `InvalidArgument` naming what is wrong.
  static Status Parse(const Slice& text, RedundancyPolicy* policy);

  const Redundancy& For(int level) const;
  /// The redundancy of the level that needs the most nodes.
  const Redundancy& Widest() const;
  /// Nodes that may be lost where most may.
  int MostParity() const;
  std::string ToString() const;

 private:
  static constexpr int kAnyLevel = -1;
  struct Rule {
    int level = kAnyLevel;
    Redundancy redundancy;
  };
  std::vector<Rule> rules_;  ///< The last one is for any level.
};

}  // namespace nacre
