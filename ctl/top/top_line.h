#pragma once

#include <cstdint>
#include <string>
#include <vector>

// What the parts of the view of `nacre-ctl top` are made of.

namespace nacre::ctl {

/// How lines stand out.
enum class TopColor : uint8_t {
  kNone,
  kTitle,
  kBad,      ///< Something does not work.
  kStrange,  ///< Something is not as it was or should be.
};

struct TopLine {
  std::string text{};  ///< Printable.
  TopColor color = TopColor::kNone;
};

/// In which order nodes and databases stand.
enum class TopOrder : uint8_t {
  kGiven,  ///< Nodes as the pool names them, databases by name.
  kBusy,   ///< Those that do most come first: by bytes a second, and by stored bytes.
  kFull,   ///< By the share of the memory that is leased, and by leased bytes.
};

/// The lines of one node or database, which stay together.
struct TopBlock {
  std::vector<TopLine> lines{};
  bool needs_a_look = false;  ///< Shown even where others are left out.
};

/// A table, whose lines are no wider than asked for.
struct TopSection {
  std::string titles{};
  std::vector<TopBlock> blocks{};
};

}  // namespace nacre::ctl
