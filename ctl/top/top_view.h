#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ctl/top/pool_sample.h"
#include "ctl/top/top_line.h"

// What `nacre-ctl top` shows of a sample, as lines: a summary, the nodes, the databases. It depends
// on nothing but its arguments.

namespace nacre::ctl {

/// "as given", "busiest first", "fullest first".
const char* ToString(TopOrder order);
/// The one after it, and the first one after the last.
TopOrder NextOrder(TopOrder order);

struct TopFormat {
  size_t width = 0;   ///< 0: any.
  size_t height = 0;  ///< 0: any. Else what does not fit is counted, and what is well is left out.
  TopOrder order = TopOrder::kGiven;
  std::string heading{};  ///< The first line; empty: there is none.
};

/// Lines that are no wider, and no more, than asked for.
std::vector<TopLine> RenderTop(const PoolSample& sample, const TopFormat& format);
/// The bytes that fill a terminal with `lines`, which are narrower than it: in its last column the
/// cursor stays, and what erases the rest of a line would erase that.
std::string FrameText(const std::vector<TopLine>& lines, bool colored);

}  // namespace nacre::ctl
