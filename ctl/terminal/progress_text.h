#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

// How nacre-ctl says how far something has come: bars, percentages, and the time that is left.

namespace nacre::ctl {

/// "[####------]": `columns` between the brackets, of which as many are filled as `done` is of
/// `total`. The last one is filled only when all is done.
std::string BarText(uint64_t done, uint64_t total, size_t columns);
/// 0 to 100, which is said only when all is done, or when there is nothing to do.
uint64_t PercentOf(uint64_t done, uint64_t total);
/// "7 s", "3 min 07 s", "2 h 05 min", "4 d 03 h".
std::string DurationText(uint64_t seconds);

/// How far a command has come.
struct ProgressFigures {
  std::string title{};  ///< "restore orders"
  uint64_t done = 0;    ///< Bytes.
  uint64_t total = 0;
  uint64_t bytes_per_second = 0;  ///< 0: not known, and so is the time that is left.
  std::string detail{};           ///< What else there is to say.
};
/// "restore orders [####------]  42 %  1.2 GiB of 3.0 GiB  210.4 MiB/s  8 s left  3 of 9 tables" in
/// `columns` at most: the bar becomes shorter first, then the line is cut.
std::string ProgressText(const ProgressFigures& figures, size_t columns);

}  // namespace nacre::ctl
